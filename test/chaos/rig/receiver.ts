// Receives webhooks of a rig: counts what arrives, fails some of it, and keeps chosen paths waiting for ever.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Random, systemTime as time } from "../../../agent-sim/agent/index.ts";

export interface Arrival {
  readonly path: string;
  readonly eventId: string;
  readonly ok: boolean;
  readonly atMs: number;
}

export interface ReceiverOptions {
  readonly random: Random;
  /** The share of requests that fail, half of them with 500 and half with a broken connection. */
  readonly failing: number;
  readonly hangs?: (path: string) => boolean;
}

export interface ChaosReceiver {
  readonly arrivals: readonly Arrival[];
  url(path: string): string;
  close(): Promise<void>;
}

/** What WEBHOOK_ALLOW_CIDRS of the rig's gateways names. */
const HOST = "127.0.0.2";
export const RECEIVER_ENV = { WEBHOOK_ALLOW_CIDRS: `${HOST}/32`, WEBHOOK_ALLOW_HTTP: "true" } as const;

export const startChaosReceiver = async ({ random, failing, hangs = () => false }: ReceiverOptions): Promise<ChaosReceiver> => {
  const arrivals: Arrival[] = [];
  const server = createServer((request, response) => {
    request.resume();
    request.once("end", () => {
      const [path, chance] = [request.url ?? "", random()];
      const ok = chance >= failing && !hangs(path);
      arrivals.push({ path, eventId: String(request.headers["webhook-id"]), ok, atMs: time.elapsedMs() });
      if (hangs(path)) return;
      if (ok) response.writeHead(204).end();
      else if (chance < failing / 2) response.writeHead(500).end("not now");
      else request.socket.destroy();
    });
  });
  server.listen(0, HOST);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // as: it listens on a port
  return {
    arrivals,
    url: (path) => `http://${HOST}:${port}${path}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};
