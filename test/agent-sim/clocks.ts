// Clocks for the agent's tests: one that stands until a test moves it, and one on which a second lasts a few milliseconds.
import type { Time } from "../../agent-sim/agent/index.ts";

export interface HandTime extends Time {
  /** Moves the clock and runs due timers in order. */
  advance(ms: number): void;
}

export const createHandTime = (startMs = Date.UTC(2026, 0, 2)): HandTime => {
  let nowMs = 0;
  let waiting: { readonly atMs: number; readonly run: () => void }[] = [];
  return {
    wallMs: () => startMs + nowMs,
    elapsedMs: () => nowMs,
    after: (delayMs, run) => {
      const entry = { atMs: nowMs + delayMs, run };
      waiting.push(entry);
      return () => {
        waiting = waiting.filter((other) => other !== entry);
      };
    },
    advance: (ms) => {
      const endMs = nowMs + ms;
      for (;;) {
        const next = waiting.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
        if (!next) break;
        waiting = waiting.filter((other) => other !== next);
        nowMs = Math.max(nowMs, next.atMs);
        next.run();
      }
      nowMs = endMs;
    },
  };
};

/** Real time with every delay shortened; `skewMs` sets the wall clock wrong. */
export const createFastTime = (factor = 100, skewMs = 0): Time => ({
  wallMs: () => Date.now() + skewMs,
  elapsedMs: () => performance.now() * factor,
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs / factor);
    return () => clearTimeout(timer);
  },
});

/** That clock, on which no delay lasts longer. */
export const withLongestDelay = (time: Time, longestMs: number): Time => ({
  ...time,
  after: (delayMs, run) => time.after(Math.min(delayMs, longestMs), run),
});
