// Opens a listener: every request becomes a request context and goes to the HTTP transport; the owners of socket paths register those.
import type { TemplatedApp, us_listen_socket } from "uWebSockets.js";
import { checkFree } from "../http/free-port.ts";
import { ListenError } from "../http/listen-error.ts";
import type { HttpTransport } from "../http/request-context.ts";
import { buildName, uws } from "./load.ts";
import { UwsRequestContext } from "./request-context.ts";
import { LiveRequest } from "./snapshot.ts";
import { createTraffic, type Traffic } from "./traffic.ts";

export interface ListenDeps {
  readonly host: string;
  readonly port: number;
  readonly transport: HttpTransport;
  /** Registers WebSocket paths; they must stand before the catch-all. Call `upgraded` for each connection that leaves HTTP. */
  readonly sockets?: (app: TemplatedApp, upgraded: () => void) => void;
  /** Several processes may share the port. */
  readonly sharedPort?: boolean;
  /** HTTPS with this certificate; null: plain HTTP. */
  readonly tls?: TlsFiles | null;
}

export interface TlsFiles {
  /** The certificate, followed by the intermediate certificates. */
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Listener {
  readonly port: number;
  /** From now on each answer ends its connection, so that callers come back to another node. New requests are still served,
   * and `close` leaves open connections this long from now; default: until the library has ended the idle ones. */
  leave(lingerMs?: number): void;
  /** Takes no new connections; open ones stay served. */
  stopAccepting(): void;
  /** New connections get the certificate that these files hold now; open ones stay. Throws, and changes nothing, when the files cannot be used. */
  renew?(tls: TlsFiles): Promise<void>;
  /** Stops accepting, ends streams and waits for the answers that are under way; after `leave` also until the open connections have gone. */
  close(): Promise<void>;
}

/** The time after which the library ends an idle connection, with the distance of its checks. */
const IDLE_MS = buildName === "newer" ? 34_000 : 14_000;

// The options of the C library; its type declarations know them only without a host.
const SHARED_PORT = 0;
const EXCLUSIVE_PORT = 1;
type ListenOn = (host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void) => void;
const listenOn = (app: TemplatedApp, at: { host: string; port: number; options: number }, done: (socket: us_listen_socket | false) => void): void =>
  (app.listen.bind(app) as unknown as ListenOn)(at.host, at.port, at.options, done);

/**
 * Begins work after the library has read everything that has arrived. It ends a connection whose second request comes before the first
 * answer; at that time neither request has had an effect that its caller would not hear of.
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

/** The library cannot exchange the certificate of an app, so each certificate has an app of its own over the same transports. */
const openApp = ({ transport, sockets, tls = null }: ListenDeps, traffic: Traffic): TemplatedApp => {
  const app = tls === null ? uws.App() : uws.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile, ssl_prefer_low_memory_usage: true });
  const begin = createTurns();
  app.filter((_res, change) => traffic.connected(change));
  // The filter does not report the end of a connection that became a socket.
  sockets?.(app, () => traffic.connected(-1));
  app.any("/*", (res, req) => {
    const request = new LiveRequest(req, res);
    const { maxBodyBytes, handle } = transport.receive(request);
    const context = new UwsRequestContext(res, request, { maxBodyBytes, traffic });
    traffic.began();
    begin(() => void handle(context).then(traffic.ended, traffic.ended));
  });
  return app;
};

const hold = (app: TemplatedApp, { host, port, options }: { host: string; port: number; options: number }): Promise<us_listen_socket> =>
  new Promise((resolve, reject) => {
    listenOn(app, { host, port, options }, (socket) => (socket === false ? reject(new ListenError({ host, port, prefix: "" })) : resolve(socket)));
  });

/** Resolves once the port is held; rejects when it cannot be. */
export const listen = async (deps: ListenDeps): Promise<Listener> => {
  const { host, sharedPort = false, tls = null } = deps;
  const traffic = createTraffic();
  // The next certificate's app shares the port with this one for a moment, and the library cannot share a port that it has chosen itself.
  const port = tls === null || sharedPort ? deps.port : await checkFree({ host, port: deps.port, prefix: "" });
  const options = tls !== null || sharedPort ? SHARED_PORT : EXCLUSIVE_PORT;
  const app = openApp(deps, traffic);
  const apps = [app];
  let socket: us_listen_socket | null = await hold(app, { host, port, options });
  const held = uws.us_socket_local_port(socket);
  const stopAccepting = (): void => {
    if (socket !== null) uws.us_listen_socket_close(socket);
    socket = null;
  };
  const renew = async (files: TlsFiles): Promise<void> => {
    const heir = openApp({ ...deps, tls: files }, traffic);
    apps.push(heir);
    const next = await hold(heir, { host, port: held, options });
    // Connections that wait in the old queue are taken first.
    await new Promise((resolve) => setImmediate(resolve));
    if (socket === null) return uws.us_listen_socket_close(next);
    stopAccepting();
    socket = next;
  };
  return {
    port: held,
    leave: (lingerMs = IDLE_MS) => traffic.leave(lingerMs),
    stopAccepting,
    ...(tls === null ? {} : { renew }),
    close: async () => {
      stopAccepting();
      for (const stream of traffic.streams) stream.abort();
      await traffic.quiet();
      for (const each of apps) each.close();
    },
  };
};
