// Picks ports for servers that tests start.
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Below the ports that systems give to outgoing connections, so that nobody takes a server's port while it is down. */
const PORTS = { first: 15_000, count: 15_000 };
const given = new Set<number>();
const isFree = async (port: number): Promise<boolean> => {
  const probe = createServer().listen(port, "127.0.0.1");
  const free = await once(probe, "listening").then(
    () => true,
    () => false,
  );
  if (!free) return false;
  probe.close();
  await once(probe, "close");
  return true;
};
/** A port for a server that starts, stops and starts again; with `count` the first of that many adjacent ports. */
export const freePort = async (count = 1): Promise<number> => {
  for (let n = 0; n < PORTS.count; n += 1) {
    const first = PORTS.first + Math.floor(Math.random() * PORTS.count);
    const ports = Array.from({ length: count }, (_, index) => first + index);
    if (ports.some((port) => given.has(port))) continue;
    for (const port of ports) given.add(port);
    if ((await Promise.all(ports.map(isFree))).every((free) => free)) return first;
  }
  throw new Error("no port is free");
};

const TRIES = 20;
/** Listens on an address of loopback at a port that no gateway gets from the system: a gateway takes its own port for its own on all of 127/8. */
export const listenApart = async (server: Server, host: string): Promise<number> => {
  for (let tried = 1; ; tried += 1) {
    const port = await freePort();
    server.listen(port, host);
    try {
      await once(server, "listening");
      return port;
    } catch (error) {
      // Another process listens there on this address.
      if (tried === TRIES) throw error;
    }
  }
};
