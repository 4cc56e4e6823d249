// Two rate limits of the agent socket: a fixed window for heartbeats, and the connect rate limit per device or address.
// The counters of a socket are plain numbers inside its session, so each of many thousand sockets has them at little cost.
import type { Clock } from "../../core/clock.ts";
import { createRecentSet } from "../../core/structures/recent-set.ts";

/** The first event opens the window; the limit holds until the window ends. */
export interface FixedWindow {
  /** Null means no limit. */
  readonly windowLimit: number | null;
  readonly windowMs: number;
  windowCount: number;
  windowEndsAt: number;
}

/** 0 when the event fits; otherwise the whole seconds until the next window. */
export const takeFromWindow = (window: FixedWindow, nowMs: number): number => {
  if (window.windowLimit === null) return 0;
  if (nowMs >= window.windowEndsAt) {
    window.windowCount = 0;
    window.windowEndsAt = nowMs + window.windowMs;
  }
  if (window.windowCount >= window.windowLimit) return Math.max(1, Math.ceil((window.windowEndsAt - nowMs) / 1_000));
  window.windowCount += 1;
  return 0;
};

export interface ConnectLimiter {
  /** 0 when the key may connect; otherwise the whole seconds until it may. A refusal uses nothing up. */
  take(key: string): number;
}

export interface ConnectLimiterOptions {
  readonly perMinute: number;
  readonly burst: number;
  /** Always remembers this many of the newest keys, and twice as many at most. */
  readonly maxKeys: number;
}

/** One number per key, kept only until the key's burst is whole again. */
export const createConnectLimiter = (clock: Pick<Clock, "elapsed">, { perMinute, burst, maxKeys }: ConnectLimiterOptions): ConnectLimiter => {
  const spacingMs = 60_000 / perMinute;
  /** When the key's burst is whole again; a key that is not remembered has it now. */
  const wholeAt = createRecentSet<number>({ keepMs: burst * spacingMs, keep: maxKeys, nowMs: clock.elapsed });
  return {
    take: (key) => {
      const nowMs = clock.elapsed();
      const next = Math.max(wholeAt.get(key) ?? nowMs, nowMs) + spacingMs;
      const waitMs = next - nowMs - burst * spacingMs;
      // Adding fractions leaves less than a millisecond, which is not a wait.
      if (waitMs >= 1) return Math.max(1, Math.ceil(waitMs / 1_000));
      wholeAt.set(key, next);
      return 0;
    },
  };
};
