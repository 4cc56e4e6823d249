// Ids begin with the time, so a range of ids is a range of time.
import { encodeTime } from "ulid";

/** The clocks of nodes and database may differ. */
const SKEW_MS = 3_600_000;
/** Before every id. */
export const oldestId = (prefix: string): string => `${prefix}_`;
/** Nothing that was made since then has a lower id. */
export const idSince = (prefix: string, ms: number): string => `${oldestId(prefix)}${encodeTime(Math.max(0, ms - SKEW_MS), 10)}`;
