// A stream outlives the check that opened it: the caller is judged again every few seconds, and the stream ends once it may not call any more.
import { type AppError, isAppError } from "../core/errors.ts";
import { eitherOf } from "../core/lazy-abort.ts";

export interface Vigil {
  /** Fires when the stream has to end: by the caller's own signal or by a refusal. */
  readonly signal: AbortSignal;
  /** Hands the events on; a refusal is thrown once they have ended. */
  watch<T>(events: AsyncIterable<T>): AsyncIterable<T>;
}

const LOOK_EVERY_MS = 5_000;

/** A database that is away for a moment judges nobody. */
const isRefusal = (error: unknown): error is AppError => isAppError(error) && (error.status === 401 || error.status === 403);

export const keepVigil = (callerSignal: AbortSignal, check: () => Promise<unknown>, everyMs = LOOK_EVERY_MS): Vigil => {
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
