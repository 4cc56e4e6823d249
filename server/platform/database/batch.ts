// Joins calls into batches: the calls of one turn of the event loop, and those that arrive while a batch runs.
import { AppError } from "../../core/errors.ts";
import { type Flush, settleInHalves } from "../../core/rows/split-batch.ts";

export interface BatchOptions {
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
  /** Whether to run a failed batch again in halves, so that one bad item does not fail its neighbours. Return false when the database is away. */
  readonly splitOn?: (error: unknown) => boolean;
}

export type CreateBatch = typeof createBatch;

interface Waiting<I, O> {
  readonly item: I;
  readonly resolve: (result: O) => void;
  readonly reject: (error: unknown) => void;
}

export const createBatch = <I, O>(
  flush: Flush<I, O>,
  { maxSize, maxConcurrent, maxWaiting, paceMs = 0, splitOn = () => true }: BatchOptions,
): ((item: I) => Promise<O>) => {
  let waiting: Waiting<I, O>[] = [];
  let running = 0;
  let scheduled = false;
  let nextAtMs = 0;

  const run = async (calls: readonly Waiting<I, O>[]): Promise<void> => {
    const results = await settleInHalves(
      calls.map(({ item }) => item),
      flush,
      splitOn,
    );
    for (const [index, result] of results.entries()) {
      const call = calls[index];
      if (result.status === "fulfilled") call?.resolve(result.value);
      else call?.reject(result.reason);
    }
  };

  const start = (): void => {
    scheduled = false;
    while (running < maxConcurrent && waiting.length > 0) {
      const nowMs = performance.now();
      if (nowMs < nextAtMs && waiting.length < maxSize) {
        schedule(nextAtMs - nowMs);
        return;
      }
      const calls = waiting.slice(0, maxSize);
      waiting = waiting.slice(maxSize);
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

  return (item) =>
    new Promise<O>((resolve, reject) => {
      if (waiting.length >= maxWaiting) {
        reject(new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: "queue_full" } }));
        return;
      }
      waiting.push({ item, resolve, reject });
      schedule(0);
    });
};
