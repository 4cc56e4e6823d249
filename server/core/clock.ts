// The only place that reads the process's clock. A node goes by the database's wherever the two differ (platform/database/database-clock.ts), and statements
// that set or judge the deadlines of sessions, commands and nodes read the database's in place.
export interface Clock {
  now(): Date;
  /** Monotonic milliseconds, for measuring. */
  elapsed(): number;
}

export const systemClock: Clock = { now: () => new Date(), elapsed: () => performance.now() };

/** How far a node's clock may be from the database's before a person should know. */
export const WRONG_CLOCK_MS = 2_000;

export const DAY_SECONDS = 86_400;

/** For the deadlines of keys, codes and tokens, which last for minutes and more. A negative number lies in the past. */
export const secondsFromNow = (seconds: number, now: Date): Date => new Date(now.getTime() + seconds * 1_000);

let latest = { ms: Number.NaN, text: "" };

/** ISO 8601 text. Caches the last one: under load many answers share a millisecond, and formatting is a large part of a small answer's cost. */
export const isoText = (at: Date): string => {
  const ms = at.getTime();
  if (ms !== latest.ms) latest = { ms, text: at.toISOString() };
  return latest.text;
};

/** For code that keeps many times: V8 stores a whole number in the field itself. */
export const inWholeMs = ({ now, elapsed }: Clock): Clock => ({ now, elapsed: () => Math.floor(elapsed()) });

/** A clock that a test moves. */
export const createTestClock = (start = new Date("2026-01-01T00:00:00.000Z")): Clock & { advance(ms: number): void } => {
  let at = start.getTime();
  const advance = (ms: number): void => {
    at += ms;
  };
  return { now: () => new Date(at), elapsed: () => at, advance };
};
