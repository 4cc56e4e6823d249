// Connections to the services of tunnels that are kept for the next request, one pool for each tunnel.
import { Agent } from "node:http";
import type { Duplex } from "node:stream";
import type { Carriers } from "../../../core/ports/carriers.ts";
import type { TunnelRow } from "../store.ts";

type Done = (error: Error | null, stream?: Duplex) => void;

const IDLE_MS = 30_000;
const MAX_FREE = 16;

/** The key of the carrier that serves the tunnel. */
export interface ServedTunnel {
  readonly tunnelId: string;
  readonly key: string;
}

export const servedBy = (carriers: Pick<Carriers, "has">, { tunnelId, deviceId }: Pick<TunnelRow, "tunnelId" | "deviceId">): ServedTunnel => ({
  tunnelId,
  key: deviceId === null || carriers.has(tunnelId) ? tunnelId : deviceId,
});

export const createPool = (carriers: Pick<Carriers, "dial">) => {
  const agents = new Map<string, Agent>();
  const idle = new WeakMap<object, NodeJS.Timeout>();

  const connectTo = ({ tunnelId, key }: ServedTunnel, done: Done): void => {
    carriers.dial(key, tunnelId).then((stream) => done(null, stream), done);
  };
  const agentOf = (served: ServedTunnel): Agent => {
    const name = `${served.tunnelId}|${served.key}`;
    const found = agents.get(name);
    if (found !== undefined) return found;
    const agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_FREE, scheduling: "lifo" });
    Object.assign(agent, { createConnection: (_options: object, done: Done) => connectTo(served, done) });
    const reuse = agent.reuseSocket.bind(agent);
    agent.reuseSocket = (socket, request) => {
      clearTimeout(idle.get(socket));
      reuse(socket, request);
    };
    agent.on("free", (socket: Duplex) => {
      const timer = setTimeout(() => socket.destroy(), IDLE_MS);
      timer.unref();
      idle.set(socket, timer);
    });
    agents.set(name, agent);
    return agent;
  };
  return {
    agentOf,
    connectTo,
    /** Ends what is idle of this tunnel. */
    forget: (tunnelId: string): void => {
      for (const [name, agent] of agents)
        if (name.startsWith(`${tunnelId}|`)) {
          agents.delete(name);
          for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
        }
    },
  };
};
export type Pool = ReturnType<typeof createPool>;
