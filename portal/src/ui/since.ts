// The beginning of a window as people type it: a length of time, such as `24h` or `7d`, or a date.
import { gatewayNow } from "./clock.ts";

const HOUR_MS = 3_600_000;
export const SPANS = ["1h", "24h", "7d", "30d"] as const;

/** The moment that `since` means; undefined if it means none. */
export const fromOf = (since: string | undefined): string | undefined => {
  if (since === undefined) return undefined;
  const [, count, unit] = /^(\d{1,4})(h|d)$/.exec(since) ?? [];
  if (count !== undefined) return new Date(gatewayNow() - Number(count) * (unit === "d" ? 24 : 1) * HOUR_MS).toISOString();
  const at = /^[1-9]\d{3}-\d\d-\d\d/.test(since) ? Date.parse(since) : Number.NaN;
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
};
