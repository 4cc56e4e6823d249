// The bounds of every batch of the queue.
import { isUnavailable } from "../../platform/database/db-errors.ts";
import type { CommandSettings } from "./settings.ts";

/** Whether a failed batch is worth running row by row. When the database is away, each row would only fail again. */
const canSplit = (error: unknown): boolean => !isUnavailable(error);

export const batchBounds = ({ batchSize, batchConcurrency, batchWaiting, batchPaceMs }: CommandSettings) => ({
  maxSize: batchSize,
  maxConcurrent: batchConcurrency,
  maxWaiting: batchWaiting,
  paceMs: batchPaceMs,
  splitOn: canSplit,
});
