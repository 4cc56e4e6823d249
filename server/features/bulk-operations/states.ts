// The states of bulk operations, and what people may do in each. A call that its state does not list is refused.
import type { BulkAction, BulkCounts, BulkStatus } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";

type Change = Exclude<BulkAction, "retryFailed">;

const TO: Readonly<Record<Change, BulkStatus>> = { start: "pending", pause: "paused", resume: "pending", cancel: "cancelled" };
const ALLOWED: Readonly<Record<BulkStatus, readonly Change[]>> = {
  draft: ["start", "cancel"],
  freezing: ["cancel"],
  pending: ["pause", "cancel"],
  running: ["pause", "cancel"],
  paused: ["resume", "cancel"],
  completed: [],
  completed_with_errors: [],
  failed: [],
  cancelled: [],
};

/** Steps of these go on by themselves. */
export const goesOn = (status: BulkStatus): boolean => status === "freezing" || status === "pending" || status === "running";
export const isFinal = (status: BulkStatus): boolean => ALLOWED[status].length === 0;

/** Whether nothing of it is left to do. */
const isOver = ({ pending, running }: BulkCounts): boolean => pending + running === 0;
const mayRetry = (status: BulkStatus, counts: BulkCounts): boolean => isFinal(status) && isOver(counts) && counts.failed > 0;

export const actionsOf = (status: BulkStatus, counts: BulkCounts): BulkAction[] => [
  ...ALLOWED[status],
  ...(mayRetry(status, counts) ? (["retryFailed"] as const) : []),
];

/** The state after the change. */
export const moveBulk = (from: BulkStatus, change: Change): BulkStatus => {
  const to = TO[change];
  if (!ALLOWED[from].includes(change)) throw refused(from, to);
  return to;
};

export const requireRetry = (status: BulkStatus, counts: BulkCounts): void => {
  if (!mayRetry(status, counts)) throw refused(status, "draft");
};

const refused = (from: BulkStatus, to: BulkStatus): AppError =>
  new AppError("INVALID_STATE_TRANSITION", { details: { from, to, allowed: ALLOWED[from].map((each) => TO[each]) } });
