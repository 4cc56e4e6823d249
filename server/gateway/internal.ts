// The internal listener: health for load balancers, metrics for Prometheus, node status and drain for the operator.
// Plain node:http, because balancers and scrapers use HTTP/1.0 and odd framing that uWebSockets.js refuses; speed does not matter here.
import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { HttpRequest, HttpResponse } from "./http/http-message.ts";
import { answerOf } from "./http/in-process-request.ts";
import { ListenError } from "./http/listen-error.ts";
import type { HttpTransport } from "./http/request-context.ts";
import type { Listener } from "./uws/listen.ts";

export interface InternalRoutes {
  readonly token: string;
  readonly metrics: { text(): Promise<string>; readonly contentType: string };
  readonly node: () => object;
  readonly drain: () => void;
  /** The settings of this node, with secrets masked. */
  readonly config: () => object;
  /** Runs a background job soon; false when there is no such job. */
  readonly runJob: (name: string) => boolean;
  /** Takes a connection of another node to a carrier of this one. */
  readonly relay?: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>;
  /** Answers the health routes like the public listener. */
  readonly front: HttpTransport;
}

export interface InternalListenDeps {
  readonly host: string;
  readonly port: number;
  readonly routes: InternalRoutes;
  /** The predecessor still holds the port: start without it and take it as soon as it is free. */
  readonly inherits?: boolean;
  readonly onLate?: (error: Error) => void;
}

const MAX_BODY_BYTES = 1_024;
const MAX_HEADER_BYTES = 16_384;
/** Connections that other nodes relay are among them. */
const MAX_CONNECTIONS = 4_000;
/** Time limit of a request's head, and of the whole request. */
const REQUEST_MS = 10_000;
const TIMEOUTS_CHECKED_MS = 2_000;
/** How long close() waits for answers under way. */
const CLOSE_MS = 1_000;
const RETRY_MS = 50;
const LATE_MS = 30_000;

const JOB = /^\/internal\/jobs\/([\w.-]{1,64})\/run$/;
const HEALTH = /^\/(?:v1\/)?(?:livez|readyz|health(?:\/[a-z]+)?)$/;

/** The public path of a health route; HAProxy's `option httpchk` without arguments sends `OPTIONS /`. */
const healthPath = (method: string, path: string): string | null => {
  if (method === "OPTIONS") return path === "/" || path === "*" ? "/v1/readyz" : null;
  if ((method !== "GET" && method !== "HEAD") || !HEALTH.test(path)) return null;
  return path.startsWith("/v1/") ? path : `/v1${path}`;
};

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
const json = (status: number, body: object): HttpResponse => ({
  status,
  headers: { "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store" },
  body: JSON.stringify(body),
});
const refused = (status: number, code: string, error: string): HttpResponse => json(status, { success: false, error, code });

/** The answer depends on nothing in the request, so none of its headers go on; the simplest checks send none, not even Host. */
const toHttpRequest = (request: IncomingMessage, path: string): HttpRequest => ({
  method: request.method === "HEAD" ? "HEAD" : "GET",
  path,
  query: "",
  headers: { host: "localhost" },
  repeated: new Set(),
  peer: request.socket.remoteAddress?.replace(/^::ffff:/, "") ?? "",
});

const createAnswer = (routes: InternalRoutes): ((request: IncomingMessage) => Promise<HttpResponse>) => {
  const expected = digest(`Bearer ${routes.token}`);
  return async (request) => {
    const method = request.method ?? "";
    const path = (request.url ?? "").replace(/\?.*$/s, "");
    const health = healthPath(method, path);
    if (health !== null) return answerOf(routes.front, toHttpRequest(request, health));
    if (!timingSafeEqual(digest(request.headers.authorization ?? ""), expected)) return refused(401, "UNAUTHORIZED", "The internal token is missing or wrong.");
    switch (`${method === "HEAD" ? "GET" : method} ${path}`) {
      case "GET /metrics":
      case "GET /internal/metrics":
        return { status: 200, headers: { "Content-Type": routes.metrics.contentType }, body: await routes.metrics.text() };
      case "GET /internal/node":
        return json(200, routes.node());
      case "POST /internal/drain":
        routes.drain();
        return json(202, { draining: true });
      case "GET /internal/config":
        return json(200, routes.config());
      default: {
        const name = method === "POST" ? JOB.exec(path)?.[1] : undefined;
        if (name === undefined) return refused(404, "NOT_FOUND", "There is no such route.");
        return routes.runJob(name) ? json(202, { name }) : refused(404, "JOB_NOT_FOUND", "There is no such background job.");
      }
    }
  };
};

const write = (response: ServerResponse, { status, headers, body }: HttpResponse, close: boolean): void => {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, {
    ...headers,
    ...(body === null ? {} : { "Content-Length": Buffer.byteLength(body) }),
    ...(close ? { Connection: "close" } : {}),
  });
  response.end(body ?? undefined);
};

/** No route reads a body; the listener discards one and cuts the connection when it is too long. */
const discardBody = (request: IncomingMessage): void => {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY_BYTES) request.destroy();
  });
  request.on("error", () => undefined);
};

const createInternalServer = (routes: InternalRoutes, isLeaving: () => boolean): Server => {
  const answer = createAnswer(routes);
  const options = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: REQUEST_MS,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: TIMEOUTS_CHECKED_MS,
  };
  const server = createServer(options, (request, response) => {
    if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES)
      return write(response, refused(413, "PAYLOAD_TOO_LARGE", `A body may have ${MAX_BODY_BYTES} bytes.`), true);
    discardBody(request);
    void answer(request)
      .catch(() => refused(503, "SERVICE_UNAVAILABLE", "The answer is not available right now."))
      .then((found) => write(response, found, isLeaving()));
  });
  const expected = digest(`Bearer ${routes.token}`);
  server.on("upgrade", (request, socket, head) => {
    const isKnown = timingSafeEqual(digest(request.headers.authorization ?? ""), expected);
    if (isKnown && routes.relay !== undefined) void routes.relay(request, socket, head);
    else socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on("error", () => undefined);
  return server;
};

const bind = async (server: Server, host: string, port: number): Promise<void> => {
  server.listen({ host, port, exclusive: true });
  await once(server, "listening");
};

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : String(error));

/** Resolves once it listens, or at once with `inherits`; rejects with a `ListenError`. */
export const listenInternal = async ({ host, port, routes, inherits = false, onLate }: InternalListenDeps): Promise<Listener> => {
  let leaving = false;
  let closed = false;
  const server = createInternalServer(routes, () => leaving);
  const at = { host, port, prefix: "INTERNAL_" } as const;

  /** Tries until the predecessor frees the port or this listener closes. */
  const takeOver = async (): Promise<void> => {
    const startedAt = performance.now();
    let reported = false;
    while (!closed) {
      const code = await bind(server, host, port).then(() => null, codeOf);
      if (code === null) return closed ? void server.close() : undefined;
      if (!reported && performance.now() - startedAt > LATE_MS) {
        reported = true;
        onLate?.(new ListenError(at, code));
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
    }
  };

  const stopAccepting = (): void => {
    closed = true;
    leaving = true;
    if (server.listening) server.close();
  };
  if (inherits) void takeOver();
  else
    await bind(server, host, port).catch((error: unknown) => {
      throw new ListenError(at, codeOf(error));
    });
  const address = server.address();
  return {
    port: address === null || typeof address === "string" ? port : address.port,
    leave: () => {
      leaving = true;
    },
    stopAccepting,
    close: async () => {
      stopAccepting();
      const ended = new Promise<void>((resolve) => server.once("close", resolve));
      const openConnections = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)));
      if (openConnections === 0) return;
      const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
      await ended;
      clearTimeout(cut);
    },
  };
};
