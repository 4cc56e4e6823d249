// Money on the screen: minor units as text, and what somebody types as minor units.
import type { CostRates } from "@mooring/client";

export interface Currency {
  readonly currency: string;
  readonly minorDigits: number;
}

export const moneyText = (amount: number, { currency, minorDigits }: Currency): string =>
  new Intl.NumberFormat(undefined, { style: "currency", currency, minimumFractionDigits: minorDigits, maximumFractionDigits: minorDigits }).format(
    amount / 10 ** minorDigits,
  );

/** Two digits for a code that nobody knows, as long as somebody types it. */
export const minorDigitsOf = (currency: string): number => {
  try {
    return new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
  } catch {
    return 2;
  }
};

/** Such as 1234 as "12.34", for a field. */
export const fieldText = (amount: number, minorDigits: number): string => (amount / 10 ** minorDigits).toFixed(minorDigits);
export const minorOf = (typed: string, minorDigits: number): number => Math.round(Number(typed.trim().replace(",", ".") || 0) * 10 ** minorDigits);
/** A price as the API takes it. */
export const priceOf = (typed: string): string => typed.trim().replace(",", ".") || "0";

export type Rates = CostRates["device"];

const HOURS = 24;
const DAYS = 30;
/** A machine that reports all day with a tenth of its load, over a month of 30 days. In the currency, not in minor units. */
export const exampleOf = (rates: Rates, minorDigits: number) => {
  const unit = 10 ** minorDigits;
  const watts = rates.wattsIdle + (rates.wattsMax - rates.wattsIdle) * 0.1;
  const kwh = (watts * HOURS * DAYS) / 1_000;
  const purchase = rates.purchase / rates.lifetimeMonths / unit;
  const fixed = rates.fixedMonthly / unit;
  const energy = kwh * Number(rates.kwhPrice);
  const parts = HOURS * DAYS * (4 * Number(rates.cpuCoreHour) + 8 * Number(rates.memoryGBHour)) + 100 * Number(rates.storageGBMonth);
  return { watts, kwh, purchase, fixed, energy, parts, total: purchase + fixed + energy + parts };
};
