// A stream outlives the check that opened it: every few seconds we authorize its caller again, and end the stream once that is refused.
import { type AppError, isAppError } from "../core/errors.ts";
import { eitherOf } from "../core/lazy-abort.ts";

export interface StreamReauthorizer {
  /** Fires when the stream has to end: by the caller's own signal or by a refusal. */
  readonly signal: AbortSignal;
  /** Hands the events on; a refusal is thrown once they have ended. */
  watch<T>(events: AsyncIterable<T>): AsyncIterable<T>;
}

const LOOK_EVERY_MS = 5_000;

/** A database error does not end a stream. */
const isRefusal = (error: unknown): error is AppError => isAppError(error) && (error.status === 401 || error.status === 403);

export const reauthorizeStream = (callerSignal: AbortSignal, check: () => Promise<unknown>, everyMs = LOOK_EVERY_MS): StreamReauthorizer => {
  const refused = new AbortController();
  const look = (): void =>
    void check().catch((error: unknown) => {
      if (isRefusal(error)) refused.abort(error);
    });
  return {
    signal: eitherOf(callerSignal, refused.signal),
    watch: async function* (events) {
      const timer = setInterval(look, everyMs);
      try {
        yield* events;
        refused.signal.throwIfAborted();
      } finally {
        clearInterval(timer);
      }
    },
  };
};
