// Opens a listener: every request becomes an Exchange, every socket path is registered by who owns it.
import type { TemplatedApp, us_listen_socket } from "uWebSockets.js";
import type { HttpDoor } from "../exchange.ts";
import { ListenError } from "../listen-error.ts";
import { UwsExchange } from "./exchange.ts";
import { uws } from "./load.ts";
import { LiveRequest } from "./snapshot.ts";
import { createTraffic } from "./traffic.ts";

export interface ListenDeps {
  readonly host: string;
  readonly port: number;
  readonly door: HttpDoor;
  /** Registers WebSocket paths; they must stand before the catch-all. `upgraded` is to be called for each connection that leaves HTTP. */
  readonly sockets?: (app: TemplatedApp, upgraded: () => void) => void;
  /** Several processes may share the port. */
  readonly sharedPort?: boolean;
}

export interface Listener {
  readonly port: number;
  /** From now on each answer ends its connection, so that callers come back elsewhere. Whoever comes is served all the same,
   * and `close` gives open connections so long from now to be used; default: until the library has ended those that nobody uses. */
  leave(lingerMs?: number): void;
  /** Takes no new connections; those that are open are served. */
  stopAccepting(): void;
  /** Stops accepting, ends streams and waits for the answers that are under way; after `leave` also until the open connections have gone. */
  close(): Promise<void>;
}

/** The library ends a connection after ten seconds without a request, and looks every four. */
const IDLE_MS = 14_000;

// The options of the C library; its type declarations know them only without a host.
const SHARED_PORT = 0;
const EXCLUSIVE_PORT = 1;
type ListenOn = (host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void) => void;
const listenOn = (app: TemplatedApp, at: { host: string; port: number; options: number }, done: (socket: us_listen_socket | false) => void): void =>
  (app.listen.bind(app) as unknown as ListenOn)(at.host, at.port, at.options, done);

/**
 * Begins work once everything that has arrived is read. A second request right behind one that is unanswered makes the library end the
 * connection: by then neither has had an effect that nobody would be told of.
 */
const createTurns = () => {
  let waiting: (() => void)[] = [];
  const beginAll = (): void => {
    const now = waiting;
    waiting = [];
    for (const work of now) work();
  };
  return (work: () => void): void => {
    if (waiting.push(work) === 1) setImmediate(beginAll);
  };
};

/** Resolves once the port is held; rejects when it cannot be. */
export const listen = ({ host, port, door, sockets, sharedPort }: ListenDeps): Promise<Listener> => {
  const app = uws.App();
  const traffic = createTraffic();
  const begin = createTurns();
  app.filter((_res, change) => traffic.connected(change));
  // The filter hears nothing more of a connection that has become a socket.
  sockets?.(app, () => traffic.connected(-1));
  app.any("/*", (res, req) => {
    const request = new LiveRequest(req, res);
    const { maxBodyBytes, handle } = door.receive(request);
    const exchange = new UwsExchange(res, request, { maxBodyBytes, traffic });
    traffic.began();
    begin(() => void handle(exchange).then(traffic.ended, traffic.ended));
  });
  return new Promise((resolve, reject) => {
    listenOn(app, { host, port, options: sharedPort === true ? SHARED_PORT : EXCLUSIVE_PORT }, (socket) => {
      if (socket === false) return reject(new ListenError({ host, port, prefix: "" }));
      let accepting = true;
      const stopAccepting = (): void => {
        if (accepting) uws.us_listen_socket_close(socket);
        accepting = false;
      };
      resolve({
        port: uws.us_socket_local_port(socket),
        leave: (lingerMs = IDLE_MS) => traffic.leave(lingerMs),
        stopAccepting,
        close: async () => {
          stopAccepting();
          for (const stream of traffic.streams) stream.abort();
          await traffic.quiet();
          app.close();
        },
      });
    });
  });
};
