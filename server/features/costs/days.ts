// Days and months in UTC, and the window that a caller asks for.
import { DAY_SECONDS } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";

const DAY_MS = DAY_SECONDS * 1_000;
export const MAX_WINDOW_DAYS = 400;

const textOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
export const dayOf = (at: Date): string => textOf(at.getTime());
export const addDays = (day: string, days: number): string => textOf(Date.parse(day) + days * DAY_MS);
/** From the first to the last, both counted. */
export const daysBetween = (from: string, to: string): number => Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;

/** False for a day that no calendar has, and for centuries that no ledger has. */
export const isDay = (text: string): boolean => {
  const ms = Date.parse(text);
  return /^2[01]\d{2}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(ms) && textOf(ms) === text;
};

export const monthOf = (day: string): string => day.slice(0, 7);
export const firstOf = (month: string): string => `${month}-01`;
export const addMonths = (month: string, months: number): string => {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return textOf(Date.UTC(year, number - 1 + months, 1)).slice(0, 7);
};
export const lastOf = (month: string): string => addDays(firstOf(addMonths(month, 1)), -1);

export interface DayWindow {
  readonly from: string;
  readonly to: string;
}

const readBounds = (window: string): DayWindow | string => {
  const [from = "", to = "", ...more] = window.split(",");
  if (more.length > 0 || !isDay(from) || !isDay(to)) return "name a number of days such as 30d, month, last-month, or two days with a comma between them";
  if (from > to) return "the first day is after the last";
  return daysBetween(from, to) > MAX_WINDOW_DAYS ? `at most ${MAX_WINDOW_DAYS} days` : { from, to };
};

/** Throws COST_WINDOW_INVALID. */
export const windowOf = (window: string, today: string): DayWindow => {
  const yesterday = addDays(today, -1);
  const month = monthOf(today);
  if (window === "month") return { from: firstOf(month), to: today };
  if (window === "last-month") return { from: firstOf(addMonths(month, -1)), to: lastOf(addMonths(month, -1)) };
  const [, days] = /^([1-9]\d{0,2})d$/.exec(window) ?? [];
  const read =
    days === undefined
      ? readBounds(window)
      : Number(days) > MAX_WINDOW_DAYS
        ? `at most ${MAX_WINDOW_DAYS} days`
        : { from: addDays(yesterday, 1 - Number(days)), to: yesterday };
  if (typeof read === "string") throw new AppError("COST_WINDOW_INVALID", { details: { window, problem: read } });
  return read;
};

/** As many days, right before. */
export const windowBefore = ({ from, to }: DayWindow): DayWindow => ({ from: addDays(from, -daysBetween(from, to)), to: addDays(from, -1) });

/** A month is added up as a whole once no late measurement changes it: with the third day of the next. */
const CLOSING_DAY = 3;
/** The month that this day, once it is complete, closes; null: none. */
export const monthClosedBy = (day: string): string | null => (Number(day.slice(8)) === CLOSING_DAY ? addMonths(monthOf(day), -1) : null);
const lastClosed = (through: string): string => addMonths(monthOf(through), Number(through.slice(8)) >= CLOSING_DAY ? -1 : -2);

/** A window as single days, and between them whole months that are closed. */
export interface Periods {
  readonly days: readonly DayWindow[];
  /** By their first days; both count. Null: none. */
  readonly months: { readonly first: string; readonly last: string } | null;
}
export const periodsOf = (window: DayWindow, through: string | null): Periods => {
  const { from, to } = window;
  const first = from === firstOf(monthOf(from)) ? monthOf(from) : addMonths(monthOf(from), 1);
  const whole = to === lastOf(monthOf(to)) ? monthOf(to) : addMonths(monthOf(to), -1);
  const last = through === null || whole < lastClosed(through) ? whole : lastClosed(through);
  if (through === null || first > last) return { days: [window], months: null };
  const days = [
    { from, to: addDays(firstOf(first), -1) },
    { from: addDays(lastOf(last), 1), to },
  ];
  return { days: days.filter((each) => each.from <= each.to), months: { first: firstOf(first), last: firstOf(last) } };
};
