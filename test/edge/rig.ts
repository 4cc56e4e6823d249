// An edge with carriers and nothing else, and agents whose services are servers of a test.
import { readFile } from "node:fs/promises";
import { connect, type Server, type Socket } from "node:net";
import { type CarrierClient, type CarrierOptions, createCarrier, systemTime } from "../../agent-sim/agent/index.ts";
import { CARRIER_PATH } from "../../protocol/index.ts";
import { systemClock } from "../../server/core/clock.ts";
import { AppError } from "../../server/core/errors.ts";
import type { EdgePart } from "../../server/core/ports/edge.ts";
import { type CarriersDeps, createCarriers, type OwnCarriers } from "../../server/edge/carrier/carriers.ts";
import { createCarrierMount } from "../../server/edge/carrier/mount.ts";
import { type Edge, listenEdge } from "../../server/edge/listen.ts";
import type { Issued } from "../kit/net/certificates.ts";

export interface EdgeRig {
  readonly edge: Edge;
  readonly carriers: OwnCarriers;
  readonly url: string;
  /** Opens a carrier for this key, and waits until the edge has it. */
  agent(key: string, services: Readonly<Record<string, number>>, more?: Partial<CarrierOptions>): Promise<CarrierClient>;
  close(): Promise<void>;
}

export const eventually = async (holds: () => boolean, what: string): Promise<void> => {
  for (let tries = 0; tries < 2_000; tries += 1) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`never: ${what}`);
};

export const portOf = (server: Server): number => {
  const address = server.address();
  return address === null || typeof address === "string" ? 0 : address.port;
};

interface RigOptions {
  readonly parts?: (carriers: OwnCarriers) => readonly EdgePart[];
  readonly tls?: Issued;
  readonly settings?: CarriersDeps["settings"];
}

export const startEdgeRig = async ({ parts = () => [], tls, settings }: RigOptions = {}): Promise<EdgeRig> => {
  const carriers = createCarriers({ settings });
  const mount = createCarrierMount({
    carriers,
    // The test's agents name themselves; that a real agent signs is proven with a whole gateway.
    admit: async ({ headers }) => {
      const key = headers["x-key"];
      if (key === undefined) throw new AppError("UNAUTHORIZED", { details: { reason: "missing" } });
      return { key, tenantId: "ten_1" };
    },
    connectorOf: async () => null,
    refusal: ({ code, status }) => ({ status, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ success: false, code }) }),
    toAppError: (error) => (error instanceof AppError ? error : new AppError("INTERNAL_ERROR", { cause: error })),
    clock: systemClock,
    log: { info: () => undefined },
  });
  const edge = await listenEdge({
    host: "127.0.0.1",
    port: 0,
    httpPort: undefined,
    tls: tls ?? null,
    parts: [{ mounts: [mount], leave: carriers.leave }, ...parts(carriers)],
    proxies: [],
    limits: { drainMs: 300 },
    log: { error: () => undefined },
  });
  const url = `${tls === undefined ? "http" : "https"}://127.0.0.1:${edge.port}`;
  const agents: CarrierClient[] = [];
  return {
    edge,
    carriers,
    url,
    agent: async (key, services, more = {}) => {
      const before = carriers.list(key).length;
      const agent = createCarrier({
        url: () => `${url}${CARRIER_PATH}`,
        headers: () => ({ "x-key": key }),
        dial: (authority): ReturnType<CarrierOptions["dial"]> => {
          const port = services[authority];
          return port === undefined ? "unknown" : (connect({ port, host: "127.0.0.1", allowHalfOpen: true }) as Socket);
        },
        time: systemTime,
        random: () => 0,
        ...more,
      });
      agents.push(agent);
      agent.start();
      await eventually(() => carriers.list(key).length > before, "the carrier opens");
      return agent;
    },
    close: async () => {
      for (const agent of agents) agent.stop();
      await edge.close();
    },
  };
};

export const readCa = (file: string): Promise<Buffer> => readFile(file);
