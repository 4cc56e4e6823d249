// Stream re-authentication: a call that lasts outlives the checks that let it in, so its caller and its record are checked again every few seconds. A
// stream, a wait and an export end with the refusal that the same call would get now.
import { AppError, isAppError } from "../../core/errors.ts";
import { createLazyAbort, type LazyAbort } from "../../core/lifecycle/lazy-abort.ts";

/** Together with the age of a cached member or key, a refusal takes at most five seconds; with that of a session, less. */
export const CHECK_EVERY_MS = 2_000;

const ACCESS_CHANGED = "access_changed";
/** The caller may call again, and gets another answer than this call would give. */
export const accessChanged = (): AppError => new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: ACCESS_CHANGED } });

/** A database error, or a limit that is used up, does not end a call. */
export const isRefusal = (error: unknown): error is AppError =>
  isAppError(error) && ((error.status < 500 && error.status !== 429) || error.details?.["reason"] === ACCESS_CHANGED);

export interface StreamChecks {
  /** Fires when the caller leaves. */
  readonly gone: LazyAbort;
  /** Whether the call would be let in now: null, or the refusal that it would get. Never rejects. */
  readonly judge: () => Promise<AppError | null>;
  /** Hears at once of a block, which must not wait for the next check. */
  readonly onBlocked: (listener: () => void) => () => void;
  readonly nowBlocked: () => AppError | null;
}

export interface StreamReauthorizer {
  /** Fires when the stream has to end: because its caller left or by a refusal. */
  readonly gone: LazyAbort;
  /** Passes the items on until a refusal, and throws that. */
  watch(items: AsyncIterable<unknown>): AsyncIterable<unknown>;
}

export const reauthorizeStream = ({ gone, judge, onBlocked, nowBlocked }: StreamChecks, everyMs = CHECK_EVERY_MS): StreamReauthorizer => {
  const over = createLazyAbort();
  gone.onAbort(over.abort.bind(over));
  let refusal: AppError | null = null;
  let onRefusal: (error: AppError) => void = () => undefined;
  const refuse = (error: AppError | null): void => {
    if (error === null || refusal !== null) return;
    refusal = error;
    over.abort();
    onRefusal(error);
  };
  let isJudging = false;
  const check = async (): Promise<void> => {
    if (isJudging) return;
    isJudging = true;
    refuse(await judge());
    isJudging = false;
  };
  /** The refusal does not wait for a handler that ignores its signal. */
  const nextOf = (iterator: AsyncIterator<unknown>): Promise<IteratorResult<unknown>> =>
    new Promise((resolve, reject) => {
      onRefusal = reject;
      if (refusal !== null) reject(refusal);
      else iterator.next().then(resolve, reject);
    });
  return {
    gone: over,
    watch: async function* (items) {
      const iterator = items[Symbol.asyncIterator]();
      const timer = setInterval(() => void check(), everyMs);
      const stopListening = onBlocked(() => refuse(nowBlocked()));
      // It may have been blocked since it was let in.
      refuse(nowBlocked());
      try {
        for (;;) {
          const { done, value } = await nextOf(iterator);
          if (refusal !== null) throw refusal;
          if (done === true) return;
          yield value;
        }
      } finally {
        clearInterval(timer);
        stopListening();
        const ended = Promise.resolve(iterator.return?.());
        // The handler may be in the middle of a read.
        if (refusal === null) await ended;
        else ended.catch(() => undefined);
      }
    },
  };
};
