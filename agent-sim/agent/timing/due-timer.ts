// A timer for recurring work that others may bring forward. Bringing it forward never puts it off, however often it happens.
import { noop, type Time } from "./time.ts";

export interface DueTimer {
  /** Runs after this delay at the latest: an earlier plan stays. */
  within(delayMs: number): void;
  /** Runs after this delay, counted from the last run or, before the first, from the first plan. It is for longer intervals only. */
  stretch(intervalMs: number): void;
  cancel(): void;
}

export const createDueTimer = (time: Time, run: () => void): DueTimer => {
  let cancel = noop;
  let dueMs = Number.POSITIVE_INFINITY;
  let lastMs: number | null = null;

  const plan = (atMs: number): void => {
    cancel();
    dueMs = atMs;
    cancel = time.after(Math.max(0, atMs - time.elapsedMs()), () => {
      dueMs = Number.POSITIVE_INFINITY;
      lastMs = time.elapsedMs();
      run();
    });
  };
  return {
    within: (delayMs) => {
      const nowMs = time.elapsedMs();
      lastMs ??= nowMs;
      if (nowMs + delayMs < dueMs) plan(nowMs + delayMs);
    },
    stretch: (intervalMs) => {
      const nowMs = time.elapsedMs();
      lastMs ??= nowMs;
      plan(Math.max(nowMs, lastMs + intervalMs));
    },
    cancel: () => {
      cancel();
      dueMs = Number.POSITIVE_INFINITY;
    },
  };
};
