// Timers that a test replaces, for everything that gateway and agent share.

export interface Timers {
  /** Runs once after the delay. Returns a function that cancels it. */
  after(delayMs: number, run: () => void): () => void;
}

export interface Time extends Timers {
  /** Milliseconds since 1970 by this machine's clock, which may be wrong. */
  wallMs(): number;
  /** Monotonic milliseconds, for measuring and for deadlines. */
  elapsedMs(): number;
}

export const systemTimers: Timers = {
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Resolves after the delay or when the signal aborts; never rejects. */
export const pause = (timers: Timers, delayMs: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = timers.after(delayMs, done);
    signal?.addEventListener("abort", done, { once: true });
  });
