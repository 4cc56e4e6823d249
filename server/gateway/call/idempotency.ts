// Calls under an idempotency key happen once, and every repeat gets the first answer. The transaction that writes the effect also claims the key
// and keeps the answer, so a call whose COMMIT went unanswered leaves nothing behind that a repeat could misread.
import { createHash } from "node:crypto";
import { AppError } from "../../core/errors.ts";
import type { SqlTx } from "../../core/events.ts";
import { checkIdempotencyKey } from "../../core/key-form.ts";
import type { IdempotencyStore, IdempotentCall, KnownCall } from "../../core/ports/idempotency.ts";
import { fingerprint } from "../../core/rows/fingerprint.ts";
import { actorOf, type OpenScope } from "../../core/scope.ts";
import type { Answered, CallOutcome, Keeper, Transact } from "./run-handler.ts";

export interface IdempotentCallsDeps {
  readonly idempotency: IdempotencyStore;
  readonly transact: Transact;
  readonly toAppError: (error: unknown) => AppError;
}

export interface KeyedRequest {
  readonly operation: string;
  readonly scope: OpenScope;
  readonly input: unknown;
  readonly key: string;
  /** Runs the handler, whose `commit` goes through the keeper. */
  readonly run: (keeper: Keeper) => Promise<CallOutcome>;
}

/** Bare (Stripe) or quoted (IETF); anything else is refused. */
export const readKey = (given: string | undefined): string | null => {
  if (given === undefined) return null;
  return checkIdempotencyKey(/^"(.*)"$/.exec(given)?.[1] ?? given);
};

/** A kept refusal: the reply says that it is a replay. */
export class ReplayedRefusal extends Error {
  readonly refusal: AppError;
  constructor(refusal: AppError) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

class AlreadyKnown extends Error {
  readonly known: KnownCall;
  constructor(known: KnownCall) {
    super(`the key is ${known.kind}`);
    this.known = known;
  }
}

/** Keeps business refusals, which are answers too, but no answer that may differ a moment later. */
const isKept = (status: number): boolean => ![400, 401, 403, 429].includes(status) && status < 500;

const storable = ({ status, result }: Answered) =>
  result instanceof AppError ? { status: result.status, body: { code: result.code, details: result.details ?? null } } : { status, body: { result } };

const answerOf = (known: KnownCall): CallOutcome => {
  if (known.kind === "in_progress") throw new AppError("IDEMPOTENCY_IN_PROGRESS", { details: { retryHint: "after_state_change" }, retryAfter: 1 });
  if (known.kind === "reused") throw new AppError("IDEMPOTENCY_KEY_REUSED", { details: { firstSeenAt: known.firstSeenAt.toISOString() } });
  const kept = known.body as { result?: unknown; code?: AppError["code"]; details?: AppError["details"] | null };
  if (kept.code !== undefined) throw new ReplayedRefusal(new AppError(kept.code, { details: kept.details ?? undefined }));
  return { result: kept.result, reply: { status: known.status, replayed: true, headers: {} } };
};

const callOf = ({ operation, scope, input, key }: KeyedRequest): IdempotentCall => ({
  tenantId: scope.tenantId,
  scope: createHash("sha256")
    .update([scope.tenantId ?? "-", actorOf(scope.principal), operation, key].join("\n"))
    .digest("base64url"),
  fingerprint: fingerprint(input),
});

export const createIdempotentCalls = ({ idempotency, transact, toAppError }: IdempotentCallsDeps) => {
  const claim = async (tx: SqlTx, call: IdempotentCall): Promise<void> => {
    const known = await idempotency.claim(tx, call);
    if (known !== null) throw new AlreadyKnown(known);
  };

  return async (request: KeyedRequest): Promise<CallOutcome> => {
    const call = callOf(request);
    // Look before the handler runs: it would read what the first call has changed already.
    const known = await idempotency.find(call);
    if (known !== null) return answerOf(known);
    let kept: unknown = null;
    const keeper: Keeper = {
      claim: (tx) => claim(tx, call),
      keep: (tx, answer) => {
        kept = answer.result;
        return idempotency.keep(tx, call, storable(answer));
      },
    };
    try {
      return await request.run(keeper);
    } catch (error) {
      if (error instanceof AlreadyKnown) return answerOf(error.known);
      const refusal = toAppError(error);
      if (error === kept || !isKept(refusal.status)) throw error;
      // The effect is rolled back. The key decides whether the refusal counts: the call that it repeats may have committed meanwhile.
      try {
        await transact(async (tx) => {
          await claim(tx, call);
          await idempotency.keep(tx, call, storable({ status: refusal.status, result: refusal }));
        });
      } catch (late) {
        if (late instanceof AlreadyKnown) return answerOf(late.known);
        throw late;
      }
      throw error;
    }
  };
};
