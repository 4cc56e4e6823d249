// Opens a listener: every request becomes an Exchange, every socket path is registered by who owns it.
import type { TemplatedApp, HttpResponse as UwsResponse, us_listen_socket } from "uWebSockets.js";
import type { Exchange, HttpDoor, HttpRequest } from "../exchange.ts";
import { readBody } from "./body.ts";
import { uws } from "./load.ts";
import { writeResponse, writeStream } from "./respond.ts";
import { snapshot } from "./snapshot.ts";

export interface ListenDeps {
  readonly host: string;
  readonly port: number;
  readonly door: HttpDoor;
  /** Registers WebSocket paths; they must stand before the catch-all. */
  readonly sockets?: (app: TemplatedApp) => void;
  /** Several processes may share the port. */
  readonly sharedPort?: boolean;
}

export interface Listener {
  readonly port: number;
  /** Stops accepting, ends streams and waits for the answers that are under way, at most DRAIN_MS. */
  close(): Promise<void>;
}

const DRAIN_MS = 10_000;

/** The streams that are open, each with the switch that ends it. */
type Streams = Set<AbortController>;

const createExchange = (res: UwsResponse, request: HttpRequest, { maxBodyBytes, streams }: { maxBodyBytes: number; streams: Streams }): Exchange => {
  const gone = new AbortController();
  const ending = new AbortController();
  let answered = false;
  res.onAborted(() => {
    gone.abort();
    ending.abort();
  });
  return {
    request,
    signal: gone.signal,
    ending: ending.signal,
    body: readBody(res, request, { limitBytes: maxBodyBytes, gone: gone.signal }),
    respond: (response) => {
      if (gone.signal.aborted || answered) return;
      answered = true;
      writeResponse(res, response, request.method === "HEAD");
    },
    stream: async (response) => {
      if (gone.signal.aborted || answered) return;
      answered = true;
      streams.add(ending);
      await writeStream(res, response, { gone: gone.signal, ending: ending.signal }).finally(() => streams.delete(ending));
    },
  };
};

// The options of the C library; its type declarations know them only without a host.
const SHARED_PORT = 0;
const EXCLUSIVE_PORT = 1;
type ListenOn = (host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void) => void;
const listenOn = (app: TemplatedApp, at: { host: string; port: number; options: number }, done: (socket: us_listen_socket | false) => void): void =>
  (app.listen.bind(app) as unknown as ListenOn)(at.host, at.port, at.options, done);

/** Resolves once the port is held; rejects when it cannot be. */
export const listen = ({ host, port, door, sockets, sharedPort }: ListenDeps): Promise<Listener> => {
  const app = uws.App();
  const streams: Streams = new Set();
  let underWay = 0;
  let idle: (() => void) | null = null;
  sockets?.(app);
  app.any("/*", (res, req) => {
    const request = snapshot(res, req);
    const { maxBodyBytes, handle } = door.receive(request);
    const exchange = createExchange(res, request, { maxBodyBytes, streams });
    underWay += 1;
    const done = () => {
      underWay -= 1;
      if (underWay === 0) idle?.();
    };
    void handle(exchange).then(done, done);
  });
  const settled = () =>
    new Promise<void>((resolve) => {
      if (underWay === 0) return resolve();
      const timer = setTimeout(resolve, DRAIN_MS);
      idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  return new Promise((resolve, reject) => {
    listenOn(app, { host, port, options: sharedPort === true ? SHARED_PORT : EXCLUSIVE_PORT }, (socket) => {
      if (socket === false)
        return reject(new Error(`cannot listen on ${host}:${port}; is the port taken? Set PORT (or INTERNAL_PORT) to another, or 0 for any free one`));
      resolve({
        port: uws.us_socket_local_port(socket),
        close: async () => {
          uws.us_listen_socket_close(socket);
          for (const stream of streams) stream.abort();
          await settled();
          app.close();
        },
      });
    });
  });
};
