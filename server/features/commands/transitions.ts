// Carries out what the rules decide in the caller's transaction: rows with their history, and durable events. after-commit.ts does the rest.
import type { z } from "zod";
import { type CommandStatus, contract, isOpen } from "../../../protocol/index.ts";
import { type Emit, type Happened, happened, type SqlTx } from "../../core/events.ts";
import type { Outcomes } from "./outcomes.ts";
import { isoOrNull, isoTime } from "./records.ts";
import { decide } from "./rules.ts";
import type { CommandSettings } from "./settings.ts";
import type { Circumstances, CommandEvent, Instant, Step } from "./state.ts";
import { addStep } from "./steps.ts";
import type { Locked } from "./store/lock.ts";
import type { CommandRow } from "./store/rows.ts";
import { saveRows } from "./store/save.ts";

/** One step of one command; `row` is the command after it. */
export interface Transition {
  readonly row: CommandRow;
  readonly from: CommandStatus | null;
  readonly step: Step;
}

export interface TransitionsDeps {
  readonly emit: Emit;
  readonly outcomes: Pick<Outcomes, "has" | "handle" | "follows" | "progress">;
  readonly nodeId: string;
  readonly settings: CommandSettings;
  /** Evenly spread in [0, 1). */
  readonly random: () => number;
}

/** What one event did to a row; `step` is null when it changed nothing. */
export interface Effect {
  readonly before: CommandRow;
  readonly after: CommandRow;
  readonly step: Step | null;
}

export interface Applied {
  /** In the order of the events, row by row. */
  readonly effects: ReadonlyMap<string, readonly Effect[]>;
  readonly transitions: readonly Transition[];
  /** The commands that succeeded with an output that their feature cannot use. */
  readonly misfits: ReadonlySet<string>;
}

type ActorOf = (row: CommandRow, event: CommandEvent) => string;

export interface Transitions {
  /** What the events do to the row, one after the other; writes nothing. */
  plan(row: CommandRow, events: readonly CommandEvent[], by: { readonly now: Instant; readonly actorOf: ActorOf }): readonly Effect[];
  apply(tx: SqlTx, locked: Locked, eventsOf: (row: CommandRow) => readonly CommandEvent[], actorOf: ActorOf): Promise<Applied>;
  circumstances(now: number): Circumstances;
}

export const createTransitions = ({ emit, outcomes: featureOutcomes, nodeId, settings, random }: TransitionsDeps): Transitions => {
  const circumstances = (now: number): Circumstances => ({ now, jitter: random(), timings: settings });

  const plan: Transitions["plan"] = (row, events, { now, actorOf }) => {
    const at = circumstances(now);
    let before = row;
    return events.map((event) => {
      const step = decide(before, event, at);
      const after =
        step === null ? before : withStep({ ...before, ...step.patch }, step, { before, by: actorOf(before, event), nodeId, now: timeOf(event) ?? now });
      const effect = { before, after, step };
      before = after;
      return effect;
    });
  };

  return {
    circumstances,
    plan,
    apply: async (tx, { rows, now }, eventsOf, actorOf) => {
      const effects = new Map(rows.map((row) => [row.commandId as string, plan(row, eventsOf(row), { now: now ?? 0, actorOf })]));
      const changed = [...effects.values()].flatMap((steps) => (steps.some(({ step }) => step !== null) ? steps.slice(-1) : []));
      const transitions = transitionsOf([...effects.values()].flat());
      const saved = saveRows(
        tx,
        changed.map(({ after }) => after),
      );
      const ends = transitions.filter(isEnd);
      const events = ends.map(endOf);
      // Sent together, they share one round trip, where possible with the COMMIT.
      const written = Promise.all([saved, events.length > 0 ? emit(tx, events) : null]);
      const owned = ends.flatMap(({ row }) => (featureOutcomes.has(row.type) ? [row] : []));
      const working = changed.flatMap(({ after }) => (after.status === "running" && featureOutcomes.follows(after.type) ? [after] : []));
      if (working.length > 0) {
        await written;
        await featureOutcomes.progress(tx, working);
      }
      if (owned.length > 0) {
        await written;
        return { effects, transitions, misfits: await featureOutcomes.handle(tx, owned) };
      }
      if (tx.defer === undefined) await written;
      else tx.defer(written);
      return { effects, transitions, misfits: NONE };
    },
  };
};

const NONE: ReadonlySet<string> = new Set();

/** The steps that these effects made. */
export const transitionsOf = (effects: readonly Effect[]): readonly Transition[] =>
  effects.flatMap(({ before, after, step }) => (step === null ? [] : [{ row: after, from: before.status, step }]));

const timeOf = (event: CommandEvent): Instant | undefined => (event.kind === "claimed" ? event.at : undefined);

/** The timeline shows a step if the status changes or the step has a code. */
const withStep = (
  row: CommandRow,
  step: Step,
  at: { readonly before: CommandRow; readonly by: string; readonly nodeId: string; readonly now: Instant },
): CommandRow => {
  if (row.status === at.before.status && step.code === null) return row;
  const { status: to, attempt, sessionEpoch: epoch } = row;
  return {
    ...row,
    history: addStep(row.history, { at: at.now, to, by: at.by, attempt, epoch, node: at.nodeId, code: step.code, detail: detailOf(row, step) }),
  };
};

const detailOf = (row: CommandRow, { patch }: Step): Readonly<Record<string, unknown>> | null => {
  if (patch.cancelReason !== undefined && patch.cancelReason !== null) return { reason: patch.cancelReason };
  if (patch.status === "queued") return { availableAt: isoTime(row.availableAt) };
  return patch.ackStatus === undefined || patch.ackStatus === null ? null : { ack: patch.ackStatus };
};

/** Durable: the command has ended, or a result came after its end. */
export const isEnd = ({ row, from }: Transition): boolean => !isOpen(row.status) && row.status !== from;

const events = contract.commands.events;
const ENDS = {
  delivered: events.completed,
  succeeded: events.completed,
  failed: events.failed,
  rejected: events.failed,
  undeliverable: events.failed,
  canceled: events.canceled,
  expired: events.expired,
  timed_out: events.timedOut,
} as const;
type EndStatus = keyof typeof ENDS;

/** The durable event of an end. */
export const endOf = ({ row, from, step }: Transition) =>
  commandHappened(step.patch.late === true ? events.lateResult : ENDS[row.status as EndStatus], row, from);

export const commandHappened = <E extends (typeof events)[keyof typeof events]>(event: E, row: CommandRow, previous: CommandStatus | null): Happened<E> => {
  const { tenantId, traceparent, commandId, deviceId, type, status, failureCode } = row;
  const data = {
    commandId,
    deviceId,
    type,
    status,
    previous,
    failureCode,
    attempts: row.attempt,
    lane: row.lane,
    createdBy: row.createdBy,
    issuedAt: isoTime(row.issuedAt),
    notBefore: isoTime(row.availableAt),
    deadlineAt: isoOrNull(row.deadlineAt),
    sentAt: isoOrNull(row.sentAt),
    startedAt: isoOrNull(row.startedAt),
    finishedAt: isoOrNull(row.finishedAt),
    cancelRequestedAt: isoOrNull(row.cancelRequestedAt),
    progress: row.progress,
  } satisfies z.input<typeof events.changed.schema>;
  return happened<E>({ tenantId, traceparent }, event, commandId, data as z.input<E["schema"]>);
};

const holdsCapacity = (status: CommandStatus | null): boolean => status !== null && status !== "queued" && isOpen(status);

/** The end of a command frees its lane and its place among those in flight. */
export const freesCapacity = ({ row, from }: Transition): boolean => from !== null && isOpen(from) && !isOpen(row.status);

/**
 * The agent lost the command. Others that go back to the queue need no nudge: the sweep finds one that waits for its next attempt, and the session
 * that refused a write claims it again.
 */
export const isDueAgain = ({ row, step }: Transition): boolean => row.status === "queued" && step.code !== null;

/** T15, T17, T21 and T24: the agent may still work on a command that nobody waits for. Returns the deadline of its answer to a cancellation; null when none is due. */
export const cancelDeadline = ({ row, from, step }: Transition, { cancelTimeoutMs }: Pick<CommandSettings, "cancelTimeoutMs">): number | null => {
  const asked = row.status === "canceling" && from !== "canceling";
  const givenUp =
    holdsCapacity(from) && from !== "canceling" && (row.status === "timed_out" || (row.status === "canceled" && step.patch.ackStatus === undefined));
  if (!asked && !givenUp) return null;
  return asked && row.deadlineAt !== null && row.deadlineAt !== Infinity
    ? row.deadlineAt
    : (row.finishedAt ?? row.cancelRequestedAt ?? row.issuedAt) + cancelTimeoutMs;
};
