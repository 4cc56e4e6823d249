// Maintenance windows: when one is open, and when the next one opens. The clock on the wall of the window's zone decides: a start that the clock skips is
// the moment of the shift, one that it shows twice is the first of both, and the duration is time that passes.
import { Cron } from "croner";
import type { MaintenanceWindow } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** No zone is further from UTC, and no shift is longer. */
const MARGIN_MS = DAY_MS;
/** A window that does not open within a leap year never does. */
const HORIZON_MS = 366 * DAY_MS;
const MAX_CHAINED = 50;

const formats = new Map<string, Intl.DateTimeFormat>();
const formatOf = (timezone: string): Intl.DateTimeFormat => {
  const known = formats.get(timezone);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat("en-US", { timeZone: timezone, timeZoneName: "longOffset" });
  formats.set(timezone, made);
  return made;
};

/** How far the zone's clock is ahead of UTC at this instant. */
const offsetMs = (timezone: string, at: number): number => {
  const name = formatOf(timezone)
    .formatToParts(at)
    .find(({ type }) => type === "timeZoneName")?.value;
  const found = /^GMT([+-])(\d{2}):(\d{2})(?::(\d{2}))?$/.exec(name ?? "");
  if (found === null) return 0;
  const [, sign, hours, minutes, seconds = "0"] = found;
  return (sign === "-" ? -1 : 1) * ((Number(hours) * 60 + Number(minutes)) * MINUTE_MS + Number(seconds) * 1_000);
};

/** The instant at which the zone's clock shows this, written as if it were UTC. */
export const instantOf = (timezone: string, wall: number): number => {
  const [before, after] = [offsetMs(timezone, wall - MARGIN_MS), offsetMs(timezone, wall + MARGIN_MS)];
  const shown = [wall - before, wall - after].filter((at) => at + offsetMs(timezone, at) === wall);
  if (shown.length > 0) return Math.min(...shown);
  // The clock skips it: find the shift.
  let [low, high] = [wall - Math.max(before, after), wall - Math.min(before, after)];
  const offset = offsetMs(timezone, low);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetMs(timezone, middle) === offset) low = middle;
    else high = middle;
  }
  return high;
};

const ZONE = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;
const invalid = (at: number, problem: string, field: string): AppError => new AppError("CRON_INVALID", { details: { at: at + 1, field, problem } });

const cronOf = (text: string): Cron => {
  if (text.trim().split(/\s+/).length !== 5) throw new Error("it needs five parts: minute, hour, day of month, month, day of week");
  return new Cron(text, { mode: "5-part", timezone: "UTC", paused: true });
};

/** Throws CRON_INVALID, or WINDOW_NEVER_OPENS if there are windows and none opens within 366 days. */
export const checkWindows = (windows: readonly MaintenanceWindow[], now: Date): void => {
  for (const [at, { cron, timezone }] of windows.entries()) {
    try {
      if (!ZONE.test(timezone)) throw new Error("no name");
      formatOf(timezone);
    } catch {
      throw invalid(at, `there is no time zone ${timezone}`, "timezone");
    }
    try {
      cronOf(cron);
    } catch (error) {
      throw invalid(at, error instanceof Error ? error.message.replace(/^CronPattern: /, "").slice(0, 200) : "no cron", "cron");
    }
  }
  if (windows.length > 0 && nextOpening(windows, now) === null) throw new AppError("WINDOW_NEVER_OPENS");
};

/** The first start after `after`, in instants; null if there is none within the horizon. */
const nextStart = ({ cron, timezone }: MaintenanceWindow, after: number): number | null => {
  const parsed = cronOf(cron);
  // One shift back, because an earlier reading of the clock may be a later instant than the one at hand.
  let wall = parsed.nextRun(new Date(after + offsetMs(timezone, after) - 3 * 60 * MINUTE_MS));
  while (wall !== null && wall.getTime() - after < HORIZON_MS + MARGIN_MS) {
    const at = instantOf(timezone, wall.getTime());
    if (at > after) return at - after > HORIZON_MS ? null : at;
    wall = parsed.nextRun(wall);
  }
  return null;
};

const lengthOf = ({ durationMinutes }: MaintenanceWindow): number => durationMinutes * MINUTE_MS;
/** When the window that is open at this instant closes, by one start; null: it is closed. */
const closingOf = (window: MaintenanceWindow, at: number): number | null => {
  const start = nextStart(window, at - lengthOf(window));
  return start === null || start > at ? null : start + lengthOf(window);
};

/** When the open windows close, those that overlap taken together; null: none is open. Without windows it is always open, with no end. */
export const openUntil = (windows: readonly MaintenanceWindow[], now: Date): Date | "always" | null => {
  if (windows.length === 0) return "always";
  let until: number | null = null;
  for (let chained = 0; chained < MAX_CHAINED; chained += 1) {
    const at: number = until ?? now.getTime();
    const closings = windows.flatMap((window) => closingOf(window, at) ?? []).filter((closing) => closing > at);
    if (closings.length === 0) break;
    until = Math.max(...closings);
  }
  return until === null ? null : new Date(until);
};

export const nextOpening = (windows: readonly MaintenanceWindow[], now: Date): Date | null => {
  const starts = windows.flatMap((window) => nextStart(window, now.getTime()) ?? []);
  return starts.length === 0 ? null : new Date(Math.min(...starts));
};

export interface WindowOpening {
  readonly opensAt: string;
  readonly closesAt: string;
  readonly local: string;
  readonly timezone: string;
}

const localText = (timezone: string, at: number): string => {
  const offset = offsetMs(timezone, at);
  const minutes = Math.abs(offset) / MINUTE_MS;
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  return `${new Date(at + offset).toISOString().slice(0, 19)}${offset < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
};

/** The next openings of all windows, in order. */
export const nextOpenings = (windows: readonly MaintenanceWindow[], now: Date, limit: number): WindowOpening[] => {
  const found = windows.flatMap((window) => {
    const own: { readonly at: number; readonly window: MaintenanceWindow }[] = [];
    let at: number | null = now.getTime();
    while (own.length < limit && at !== null) {
      at = nextStart(window, at);
      if (at !== null) own.push({ at, window });
    }
    return own;
  });
  return found
    .sort((a, b) => a.at - b.at)
    .slice(0, limit)
    .map(({ at, window }) => ({
      opensAt: new Date(at).toISOString(),
      closesAt: new Date(at + lengthOf(window)).toISOString(),
      local: localText(window.timezone, at),
      timezone: window.timezone,
    }));
};
