// The bounds of every batch of the queue.
import type { WorkClass } from "../../core/work.ts";
import type { BatchOptions } from "../../platform/database/batch.ts";
import type { CommandSettings } from "./settings.ts";

export const batchBounds = (work: WorkClass, { batchSize, batchConcurrency, batchWaiting, batchPaceMs }: CommandSettings): BatchOptions => ({
  work,
  maxSize: batchSize,
  maxConcurrent: batchConcurrency,
  maxWaiting: batchWaiting,
  paceMs: batchPaceMs,
});
