// The two servers of the edge: node:http without TLS, node:http2 with it, which speaks HTTP/1.1, too. Both read strictly and guard the head of each request.
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { newId } from "../core/ids.ts";
import type { EdgeError, EdgeMessage, EdgeRequest, EdgeResponse } from "../core/ports/edge.ts";
import { headText, type ReadHead, type Refused } from "./head.ts";
import type { EdgeLimits } from "./limits.ts";
import { edgePages, rawAnswer } from "./pages.ts";
import type { EdgeCertificates } from "./tls.ts";

export interface ServersDeps {
  readonly limits: EdgeLimits;
  readonly readHead: ReadHead;
  readonly serve: (request: EdgeRequest, response: EdgeResponse) => void;
  readonly upgrade: (request: EdgeRequest, socket: Duplex, head: Buffer) => void;
  /** From now on each answer ends its connection. */
  readonly isLeaving: () => boolean;
}

export type EdgeServer = Server | Http2SecureServer;

/** What a client wants that upgrades plain text to HTTP/2: it takes an answer of HTTP/1.1 as well. */
const H2C = /(?:^|,)\s*h2c\s*(?:,|$)/i;
const H2C_HEADERS: ReadonlySet<string> = new Set(["upgrade", "http2-settings", "connection"]);
const MAX_PAIRS = 200;

const badHead = (code: string): EdgeError => {
  if (code === "HPE_HEADER_OVERFLOW") return { status: 431, code: "HEADERS_TOO_LARGE", message: "The headers are too large." };
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return { status: 408, code: "REQUEST_TIMEOUT", message: "The request took too long to arrive." };
  return { status: 400, code: "BAD_REQUEST", message: "The request is malformed." };
};

/** Cuts a connection that does not bring the whole head of its next request in time. The timeouts of node:http do not hold for HTTP/1.1 within TLS. */
const createHeadGuard = ({ headMs, keepAliveMs }: EdgeLimits) => {
  const timers = new WeakMap<object, NodeJS.Timeout>();
  const expect = (socket: Socket, ms: number): void => {
    clearTimeout(timers.get(socket));
    timers.set(
      socket,
      setTimeout(() => socket.destroy(), ms),
    );
  };
  const clear = (socket: object): void => clearTimeout(timers.get(socket));
  return {
    opened: (socket: Socket): void => {
      expect(socket, headMs);
      socket.once("close", () => clear(socket));
    },
    arrived: clear,
    answered: (socket: Socket): void => {
      if (!socket.destroyed) expect(socket, keepAliveMs + headMs);
    },
  };
};

const isRefused = (read: EdgeRequest | Refused): read is Refused => "refused" in read;
const errorOf = ({ refused }: Refused): EdgeError => ({ status: 400, ...refused });
const refusedRequest = (message: EdgeMessage): EdgeRequest => ({
  message,
  method: message.method ?? "GET",
  host: "",
  authority: "",
  path: "",
  query: "",
  ip: "",
  secure: false,
  fromProxy: false,
  requestId: newId("req"),
});

const listenTo = (server: EdgeServer, isTls: boolean, { limits, readHead, serve, upgrade, isLeaving }: ServersDeps): void => {
  const guard = createHeadGuard(limits);
  const onRequest = (message: EdgeMessage, response: EdgeResponse): void => {
    const isHttp1 = message.httpVersionMajor === 1;
    const { socket } = message;
    if (isHttp1) {
      guard.arrived(socket);
      response.once("close", () => guard.answered(socket));
      if (isLeaving()) response.setHeader("Connection", "close");
    }
    message.on("error", () => undefined);
    response.on("error", () => undefined);
    const read = readHead(message, isTls);
    if (!isRefused(read)) {
      serve(read, response);
      return;
    }
    if (isHttp1) response.setHeader("Connection", "close");
    edgePages.refuse({ request: refusedRequest(message), response }, errorOf(read));
  };
  const onUpgrade = (message: IncomingMessage, socket: Duplex, head: Buffer): void => {
    guard.arrived(socket);
    socket.on("error", () => undefined);
    if (H2C.test(message.headers.upgrade ?? "")) {
      socket.unshift(Buffer.concat([Buffer.from(headText(message, H2C_HEADERS), "latin1"), head]));
      server.emit("connection", socket);
      return;
    }
    const read = readHead(message, isTls);
    if (!isRefused(read)) upgrade(read, socket, head);
    else edgePages.refuseSocket({ request: refusedRequest(message), socket }, errorOf(read));
  };
  const onBadHead = (error: Error & { readonly code?: string }, socket: Duplex): void => {
    if (!socket.writable || socket.destroyed) return void socket.destroy();
    socket.end(rawAnswer(badHead(error.code ?? ""), { requestId: newId("req") }), () => socket.destroy());
  };
  server.on("request", onRequest);
  server.on("upgrade", onUpgrade);
  server.on("clientError", onBadHead);
  server.on("error", () => undefined);
  server.on(isTls ? "secureConnection" : "connection", (socket: Socket & { readonly alpnProtocol?: string | false }) => {
    socket.on("error", () => undefined);
    if (socket.alpnProtocol !== "h2") guard.opened(socket);
  });
};

const HTTP1 = ({ headerBytes, headMs, keepAliveMs }: EdgeLimits) => ({
  maxHeaderSize: headerBytes,
  headersTimeout: headMs,
  // An upload may take as long as it moves: whoever serves it watches for idle streams.
  requestTimeout: 0,
  keepAliveTimeout: keepAliveMs,
  noDelay: true,
  requireHostHeader: false,
});

export const createPlainServer = (deps: ServersDeps): Server => {
  const server = createServer(HTTP1(deps.limits));
  server.keepAliveTimeout = deps.limits.keepAliveMs;
  listenTo(server, false, deps);
  return server;
};

export const createTlsServer = (deps: ServersDeps, { sniCallback, fallback }: EdgeCertificates): Http2SecureServer => {
  const { limits } = deps;
  const server = createSecureServer({
    ...HTTP1(limits),
    ...(fallback ?? {}),
    allowHTTP1: true,
    SNICallback: sniCallback,
    handshakeTimeout: limits.headMs,
    maxHeaderListPairs: MAX_PAIRS,
    settings: { maxConcurrentStreams: limits.streams, maxHeaderListSize: limits.headerBytes, initialWindowSize: 1_048_576, enablePush: false },
  });
  listenTo(server, true, deps);
  server.on("tlsClientError", () => undefined);
  server.on("sessionError", () => undefined);
  server.on("session", (session) => {
    session.on("error", () => undefined);
    // Only idle sessions run into it: a stream with traffic, or a silent one that is open, keeps its session.
    session.setTimeout(limits.keepAliveMs, () => {
      if (openStreams(session) === 0) session.close();
    });
    let open = 0;
    session.on("stream", (stream) => {
      open += 1;
      streams.set(session, open);
      stream.once("close", () => {
        open -= 1;
        streams.set(session, open);
        if (open === 0 && deps.isLeaving()) session.close();
      });
    });
  });
  return server;
};

const streams = new WeakMap<object, number>();
const openStreams = (session: object): number => streams.get(session) ?? 0;
