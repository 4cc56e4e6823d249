// Webhook retry: when the gateway tries a delivery again (backoff), and when it disables a webhook that keeps failing.
import { readSeconds } from "../../../../protocol/index.ts";

const MINUTE = 60;
const HOUR = 3_600;
/** The delay after each failed attempt; after the last one the delivery is exhausted. About 75 hours in all. */
const DELAYS: readonly number[] = [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];
const JITTER = 0.2;
/** A receiver that does not keep up is not asked again sooner. */
const BUSY_SECONDS = MINUTE;

const DISABLE_AFTER_SECONDS = 120 * HOUR;
const DISABLE_AFTER_FAILURES = 10;
/** So many failed attempts in a row make a webhook `failing`. */
export const FAILING_AFTER = 4;

export interface FailedAttempt {
  readonly code: string;
  readonly statusCode: number | null;
  /** The answer's Retry-After. */
  readonly retryAfter: string | null;
}

const retryAfterSeconds = (text: string | null, now: Date): number | null => {
  if (text === null) return null;
  const seconds = readSeconds(text);
  if (seconds !== null) return seconds;
  // JavaScript reads numbers as dates, too; a date of HTTP names its day.
  const at = /^[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : (at - now.getTime()) / 1_000;
};

/** Seconds until the next attempt after the `tries`th one failed; null when none is left. */
export const delayAfter = (tries: number, { code, statusCode, retryAfter }: FailedAttempt, now: Date, random: () => number = Math.random): number | null => {
  const base = DELAYS[tries - 1];
  if (base === undefined) return null;
  const jittered = base * (1 - JITTER + random() * 2 * JITTER);
  const isBusy = statusCode === 429 || statusCode === 503;
  const asked = isBusy ? retryAfterSeconds(retryAfter, now) : null;
  const seconds = asked === null ? jittered : Math.min(Math.max(asked, base), 2 * base);
  return statusCode === 429 || code === "TIMEOUT" ? Math.max(seconds, BUSY_SECONDS) : seconds;
};

/** Nothing has succeeded for five days. */
export const isGivenUp = (failingSince: Date | null, consecutiveFailures: number, now: Date): boolean =>
  failingSince !== null && consecutiveFailures >= DISABLE_AFTER_FAILURES && now.getTime() - failingSince.getTime() >= DISABLE_AFTER_SECONDS * 1_000;
