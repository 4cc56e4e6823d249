// Ids of commands begin with the time, so a range of ids is a range of time.
import { encodeTime } from "ulid";

/** Before every id. */
export const OLDEST_ID = "cmd_";
/** The clocks of nodes and database may differ. */
const SKEW_MS = 3_600_000;
/** No command that was queued since then has a lower id. */
export const idSince = (ms: number): string => `${OLDEST_ID}${encodeTime(Math.max(0, ms - SKEW_MS), 10)}`;
