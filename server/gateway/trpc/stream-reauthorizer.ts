// Stream re-authentication: a stream outlives the check that opened it, so its caller is checked again every few seconds, and the stream ends
// once the caller may no longer open it.
import { haveSameLimits } from "../../core/access.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { eitherOf } from "../../core/lifecycle/lazy-abort.ts";
import { type Blocks, entityBlocked } from "../../core/ports/security.ts";
import type { OpenScope } from "../../core/scope.ts";

export interface StreamReauthorizer {
  /** Aborts when the stream has to end: by the caller's own signal or by a refusal. */
  readonly signal: AbortSignal;
  /** Passes the events on; throws the refusal once they have ended. */
  watch(opened: { readonly scope: OpenScope; readonly result: unknown }): AsyncIterable<unknown>;
}

/** Together with the age of a cached member or key, a refusal takes at most five seconds; with that of a session, less. */
const CHECK_EVERY_MS = 2_000;

/** A client comes back and resumes with its new limits. */
const accessChanged = (): AppError => new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: "access_changed" } });

/** A database error does not end a stream. */
const isRefusal = (error: unknown): error is AppError => isAppError(error) && (error.status === 401 || error.status === 403);

export interface StreamChecks {
  readonly authorize: () => Promise<OpenScope>;
  /** Hears at once of a block, which must not wait for the next check. */
  readonly onBlocked: Blocks["onBlocked"];
  readonly nowBlocked: (scope: OpenScope) => boolean;
}

export const reauthorizeStream = (
  callerSignal: AbortSignal,
  { authorize, onBlocked, nowBlocked }: StreamChecks,
  everyMs = CHECK_EVERY_MS,
): StreamReauthorizer => {
  const refused = new AbortController();
  const check = async (opened: OpenScope): Promise<void> => {
    try {
      // The stream shows the devices that its caller saw when it began.
      if (!haveSameLimits(opened, await authorize())) refused.abort(accessChanged());
    } catch (error) {
      if (isRefusal(error)) refused.abort(error);
    }
  };
  return {
    signal: eitherOf(callerSignal, refused.signal),
    watch: async function* ({ scope, result }) {
      const timer = setInterval(() => void check(scope), everyMs);
      const refuseBlocked = (): void => {
        if (nowBlocked(scope)) refused.abort(entityBlocked());
      };
      const stopListening = onBlocked(refuseBlocked);
      // It may have been blocked since it was let in.
      refuseBlocked();
      try {
        yield* result as AsyncIterable<unknown>; // as: the result of a subscription
        refused.signal.throwIfAborted();
      } finally {
        clearInterval(timer);
        stopListening();
      }
    },
  };
};
