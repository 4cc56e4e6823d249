// What months are expected to cost, from the last days that have been added up. Pure.

import { addDays, addMonths, daysBetween, firstOf, lastOf, monthOf } from "./days.ts";
import type { Money } from "./parts.ts";
import { calendarDay } from "./pricing.ts";

export const BASIS_DAYS = 14;
/** Fewer days say little: no budget tells of a forecast before. */
export const ENOUGH_DAYS = 7;

/** What devices that exist now, and what all share, cost on a day. */
export interface BasisDay {
  readonly day: string;
  /** What follows use. */
  readonly variable: Money;
  /** What is paid by the month: in a longer month a day costs less of it. */
  readonly monthly: Money;
}

export interface MonthForecast {
  readonly month: string;
  readonly actual: Money;
  readonly expected: Money;
  readonly low: Money;
  readonly high: Money;
}

export interface ForecastBasis {
  readonly days: readonly BasisDay[];
  /** The last day that has been added up; null: none. */
  readonly through: string | null;
  readonly today: string;
  /** What this month has cost so far. */
  readonly actual: Money;
}

const ascending = (a: Money, b: Money): number => (a === b ? 0 : a < b ? -1 : 1);

/** What each of the days would have cost in that month. */
const asIn = (days: readonly BasisDay[], month: string): readonly Money[] => {
  const { daysInMonth } = calendarDay(firstOf(month));
  return days.map(({ day, variable, monthly }) => variable + (monthly * BigInt(calendarDay(day).daysInMonth)) / BigInt(daysInMonth)).sort(ascending);
};

const daysToCome = ({ through, today }: ForecastBasis, month: string): number => {
  const first = firstOf(month);
  const next = through === null ? today : addDays(through, 1);
  return Math.max(0, daysBetween(next > first ? next : first, lastOf(month)));
};

export const forecastMonth = (basis: ForecastBasis, month: string): MonthForecast => {
  const actual = month === monthOf(basis.today) ? basis.actual : 0n;
  const days = asIn(basis.days, month);
  const left = BigInt(daysToCome(basis, month));
  const [first = 0n] = days;
  const at = (rank: number): Money => actual + left * (days[rank] ?? first);
  const mean = days.length === 0 ? 0n : days.reduce((total, day) => total + day, 0n) * left;
  return {
    month,
    actual,
    expected: actual + (days.length === 0 ? 0n : mean / BigInt(days.length)),
    low: at(Math.floor(0.1 * (days.length - 1))),
    high: at(Math.ceil(0.9 * (days.length - 1))),
  };
};

export const forecastMonths = (basis: ForecastBasis, count: number): readonly MonthForecast[] =>
  Array.from({ length: count }, (_, at) => forecastMonth(basis, addMonths(monthOf(basis.today), at)));
