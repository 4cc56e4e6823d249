// Whether this node has more than it can do. Then it takes nobody in and asks for fewer heartbeats, but lets nobody go.
import { monitorEventLoopDelay } from "node:perf_hooks";

export interface Strain {
  /** How late the event loop runs its timers, in the worst hundredth of the time since the last look. */
  readonly loopDelayMs: number;
  /** For how long the oldest claim for a socket has waited for the database. */
  readonly claimWaitMs: number;
}

export interface StrainLimits extends Strain {
  /** The loop must have been late for so long; a claim that waits too long is enough by itself. */
  readonly lateForMs: number;
  /** Below half of both limits for so long it is over. */
  readonly calmForMs: number;
}

export interface Verdict {
  readonly overloaded: boolean;
  /** Since when everything speaks for the other verdict, in monotonic milliseconds. */
  readonly turningSince: number | null;
}

export const WELL: Verdict = { overloaded: false, turningSince: null };
const OVERLOADED: Verdict = { overloaded: true, turningSince: null };

/** Turns once a sign of the other state has lasted; between the two limits everything stays as it is. */
export const judgeStrain = (before: Verdict, { loopDelayMs, claimWaitMs }: Strain, nowMs: number, limits: StrainLimits): Verdict => {
  if (!before.overloaded && claimWaitMs > limits.claimWaitMs) return OVERLOADED;
  const turns = before.overloaded ? loopDelayMs <= limits.loopDelayMs / 2 && claimWaitMs <= limits.claimWaitMs / 2 : loopDelayMs > limits.loopDelayMs;
  if (!turns) return { ...before, turningSince: null };
  const since = before.turningSince ?? nowMs;
  if (nowMs - since < (before.overloaded ? limits.calmForMs : limits.lateForMs)) return { ...before, turningSince: since };
  return before.overloaded ? WELL : OVERLOADED;
};

/** Often enough to feel lateness of a fifth of a second, and rare enough that a resting node rests: each look wakes the process. */
const RESOLUTION_MS = 100;
const NS_PER_MS = 1e6;

export interface LoopMeter {
  /** Since the last call. */
  delayMs(): number;
  stop(): void;
}

export const startLoopMeter = (): LoopMeter => {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  return {
    // What it measures begins with the pause that it makes itself.
    delayMs: () => {
      const p99 = histogram.count === 0 ? 0 : histogram.percentile(99) / NS_PER_MS;
      histogram.reset();
      return Math.max(0, p99 - RESOLUTION_MS);
    },
    stop: () => void histogram.disable(),
  };
};
