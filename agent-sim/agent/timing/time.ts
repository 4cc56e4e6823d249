// The only access to time in agent-sim: wall clock, monotonic clock and timers, which tests replace.
import { setMaxListeners } from "node:events";
import { pause, type Time } from "../../../protocol/kit/timers.ts";

export { pause, type Time };

/** Rounds delays of a second and more up to 50 ms, so that thousands of agents share a few timer lists. */
const onGrid = (delayMs: number): number => (delayMs < 1_000 ? Math.max(0, delayMs) : Math.min(Math.ceil(delayMs / 50) * 50, 2_147_483_000));

export const noop = (): void => undefined;

export const systemTime: Time = {
  wallMs: () => Date.now(),
  elapsedMs: () => performance.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, onGrid(delayMs));
    return () => clearTimeout(timer);
  },
};

/** Ends a run of many devices: any number of waits may listen to its signal at a time, and Node warns of none. */
export const createRunAbort = (): AbortController => {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
};

/** Checks the condition every `everyMs` until it holds, the time is over or the signal aborts. Resolves to whether it held. */
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
