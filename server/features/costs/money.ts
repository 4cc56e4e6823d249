// Money in whole millionths of the currency, so that no sum depends on the order of its parts. It is rounded to minor units once, at the end.
import { COST_PARTS, type CostPart, type Money, type Parts } from "./parts.ts";

const MILLION = 1_000_000n;
const PLACES = 6;

const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));
export const isCurrency = (code: string): boolean => CURRENCIES.has(code);

/** How many digits the minor unit has: 2 for cents. */
export const minorDigitsOf = (currency: string): number => {
  const { maximumFractionDigits = 2 } = new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions();
  return Math.min(maximumFractionDigits, PLACES);
};
const unitOf = (minorDigits: number): bigint => 10n ** BigInt(PLACES - minorDigits);

export const fromMinor = (amount: number, minorDigits: number): Money => BigInt(amount) * unitOf(minorDigits);

/** Reads decimal text with up to six places. */
export const fromDecimal = (text: string): Money => {
  const [whole = "0", fraction = ""] = text.split(".");
  return BigInt(whole) * MILLION + BigInt(fraction.padEnd(PLACES, "0"));
};

const MOST = BigInt(Number.MAX_SAFE_INTEGER);
/** Half a minor unit rounds up. JSON holds no more than MAX_SAFE_INTEGER exactly. */
export const toMinor = (money: Money, minorDigits: number): number => {
  const unit = unitOf(minorDigits);
  const minor = (money + unit / 2n) / unit;
  return Number(minor > MOST ? MOST : minor);
};

/** The share of a monthly amount that falls on a day. The shares of all days of a month add up to it. */
export const dayShare = (monthly: Money, dayOfMonth: number, daysInMonth: number): Money => {
  const upTo = (day: number): Money => (monthly * BigInt(day)) / BigInt(daysInMonth);
  return upTo(dayOfMonth) - upTo(dayOfMonth - 1);
};

/**
 * Shares a whole number out in proportion to the weights, by the largest remainder: the shares add up to it, and none is off by one or more. Equal
 * remainders go to the first.
 */
export const shareOut = (whole: number, weights: readonly Money[]): number[] => {
  const sum = weights.reduce((total, weight) => total + weight, 0n);
  if (sum === 0n) return weights.map(() => 0);
  const exact = weights.map((weight, at) => ({ at, floor: (BigInt(whole) * weight) / sum, rest: (BigInt(whole) * weight) % sum }));
  const shares = exact.map(({ floor }) => Number(floor));
  const missing = whole - shares.reduce((total, share) => total + share, 0);
  const byRest = [...exact].sort((a, b) => (a.rest === b.rest ? a.at - b.at : a.rest > b.rest ? -1 : 1));
  for (const { at } of byRest.slice(0, missing)) shares[at] = (shares[at] ?? 0) + 1;
  return shares;
};

/** The parts of a sum in minor units, which add up to its total. */
export const partsInMinor = (parts: Parts, total: number): Readonly<Record<CostPart, number>> => {
  const shares = shareOut(
    total,
    COST_PARTS.map((part) => parts[part]),
  );
  return Object.fromEntries(COST_PARTS.map((part, at) => [part, shares[at] ?? 0])) as Record<CostPart, number>; // as: one for each
};
