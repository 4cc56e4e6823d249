// A thing that has happened. Durable events are written with their cause; the others are hints for a live view only.
import type { z } from "zod";

export interface EventType<T extends string = string, S extends z.ZodType = z.ZodType> {
  readonly type: T;
  readonly schema: S;
  readonly summary: string;
  /** False: shown live, never stored, never sent to webhooks. */
  readonly durable: boolean;
}

export const event = <const T extends string, S extends z.ZodType>(type: T, schema: S, summary: string, options: { durable?: boolean } = {}): EventType<T, S> =>
  Object.freeze({ type, schema, summary, durable: options.durable ?? true });
