// Timers of the rooms: each job runs by itself, never twice at once, and stops with the signal.
import { setMaxListeners } from "node:events";

export interface Job {
  readonly name: string;
  /** A function is asked before each pause. */
  readonly everyMs: number | (() => number);
  /** Returns true when there is more to do at once. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most jobs have nothing to say
  run(signal: AbortSignal): Promise<boolean | void>;
}

export interface JobsDeps {
  readonly signal: AbortSignal;
  readonly onError: (name: string, error: unknown) => void;
}

/** Starts all; close() waits for those that are running. Periods vary by ±20 % so that nodes do not march in step. */
export const startJobs = (jobs: readonly Job[], { signal, onError }: JobsDeps) => {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  setMaxListeners(jobs.length + 1, both);
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        both.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      both.addEventListener("abort", done, { once: true });
    });
  const loop = async ({ name, everyMs, run }: Job): Promise<void> => {
    while (!both.aborted) {
      const more = await run(both).catch((error: unknown) => onError(name, error));
      if (!both.aborted && more !== true) await pause((typeof everyMs === "function" ? everyMs() : everyMs) * (0.8 + Math.random() * 0.4));
    }
  };
  const running = jobs.map(loop);
  return {
    close: async () => {
      stop.abort();
      await Promise.all(running);
    },
  };
};
