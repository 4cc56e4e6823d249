// The time of the database, for steps that this node takes without asking it: as the last answer had it, and what has passed since.
import type { Clock } from "../../core/clock.ts";
import type { Instant } from "./state.ts";

export interface DatabaseClock {
  /** The time in an answer that has just come. */
  saw(now: Instant | null): void;
  now(): Instant;
}

export const createDatabaseClock = (clock: Pick<Clock, "now" | "elapsed">): DatabaseClock => {
  let seen: { readonly now: Instant; readonly atMs: number } | null = null;
  return {
    saw: (now) => {
      if (now !== null) seen = { now, atMs: clock.elapsed() };
    },
    now: () => (seen === null ? clock.now().getTime() : Math.round(seen.now + clock.elapsed() - seen.atMs)),
  };
};
