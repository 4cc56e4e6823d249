// The REST door: /v1 and /api/v1 from one table, envelopes and headers as the interface says.
import type { Auth, Deprecated, PageQuery } from "../../protocol/index.ts";
import { type Clock, isoText } from "../core/clock.ts";
import { AppError } from "../core/errors.ts";
import type { RateLimitVerdict } from "../core/rate-limiter.ts";
import { type Credential, readCredential, signatureVersions } from "./auth/credentials.ts";
import { type Identity, NOBODY } from "./auth/identity.ts";
import type { Entry } from "./catalogue.ts";
import { errorBody, locationOf, pageLinks, successText } from "./envelope.ts";
import type { Exchange, HttpRequest, HttpResponse, Reception } from "./exchange.ts";
import type { Prefix, RequestFacts } from "./facts.ts";
import { UPGRADE_HEADERS } from "./handshake.ts";
import { limitHeaders, RateLimited } from "./limits.ts";
import type { Answer, Pipeline } from "./pipeline.ts";
import { signedBy } from "./replay.ts";
import {
  checkQueryNames,
  type FieldTypes,
  fieldTypes,
  ifMatch,
  mergeInput,
  NOTHING,
  readBodyObject,
  readHeaders,
  readPath,
  readQuery,
  takesBody,
} from "./rest-input.ts";
import { createRouter, type Match, pick } from "./router.ts";

export interface RestDeps {
  readonly entries: readonly Entry[];
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly factsOf: (request: HttpRequest, prefix: Prefix) => RequestFacts;
  /** Proves a credential; a failed one counts against the address and may come back as RATE_LIMIT_EXCEEDED. */
  readonly authenticate: (credential: Credential, facts: RequestFacts, body: Uint8Array) => Promise<Identity>;
}

const AUTH_OF: Record<Credential["kind"], Auth | "none"> = { none: "none", bearer: "user", apiKey: "apiKey", agent: "agent" };
const DEFAULT_MAX_BODY_BYTES = 1_048_576;

const PREFIXES: readonly { readonly prefix: Prefix; readonly below: string }[] = [
  { prefix: "/v1", below: "/v1/" },
  { prefix: "/api/v1", below: "/api/v1/" },
];

/** Where orchestrators look by custom; the same operations as under a prefix. */
const PROBES: ReadonlySet<string> = new Set(["/livez", "/readyz"]);

/** Both prefixes mean the same tree. Null for paths outside of them. */
export const splitPrefix = (path: string): { prefix: Prefix; rest: string } | null => {
  if (PROBES.has(path)) return { prefix: "/v1", rest: path };
  for (const { prefix, below } of PREFIXES) if (path === prefix || path.startsWith(below)) return { prefix, rest: path.slice(prefix.length) || "/" };
  return null;
};

const NO_FIELDS: FieldTypes = new Map();
type Found = Extract<Match, { kind: "found" }>;
const maxBodyBytes = (match: Match): number =>
  match.kind === "found" ? match.route.entries.reduce((most, { entry }) => Math.max(most, entry.op.maxBodyBytes), 0) : DEFAULT_MAX_BODY_BYTES;

const deprecationHeaders = ({ since, sunset }: Deprecated): Record<string, string> => ({
  Deprecation: `@${Math.floor(Date.parse(since) / 1_000)}`,
  Sunset: new Date(sunset).toUTCString(),
});
const deprecationLinks = ({ successor }: Deprecated): readonly string[] => [
  '</v1/deprecations>; rel="deprecation"',
  '</v1/deprecations>; rel="sunset"',
  ...(successor === undefined ? [] : [`</v1${successor}>; rel="successor-version"`]),
];

const withHeaders = (response: HttpResponse, headers: Readonly<Record<string, string>> | null): HttpResponse =>
  headers === null ? response : { ...response, headers: { ...response.headers, ...headers } };

export const createRest = ({ entries, pipeline, clock, factsOf, authenticate }: RestDeps) => {
  const route = createRouter(entries);
  const types = new Map<Entry, FieldTypes>(entries.filter(({ op }) => op.rest.length > 0).map((entry) => [entry, fieldTypes(entry.op)]));

  const headersOf = (facts: RequestFacts, verdict: RateLimitVerdict | null): Record<string, string> => {
    const headers: Record<string, string> = {
      "Content-Type": "application/json; charset=utf-8",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "x-request-id": facts.requestId,
    };
    if (facts.shapeChosen) Object.assign(headers, { "x-svc-error-shape": facts.shape, Vary: "x-svc-error-shape" });
    if (verdict !== null) Object.assign(headers, limitHeaders(verdict, clock.now()));
    return headers;
  };

  const renderError = (error: AppError, facts: RequestFacts, verdict: RateLimitVerdict | null = null): HttpResponse => ({
    status: error.status,
    headers: {
      ...headersOf(facts, error instanceof RateLimited ? error.verdict : verdict),
      ...(error.status === 401 ? { "WWW-Authenticate": "Bearer" } : {}),
      ...(error.status === 426 ? UPGRADE_HEADERS : {}),
      ...(error.retryAfter === undefined ? {} : { "Retry-After": String(Math.max(1, Math.ceil(error.retryAfter))) }),
      ...(error.code === "METHOD_NOT_ALLOWED" && Array.isArray(error.details?.["allow"]) ? { Allow: error.details["allow"].join(", ") } : {}),
    },
    body: JSON.stringify(errorBody(error, facts, clock.now().toISOString())),
    close: error.status === 413,
  });

  /** RFC 8288: where the list goes on, and what is to be known of an operation that ends. */
  const linksOf = ({ op }: Entry, { input, result }: Answer, { path, query }: HttpRequest): readonly string[] => {
    const pages =
      op.list === undefined || op.list === "plain"
        ? null
        : pageLinks(op, input as PageQuery, (result as { total: number }).total, { path: path.replace(/^\/api/, ""), params: new URLSearchParams(query) });
    return [...(pages === null ? [] : [pages]), ...(op.deprecated === undefined ? [] : deprecationLinks(op.deprecated))];
  };

  const renderAnswer = (entry: Entry, answer: Answer, { facts, request }: { facts: RequestFacts; request: HttpRequest }): HttpResponse => {
    const { op } = entry;
    const headers = headersOf(facts, answer.verdict);
    const location = locationOf(op, answer.result);
    if (location !== null) headers["Location"] = location;
    if (op.list !== undefined || op.deprecated !== undefined) {
      const links = linksOf(entry, answer, request);
      if (links.length > 0) headers["Link"] = links.join(", ");
    }
    if (op.deprecated !== undefined) Object.assign(headers, deprecationHeaders(op.deprecated));
    Object.assign(headers, answer.headers);
    const body = successText(op, answer.input, answer.result, { requestId: facts.requestId, timestamp: isoText(clock.now()) });
    return { status: answer.status, headers, body };
  };

  const inputOf = (
    at: { entry: Entry; fields: readonly string[]; values: readonly string[] },
    request: HttpRequest,
    body: Uint8Array,
  ): Record<string, unknown> => {
    const fields = types.get(at.entry) ?? NO_FIELDS;
    const query = readQuery(request.query, fields);
    checkQueryNames(at.entry.op, request.method, query);
    const content = takesBody(request.method) ? readBodyObject(body, request.headers["content-type"]) : NOTHING;
    const input = { ...mergeInput(readPath(at.fields, at.values), query, content), ...readHeaders(at.entry.op, request.headers, query) };
    const version = ifMatch(request.headers["if-match"], fields);
    return version === NOTHING ? input : { ...version, ...input };
  };

  const serve = async (exchange: Exchange, match: Found, facts: RequestFacts): Promise<HttpResponse> => {
    const { request } = exchange;
    const body = await exchange.body;
    if (body === null) throw new AppError("PAYLOAD_TOO_LARGE", { details: { maxBytes: maxBodyBytes(match) } });
    const open = match.route.entries.every(({ entry }) => entry.op.auth.includes("public"));
    const credential: Credential = open ? { kind: "none" } : readCredential(request);
    const { entry, fields } = pick(match.route, AUTH_OF[credential.kind]);
    const outcome = await pipeline.call({
      entry,
      facts,
      door: "rest",
      tenantHeader: request.headers["x-svc-tenant-id"],
      identify: () => (open ? NOBODY : authenticate(credential, facts, body)),
      readInput: () => inputOf({ entry, fields, values: match.values }, request, body),
      idempotencyKey: request.headers["idempotency-key"] ?? request.headers["x-idempotency-key"],
      signed: credential.kind === "agent" ? signedBy(request) : null,
      gone: exchange.gone,
      notes: exchange.notes,
    });
    return outcome.ok
      ? renderAnswer(entry, outcome.answer, { facts, request })
      : withHeaders(renderError(outcome.failure.error, facts, outcome.failure.verdict), outcome.failure.headers);
  };

  const find = (request: HttpRequest): { match: Match; prefix: Prefix } => {
    const split = splitPrefix(request.path);
    return split === null ? { match: { kind: "none" }, prefix: "/v1" } : { match: route(request.method, split.rest), prefix: split.prefix };
  };

  const handle = async (exchange: Exchange, { match, prefix }: ReturnType<typeof find>): Promise<void> => {
    const { request } = exchange;
    const facts = factsOf(request, prefix);
    const answer = (response: HttpResponse): void => exchange.respond(withHeaders(response, signatureVersions(request)));
    try {
      if (match.kind === "none") throw new AppError("NOT_FOUND", { details: { method: request.method, path: request.path } });
      if (match.kind === "wrong method") throw new AppError("METHOD_NOT_ALLOWED", { details: { allow: match.allow } });
      answer(await serve(exchange, match, facts));
    } catch (error) {
      const refusal = pipeline.toAppError(error);
      exchange.notes.refusal = refusal;
      answer(renderError(refusal, facts));
    }
  };

  const receive = (request: HttpRequest): Reception => {
    const found = find(request);
    return { maxBodyBytes: maxBodyBytes(found.match), handle: (exchange) => handle(exchange, found) };
  };

  return { receive, renderError };
};
export type RestDoor = ReturnType<typeof createRest>;
