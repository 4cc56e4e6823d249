// The calls of one tRPC request on their way into the pipeline: what they share, and what the headers of the common answer tell of them.
import type { Clock } from "../../core/clock.ts";
import type { AppError } from "../../core/errors.ts";
import { type LazyAbort, lazyAbortOf } from "../../core/lifecycle/lazy-abort.ts";
import type { RateLimitVerdict } from "../../core/ports/rate-limiter.ts";
import type { Identity } from "../auth/identity.ts";
import type { Notes } from "../call/call-record.ts";
import type { Entry } from "../call/operation-table.ts";
import type { CallRequest, Pipeline } from "../call/pipeline.ts";
import { RateLimited, type Taken, tighter } from "../call/rate-limits.ts";
import { signedBy } from "../call/signature-replay.ts";
import type { HttpRequest } from "../http/http-message.ts";
import type { RequestInfo } from "../http/request-info.ts";
import type { TrpcContext } from "./trpc-router.ts";

export interface TrpcCalls {
  readonly notes: Notes;
  readonly context: TrpcContext;
  verdict: RateLimitVerdict | null;
  failure: AppError | null;
  replayed: boolean;
  /** Values of Set-Cookie. */
  readonly cookies: string[];
}

export interface Caller {
  readonly notes: Notes;
  readonly gone: LazyAbort;
  readonly identify: (entry: Entry) => Promise<Identity>;
  /** Proves the caller again while a call lasts. */
  readonly reidentify: (entry: Entry) => Promise<Identity>;
}

const verdictOf = (outcome: Awaited<ReturnType<Pipeline["call"]>>): RateLimitVerdict | null => {
  if (outcome.ok) return outcome.answer.verdict;
  const { error, verdict } = outcome.failure;
  return error instanceof RateLimited ? error.verdict : verdict;
};

const NO_COOKIES: readonly string[] = [];
const cookiesOf = (outcome: Awaited<ReturnType<Pipeline["call"]>>): readonly string[] => (outcome.ok ? outcome.answer.cookies : undefined) ?? NO_COOKIES;

export const createTrpcCalls =
  ({ pipeline, clock }: { readonly pipeline: Pipeline; readonly clock: Clock }) =>
  (request: HttpRequest, info: RequestInfo, at: Caller): TrpcCalls => {
    const signed = signedBy(request);
    const taken: Taken = new Map();
    const call: TrpcContext["call"] = async (entry, input, signal) => {
      const asked: CallRequest = {
        entry,
        info,
        transport: "trpc",
        tenantHeader: request.headers["x-svc-tenant-id"],
        identify: () => at.identify(entry),
        reidentify: () => at.reidentify(entry),
        readInput: () => input,
        idempotencyKey: request.headers["idempotency-key"] ?? request.headers["x-idempotency-key"],
        signed,
        gone: signal === undefined ? at.gone : lazyAbortOf(signal),
        notes: at.notes,
        taken,
      };
      const outcome = await pipeline.call(asked);
      calls.verdict = tighter(calls.verdict, verdictOf(outcome));
      calls.replayed ||= (outcome.ok ? outcome.answer : outcome.failure).headers["Idempotent-Replayed"] !== undefined;
      calls.cookies.push(...cookiesOf(outcome));
      if (outcome.ok) return outcome.answer.result;
      calls.failure = outcome.failure.error;
      throw outcome.failure.error;
    };
    const context: TrpcContext = { requestId: info.requestId, timestamp: () => clock.now().toISOString(), call };
    const calls: TrpcCalls = { notes: at.notes, verdict: null, failure: null, replayed: false, cookies: [], context };
    return calls;
  };
