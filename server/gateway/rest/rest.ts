// The REST transport: /v1 and /api/v1 from one table, envelopes and headers as the interface says.
import {
  type Auth,
  type Deprecated,
  type Operation,
  type Page,
  type PageQuery,
  SIGNATURE_VERSIONS,
  SIGNATURE_VERSIONS_HEADER,
} from "../../../protocol/index.ts";
import { type Clock, isoText } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { RateLimitVerdict } from "../../core/ports/rate-limiter.ts";
import { type Credential, readCredential } from "../auth/credentials.ts";
import { type Identity, NOBODY } from "../auth/identity.ts";
import type { Entry } from "../call/operation-table.ts";
import type { Answer, CallRequest, Failure, Pipeline } from "../call/pipeline.ts";
import { limitHeaders, RateLimited } from "../call/rate-limits.ts";
import { signedBy } from "../call/signature-replay.ts";
import { hasSecret } from "../http/compression.ts";
import { renderEvents } from "../http/event-stream.ts";
import { UPGRADE_HEADERS } from "../http/handshake.ts";
import type { HttpRequest, HttpResponse, HttpStream } from "../http/http-message.ts";
import type { Reception, RequestContext } from "../http/request-context.ts";
import type { Prefix, RequestInfo } from "../http/request-info.ts";
import { isSignInVisit, renderSignInPage } from "../http/sign-in-page.ts";
import { errorBody, locationOf, pageLinks, successText } from "./envelope.ts";
import { asRpcStatus, isProtobuf, renderOtlp } from "./otlp.ts";
import { invalid } from "./parse.ts";
import { beginPieces, renderPlain } from "./plain-text.ts";
import { checkQueryNames, type FieldTypes, fieldTypes, mergeInput, NOTHING, readBodyInput, readHeaders, readPath, readQuery, takesBody } from "./rest-input.ts";
import { createRouter, type Match, pick } from "./router.ts";
import { isKnown, readIfMatch, tagOf, versionsOf } from "./versions.ts";

type Authenticate = (credential: Credential, info: RequestInfo, body: Uint8Array) => Promise<Identity>;
export interface RestDeps {
  readonly entries: readonly Entry[];
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly infoOf: (request: HttpRequest, prefix: Prefix) => RequestInfo;
  /** Proves a credential; a failed one counts against the address and may come back as RATE_LIMIT_EXCEEDED. */
  readonly authenticate: Authenticate;
  readonly reauthenticate: Authenticate;
  /** Browsers learn there why a sign-in failed. */
  readonly hasSignInPage?: boolean;
}

/** Who gets the answer, and in which shape. */
interface Addressee {
  readonly request: HttpRequest;
  readonly info: RequestInfo;
  /** Sent protobuf to an operation that takes OTLP. */
  readonly readsProtobuf?: boolean;
}

const verdictOf = (outcome: Awaited<ReturnType<Pipeline["call"]>>): RateLimitVerdict | null => (outcome.ok ? outcome.answer : outcome.failure).verdict;
const NO_MORE: Pick<Failure, "verdict" | "headers"> = { verdict: null, headers: {} };

const AUTH_OF: Record<Credential["kind"], Auth | "none"> = { none: "none", bearer: "user", session: "user", apiKey: "apiKey", agent: "agent" };
const DEFAULT_MAX_BODY_BYTES = 1_048_576;

const PREFIXES: readonly { readonly prefix: Prefix; readonly below: string }[] = [
  { prefix: "/v1", below: "/v1/" },
  { prefix: "/api/v1", below: "/api/v1/" },
];

/** Where orchestrators look by custom; the same operations as under a prefix. */
const PROBES: ReadonlySet<string> = new Set(["/livez", "/readyz"]);

/** Both prefixes lead to the same tree. Null for paths outside of them. */
export const splitPrefix = (path: string): { prefix: Prefix; rest: string } | null => {
  if (PROBES.has(path)) return { prefix: "/v1", rest: path };
  for (const { prefix, below } of PREFIXES) if (path === prefix || path.startsWith(below)) return { prefix, rest: path.slice(prefix.length) || "/" };
  return null;
};

type Found = Extract<Match, { kind: "found" }>;
const maxBodyBytes = (match: Match): number =>
  match.kind === "found" ? match.route.entries.reduce((most, { entry }) => Math.max(most, entry.op.maxBodyBytes), 0) : DEFAULT_MAX_BODY_BYTES;

const readsProtobuf = (request: HttpRequest, match: Match): boolean =>
  match.kind === "found" && match.route.entries.some(({ entry }) => entry.op.otlp === true) && isProtobuf(request);

const deprecationHeaders = ({ since, sunset }: Deprecated): Record<string, string> => ({
  Deprecation: `@${Math.floor(Date.parse(since) / 1_000)}`,
  Sunset: new Date(sunset).toUTCString(),
});
const deprecationLinks = ({ successor }: Deprecated): readonly string[] => [
  '</v1/deprecations>; rel="deprecation"',
  '</v1/deprecations>; rel="sunset"',
  ...(successor === undefined ? [] : [`</v1${successor}>; rel="successor-version"`]),
];

/** RFC 8288: the pages of a list, and the successor of a deprecated operation. */
const linksOf = ({ op }: Entry, { input, result }: Answer, { path, query }: HttpRequest): readonly string[] => {
  const pages =
    op.list === undefined || op.list === "plain"
      ? null
      : pageLinks(op, input as PageQuery, result as Page<unknown>, { path: path.replace(/^\/api/, ""), params: new URLSearchParams(query) });
  return [...(pages === null ? [] : [pages]), ...(op.deprecated === undefined ? [] : deprecationLinks(op.deprecated))];
};

export const createRest = ({ entries, pipeline, clock, infoOf, authenticate, reauthenticate, hasSignInPage }: RestDeps) => {
  const route = createRouter(entries);
  const versions = versionsOf(entries);
  const compressible = new Set(entries.filter(({ op }) => !hasSecret(op)));
  const types = new Map<Entry, FieldTypes>(entries.filter(({ op }) => op.rest.length > 0).map((entry) => [entry, fieldTypes(entry.op)]));

  const headersOf = (info: RequestInfo, verdict: RateLimitVerdict | null): Record<string, string> => {
    const headers: Record<string, string> = {
      "Content-Type": "application/json; charset=utf-8",
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "x-request-id": info.requestId,
      [SIGNATURE_VERSIONS_HEADER]: SIGNATURE_VERSIONS,
    };
    if (info.shapeChosen) Object.assign(headers, { "x-svc-error-shape": info.shape, Vary: "x-svc-error-shape" });
    if (verdict !== null) Object.assign(headers, limitHeaders(verdict, clock.now()));
    return headers;
  };

  const jsonError = (error: AppError, { info }: Addressee, { verdict, headers }: Pick<Failure, "verdict" | "headers">): HttpResponse => ({
    status: error.status,
    headers: {
      ...headersOf(info, error instanceof RateLimited ? error.verdict : verdict),
      ...(error.status === 401 ? { "WWW-Authenticate": "Bearer" } : {}),
      ...(error.status === 426 ? UPGRADE_HEADERS : {}),
      ...(error.retryAfter === undefined ? {} : { "Retry-After": String(Math.max(1, Math.ceil(error.retryAfter))) }),
      ...(error.code === "METHOD_NOT_ALLOWED" && Array.isArray(error.details?.["allow"]) ? { Allow: error.details["allow"].join(", ") } : {}),
      ...headers,
    },
    body: JSON.stringify(errorBody(error, info, clock.now().toISOString())),
    close: error.status === 413,
  });

  const renderError = (error: AppError, to: Addressee, more: Pick<Failure, "verdict" | "headers"> = NO_MORE): HttpResponse => {
    const refusal = jsonError(error, to, more);
    return to.readsProtobuf === true ? asRpcStatus(refusal, error) : refusal;
  };

  /** Null for an operation that answers with the envelope. */
  const renderBare = (
    { otlp, plain }: Operation,
    request: HttpRequest,
    { status, result }: Answer,
    headers: Record<string, string>,
  ): HttpResponse | HttpStream | null => {
    if (otlp === true) return renderOtlp(request, result, { status, headers });
    return plain === undefined ? null : renderPlain(plain, result as string | AsyncIterable<Uint8Array>, { status, headers, compress: true });
  };

  const renderAnswer = (entry: Entry, answer: Answer, { request, info }: Addressee): HttpResponse | HttpStream => {
    const { op } = entry;
    const headers = headersOf(info, answer.verdict);
    const location = locationOf(op, answer.result);
    if (location !== null) headers["Location"] = location;
    if (op.status === 303) headers["Location"] = (answer.result as { readonly location: string }).location;
    if (op.list !== undefined || op.deprecated !== undefined) {
      const links = linksOf(entry, answer, request);
      if (links.length > 0) headers["Link"] = links.join(", ");
    }
    if (op.deprecated !== undefined) Object.assign(headers, deprecationHeaders(op.deprecated));
    Object.assign(headers, answer.headers);
    const bare = renderBare(op, request, answer, headers);
    if (bare !== null) return bare;
    const body = successText(op, answer.input, answer.result, { requestId: info.requestId, timestamp: isoText(clock.now()) });
    const { status, cookies } = answer;
    const compress = compressible.has(entry);
    if (!versions.isVersioned(op)) return { status, headers, body, cookies, compress };
    const isRead = op.kind === "query";
    headers["ETag"] = tagOf(answer.result, isRead ? body : null);
    if (isRead && isKnown(request.headers["if-none-match"], headers["ETag"])) return { status: 304, headers, body: null };
    return { status, headers, body, cookies, compress };
  };

  const inputOf = (
    at: { entry: Entry; fields: readonly string[]; values: readonly string[] },
    request: HttpRequest,
    body: Uint8Array,
  ): Record<string, unknown> => {
    const fields = types.get(at.entry) ?? new Map();
    const query = readQuery(request.query, fields);
    checkQueryNames(at.entry.op, request.method, query);
    const content = takesBody(request.method) ? readBodyInput(at.entry.op, body, request) : NOTHING;
    const input = { ...mergeInput(readPath(at.fields, at.values), query, content), ...readHeaders(at.entry.op, request.headers, query) };
    if (request.headers["if-match"] === undefined || !fields.has("version")) return input;
    const [version, ...others] = readIfMatch(request.headers["if-match"]) ?? [];
    if (others.length > 0) throw invalid("header.if-match", "must be one version");
    return version === undefined ? input : { version, ...input };
  };

  /** If-Match for a change that has no field for the version. */
  const ifMatchOf = (entry: Entry, header: string | undefined): CallRequest["held"] => {
    const field = header === undefined || types.get(entry)?.has("version") === true ? null : versions.changedBy(entry.op);
    const accepted = field === null ? null : readIfMatch(header);
    return field === null || accepted === null ? undefined : { field, versions: accepted };
  };

  const serve = async (context: RequestContext, match: Found, info: RequestInfo): Promise<HttpResponse | HttpStream> => {
    const { request } = context;
    const body = await context.body;
    if (body === null) throw new AppError("PAYLOAD_TOO_LARGE", { details: { maxBytes: maxBodyBytes(match) } });
    const open = match.route.entries.every(({ entry }) => entry.op.auth.includes("public"));
    const credential: Credential = open ? { kind: "none" } : readCredential(request);
    const { entry, fields } = pick(match.route, AUTH_OF[credential.kind]);
    const isStream = entry.op.kind === "subscription";
    const prove = (by: Authenticate) => () => (open ? NOBODY : by(credential, info, body));
    const asked: CallRequest = {
      entry,
      info,
      transport: "rest",
      notes: context.notes,
      identify: prove(authenticate),
      reidentify: prove(reauthenticate),
      gone: isStream ? context.ending : context.gone,
      tenantHeader: request.headers["x-svc-tenant-id"],
      readInput: () => inputOf({ entry, fields, values: match.values }, request, body),
      idempotencyKey: request.headers["idempotency-key"] ?? request.headers["x-idempotency-key"],
      held: ifMatchOf(entry, request.headers["if-match"]),
      signed: credential.kind === "agent" ? signedBy(request) : null,
    };
    const outcome = await pipeline.call(asked);
    const [to, verdict] = [{ request, info, readsProtobuf: readsProtobuf(request, match) }, verdictOf(outcome)];
    const refuse = (error: unknown) => renderError(pipeline.toAppError(error), to, { verdict, headers: {} });
    if (outcome.ok && isStream) return renderEvents(outcome.answer, { headers: headersOf(info, verdict), info, clock }).catch(refuse);
    if (outcome.ok && entry.op.plain?.pieces === true) return beginPieces(outcome.answer).then((begun) => renderAnswer(entry, begun, to), refuse);
    if (outcome.ok) return renderAnswer(entry, outcome.answer, to);
    const { failure } = outcome;
    return hasSignInPage && isSignInVisit(entry, request) ? renderSignInPage(failure.error, info.requestId) : renderError(failure.error, to, failure);
  };

  const find = (request: HttpRequest): { match: Match; prefix: Prefix } => {
    const split = splitPrefix(request.path);
    return split === null ? { match: { kind: "none" }, prefix: "/v1" } : { match: route(request.method, split.rest), prefix: split.prefix };
  };

  const handle = async (context: RequestContext, { match, prefix }: ReturnType<typeof find>): Promise<void> => {
    const { request } = context;
    const info = infoOf(request, prefix);
    try {
      if (match.kind === "none") throw new AppError("NOT_FOUND", { details: { method: request.method, path: request.path } });
      if (match.kind === "wrong method") throw new AppError("METHOD_NOT_ALLOWED", { details: { allow: match.allow } });
      const answer = await serve(context, match, info);
      // No await without need: nearly every answer is written already.
      if (!(answer.body instanceof ReadableStream)) return context.respond(answer as HttpResponse);
      if (request.method !== "HEAD") await context.stream(answer as HttpStream);
      else {
        await answer.body.cancel();
        void context.respond({ ...answer, body: null });
      }
    } catch (error) {
      const refusal = pipeline.toAppError(error);
      context.notes.refusal = refusal;
      void context.respond(renderError(refusal, { request, info, readsProtobuf: readsProtobuf(request, match) }));
    }
  };

  const receive = (request: HttpRequest): Reception => {
    const found = find(request);
    return { maxBodyBytes: maxBodyBytes(found.match), handle: (context) => handle(context, found) };
  };

  return { receive, renderError };
};
export type RestTransport = ReturnType<typeof createRest>;
