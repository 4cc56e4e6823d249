// The tRPC transport under /trpc. Unary calls and batches go straight to the procedures; streams take tRPC's own fetch handler.
import { type AnyTRPCRouter, callTRPCProcedure, getTRPCErrorFromUnknown, getTRPCErrorShape, type TRPCError } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { SIGNATURE_VERSIONS, SIGNATURE_VERSIONS_HEADER } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { type Credential, readCredential } from "../auth/credentials.ts";
import { type Identity, NOBODY } from "../auth/identity.ts";
import type { Entry } from "../call/operation-table.ts";
import type { Pipeline } from "../call/pipeline.ts";
import { limitHeaders } from "../call/rate-limits.ts";
import { hasSecret } from "../http/compression.ts";
import type { HttpRequest, HttpResponse } from "../http/http-message.ts";
import type { HttpTransport, Reception, RequestContext } from "../http/request-context.ts";
import { isChunked } from "../http/request-head.ts";
import type { Prefix, RequestInfo } from "../http/request-info.ts";
import { invalid } from "../rest/parse.ts";
import { createTrpcCalls, type TrpcCalls } from "./trpc-calls.ts";
import { checkMethod, failureHeaders, MAX_BATCH, readUnary, TRPC_PATH, toStreamHeaders, type Unary, wantsEvents } from "./trpc-request.ts";
import { createTrpcRouter, type TrpcContext, toAppError, toTrpcError } from "./trpc-router.ts";

export interface TrpcDeps {
  readonly entries: readonly Entry[];
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly infoOf: (request: HttpRequest, prefix: Prefix) => RequestInfo;
  readonly authenticate: (credential: Credential, info: RequestInfo, body: Uint8Array) => Promise<Identity>;
  readonly redeem: (ticket: string) => Promise<Identity>;
  /** Proves a credential again while a call lasts. */
  readonly reauthenticate: TrpcDeps["authenticate"];
  /** Throws once the session that got the ticket has ended. */
  readonly recheck: (identity: Identity) => Promise<Identity>;
}

const MAX_BATCH_BYTES = 1_048_576;

const headersOf = (info: RequestInfo, calls: TrpcCalls | null, clock: Clock): Record<string, string> => {
  const headers: Record<string, string> = {
    "Content-Type": "application/json; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "x-request-id": info.requestId,
    [SIGNATURE_VERSIONS_HEADER]: SIGNATURE_VERSIONS,
  };
  if (calls === null) return headers;
  if (calls.verdict !== null) Object.assign(headers, limitHeaders(calls.verdict, clock.now()));
  if (calls.replayed) headers["Idempotent-Replayed"] = "true";
  if (calls.failure !== null) Object.assign(headers, failureHeaders(calls.failure));
  return headers;
};

/** Proves the credential once for all calls of a batch; public operations need none. */
const createIdentifier = (authenticate: TrpcDeps["authenticate"]) => (request: HttpRequest, info: RequestInfo, body: Uint8Array) => {
  let proven: Promise<Identity> | null = null;
  return (entry: Entry): Promise<Identity> => {
    if (entry.op.auth.includes("public")) return NOBODY;
    proven ??= Promise.resolve().then(() => authenticate(readCredential(request), info, body));
    return proven;
  };
};

export const createTrpc = (deps: TrpcDeps): HttpTransport => {
  const { pipeline, clock } = deps;
  const entries = deps.entries.filter(({ op }) => op.plain?.pieces !== true);
  const compressible = new Set(entries.filter(({ op }) => !hasSecret(op)).map(({ id }) => id));
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const router: AnyTRPCRouter = createTrpcRouter(entries);
  const config = router._def._config;
  const identifier = createIdentifier(deps.authenticate);
  const reidentifier = createIdentifier(deps.reauthenticate);
  const openCalls = createTrpcCalls(deps);

  const shapeOf = (error: TRPCError, path: string | undefined, context: TrpcContext) => ({
    status: toAppError(error).status,
    json: { error: getTRPCErrorShape({ config, error, type: "unknown", path, input: undefined, ctx: context }) },
  });

  /** Unknown procedures go to the library, which refuses them in its own words. */
  const refuseUnknown = ({ paths, type, inputs }: Unary, index: number, { context }: TrpcCalls): Promise<unknown> =>
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

  const one = async (unary: Unary, index: number, calls: TrpcCalls): Promise<{ status: number; json: unknown }> => {
    const path = unary.paths[index] ?? "";
    const { type } = unary;
    const entry = byId.get(path);
    const known = entry?.op.kind;
    try {
      if (known === "subscription") throw toTrpcError(invalid("header.accept", "must be text/event-stream"));
      if (known !== undefined && known !== type) {
        calls.failure = new AppError("METHOD_NOT_ALLOWED", { details: { allow: [known === "mutation" ? "POST" : "GET"] } });
        throw toTrpcError(calls.failure);
      }
      // Skips the procedure, which would do the same: the library's way there costs more than all of ours.
      const data = await (entry === undefined ? refuseUnknown(unary, index, calls) : calls.context.call(entry, unary.inputs(index) ?? {}, undefined));
      return { status: 200, json: { result: { data } } };
    } catch (cause) {
      const error = isAppError(cause) ? toTrpcError(cause) : getTRPCErrorFromUnknown(cause);
      // The pipeline has noted all others as calls.
      if (known !== type) calls.notes.refusal = toAppError(error);
      return shapeOf(error, path, calls.context);
    }
  };

  const all = async (asked: Unary, calls: TrpcCalls): Promise<{ status: number; json: unknown }> => {
    const results = await Promise.all(asked.paths.map((_, index) => one(asked, index, calls)));
    const [status = 500, ...others] = new Set(results.map((each) => each.status));
    return { status: others.length === 0 ? status : 207, json: results.map(({ json }) => json) };
  };

  const unary = async (context: RequestContext, info: RequestInfo, body: Uint8Array): Promise<HttpResponse> => {
    const { request, gone, notes } = context;
    const asked = readUnary(request, body);
    const identify = identifier(request, info, body);
    const calls = openCalls(request, info, { gone, notes, identify, reidentify: (entry) => reidentifier(request, info, body)(entry) });
    const { status, json } = asked.batch ? await all(asked, calls) : await one(asked, 0, calls);
    const compress = asked.paths.every((path) => compressible.has(path));
    return { status, headers: headersOf(info, calls, clock), body: JSON.stringify(json), cookies: calls.cookies, compress };
  };

  const stream = async (context: RequestContext, info: RequestInfo, body: Uint8Array): Promise<void> => {
    const { request, ending, notes } = context;
    checkMethod(request);
    // The answer to a chunked request closes its connection; the end of a stream cannot.
    if (isChunked(request)) throw new AppError("VALIDATION_FAILED", { details: { reason: "bad_framing", header: "transfer-encoding" } });
    const fromHeaders = identifier(request, info, body);
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
      createContext: ({ info: { connectionParams } }) => {
        const ticket = connectionParams?.["ticket"];
        let redeemed: Promise<Identity> | null = null;
        const identify = (entry: Entry): Promise<Identity> => {
          if (typeof ticket !== "string") return fromHeaders(entry);
          redeemed ??= deps.redeem(ticket);
          return redeemed;
        };
        // A ticket is good once, so its proof stays, and only its session and its user are checked again. A credential in the headers is proven again.
        const reidentify = (entry: Entry): Promise<Identity> =>
          typeof ticket === "string" ? identify(entry).then(deps.recheck) : reidentifier(request, info, body)(entry);
        return openCalls(request, info, { gone: ending, notes, identify, reidentify }).context;
      },
    });
    const outHeaders = {
      ...Object.fromEntries(response.headers),
      "x-request-id": info.requestId,
      [SIGNATURE_VERSIONS_HEADER]: SIGNATURE_VERSIONS,
    };
    const out = { status: response.status, headers: outHeaders };
    if (response.body === null) void context.respond({ ...out, body: null });
    else await context.stream({ ...out, body: response.body });
  };

  const refuse = (error: AppError, info: RequestInfo): HttpResponse => {
    const context: TrpcContext = { requestId: info.requestId, timestamp: () => clock.now().toISOString(), call: () => Promise.reject(error) };
    const { status, json } = shapeOf(toTrpcError(error), undefined, context);
    return {
      status,
      headers: { ...headersOf(info, null, clock), ...failureHeaders(error) },
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
    const handle = async (context: RequestContext): Promise<void> => {
      const info = deps.infoOf(context.request, "/v1");
      try {
        const body = await context.body;
        if (body === null) throw new AppError("PAYLOAD_TOO_LARGE", { details: { maxBytes: maxBodyBytes } });
        if (isStream(context.request, entry)) await stream(context, info, body);
        else return context.respond(await unary(context, info, body));
      } catch (error) {
        const known = isAppError(error) ? error : error instanceof URIError ? invalid("path", "is not valid percent-encoding") : pipeline.toAppError(error);
        context.notes.refusal = known;
        void context.respond(refuse(known, info));
      }
    };
    return { maxBodyBytes, handle };
  };

  return { receive };
};
