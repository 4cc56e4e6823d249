// A small TCP proxy that misbehaves on request: latency, low bandwidth, silence in one or both directions, resets, refusal.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { Random } from "../../../agent-sim/agent/index.ts";

export type Direction = "up" | "down";

/** The current state of the network. It applies to every connection, including open ones. */
export interface Weather {
  /** Added to each chunk in each direction. */
  readonly latencyMs: number;
  /** Per direction and connection; null for no limit. */
  readonly bytesPerSecond: number | null;
  /** Nothing passes in these directions, silently: bytes wait and flow once the hold ends, as after a cable is plugged in again. */
  readonly hold: readonly Direction[];
  /** New connections pass, are refused with a reset, or are accepted and never answered. */
  readonly newcomers: "pass" | "refuse" | "ignore";
}
const FAIR: Weather = { latencyMs: 0, bytesPerSecond: null, hold: [], newcomers: "pass" };

/** Sees the bytes of one connection and may drop some. */
export type ByteFilter = (direction: Direction, chunk: Buffer) => Buffer;

export interface FaultProxy {
  readonly port: number;
  readonly open: number;
  /** The times of new connections on the monotonic clock. */
  readonly arrivals: readonly number[];
  set(weather: Partial<Weather>): void;
  calm(): void;
  /** Resets a share of the open connections; returns how many. */
  reset(share?: number): number;
  /** Silently passes nothing over the open connections any more; new ones work. */
  abandon(): number;
  close(): Promise<void>;
}

export interface ProxyOptions {
  /** Ports on this machine; a connection goes to the next in turn that accepts it. */
  readonly targets: () => readonly number[];
  readonly random: Random;
  /** Called for each connection; `cut` resets both ends. */
  readonly filter?: (cut: () => void) => ByteFilter;
}

interface Link {
  readonly client: Socket;
  server: Socket | null;
  abandoned: boolean;
}

const connectTo = (port: number): Promise<Socket | null> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
    const fail = (): void => resolve(null);
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.removeListener("error", fail);
      resolve(socket);
    });
  });

export const createProxy = async ({ targets, random, filter }: ProxyOptions): Promise<FaultProxy> => {
  let weather = FAIR;
  let turn = 0;
  const links = new Set<Link>();
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  };
  const arrivals: number[] = [];
  const changed = new Set<() => void>();

  /** Moves bytes in one direction. It stops reading while the other side is full, the direction is held or the bandwidth is used up. */
  const pump = (link: Link, [from, to]: readonly [Socket, Socket], direction: Direction, sieve: ByteFilter | undefined): void => {
    let waits = 0;
    let lastWrite = Promise.resolve();
    const flow = (): void => {
      if (waits > 0 || link.abandoned || weather.hold.includes(direction)) from.pause();
      else from.resume();
    };
    const waitFor = (ready: Promise<unknown>): void => {
      waits += 1;
      flow();
      void ready.then(() => {
        waits -= 1;
        flow();
      });
    };
    let draining = false;
    const drained = (): Promise<void> =>
      new Promise((resolve) => {
        const done = (): void => {
          draining = false;
          to.removeListener("drain", done);
          to.removeListener("close", done);
          resolve();
        };
        draining = true;
        to.once("drain", done);
        to.once("close", done);
      });
    const write = (bytes: Buffer): void => {
      if (to.destroyed || bytes.length === 0) return;
      if (!to.write(bytes) && !draining) waitFor(drained());
    };
    from.on("data", (chunk: Buffer) => {
      const bytes = sieve ? sieve(direction, chunk) : chunk;
      const { latencyMs, bytesPerSecond } = weather;
      if (bytesPerSecond !== null) waitFor(new Promise((resolve) => setTimeout(resolve, (chunk.length / bytesPerSecond) * 1_000)));
      if (latencyMs === 0) return void lastWrite.then(() => write(bytes));
      const due = new Promise<void>((resolve) => setTimeout(resolve, latencyMs));
      lastWrite = lastWrite.then(() => due).then(() => write(bytes));
    });
    from.on("end", () => void lastWrite.then(() => to.end()));
    changed.add(flow);
    from.once("close", () => changed.delete(flow));
    flow();
  };
  const pass = (link: Link, server: Socket): void => {
    link.server = server;
    const sieve = filter?.(() => cut(link));
    const { client } = link;
    const over = (other: Socket): void => {
      links.delete(link);
      // A held connection hides that the other end has gone.
      if (weather.hold.length < 2 && !link.abandoned) other.destroy();
    };
    client.on("close", () => over(server));
    server.on("error", () => client.resetAndDestroy());
    server.on("close", () => over(client));
    pump(link, [client, server], "up", sieve);
    pump(link, [server, client], "down", sieve);
  };
  const accept = async (client: Socket): Promise<void> => {
    const link: Link = { client, server: null, abandoned: false };
    keep(client);
    links.add(link);
    arrivals.push(performance.now());
    client.on("error", () => link.server?.destroy());
    client.once("close", () => links.delete(link));
    if (weather.newcomers === "refuse") return void client.resetAndDestroy();
    if (weather.newcomers === "ignore") return;
    const ports = targets();
    turn += 1;
    for (let n = 0; n < ports.length; n += 1) {
      const server = await connectTo(ports[(turn + n) % ports.length] ?? 0);
      if (!server) continue;
      server.on("error", () => undefined);
      keep(server);
      if (client.destroyed) return void server.destroy();
      return pass(link, server);
    }
    client.resetAndDestroy();
  };
  const cut = ({ client, server }: Link): void => {
    client.resetAndDestroy();
    server?.resetAndDestroy();
  };

  const listener = createServer({ noDelay: true, allowHalfOpen: true, pauseOnConnect: true }, (client) => void accept(client)).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("a TCP listener has a port");
  const look = (): void => {
    for (const flow of [...changed]) flow();
  };
  const set = (next: Weather): void => {
    weather = next;
    look();
  };
  return {
    port: address.port,
    arrivals,
    get open() {
      return links.size;
    },
    set: (next) => set({ ...weather, ...next }),
    calm: () => {
      set(FAIR);
      // Reset the connections that nobody answered.
      for (const link of [...links]) if (link.server === null) link.client.resetAndDestroy();
    },
    reset: (share = 1) => {
      const chosen = [...links].filter(() => share >= 1 || random() < share);
      chosen.forEach(cut);
      return chosen.length;
    },
    abandon: () => {
      for (const link of links) link.abandoned = true;
      look();
      return links.size;
    },
    close: async () => {
      const closed = once(listener, "close");
      listener.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
};
