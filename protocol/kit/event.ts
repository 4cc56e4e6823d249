// The type of an event, and the number that orders events and readings. A durable event is written in the transaction of its cause; any other is only a hint for live views.
import { z } from "zod";

/** The version of a reading: how many of the tenant's events it contains for certain. */
export const EventVersion = z
  .int()
  .min(0)
  .describe(
    "Contains the effect of every event whose `version` is not higher, so read again after one with a higher `version`. Of two readings keep the one with the higher `version`; equal ones differ at most by changes without a durable event, such as steps of open commands.",
  );

export interface EventType<T extends string = string, S extends z.ZodType = z.ZodType, D extends boolean = boolean> {
  readonly type: T;
  readonly schema: S;
  readonly summary: string;
  /** False: sent to live streams only, never stored and never sent to webhooks. */
  readonly durable: D;
}

/** Durable: stored, shown live, sent to webhooks. */
export const event = <const T extends string, S extends z.ZodType>(type: T, schema: S, summary: string): EventType<T, S, true> =>
  Object.freeze({ type, schema, summary, durable: true });

/** Passing: only shown live, and it may be lost. */
export const hint = <const T extends string, S extends z.ZodType>(type: T, schema: S, summary: string): EventType<T, S, false> =>
  Object.freeze({ type, schema, summary, durable: false });
