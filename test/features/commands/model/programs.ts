// Everything that can happen to a device's queue, as values that fast-check generates and shrinks: at each step time passes, an act runs, and sometimes a second act runs beside it.
import fc from "fast-check";
import type { AckStatus } from "../../../../protocol/index.ts";

const SECOND = 1_000;

export type Op =
  | {
      readonly kind: "create";
      readonly lane: string | null;
      readonly priority: number;
      readonly asksAck: boolean;
      readonly safe: boolean;
      readonly lifeSeconds: number | null;
      readonly delaySeconds: number;
      readonly maxAttempts: number;
    }
  | { readonly kind: "claim"; readonly node: number; readonly stale: boolean; readonly maxInFlight: number }
  | { readonly kind: "written" | "refused"; readonly node: number; readonly stale: boolean; readonly of: number }
  | { readonly kind: "poll"; readonly node: number; readonly limit: number }
  | { readonly kind: "ack"; readonly node: number; readonly of: number; readonly word: AckStatus; readonly progress: boolean }
  | { readonly kind: "cancel"; readonly node: number; readonly of: number; readonly force: boolean }
  | {
      readonly kind: "hello";
      readonly node: number;
      readonly lists: readonly { readonly of: number; readonly as: string }[];
      readonly journal: boolean;
      readonly listsAll: boolean;
      readonly cancels: boolean;
      readonly handoff: boolean;
    }
  | { readonly kind: "purge" | "reset"; readonly node: number }
  | { readonly kind: "crash" };

/** The second half of a poll: its answer is on its way. Another act may run between the two halves. */
export interface Flushed {
  readonly kind: "flushed";
}

/** The state that an act starts from. */
export interface Page {
  /** The id of the command at an index; beyond the last command, an id that nobody has. */
  readonly idOf: (index: number) => string;
  readonly epoch: number;
  /** The real queue's answer. */
  readonly seen: unknown;
  /** Another act ran at the same time. */
  readonly crowded: boolean;
  /** The other act changed what this claim sent before it was written, except these. */
  readonly kept?: ReadonlySet<string>;
  /** A hello came between the question to the old session's node and this cancellation. */
  readonly unsettled?: boolean;
}

/** Shared by all devices of a run, since they share the database's clock. */
export interface TimeStep {
  readonly advanceMs: number;
  /** 0: no node reaps, 1: one does, 2: two at once. */
  readonly reapers: number;
}
export interface Act {
  readonly op: Op;
  readonly beside: Op | null;
}
export type TimedAct = TimeStep & Act;

const node = fc.constantFrom(0, 1);
const of = fc.nat({ max: 5 });
const rarely = fc.constantFrom(false, false, false, true);

const create = fc.record({
  kind: fc.constant("create" as const),
  lane: fc.constantFrom("a", "a", "b", null),
  priority: fc.constantFrom(5, 5, 0, 9),
  asksAck: fc.constantFrom(true, true, true, false),
  safe: fc.constantFrom(true, true, false),
  lifeSeconds: fc.constantFrom(3_600, 30, 90, null),
  delaySeconds: fc.constantFrom(0, 0, 0, 25),
  maxAttempts: fc.constantFrom(10, 1, 2),
});
const hello = fc.record({
  kind: fc.constant("hello" as const),
  node,
  lists: fc.array(fc.record({ of, as: fc.constantFrom("received", "running", "succeeded", "failed", "thinking") }), { maxLength: 3 }),
  journal: fc.constantFrom(true, false),
  listsAll: fc.constantFrom(true, false),
  cancels: fc.constantFrom(true, false),
  handoff: rarely,
});
const ack = fc.record({
  kind: fc.constant("ack" as const),
  node,
  of,
  word: fc.constantFrom<AckStatus[]>("received", "running", "succeeded", "failed", "rejected", "canceled", "cancel_rejected"),
  progress: fc.boolean(),
});

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 6, arbitrary: create },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("claim" as const), node, stale: rarely, maxInFlight: fc.constantFrom(8, 1, 2) }) },
  { weight: 7, arbitrary: ack },
  { weight: 3, arbitrary: hello },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("cancel" as const), node, of, force: rarely }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("poll" as const), node, limit: fc.constantFrom(10, 1, 2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("written" as const, "refused" as const), node, stale: rarely, of }) },
  { weight: 1, arbitrary: fc.constant({ kind: "crash" as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("purge" as const, "reset" as const), node }) },
);

// Mostly no time or a second; otherwise just before, at and after the waits of the state table.
const advanceMs = fc.constantFrom(0, 0, 0, 1_000, 19_999, 20_000, 24_000, 40_001, 60_000, 90_000, 3_600 * SECOND, 25 * 3_600 * SECOND);
const moment = fc.record({ advanceMs, reapers: fc.constantFrom(0, 1, 2) });
const act = fc.record({ op, beside: fc.option(op, { freq: 4 }) });

export const STEPS = 15;
export const timeline = fc.array(moment, { minLength: STEPS, maxLength: STEPS });
// Nothing happens on an empty queue, so every program begins with a command.
export const program = fc.tuple(fc.record({ op: create, beside: fc.option(op, { freq: 2 }) }), fc.array(act, { minLength: STEPS - 1, maxLength: STEPS - 1 }));
/** The steps of one device alone, built so that fast-check can shrink them. */
export const steps: fc.Arbitrary<TimedAct[]> = fc.array(fc.record({ advanceMs, reapers: fc.constantFrom(0, 1, 2), op, beside: fc.option(op) }), {
  maxLength: STEPS,
});
