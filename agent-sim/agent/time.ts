// The simulator's only door to time: wall clock, monotonic clock and timers, so that a test can hold them in its hand.
export interface Time {
  /** Milliseconds since 1970 by this machine's clock, right or wrong. */
  wallMs(): number;
  /** Monotonic milliseconds, for measuring and for deadlines. */
  elapsedMs(): number;
  /** Runs once after the delay; the answer cancels. */
  after(delayMs: number, run: () => void): () => void;
}

/** Delays of a second and more end on a 50 ms grid: thousands of agents then share a few timer lists. */
const onGrid = (delayMs: number): number => (delayMs < 1_000 ? Math.max(0, delayMs) : Math.min(Math.ceil(delayMs / 50) * 50, 2_147_483_000));

/** Where something could be cancelled and there is nothing yet. */
export const nothing = (): void => undefined;

export const systemTime: Time = {
  wallMs: () => Date.now(),
  elapsedMs: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, onGrid(delayMs));
    return () => clearTimeout(timer);
  },
};

/** Resolves after the delay, or as soon as the signal is given; never rejects. */
export const pause = (time: Time, delayMs: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = time.after(delayMs, done);
    signal?.addEventListener("abort", done, { once: true });
  });

/** Asks again every `everyMs` until it is true, the bound has passed or the signal is given; tells whether it became true. */
export const until = async (
  time: Time,
  condition: () => boolean,
  { everyMs, withinMs, signal }: { everyMs: number; withinMs: number; signal?: AbortSignal | undefined },
): Promise<boolean> => {
  const end = time.elapsedMs() + withinMs;
  while (!condition()) {
    if (signal?.aborted || time.elapsedMs() >= end) return false;
    await pause(time, everyMs, signal);
  }
  return true;
};
