// Opens the edge: a listener of its own, because it carries bytes for as long as somebody reads them. docs/decisions has why it is not the public listener.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { ServerHttp2Session } from "node:http2";
import { createServer as createSocketServer, type Socket, type Server as SocketServer } from "node:net";
import type { EdgePart } from "../core/ports/edge.ts";
import { ListenError } from "../gateway/http/listen-error.ts";
import { parseNetworks } from "../gateway/http/request-info.ts";
import { createReadHead } from "./head.ts";
import { EDGE_LIMITS, type EdgeLimits } from "./limits.ts";
import { edgePages } from "./pages.ts";
import { createRouting } from "./routing.ts";
import { createPlainServer, createTlsServer, type EdgeServer, type ServersDeps } from "./servers.ts";
import { createCertificates, needsTls } from "./tls.ts";

/** Connections that the supervisor of several workers hands over. The result stops it. */
export type EdgeSource = (accept: (kind: "edge" | "edge-http", socket: Socket) => void) => () => void;

export interface EdgeDeps {
  readonly host: string;
  readonly port: number;
  /** The port of the second listener, without TLS. */
  readonly httpPort: number | undefined;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly parts: readonly EdgePart[];
  /** TRUSTED_PROXIES. */
  readonly proxies: readonly string[];
  readonly source?: EdgeSource | undefined;
  readonly limits?: Partial<EdgeLimits> | undefined;
  readonly log: { error(fields: object, message: string): void };
}

export interface Edge {
  readonly port: number;
  readonly httpPort: number | null;
  readonly secure: boolean;
  /** Visitors' connections that are open. */
  connections(): number;
  /** From now on each answer ends its connection. */
  leave(): void;
  stopAccepting(): void;
  /** New handshakes get the certificate that these files hold now. */
  renew(files: { readonly certFile: string; readonly keyFile: string }): Promise<void>;
  /** Stops accepting, waits a moment for the answers under way, and cuts the rest. */
  close(): Promise<void>;
}

const POLL_MS = 25;

const readPair = async (files: EdgeDeps["tls"]) => {
  if (files === null) return null;
  const [cert, key] = await Promise.all([readFile(files.certFile), readFile(files.keyFile)]);
  return { cert, key };
};

const bind = async (
  onSocket: (socket: Socket) => void,
  at: { readonly host: string; readonly port: number; readonly prefix: "EDGE_" | "EDGE_HTTP_" },
): Promise<SocketServer> => {
  const server = createSocketServer({ noDelay: true, pauseOnConnect: false }, onSocket);
  server.listen({ host: at.host, port: at.port, exclusive: true });
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    throw new ListenError(at, error.code ?? error.message);
  });
  return server;
};

const portOf = (server: SocketServer): number => {
  const address = server.address();
  return address === null || typeof address === "string" ? 0 : address.port;
};

export const listenEdge = async ({ host, port, httpPort, tls, parts, proxies, source, log, ...rest }: EdgeDeps): Promise<Edge> => {
  const limits: EdgeLimits = { ...EDGE_LIMITS, ...rest.limits };
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  let leaving = false;
  let closed = false;
  let requests = 0;
  const onError = (error: unknown, requestId: string): void => log.error({ error, requestId }, "the edge could not serve a request");
  const routing = createRouting({ parts, onError });
  const serversDeps: ServersDeps = {
    limits,
    readHead: createReadHead(parseNetworks(proxies)),
    serve: (request, response) => {
      requests += 1;
      response.once("close", () => {
        requests -= 1;
      });
      void routing.serve(request, response);
    },
    upgrade: (request, socket, head) => void routing.upgrade(request, socket, head),
    isLeaving: () => leaving,
  };
  const pair = await readPair(tls);
  const secure = needsTls(parts, pair);
  const certificates = createCertificates({ parts, pair, onError: (error) => log.error({ error }, "could not look up a certificate") });
  const tlsServer = secure ? createTlsServer(serversDeps, certificates) : null;
  tlsServer?.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  const main: EdgeServer = tlsServer ?? createPlainServer(serversDeps);
  const redirecting: ServersDeps["serve"] = (request, response) => {
    if (!secure || routing.isPlain(request.path)) return serversDeps.serve(request, response);
    const query = request.query === "" ? "" : `?${request.query}`;
    const authority = edge.port === 443 ? request.host : `${request.host}:${edge.port}`;
    const headers = { Location: `https://${authority}${request.path}${query}` };
    edgePages.refuse({ request, response }, { status: 308, code: "HTTPS_REQUIRED", message: "This address is served over https.", headers });
  };
  const plain = createPlainServer({ ...serversDeps, serve: redirecting });

  const accept = (server: EdgeServer, socket: Socket): void => {
    if (closed || sockets.size >= limits.connections) return void socket.destroy();
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.setNoDelay(true);
    server.emit("connection", socket);
  };
  const onMain = (socket: Socket): void => accept(main, socket);
  const onPlain = (socket: Socket): void => accept(plain, socket);
  const bound = source === undefined ? [await bind(onMain, { host, port, prefix: "EDGE_" })] : [];
  if (source === undefined && httpPort !== undefined)
    bound.push(
      await bind(onPlain, { host, port: httpPort, prefix: "EDGE_HTTP_" }).catch((error: unknown) => {
        for (const server of bound) server.close();
        throw error;
      }),
    );
  const stopSource = source?.((kind, socket) => (kind === "edge" ? onMain(socket) : onPlain(socket)));
  const stopAccepting = (): void => {
    stopSource?.();
    for (const server of bound) if (server.listening) server.close();
  };
  const [first, second] = bound;
  const edge: Edge = {
    port: first === undefined ? port : portOf(first),
    httpPort: second === undefined ? (httpPort ?? null) : portOf(second),
    secure,
    connections: () => sockets.size,
    leave: () => {
      leaving = true;
      for (const part of parts) part.leave?.();
      for (const session of sessions) session.close();
    },
    stopAccepting,
    renew: async (files) => {
      const next = await readPair(files);
      if (next === null) return;
      certificates.renew(next);
      tlsServer?.setSecureContext(next);
    },
    close: async () => {
      edge.leave();
      stopAccepting();
      const until = performance.now() + limits.drainMs;
      while (requests > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      closed = true;
      for (const socket of sockets) socket.destroy();
      for (const server of [main, plain]) server.close();
    },
  };
  return edge;
};
