// The public HTTP transport: routes each request to REST, tRPC, the documents or the key set, and answers browsers' preflights.
import { CONNECT_PATHS } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { type Blocks, entityBlocked } from "../../core/ports/security.ts";
import type { Tracing } from "../../core/ports/trace.ts";
import { type CallLogDeps, CallLogEntry } from "../call/call-log.ts";
import { beginSpan } from "../call/call-span.ts";
import { type RestTransport, splitPrefix } from "../rest/rest.ts";
import { TRPC_PATH } from "../trpc/trpc-request.ts";
import { isAgentInstall } from "./agent-install.ts";
import { handshakeFault } from "./handshake.ts";
import type { HttpRequest, HttpResponse, HttpStream } from "./http-message.ts";
import type { HttpTransport, Reception, RequestContext } from "./request-context.ts";
import { headFault } from "./request-head.ts";
import type { Prefix, RequestInfo } from "./request-info.ts";
import type { Static } from "./static.ts";

export interface HttpTransportDeps {
  readonly rest: RestTransport;
  readonly trpc: HttpTransport;
  readonly docs: (name: string) => Promise<HttpResponse | null>;
  readonly agentInstall: (request: HttpRequest) => Promise<HttpResponse | HttpStream>;
  readonly openApi: (prefix: Prefix) => string;
  /** Null without the console. */
  readonly console: Static | null;
  /** The local issuer's keys and its description, by their paths; none with a foreign issuer. */
  readonly issuerDocuments: ReadonlyMap<string, () => string>;
  readonly infoOf: (request: HttpRequest, prefix: Prefix) => RequestInfo;
  /** The blocks of the installation: an address that it blocks gets no further than its head. */
  readonly blocks: Pick<Blocks, "any" | "refusesAddress">;
  /** Origins of browser portals; empty: any. */
  readonly origins: readonly string[];
  readonly toAppError: (error: unknown) => AppError;
  readonly callLog: CallLogDeps;
  readonly tracing: Tracing | null;
}

const SOCKETS: ReadonlySet<string> = new Set(CONNECT_PATHS);
/** Few paths need the full check. */
const DOCUMENT = /\/(?:docs|openapi\.json)/;
const MAX_URL_BYTES = 8_192;
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const EXPOSED =
  "x-request-id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, Location, Link, ETag, Deprecation, Sunset, Idempotent-Replayed, x-svc-error-shape";

const document = (body: string): HttpResponse => ({
  status: 200,
  body,
  compress: true,
  headers: { "Content-Type": "application/json; charset=utf-8", "Cache-Control": "public, max-age=60", "X-Content-Type-Options": "nosniff" },
});

export const createHttpTransport = (deps: HttpTransportDeps): HttpTransport => {
  /** Null without an Origin header, or for an origin that is not allowed. */
  const corsHeaders = ({ headers }: HttpRequest): Record<string, string> | null => {
    const { origin } = headers;
    if (origin === undefined || (deps.origins.length > 0 && !deps.origins.includes(origin))) return null;
    return {
      "Access-Control-Allow-Origin": deps.origins.length === 0 ? "*" : origin,
      "Access-Control-Expose-Headers": EXPOSED,
      ...(deps.origins.length === 0 ? {} : { "Access-Control-Allow-Credentials": "true", Vary: "Origin" }),
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

  /** Documents beside the operations, without an envelope. */
  const documentAt = async ({ method, path }: HttpRequest): Promise<HttpResponse | null> => {
    if (method !== "GET" && method !== "HEAD") return null;
    const ofIssuer = deps.issuerDocuments.get(path);
    if (ofIssuer !== undefined) return document(ofIssuer());
    const split = splitPrefix(path);
    if (split === null) return null;
    if (split.rest === "/openapi.json") return document(deps.openApi(split.prefix));
    if (split.rest === "/docs" || split.rest === "/docs/")
      return split.rest.endsWith("/") ? { status: 308, body: null, headers: { Location: path.slice(0, -1) } } : deps.docs("");
    return split.rest.startsWith("/docs/") ? deps.docs(split.rest.slice("/docs/".length)) : null;
  };

  const refuse = (context: RequestContext, error: AppError, close = false): void => {
    const { request, notes } = context;
    notes.refusal = error;
    const answer = deps.rest.renderError(error, { request, info: deps.infoOf(request, splitPrefix(request.path)?.prefix ?? "/v1") });
    void context.respond({ ...answer, close: close || answer.close === true });
  };

  const documentOr = async (context: RequestContext, operations: Reception): Promise<void> => {
    const found = await documentAt(context.request);
    return found === null ? operations.handle(context) : context.respond(found);
  };

  const offerAgent = async (context: RequestContext): Promise<void> => {
    const answer = await deps.agentInstall(context.request);
    return answer.body instanceof ReadableStream ? context.stream({ ...answer, body: answer.body }) : context.respond({ ...answer, body: answer.body });
  };

  // Not async: nearly every call goes straight to the operations.
  const route = (context: RequestContext, operations: Reception): Promise<void> | void => {
    const { request } = context;
    if (deps.blocks.any && deps.blocks.refusesAddress(deps.infoOf(request, "/v1").ip)) return refuse(context, entityBlocked(), true);
    const fault = headFault(request);
    if (fault !== null) return refuse(context, fault, true);
    if (request.path.length + request.query.length > MAX_URL_BYTES) throw new AppError("URI_TOO_LONG", { details: { maxBytes: MAX_URL_BYTES } });
    if (request.method === "OPTIONS") return context.respond(preflight(request));
    if (request.path.startsWith(TRPC_PATH)) return operations.handle(context);
    // The agent socket has already taken every GET with a WebSocket key of the right length.
    if (SOCKETS.has(request.path)) throw handshakeFault(request) ?? new AppError("PROTOCOL_UNSUPPORTED");
    if (isAgentInstall(request)) return offerAgent(context);
    const file = deps.console?.(request) ?? null;
    if (file !== null) return context.respond(file);
    return deps.issuerDocuments.has(request.path) || DOCUMENT.test(request.path) ? documentOr(context, operations) : operations.handle(context);
  };

  return {
    receive: (request) => {
      const span = beginSpan(deps.tracing, request);
      const operations = (request.path.startsWith(TRPC_PATH) ? deps.trpc : deps.rest).receive(request);
      const handle = async (context: RequestContext): Promise<void> => {
        const entry = new CallLogEntry(context, deps.callLog, span);
        context.logEntry = entry;
        context.commonHeaders = corsHeaders(request);
        try {
          // The caller may have disconnected while the body was read.
          if (!context.gone.aborted) await route(context, operations);
        } catch (error) {
          refuse(context, deps.toAppError(error));
        } finally {
          entry.write({ status: null, requestId: null });
        }
      };
      return { maxBodyBytes: operations.maxBodyBytes, handle };
    },
  };
};
