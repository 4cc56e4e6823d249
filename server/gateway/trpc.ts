// The tRPC door under /trpc. Unary calls and batches go straight to the procedures; streams take tRPC's own fetch handler.
import { type AnyTRPCRouter, callTRPCProcedure, getTRPCErrorFromUnknown, getTRPCErrorShape, type TRPCError } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import type { Clock } from "../core/clock.ts";
import { AppError, isAppError } from "../core/errors.ts";
import { type Credential, readCredential, signatureVersions } from "./auth/credentials.ts";
import { type Identity, NOBODY } from "./auth/identity.ts";
import type { Entry } from "./catalogue.ts";
import type { Exchange, HttpDoor, HttpRequest, HttpResponse, Reception } from "./exchange.ts";
import type { Prefix, RequestFacts } from "./facts.ts";
import { limitHeaders } from "./limits.ts";
import { invalid } from "./parse.ts";
import type { Pipeline } from "./pipeline.ts";
import { isChunked } from "./request-head.ts";
import { checkMethod, failureHeaders, MAX_BATCH, readUnary, TRPC_PATH, toStreamHeaders, type Unary, wantsEvents } from "./trpc-request.ts";
import { createTrpcRouter, type TrpcContext, toAppError, toTrpcError } from "./trpc-router.ts";
import { createSessions, type Session } from "./trpc-session.ts";

export interface TrpcDeps {
  readonly entries: readonly Entry[];
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly factsOf: (request: HttpRequest, prefix: Prefix) => RequestFacts;
  readonly authenticate: (credential: Credential, facts: RequestFacts, body: Uint8Array) => Promise<Identity>;
  readonly redeem: (ticket: string) => Promise<Identity>;
}

const MAX_BATCH_BYTES = 1_048_576;

const headersOf = (request: HttpRequest, facts: RequestFacts, session: Session | null, clock: Clock): Record<string, string> => {
  const headers: Record<string, string> = {
    "Content-Type": "application/json; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "x-request-id": facts.requestId,
  };
  Object.assign(headers, signatureVersions(request));
  if (session === null) return headers;
  if (session.verdict !== null) Object.assign(headers, limitHeaders(session.verdict, clock.now()));
  if (session.replayed) headers["Idempotent-Replayed"] = "true";
  if (session.failure !== null) Object.assign(headers, failureHeaders(session.failure));
  return headers;
};

/** The credential is read and proven once for all calls of a batch; public operations do not ask for it. */
const createIdentifier =
  ({ authenticate }: Pick<TrpcDeps, "authenticate">) =>
  (request: HttpRequest, facts: RequestFacts, body: Uint8Array) => {
    let proven: Promise<Identity> | null = null;
    return (entry: Entry): Promise<Identity> => {
      if (entry.op.auth.includes("public")) return NOBODY;
      proven ??= Promise.resolve().then(() => authenticate(readCredential(request), facts, body));
      return proven;
    };
  };

export const createTrpc = (deps: TrpcDeps): HttpDoor => {
  const { pipeline, clock } = deps;
  const byId = new Map(deps.entries.map((entry) => [entry.id, entry]));
  const router: AnyTRPCRouter = createTrpcRouter(deps.entries);
  const config = router._def._config;
  const identifier = createIdentifier(deps);
  const openSession = createSessions(deps);

  const shapeOf = (error: TRPCError, path: string | undefined, context: TrpcContext) => ({
    status: toAppError(error).status,
    json: { error: getTRPCErrorShape({ config, error, type: "unknown", path, input: undefined, ctx: context }) },
  });

  /** What there is not, the library refuses in its own words. */
  const refuseUnknown = ({ paths, type, inputs }: Unary, index: number, { context }: Session): Promise<unknown> =>
    callTRPCProcedure({
      router,
      path: paths[index] ?? "",
      type,
      ctx: context,
      getRawInput: async () => inputs(index),
      input: undefined,
      signal: undefined,
      batchIndex: index,
    } as Parameters<typeof callTRPCProcedure>[0]);

  const one = async (unary: Unary, index: number, session: Session): Promise<{ status: number; json: unknown }> => {
    const path = unary.paths[index] ?? "";
    const { type } = unary;
    const entry = byId.get(path);
    const known = entry?.op.kind;
    try {
      if (known === "subscription") throw toTrpcError(invalid("header.accept", "must be text/event-stream"));
      if (known !== undefined && known !== type) {
        session.failure = new AppError("METHOD_NOT_ALLOWED", { details: { allow: [known === "mutation" ? "POST" : "GET"] } });
        throw toTrpcError(session.failure);
      }
      // Straight to what the procedure would do: the library's way there costs more than all of ours.
      const data = await (entry === undefined ? refuseUnknown(unary, index, session) : session.context.call(entry, unary.inputs(index) ?? {}, undefined));
      return { status: 200, json: { result: { data } } };
    } catch (cause) {
      const error = isAppError(cause) ? toTrpcError(cause) : getTRPCErrorFromUnknown(cause);
      // The others are calls that the pipeline has noted.
      if (known !== type) session.notes.refusal = toAppError(error);
      return shapeOf(error, path, session.context);
    }
  };

  const all = async (calls: Unary, session: Session): Promise<{ status: number; json: unknown }> => {
    const results = await Promise.all(calls.paths.map((_, index) => one(calls, index, session)));
    const [status = 500, ...others] = new Set(results.map((each) => each.status));
    return { status: others.length === 0 ? status : 207, json: results.map(({ json }) => json) };
  };

  const unary = async (exchange: Exchange, facts: RequestFacts, body: Uint8Array): Promise<HttpResponse> => {
    const { request, gone, notes } = exchange;
    const calls = readUnary(request, body);
    const identify = identifier(request, facts, body);
    const session = openSession(request, facts, { gone, notes, identify, reidentify: identify });
    const { status, json } = calls.batch ? await all(calls, session) : await one(calls, 0, session);
    return { status, headers: headersOf(request, facts, session, clock), body: JSON.stringify(json) };
  };

  const stream = async (exchange: Exchange, facts: RequestFacts, body: Uint8Array): Promise<void> => {
    const { request, ending, notes } = exchange;
    checkMethod(request);
    // The answer to chunks ends its connection, and the end of a stream does not.
    if (isChunked(request)) throw new AppError("VALIDATION_FAILED", { details: { reason: "bad_framing", header: "transfer-encoding" } });
    const fromHeaders = identifier(request, facts, body);
    const headers = toStreamHeaders(request);
    const response = await fetchRequestHandler({
      endpoint: TRPC_PATH.slice(0, -1),
      router,
      maxBatchSize: MAX_BATCH,
      req: new Request(`http://gateway${request.path}${request.query === "" ? "" : `?${request.query}`}`, {
        method: request.method,
        headers,
        signal: ending.signal,
        ...(request.method === "POST" ? { body: Buffer.from(body) } : {}),
      }),
      createContext: ({ info }) => {
        const ticket = info.connectionParams?.["ticket"];
        let redeemed: Promise<Identity> | null = null;
        const identify = (entry: Entry): Promise<Identity> => {
          if (typeof ticket !== "string") return fromHeaders(entry);
          redeemed ??= deps.redeem(ticket);
          return redeemed;
        };
        // A ticket is good once: what it proved stays, and its user is judged anew. A credential in the headers is proven anew.
        const reidentify = (entry: Entry): Promise<Identity> => (typeof ticket === "string" ? identify(entry) : identifier(request, facts, body)(entry));
        return openSession(request, facts, { gone: ending, notes, identify, reidentify }).context;
      },
    });
    const outHeaders = { ...Object.fromEntries(response.headers), "x-request-id": facts.requestId, ...signatureVersions(request) };
    const out = { status: response.status, headers: outHeaders };
    if (response.body === null) exchange.respond({ ...out, body: null });
    else await exchange.stream({ ...out, body: response.body });
  };

  const refuse = (request: HttpRequest, error: AppError, facts: RequestFacts): HttpResponse => {
    const context: TrpcContext = { requestId: facts.requestId, timestamp: () => clock.now().toISOString(), call: () => Promise.reject(error) };
    const { status, json } = shapeOf(toTrpcError(error), undefined, context);
    return {
      status,
      headers: { ...headersOf(request, facts, null, clock), ...failureHeaders(error) },
      body: JSON.stringify(json),
      close: status === 413,
    };
  };

  const isStream = (request: HttpRequest, entry: Entry | undefined): boolean =>
    request.headers["trpc-accept"] === "application/jsonl" || (entry?.op.kind === "subscription" && wantsEvents(request));

  const receive = ({ path }: HttpRequest): Reception => {
    // A single call has its operation's limit, a batch the common one.
    const entry = byId.get(path.slice(TRPC_PATH.length));
    const maxBodyBytes = entry?.op.maxBodyBytes ?? MAX_BATCH_BYTES;
    const handle = async (exchange: Exchange): Promise<void> => {
      const facts = deps.factsOf(exchange.request, "/v1");
      try {
        const body = await exchange.body;
        if (body === null) throw new AppError("PAYLOAD_TOO_LARGE", { details: { maxBytes: maxBodyBytes } });
        if (isStream(exchange.request, entry)) await stream(exchange, facts, body);
        else exchange.respond(await unary(exchange, facts, body));
      } catch (error) {
        const known = isAppError(error) ? error : error instanceof URIError ? invalid("path", "is not valid percent-encoding") : pipeline.toAppError(error);
        exchange.notes.refusal = known;
        exchange.respond(refuse(exchange.request, known, facts));
      }
    };
    return { maxBodyBytes, handle };
  };

  return { receive };
};
