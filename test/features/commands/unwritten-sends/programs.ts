// What can happen to commands in hand, as values that fast-check generates and shrinks. Nothing is written after a step unless the step is a write.
import fc from "fast-check";
import type { AckStatus } from "../../../../protocol/index.ts";

export type NodeIndex = 0 | 1;

export type Op =
  | {
      readonly kind: "create";
      readonly at: NodeIndex;
      readonly lane: string | null;
      readonly safe: boolean;
      readonly asksAck: boolean;
      readonly lifeMs: number | null;
    }
  /** `lost`: the frames never reach the agent. */
  | { readonly kind: "claim"; readonly maxInFlight: number; readonly lost: boolean }
  | { readonly kind: "ack"; readonly at: NodeIndex; readonly of: number; readonly word: AckStatus }
  | { readonly kind: "cancel"; readonly at: NodeIndex; readonly of: number }
  | { readonly kind: "purge" | "hello" | "poll"; readonly at: NodeIndex }
  /** The session says goodbye or breaks. */
  | { readonly kind: "end" }
  /** The node that has the session shuts down, and the agent goes to the other one. */
  | { readonly kind: "handoff" }
  /** The write-behind of both nodes. */
  | { readonly kind: "tick" }
  /** A node dies after so many more statements, or at the end of the step; a new one starts in its place. */
  | { readonly kind: "kill"; readonly at: NodeIndex; readonly after: number }
  | { readonly kind: "bus"; readonly is: BusState };
export type BusState = "up" | "refusing" | "swallowing";

export interface Act {
  readonly op: Op;
  /** Runs at the same time. */
  readonly beside: Op | null;
}
export interface Moment {
  readonly advanceMs: number;
  readonly reaps: boolean;
}
export interface Program {
  /** The agent lists what it has at each hello. */
  readonly lists: boolean;
  readonly acts: readonly Act[];
}

const at = fc.constantFrom<NodeIndex[]>(0, 0, 1);
const of = fc.nat({ max: 3 });
const create = fc.record({
  kind: fc.constant("create" as const),
  at,
  lane: fc.constantFrom("a", "a", null),
  safe: fc.constantFrom(true, true, true, false),
  asksAck: fc.constantFrom(true, true, true, true, false),
  lifeMs: fc.constantFrom(3_600_000, 3_600_000, 30_000, 150, null),
});
const word = fc.constantFrom<AckStatus[]>("received", "running", "succeeded", "succeeded", "failed", "canceled", "cancel_rejected");
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 7, arbitrary: create },
  {
    weight: 7,
    arbitrary: fc.record({ kind: fc.constant("claim" as const), maxInFlight: fc.constantFrom(8, 8, 1, 2), lost: fc.constantFrom(false, false, false, true) }),
  },
  { weight: 7, arbitrary: fc.record({ kind: fc.constant("ack" as const), at, of, word }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("cancel" as const), at, of }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("hello" as const), at }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("poll" as const), at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("purge" as const), at }) },
  { weight: 2, arbitrary: fc.constantFrom<Op[]>({ kind: "end" }, { kind: "handoff" }, { kind: "tick" }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), at, after: fc.nat({ max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("bus" as const), is: fc.constantFrom<BusState[]>("up", "refusing", "swallowing") }) },
);

export const STEPS = 12;
// Mostly less than the write-behind and the grace take; otherwise the waits of the state table.
const advanceMs = fc.constantFrom(0, 0, 0, 0, 50, 160, 160, 1_000, 20_000, 60_000, 3_600_000);
const moment: fc.Arbitrary<Moment> = fc.record({ advanceMs, reaps: fc.constantFrom(false, true) });
const act: fc.Arbitrary<Act> = fc.record({ op, beside: fc.option(op, { freq: 3 }) });
export const timeline: fc.Arbitrary<Moment[]> = fc.array(moment, { minLength: STEPS, maxLength: STEPS });
/** Begins with a session and a command that it gets from memory. */
export const program: fc.Arbitrary<Program> = fc
  .record({
    lists: fc.boolean(),
    first: fc.record({ op: create, beside: fc.option(op, { freq: 4 }) }),
    rest: fc.array(act, { minLength: STEPS - 2, maxLength: STEPS - 2 }),
  })
  .map(({ lists, first, rest }) => ({ lists, acts: [{ op: { kind: "hello", at: 0 }, beside: null }, first, ...rest] }));
