// Stream re-authentication: a stream outlives the check that opened it, so its caller is checked again every few seconds, and the stream ends
// once the caller may no longer open it.
import { type AppError, isAppError } from "../core/errors.ts";
import { eitherOf } from "../core/lazy-abort.ts";

export interface StreamReauthorizer {
  /** Aborts when the stream has to end: by the caller's own signal or by a refusal. */
  readonly signal: AbortSignal;
  /** Passes the events on; throws the refusal once they have ended. */
  watch<T>(events: AsyncIterable<T>): AsyncIterable<T>;
}

// With the two seconds that a key may stay cached, a revocation ends its streams on every node within five seconds.
const CHECK_EVERY_MS = 2_500;

/** A database error does not end a stream. */
const isRefusal = (error: unknown): error is AppError => isAppError(error) && (error.status === 401 || error.status === 403);

export const reauthorizeStream = (callerSignal: AbortSignal, authorize: () => Promise<unknown>, everyMs = CHECK_EVERY_MS): StreamReauthorizer => {
  const refused = new AbortController();
  const check = (): void =>
    void authorize().catch((error: unknown) => {
      if (isRefusal(error)) refused.abort(error);
    });
  return {
    signal: eitherOf(callerSignal, refused.signal),
    watch: async function* (events) {
      const timer = setInterval(check, everyMs);
      try {
        yield* events;
        refused.signal.throwIfAborted();
      } finally {
        clearInterval(timer);
      }
    },
  };
};
