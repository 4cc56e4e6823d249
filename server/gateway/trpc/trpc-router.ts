// The contract as a tRPC router: one procedure per operation, all ending in the same pipeline. The casts of the gateway live here:
// the types that clients see come from protocol/index.ts, not from this router.
import { type AnyTRPCRouter, initTRPC, type TRPC_ERROR_CODE_KEY, TRPCError, tracked } from "@trpc/server";
import { type ErrorCode, type LiveEvent, messageOf } from "../../../protocol/index.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import type { Entry } from "../call/operation-table.ts";
import { errorFields } from "../rest/envelope.ts";

export interface TrpcContext {
  readonly requestId: string;
  readonly timestamp: () => string;
  /** Runs one operation; throws AppError. */
  readonly call: (entry: Entry, input: unknown, signal: AbortSignal | undefined) => Promise<unknown>;
}

const CODES: Readonly<Record<number, TRPC_ERROR_CODE_KEY>> = {
  400: "BAD_REQUEST",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  405: "METHOD_NOT_SUPPORTED",
  409: "CONFLICT",
  413: "PAYLOAD_TOO_LARGE",
  415: "UNSUPPORTED_MEDIA_TYPE",
  422: "UNPROCESSABLE_CONTENT",
  429: "TOO_MANY_REQUESTS",
  500: "INTERNAL_SERVER_ERROR",
  503: "SERVICE_UNAVAILABLE",
};
const OURS: Partial<Record<TRPC_ERROR_CODE_KEY, ErrorCode>> = {
  PARSE_ERROR: "MALFORMED_JSON",
  BAD_REQUEST: "VALIDATION_FAILED",
  NOT_FOUND: "NOT_FOUND",
  METHOD_NOT_SUPPORTED: "METHOD_NOT_ALLOWED",
  UNSUPPORTED_MEDIA_TYPE: "UNSUPPORTED_MEDIA_TYPE",
  PAYLOAD_TOO_LARGE: "PAYLOAD_TOO_LARGE",
};

export const toTrpcError = (error: AppError): TRPCError => new TRPCError({ code: CODES[error.status] ?? "BAD_REQUEST", message: error.message, cause: error });

/** tRPC's own refusals (no such procedure, bad batch) spoken in our codes; the cause of anything unexpected stays inside. */
export const toAppError = (error: TRPCError): AppError => {
  if (isAppError(error.cause)) return error.cause;
  const code = OURS[error.code] ?? "INTERNAL_ERROR";
  return new AppError(code, code === "INTERNAL_ERROR" ? { cause: error } : { details: { reason: error.message.slice(0, 200) } });
};

const PING_MS = 5_000;

const t = initTRPC.context<TrpcContext>().create({
  isDev: false,
  sse: { ping: { enabled: true, intervalMs: PING_MS }, client: { reconnectAfterInactivityMs: 4 * PING_MS } },
  errorFormatter: ({ shape, error, ctx }) => {
    const ours = toAppError(error);
    const app = errorFields(ours, ctx?.requestId ?? "", ctx?.timestamp() ?? "");
    return {
      ...shape,
      message: messageOf(ours.code, ours.details),
      data: { code: shape.data.code, httpStatus: ours.status, ...(shape.data.path === undefined ? {} : { path: shape.data.path }), app },
    };
  },
});

/** A stream begins with an event that has an id. Hints have none; they repeat the last one, so that a resumed stream starts behind it. */
async function* withIds(events: AsyncIterable<LiveEvent>) {
  let last = "0";
  try {
    for await (const event of events) {
      last = event.id ?? last;
      yield tracked(last, event);
    }
  } catch (error) {
    throw isAppError(error) ? toTrpcError(error) : error;
  }
}

const call = async (entry: Entry, { ctx, input, signal }: { ctx: TrpcContext; input: unknown; signal: AbortSignal | undefined }): Promise<unknown> => {
  try {
    return await ctx.call(entry, input ?? {}, signal);
  } catch (error) {
    throw isAppError(error) ? toTrpcError(error) : error;
  }
};

const toProcedure = (entry: Entry) => {
  const base = t.procedure.input((raw: unknown) => raw);
  if (entry.op.kind === "query") return base.query((options) => call(entry, options));
  if (entry.op.kind === "mutation") return base.mutation((options) => call(entry, options));
  return base.subscription(async function* (options) {
    yield* withIds((await call(entry, options)) as AsyncIterable<LiveEvent>);
  });
};

export const createTrpcRouter = (entries: readonly Entry[]): AnyTRPCRouter => {
  const groups: Record<string, Record<string, ReturnType<typeof toProcedure>>> = {};
  for (const entry of entries) groups[entry.group] = { ...groups[entry.group], [entry.name]: toProcedure(entry) };
  return t.router(groups);
};
