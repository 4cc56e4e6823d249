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
