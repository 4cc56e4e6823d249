// A small TCP load balancer like those in the field: it asks every node whether it is ready and sends new connections to those that are.

import { once } from "node:events";
import { Agent, get } from "node:http";
import { createServer, connect as dial, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

const LOOK_EVERY_MS = 100;
const ANSWER_WITHIN_MS = 2_000;

export interface Balancer {
  readonly url: string;
  /** Ports of the nodes that were ready at the last check. */
  ready(): readonly number[];
  close(): Promise<void>;
}

/** Null if no answer came in time: the node keeps its state. */
const isReady = (port: number): Promise<boolean | null> =>
  new Promise((resolve) => {
    const asked = get({ host: "127.0.0.1", port, path: "/v1/health/ready", agent: new Agent({ keepAlive: false }), timeout: ANSWER_WITHIN_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.once("timeout", () => {
      resolve(null);
      asked.destroy();
    });
    asked.once("error", () => resolve(false));
  });

export const startBalancer = async (ports: readonly number[]): Promise<Balancer> => {
  const open = new Set<Socket>();
  const over = new AbortController();
  let ready: readonly number[] = [];
  let turn = 0;

  const keep = (socket: Socket): Socket => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    return socket;
  };
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (caller) => {
    keep(caller);
    turn += 1;
    const port = ready[turn % Math.max(1, ready.length)];
    if (port === undefined) return caller.destroy();
    const node = keep(dial({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true }));
    // Each side gets what happens to the other; the balancer retries nothing and hides nothing.
    caller.once("error", () => node.destroy()).pipe(node);
    return node.once("error", () => caller.resetAndDestroy()).pipe(caller);
  });
  const look = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const states = await Promise.all(ports.map(isReady));
      ready = ports.filter((port, index) => states[index] ?? ready.includes(port));
      await delay(LOOK_EVERY_MS, undefined, { signal: over.signal }).catch(() => undefined);
    }
  };
  const looking = look();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const at = server.address();
  if (at === null || typeof at === "string") throw new Error("a TCP listener has a port");
  return {
    url: `http://127.0.0.1:${at.port}`,
    ready: () => ready,
    close: async () => {
      over.abort();
      await looking;
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
};
