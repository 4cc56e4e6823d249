// A command type of a feature: what agents receive, what they answer, and how long it may wait and run. Declared beside the operations of its group.
import type { z } from "zod";

const MINUTE = 60;
const DAY = 86_400;

export interface CommandType<N extends string = string, P extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> {
  readonly type: N;
  readonly summary: string;
  readonly payload: P;
  /** The output in an ack that says `succeeded`. */
  readonly output: O;
  readonly ttlSeconds: number;
  readonly executionTimeoutSeconds: number;
  /** Running it twice does no harm. */
  readonly redeliverSafe: boolean;
  /** `app`: one at a time per `appId` of the payload; `host`: one at a time on the machine; `none`: beside anything. */
  readonly lane: "app" | "host" | "none";
  /** `none`: it changes nothing; `danger`: a form asks before it sends it. */
  readonly risk: "none" | "change" | "danger";
}

type Defaulted = "ttlSeconds" | "executionTimeoutSeconds" | "redeliverSafe" | "lane" | "risk";
type Spec<P extends z.ZodType, O extends z.ZodType> = Omit<CommandType<string, P, O>, "type" | Defaulted> & Partial<Pick<CommandType, Defaulted>>;

/** By default it waits a day, runs a quarter of an hour, may be delivered twice and runs beside anything. Only its feature orders it. */
export const command = <const N extends string, P extends z.ZodType, O extends z.ZodType>(type: N, spec: Spec<P, O>): CommandType<N, P, O> =>
  Object.freeze({ ttlSeconds: DAY, executionTimeoutSeconds: 15 * MINUTE, redeliverSafe: true, lane: "none", risk: "change", ...spec, type });
