// The type of an event. A durable event is written in the transaction of its cause; any other is only a hint for live views.
import type { z } from "zod";

export interface EventType<T extends string = string, S extends z.ZodType = z.ZodType> {
  readonly type: T;
  readonly schema: S;
  readonly summary: string;
  /** False: sent to live streams only, never stored and never sent to webhooks. */
  readonly durable: boolean;
}

export const event = <const T extends string, S extends z.ZodType>(type: T, schema: S, summary: string, options: { durable?: boolean } = {}): EventType<T, S> =>
  Object.freeze({ type, schema, summary, durable: options.durable ?? true });
