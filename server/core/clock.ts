// The only place that asks what time it is. Deadlines of sessions, commands and nodes use the database's clock, never this one: seconds count there.
export interface Clock {
  now(): Date;
  /** Monotonic milliseconds, for measuring. */
  elapsed(): number;
}

export const systemClock: Clock = { now: () => new Date(), elapsed: () => performance.now() };

/** For the deadlines of keys, codes and tokens, which last for minutes and more. A negative number has passed. */
export const secondsFromNow = (seconds: number, now = systemClock.now()): Date => new Date(now.getTime() + seconds * 1_000);

let latest = { ms: Number.NaN, text: "" };

/** ISO 8601 text. Under load many answers fall into one millisecond, and formatting is expensive beside the rest of a small one. */
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
