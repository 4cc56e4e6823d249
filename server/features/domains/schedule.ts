// When a custom domain is checked again: soon after somebody has set a record, later seldom, and how long a missing record is borne.
import { DAY_SECONDS } from "../../core/clock.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
export const DAY_MS = DAY_SECONDS * 1_000;
/** The first waits; every later one is an hour. */
const FIRST_WAITS_MS = [1, 2, 5, 10, 30].map((minutes) => minutes * MINUTE_MS);

/** So many checks in a row that find a record gone make a domain degraded. */
export const MISSES = 3;
/** Nobody can own a name without a record for longer than this, and nobody can claim one for longer. */
export const BORNE_MS = 7 * DAY_MS;
/** A person may ask for a check once in this time. */
export const ASK_EVERY_MS = MINUTE_MS;

interface Standing {
  readonly status: string;
  /** Checks in this state. */
  readonly checkCount: number;
  readonly misses: number;
}

/** The wait before the next check; null: nobody checks by itself. */
export const waitMs = ({ status, checkCount, misses }: Standing): number | null => {
  if (status === "failed" || status === "expired") return null;
  if (status === "active") return misses > 0 ? HOUR_MS : DAY_MS;
  if (status === "degraded") return HOUR_MS;
  return FIRST_WAITS_MS[checkCount] ?? HOUR_MS;
};

/** Failed orders wait an hour, then twice as long each time, up to a day; what the authority asks for wins if it is more. */
export const orderWaitMs = (failures: number, retryAfterMs: number): number => Math.max(Math.min(HOUR_MS * 2 ** (failures - 1), DAY_MS), retryAfterMs);

/** At two thirds of its life, up to a tenth earlier so that not all come at once. */
export const renewalAt = (notBefore: Date, notAfter: Date, random: number): Date => {
  const life = notAfter.getTime() - notBefore.getTime();
  return new Date(notBefore.getTime() + (life * 2) / 3 - life * 0.1 * random);
};
