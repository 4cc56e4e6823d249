// Overload of this node. An overloaded node refuses new agents and asks for fewer heartbeats, but keeps the agents it has.
import { monitorEventLoopDelay } from "node:perf_hooks";

export interface LoadReading {
  /** 99th percentile of the event loop's delay since the last reading. */
  readonly loopDelayMs: number;
  /** How long the oldest claim of this node's sockets has waited for the database. */
  readonly claimWaitMs: number;
}

export interface OverloadLimits extends LoadReading {
  /** The loop delay must exceed its limit for this long; the claim wait takes effect at once. */
  readonly lateForMs: number;
  /** Overload ends once both readings stay below half of their limits for this long. */
  readonly calmForMs: number;
}

export interface OverloadState {
  readonly overloaded: boolean;
  /** Since when the readings point to the other state, in monotonic milliseconds. */
  readonly turningSince: number | null;
}

export const NOT_OVERLOADED: OverloadState = { overloaded: false, turningSince: null };
const OVERLOADED: OverloadState = { overloaded: true, turningSince: null };

/** Changes the state once the readings have pointed to the other one for long enough; readings between the two limits change nothing. */
export const judgeOverload = (before: OverloadState, { loopDelayMs, claimWaitMs }: LoadReading, nowMs: number, limits: OverloadLimits): OverloadState => {
  if (!before.overloaded && claimWaitMs > limits.claimWaitMs) return OVERLOADED;
  const turns = before.overloaded ? loopDelayMs <= limits.loopDelayMs / 2 && claimWaitMs <= limits.claimWaitMs / 2 : loopDelayMs > limits.loopDelayMs;
  if (!turns) return { ...before, turningSince: null };
  const since = before.turningSince ?? nowMs;
  if (nowMs - since < (before.overloaded ? limits.calmForMs : limits.lateForMs)) return { ...before, turningSince: since };
  return before.overloaded ? NOT_OVERLOADED : OVERLOADED;
};

/** Fine enough to see a delay of 200 ms; each sample wakes the process, so a finer one would keep an idle node busy. */
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
    // Each sample includes the histogram's own pause.
    delayMs: () => {
      const p99 = histogram.count === 0 ? 0 : histogram.percentile(99) / NS_PER_MS;
      histogram.reset();
      return Math.max(0, p99 - RESOLUTION_MS);
    },
    stop: () => void histogram.disable(),
  };
};
