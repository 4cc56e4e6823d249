// How often each of many keys may do something: so many in a minute, some of them at once. Of a key one number is remembered, and that only while it matters.
import type { Clock } from "../../core/clock.ts";
import { createRecentSet } from "../../core/recent-set.ts";

export interface Allowance {
  /** 0 when it may; otherwise the whole seconds until it may again. A refusal uses nothing up. */
  take(key: string): number;
}

export interface AllowanceOptions {
  readonly perMinute: number;
  readonly burst: number;
  /** The newest of them are remembered whatever comes; twice as many at most. */
  readonly maxKeys: number;
}

export const createAllowance = (clock: Pick<Clock, "elapsed">, { perMinute, burst, maxKeys }: AllowanceOptions): Allowance => {
  const spacingMs = 60_000 / perMinute;
  /** When the key will have its whole burst again: whoever is not remembered has it now. */
  const wholeAt = createRecentSet<number>({ keepMs: burst * spacingMs, keep: maxKeys, nowMs: clock.elapsed });
  return {
    take: (key) => {
      const nowMs = clock.elapsed();
      const next = Math.max(wholeAt.get(key) ?? nowMs, nowMs) + spacingMs;
      const waitMs = next - nowMs - burst * spacingMs;
      // Less than a millisecond is nobody's wait but what adding up fractions leaves.
      if (waitMs >= 1) return Math.max(1, Math.ceil(waitMs / 1_000));
      wholeAt.set(key, next);
      return 0;
    },
  };
};
