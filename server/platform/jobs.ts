// Background jobs of the features: each runs on its own timer, never twice at once, and stops with the signal.
import { setMaxListeners } from "node:events";

export interface Job {
  readonly name: string;
  /** A function is called before each pause. */
  readonly everyMs: number | (() => number);
  /** Returns true to run again at once. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most jobs return nothing
  run(signal: AbortSignal): Promise<boolean | void>;
}

export interface JobsDeps {
  readonly signal: AbortSignal;
  readonly onError: (name: string, error: unknown) => void;
}

/** Starts all jobs; close() waits for those that run. Periods vary by ±20 % so that nodes do not run in step. */
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
