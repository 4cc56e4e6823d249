// One tRPC request's way into the pipeline: what its calls share, and what its answer's headers have to say of them.
import type { Clock } from "../core/clock.ts";
import type { AppError } from "../core/errors.ts";
import { type LazyAbort, lazyAbortOf } from "../core/lazy-abort.ts";
import type { RateLimitVerdict } from "../core/rate-limiter.ts";
import type { Identity } from "./auth/identity.ts";
import type { Notes } from "./call-log.ts";
import type { Entry } from "./catalogue.ts";
import type { HttpRequest } from "./exchange.ts";
import type { RequestFacts } from "./facts.ts";
import { RateLimited, tighter } from "./limits.ts";
import type { CallRequest, Pipeline } from "./pipeline.ts";
import { signedBy } from "./replay.ts";
import type { TrpcContext } from "./trpc-router.ts";
import { keepVigil } from "./vigil.ts";

export interface Session {
  readonly notes: Notes;
  readonly context: TrpcContext;
  verdict: RateLimitVerdict | null;
  failure: AppError | null;
  replayed: boolean;
}

export interface Caller {
  readonly notes: Notes;
  readonly gone: LazyAbort;
  readonly identify: (entry: Entry) => Promise<Identity>;
  /** The same again while a stream runs. */
  readonly reidentify: (entry: Entry) => Promise<Identity>;
}

const verdictOf = (outcome: Awaited<ReturnType<Pipeline["call"]>>): RateLimitVerdict | null => {
  if (outcome.ok) return outcome.answer.verdict;
  const { error, verdict } = outcome.failure;
  return error instanceof RateLimited ? error.verdict : verdict;
};

export const createSessions =
  ({ pipeline, clock }: { readonly pipeline: Pipeline; readonly clock: Clock }) =>
  (request: HttpRequest, facts: RequestFacts, at: Caller): Session => {
    const signed = signedBy(request);
    const call: TrpcContext["call"] = async (entry, input, signal) => {
      const asked: CallRequest = {
        entry,
        facts,
        door: "trpc",
        tenantHeader: request.headers["x-svc-tenant-id"],
        identify: () => at.identify(entry),
        readInput: () => input,
        idempotencyKey: request.headers["idempotency-key"] ?? request.headers["x-idempotency-key"],
        signed,
        gone: signal === undefined ? at.gone : lazyAbortOf(signal),
        notes: at.notes,
      };
      const vigil =
        entry.op.kind === "subscription" ? keepVigil(asked.gone.signal, () => pipeline.judge({ ...asked, identify: () => at.reidentify(entry) })) : null;
      const outcome = await pipeline.call(vigil === null ? asked : { ...asked, gone: lazyAbortOf(vigil.signal) });
      session.verdict = tighter(session.verdict, verdictOf(outcome));
      session.replayed ||= (outcome.ok ? outcome.answer : outcome.failure).headers["Idempotent-Replayed"] !== undefined;
      if (outcome.ok) return vigil === null ? outcome.answer.result : vigil.watch(outcome.answer.result as AsyncIterable<unknown>);
      session.failure = outcome.failure.error;
      throw outcome.failure.error;
    };
    const context: TrpcContext = { requestId: facts.requestId, timestamp: () => clock.now().toISOString(), call };
    const session: Session = { notes: at.notes, verdict: null, failure: null, replayed: false, context };
    return session;
  };
