// Schedules of policies: five fields or a name, in a time zone. The library decides about changes of the clocks: a local time that is skipped runs once, at
// the shift, and one that is repeated runs once, too.
import { createHash } from "node:crypto";
import { Cron } from "croner";
import { AppError } from "../../core/errors.ts";
import { offsetMinutes } from "../../core/retention.ts";

const NAMES: ReadonlyMap<string, string> = new Map([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
]);
const FIELDS = 5;
/** So many runs show the smallest gap of any schedule that people write. */
const COMPARED = 50;
const MAX_MISSED = 1_000;

export interface PolicySchedule {
  /** The first time after this one; null: never again. */
  after(at: Date): Date | null;
  nextRuns(at: Date, count: number): readonly Date[];
}

const invalid = (at: string, problem: string): AppError => new AppError("CRON_INVALID", { details: { at, problem } });

const parse = (pattern: string, timezone: string): Cron => {
  try {
    return new Cron(pattern, { timezone, paused: true });
  } catch (error) {
    throw invalid(pattern, error instanceof Error ? error.message.slice(0, 200) : "it cannot be read");
  }
};

/** Throws CRON_INVALID for other than five fields, and for a schedule that never runs. */
export const readSchedule = (text: string, timezone: string, now: Date): PolicySchedule => {
  const pattern = NAMES.get(text) ?? text;
  if (pattern.startsWith("@")) throw invalid(text, "the names are @hourly, @daily, @weekly and @monthly");
  const fields = pattern.trim().split(/\s+/);
  if (fields.length !== FIELDS) throw invalid(text, `it has ${fields.length} fields instead of five`);
  const cron = parse(fields.join(" "), timezone);
  const after = (at: Date): Date | null => cron.nextRun(at);
  if (after(now) === null) throw invalid(text, "it never runs");
  return { after, nextRuns: (at, count) => cron.nextRuns(count, at) };
};

/** Throws CRON_TOO_FREQUENT for a schedule that runs more often than the plan allows. */
export const requireGap = (schedule: PolicySchedule, now: Date, limit: number | null): void => {
  const runs = schedule.nextRuns(now, COMPARED);
  const gaps = runs.slice(1).map((at, index) => (at.getTime() - (runs[index]?.getTime() ?? 0)) / 60_000);
  const minutes = Math.min(...gaps, Number.POSITIVE_INFINITY);
  if (limit !== null && minutes < limit) throw new AppError("CRON_TOO_FREQUENT", { details: { minutes: Math.round(minutes), limit } });
};

export interface Due {
  /** The newest time that has passed. */
  readonly latest: Date;
  /** The times that have passed; more than 1,000 count as 1,000. */
  readonly passed: number;
  readonly next: Date | null;
}
/** From the time that was due, so that no time is lost and none comes twice. */
export const dueSince = (schedule: PolicySchedule, scheduled: Date, now: Date): Due => {
  let latest = scheduled;
  let passed = 1;
  let next = schedule.after(scheduled);
  while (next !== null && next <= now && passed < MAX_MISSED) {
    latest = next;
    passed += 1;
    next = schedule.after(next);
  }
  if (next !== null && next <= now) next = schedule.after(now);
  return { latest, passed, next };
};

/** Always the same delay of a device in a policy, so that a fleet does not begin at once. */
export const jitterOf = (policyId: string, deviceId: string, jitterSeconds: number): number =>
  jitterSeconds === 0 ? 0 : createHash("sha256").update(`${policyId} ${deviceId}`).digest().readUInt32BE(0) % (jitterSeconds + 1);

const DAY_MS = 86_400_000;
/** What a change of the clocks does on the day of a run; null: there is none. */
export const noteOf = (at: Date, timezone: string): string | null => {
  const change = offsetMinutes(new Date(at.getTime() + DAY_MS / 24), timezone) - offsetMinutes(new Date(at.getTime() - (DAY_MS * 23) / 24), timezone);
  if (change === 0) return null;
  return change > 0
    ? `The clocks go forward by ${change} minutes: a time that is skipped runs at the shift.`
    : `The clocks go back by ${-change} minutes: a time that comes twice runs once.`;
};

/** The moment by the clock of the zone, without it: `2026-03-29T03:00`. */
export const localText = (at: Date, timezone: string): string => new Date(at.getTime() + offsetMinutes(at, timezone) * 60_000).toISOString().slice(0, 16);
