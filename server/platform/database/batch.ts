// Joins calls into batches: the calls of one turn of the event loop, and those that arrive while a batch runs.
import { AppError } from "../../core/errors.ts";
import { type Flush, splitBatchOnFailure } from "../../core/rows/split-batch.ts";
import { CALL_BUDGET_MS, currentWork, runAs, Work, type WorkClass } from "../../core/work.ts";
import { failsAlone, noAnswer } from "./db-errors.ts";

export interface BatchOptions {
  /** A batch joins calls of several tenants and perhaps of several classes: it takes sessions of this one. */
  readonly work: WorkClass;
  readonly maxSize: number;
  /** How many batches may run at once. */
  readonly maxConcurrent: number;
  /** How many calls may wait; the next one gets SERVICE_UNAVAILABLE. */
  readonly maxWaiting: number;
  /**
   * The shortest time between the starts of two batches, so that busy times make few large ones. A full batch starts at once, and so does
   * the batch after a single call: calls that come one after the other do not wait for each other.
   */
  readonly paceMs?: number;
  /** True: a failed batch is not run again in halves to find its bad item. Without it, only a failure of the database leaves a batch whole: its halves would fail, or wait, just as long. */
  readonly neverSplit?: boolean;
}

export type CreateBatch = typeof createBatch;

interface Waiting<I, O> {
  readonly item: I;
  readonly resolve: (result: O) => void;
  readonly reject: (error: unknown) => void;
  /** The call has used up its time: the batch goes without it, unless it has begun. */
  isOver: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** A batch that takes longer is followed by a smaller one. Far below what a transaction may take: one that is too large fails as a whole, and so would the next. */
const SLOW_MS = 2_000;
const GROWTH = 1.25;

/** Timers of equal length share one list, so limits come in steps. */
const STEP_MS = 50;

export const createBatch = <I, O>(
  flush: Flush<I, O>,
  { work: workClass, maxSize, maxConcurrent, maxWaiting, paceMs = 0, neverSplit = false }: BatchOptions,
): ((item: I) => Promise<O>) => {
  let waiting: Waiting<I, O>[] = [];
  let running = 0;
  let scheduled = false;
  let nextAtMs = 0;
  /** What a call costs depends on what its feature does with it, and on how busy everything is. */
  let size = maxSize;
  const adapt = (count: number, tookMs: number): void => {
    size = tookMs > SLOW_MS ? Math.max(1, Math.min(size, Math.floor((count * SLOW_MS) / tookMs))) : Math.min(maxSize, Math.ceil(size * GROWTH));
  };

  const run = async (calls: readonly Waiting<I, O>[]): Promise<void> => {
    const items = calls.map(({ item }) => item);
    const settle = () => splitBatchOnFailure(items, flush, (error) => !neverSplit && failsAlone(error));
    const work = new Work(workClass, CALL_BUDGET_MS);
    const startedMs = performance.now();
    const results = await runAs(work, settle);
    work.end();
    adapt(calls.length, performance.now() - startedMs);
    for (const [index, result] of results.entries()) {
      const call = calls[index];
      clearTimeout(call?.timer);
      if (result.status === "fulfilled") call?.resolve(result.value);
      else call?.reject(result.reason);
    }
  };

  const start = (): void => {
    scheduled = false;
    while (running < maxConcurrent && waiting.length > 0) {
      const nowMs = performance.now();
      if (nowMs < nextAtMs && waiting.length < size) {
        schedule(nextAtMs - nowMs);
        return;
      }
      if (waiting.some(({ isOver }) => isOver)) waiting = waiting.filter(({ isOver }) => !isOver);
      const calls = waiting.slice(0, size);
      waiting = waiting.slice(size);
      if (calls.length === 0) return;
      nextAtMs = calls.length > 1 ? nowMs + paceMs : nowMs;
      running += 1;
      void run(calls).finally(() => {
        running -= 1;
        start();
      });
    }
  };

  const schedule = (waitMs: number): void => {
    if (scheduled) return;
    scheduled = true;
    if (waitMs > 0) setTimeout(start, Math.ceil(waitMs));
    else setImmediate(start);
  };

  return (item) => {
    const work = currentWork();
    const joined = new Promise<O>((resolve, reject) => {
      if (waiting.length >= maxWaiting) {
        reject(new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: "queue_full" } }));
        return;
      }
      const call: Waiting<I, O> = { item, resolve, reject, isOver: false, timer: undefined };
      const giveUp = (): void => {
        call.isOver = true;
        reject(noAnswer());
      };
      if (work.isBounded) call.timer = setTimeout(giveUp, Math.max(STEP_MS, Math.ceil(work.leftMs() / STEP_MS) * STEP_MS));
      waiting.push(call);
      schedule(0);
    });
    return work.waits(joined);
  };
};
