// Background jobs of the features: each runs on its own timer, never twice at once, and stops with the signal.
import { setMaxListeners } from "node:events";
import type { Clock } from "../core/clock.ts";
import { runAs, Work } from "../core/work.ts";

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
  /** Keeps the last run of each job. */
  readonly book: JobBook;
}

/** The last run of a job in this process. */
export interface JobRun {
  readonly name: string;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly runs: number;
  /** In a row; 0 after a success. */
  readonly failures: number;
  readonly failedSince: Date | null;
  readonly error: string | null;
}

const MAX_ERROR = 500;

/** Knows every job of this process and how it fares. */
export const createJobBook = (clock: Clock) => {
  const jobs = new Map<string, Job>();
  const runs = new Map<string, JobRun>();
  const wakes = new Map<string, () => void>();
  const write = (name: string, begun: { readonly at: Date; readonly elapsed: number }, failure: { readonly error: unknown } | null): void => {
    const before = runs.get(name);
    runs.set(name, {
      name,
      startedAt: begun.at,
      durationMs: clock.elapsed() - begun.elapsed,
      runs: (before?.runs ?? 0) + 1,
      failures: failure === null ? 0 : (before?.failures ?? 0) + 1,
      failedSince: failure === null ? null : (before?.failedSince ?? begun.at),
      error: failure === null ? null : String(failure.error).slice(0, MAX_ERROR).toWellFormed(),
    });
  };
  return {
    now: clock.now,
    jobs: (): readonly Job[] => [...jobs.values()],
    runs: (): readonly JobRun[] => [...runs.values()],
    add: (job: Job, wake: () => void): void => {
      jobs.set(job.name, job);
      wakes.set(job.name, wake);
    },
    /** Runs the job again as soon as it is not running. */
    wake: (name: string): void => wakes.get(name)?.(),
    /** Rejects as the job does. */
    record: async (job: Job, signal: AbortSignal): Promise<unknown> => {
      const begun = { at: clock.now(), elapsed: clock.elapsed() };
      try {
        const more = await runAs(new Work("jobs"), () => job.run(signal));
        write(job.name, begun, null);
        return more;
      } catch (error) {
        write(job.name, begun, { error });
        throw error;
      }
    },
  };
};
export type JobBook = ReturnType<typeof createJobBook>;

/** start() runs all jobs at once and then each at its period; close() waits for those that run. Periods vary by ±20 % so that nodes do not run in step. */
export const createJobRunner = (jobs: readonly Job[], { signal, onError, book }: JobsDeps) => {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  // A job may listen, too.
  setMaxListeners(jobs.length * 2 + 1, both);
  const pause = (ms: number, onWake: (wake: () => void) => void) =>
    new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        both.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      both.addEventListener("abort", done, { once: true });
      onWake(done);
    });
  const loop = async (job: Job): Promise<void> => {
    const { name, everyMs } = job;
    let isAsked = false;
    let endPause = (): void => undefined;
    book.add(job, () => {
      isAsked = true;
      endPause();
    });
    while (!both.aborted) {
      isAsked = false;
      const more = await book.record(job, both).catch((error: unknown) => onError(name, error));
      if (both.aborted || more === true || isAsked) continue;
      await pause((typeof everyMs === "function" ? everyMs() : everyMs) * (0.8 + Math.random() * 0.4), (wake) => {
        endPause = wake;
      });
    }
  };
  let running: readonly Promise<void>[] = [];
  return {
    start: (): void => {
      running = jobs.map(loop);
    },
    close: async () => {
      stop.abort();
      await Promise.all(running);
    },
  };
};
