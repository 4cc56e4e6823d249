// When too much of the work on many has failed: the plain share, or the lower bound of the Wilson interval.
import type { BulkThreshold, FailureThreshold } from "../../../protocol/index.ts";

/** The quantile of the normal distribution for the lower bound of a 90 % interval. */
const Z = 1.28;
const MIN_FINISHED = 3;
const MIN_FAILURES = 2;

/** The lower bound of the 90 % Wilson interval of the share of failures, from 0 to 1. */
export const wilsonLower = (failures: number, finished: number): number => {
  if (finished === 0) return 0;
  const share = failures / finished;
  const z2 = (Z * Z) / finished;
  const lower = (share + z2 / 2 - Z * Math.sqrt((share * (1 - share)) / finished + z2 / (4 * finished))) / (1 + z2);
  return Math.max(0, lower);
};

export interface EndedShare {
  readonly succeeded: number;
  /** Timeouts count, too. */
  readonly failures: number;
  /** What takes part: without what is skipped, aborted or cancelled. */
  readonly size: number;
}

/** Compares whole numbers, so that a share is never rounded in favour of either side. */
export const exceeds = ({ succeeded, failures, size }: EndedShare, { percent, count, minSample }: FailureThreshold | BulkThreshold): boolean => {
  const finished = succeeded + failures;
  if (count !== null && failures >= count) return true;
  // It cannot get better any more.
  if (failures >= MIN_FAILURES && failures * 100 > percent * size) return true;
  if (minSample !== null) return finished >= Math.min(minSample, size) && failures * 100 > percent * finished;
  return finished >= MIN_FINISHED && failures >= MIN_FAILURES && wilsonLower(failures, finished) * 100 > percent;
};
