// A small TCP proxy that can be made to misbehave: latency, little bandwidth, silence in one or both directions, resets, refusal.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { Random } from "../../agent-sim/agent/index.ts";

export type Direction = "up" | "down";

/** What is wrong with the network right now. Applies to every connection, open ones included. */
export interface Weather {
  /** Added to each chunk, each way. */
  readonly latencyMs: number;
  /** Each way and connection; null: as fast as it goes. */
  readonly bytesPerSecond: number | null;
  /** Nothing passes in these directions, and nobody is told: bytes wait and flow when it ends, as over a cable that is plugged in again. */
  readonly hold: readonly Direction[];
  /** New connections are refused (reset at once), or accepted and left without an answer. */
  readonly newcomers: "pass" | "refuse" | "ignore";
}
const FAIR: Weather = { latencyMs: 0, bytesPerSecond: null, hold: [], newcomers: "pass" };

/** Sees what passes and may keep bytes back; one for each connection. */
export type Filter = (direction: Direction, chunk: Buffer) => Buffer;

export interface FaultProxy {
  readonly port: number;
  readonly open: number;
  /** When connections were made, on the monotonic clock. */
  readonly arrivals: readonly number[];
  set(weather: Partial<Weather>): void;
  calm(): void;
  /** Cuts a share of the open connections with a reset; answers how many. */
  reset(share?: number): number;
  /** Nothing passes over the open connections any more, and nobody is told; new ones are as good as ever. */
  abandon(): number;
  close(): Promise<void>;
}

export interface ProxyOptions {
  /** Ports on this machine; a connection goes to the next in turn that takes it. */
  readonly targets: () => readonly number[];
  readonly random: Random;
  /** Made for each connection; `cut` resets both its ends. */
  readonly filter?: (cut: () => void) => Filter;
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

  /** Moves bytes one way. Reading stops while the other side is full, the direction is held or the bandwidth is used up. */
  const pump = (link: Link, [from, to]: readonly [Socket, Socket], direction: Direction, sieve: Filter | undefined): void => {
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
      // A held line tells nobody that the other end has gone.
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
      // Those who were left without an answer learn now that nobody was there.
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
