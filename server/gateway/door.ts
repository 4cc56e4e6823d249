// The public door: sends each request to REST, tRPC, the documents or the key set, and answers browsers' preflights.
import { CONNECT_PATHS } from "../../protocol/index.ts";
import { AppError } from "../core/errors.ts";
import type { Tracing } from "../core/trace.ts";
import { type CallLogDeps, LoggedExchange } from "./call-log.ts";
import { beginSpan } from "./call-span.ts";
import type { Exchange, HttpDoor, HttpRequest, HttpResponse, Reception } from "./exchange.ts";
import type { Prefix, RequestFacts } from "./facts.ts";
import { handshakeFault } from "./handshake.ts";
import { headFault } from "./request-head.ts";
import { type RestDoor, splitPrefix } from "./rest.ts";
import { TRPC_PATH } from "./trpc-request.ts";

export interface DoorDeps {
  readonly rest: RestDoor;
  readonly trpc: HttpDoor;
  readonly docs: (name: string) => Promise<HttpResponse | null>;
  readonly openApi: (prefix: Prefix) => string;
  /** The local issuer's public keys; null with a foreign issuer. */
  readonly jwks: { readonly path: string; readonly body: string } | null;
  readonly factsOf: (request: HttpRequest, prefix: Prefix) => RequestFacts;
  /** Origins of browser portals; empty: any. */
  readonly origins: readonly string[];
  readonly toAppError: (error: unknown) => AppError;
  readonly callLog: CallLogDeps;
  readonly tracing: Tracing | null;
}

const SOCKETS: ReadonlySet<string> = new Set(CONNECT_PATHS);
/** Few paths are worth a closer look. */
const DOCUMENT = /\/(?:docs|openapi\.json)/;
const MAX_URL_BYTES = 8_192;
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const EXPOSED =
  "x-request-id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, Location, Link, Deprecation, Sunset, Idempotent-Replayed, x-svc-error-shape";

const document = (body: string): HttpResponse => ({
  status: 200,
  body,
  headers: { "Content-Type": "application/json; charset=utf-8", "Cache-Control": "public, max-age=60", "X-Content-Type-Options": "nosniff" },
});

/** Both may vary by something. */
const joined = (cors: Readonly<Record<string, string>>, own: Readonly<Record<string, string>>): Record<string, string> => {
  const vary = [cors["Vary"], own["Vary"]].filter((name) => name !== undefined);
  return { ...cors, ...own, ...(vary.length === 0 ? {} : { Vary: vary.join(", ") }) };
};

export const createDoor = (deps: DoorDeps): HttpDoor => {
  /** Null for whoever is no browser, or comes from somewhere else. */
  const corsHeaders = ({ headers }: HttpRequest): Record<string, string> | null => {
    const { origin } = headers;
    if (origin === undefined || (deps.origins.length > 0 && !deps.origins.includes(origin))) return null;
    return {
      "Access-Control-Allow-Origin": deps.origins.length === 0 ? "*" : origin,
      "Access-Control-Expose-Headers": EXPOSED,
      ...(deps.origins.length === 0 ? {} : { Vary: "Origin" }),
    };
  };

  const preflight = (request: HttpRequest): HttpResponse => ({
    status: 204,
    body: null,
    headers: {
      ...corsHeaders(request),
      Allow: METHODS,
      "Access-Control-Allow-Methods": METHODS,
      "Access-Control-Allow-Headers": request.headers["access-control-request-headers"] ?? "*",
      "Access-Control-Max-Age": "600",
    },
  });

  /** Documents beside the operations: they are not JSON envelopes. */
  const documentAt = async ({ method, path }: HttpRequest): Promise<HttpResponse | null> => {
    if (method !== "GET" && method !== "HEAD") return null;
    if (deps.jwks !== null && path === deps.jwks.path) return document(deps.jwks.body);
    const split = splitPrefix(path);
    if (split === null) return null;
    if (split.rest === "/openapi.json") return document(deps.openApi(split.prefix));
    if (split.rest === "/docs" || split.rest === "/docs/")
      return split.rest.endsWith("/") ? { status: 308, body: null, headers: { Location: path.slice(0, -1) } } : deps.docs("");
    return split.rest.startsWith("/docs/") ? deps.docs(split.rest.slice("/docs/".length)) : null;
  };

  const withCors = (exchange: Exchange): Exchange => {
    const cors = corsHeaders(exchange.request);
    if (cors === null) return exchange;
    const { request, gone, ending, body, notes } = exchange;
    return {
      request,
      gone,
      ending,
      body,
      notes,
      respond: (response) => exchange.respond({ ...response, headers: joined(cors, response.headers) }),
      stream: (response) => exchange.stream({ ...response, headers: joined(cors, response.headers) }),
    };
  };

  const refuse = (exchange: Exchange, error: AppError, close = false): void => {
    const { request, notes } = exchange;
    notes.refusal = error;
    const answer = deps.rest.renderError(error, deps.factsOf(request, splitPrefix(request.path)?.prefix ?? "/v1"));
    exchange.respond({ ...answer, close: close || answer.close === true });
  };

  const documentOr = async (exchange: Exchange, operations: Reception): Promise<void> => {
    const found = await documentAt(exchange.request);
    return found === null ? operations.handle(exchange) : exchange.respond(found);
  };

  // Not async: nearly every call goes straight to the operations.
  const route = (exchange: Exchange, operations: Reception): Promise<void> | void => {
    const { request } = exchange;
    const fault = headFault(request);
    if (fault !== null) return refuse(exchange, fault, true);
    if (request.path.length + request.query.length > MAX_URL_BYTES) throw new AppError("URI_TOO_LONG", { details: { maxBytes: MAX_URL_BYTES } });
    if (request.method === "OPTIONS") return exchange.respond(preflight(request));
    if (request.path.startsWith(TRPC_PATH)) return operations.handle(exchange);
    // The agent socket takes every GET with a key of the right length before.
    if (SOCKETS.has(request.path)) throw handshakeFault(request) ?? new AppError("PROTOCOL_UNSUPPORTED");
    return request.path === deps.jwks?.path || DOCUMENT.test(request.path) ? documentOr(exchange, operations) : operations.handle(exchange);
  };

  return {
    receive: (request) => {
      const span = beginSpan(deps.tracing, request);
      const operations = (request.path.startsWith(TRPC_PATH) ? deps.trpc : deps.rest).receive(request);
      const handle = async (plain: Exchange): Promise<void> => {
        const logged = new LoggedExchange(plain, deps.callLog, span);
        const exchange = withCors(logged);
        try {
          // Whoever has left by now has nothing done for it.
          if (!plain.gone.aborted) await route(exchange, operations);
        } catch (error) {
          refuse(exchange, deps.toAppError(error));
        } finally {
          logged.end();
        }
      };
      return { maxBodyBytes: operations.maxBodyBytes, handle };
    },
  };
};
