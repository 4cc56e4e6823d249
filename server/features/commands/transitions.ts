// Carries out what the rules decide in the caller's transaction: rows, history and durable events. after-commit.ts does the rest.
import type { z } from "zod";
import { type CommandStatus, contract, isOpen } from "../../../protocol/index.ts";
import { type Emit, type Happened, happened, type SqlTx } from "../../core/events.ts";
import type { Outcomes } from "./outcomes.ts";
import { decide } from "./rules.ts";
import type { CommandSettings } from "./settings.ts";
import type { Circumstances, CommandEvent, Step } from "./state.ts";
import { type Locked, saveRows } from "./store/change.ts";
import { type CommandRow, isoOrNull, isoTime } from "./store/rows.ts";

/** One step of one command; `row` is the command after it. */
export interface Transition {
  readonly row: CommandRow;
  readonly from: CommandStatus | null;
  readonly step: Step;
}

export interface TransitionsDeps {
  readonly emit: Emit;
  readonly outcomes: Pick<Outcomes, "has" | "handle">;
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
}

export interface Transitions {
  /** Several events of one command are applied one after the other. */
  apply(tx: SqlTx, locked: Locked, eventsOf: (row: CommandRow) => readonly CommandEvent[], actorOf: (row: CommandRow) => string): Promise<Applied>;
  circumstances(now: number): Circumstances;
}

export const createTransitions = ({ emit, outcomes: featureOutcomes, nodeId, settings, random }: TransitionsDeps): Transitions => {
  const circumstances = (now: number): Circumstances => ({ now, jitter: random(), timings: settings });

  return {
    circumstances,
    apply: async (tx, { rows, now }, eventsOf, actorOf) => {
      const effects = new Map(rows.map((row) => [row.commandId as string, follow(row, eventsOf(row), circumstances(now ?? 0))]));
      const changed = [...effects.values()].flatMap((steps) => (steps.some(({ step }) => step !== null) ? steps.slice(-1) : []));
      const transitions = [...effects.values()].flat().flatMap(({ before, after, step }) => (step === null ? [] : [{ row: after, from: before.status, step }]));
      const visible = transitions.filter(({ row, from, step }) => row.status !== from || step.code !== null);
      const saved = saveRows(
        tx,
        changed.map(({ after }) => after),
        visible.map(({ row, from, step }) => ({ row, from, code: step.code, detail: detailOf(row, step), actor: actorOf(row) })),
        nodeId,
      );
      const ends = transitions.filter(isEnd);
      const events = ends.map(endOf);
      // Sent together, they share one round trip, where possible with the COMMIT.
      const written = Promise.all([saved, events.length > 0 ? emit(tx, events) : null]);
      const owned = ends.flatMap(({ row }) => (featureOutcomes.has(row.type) ? [row] : []));
      if (owned.length > 0) {
        await written;
        await featureOutcomes.handle(tx, owned);
      } else if (tx.defer === undefined) await written;
      else tx.defer(written);
      return { effects, transitions };
    },
  };
};

const follow = (row: CommandRow, events: readonly CommandEvent[], at: Circumstances): readonly Effect[] => {
  let before = row;
  return events.map((event) => {
    const step = decide(before, event, at);
    const effect = { before, after: step === null ? before : { ...before, ...step.patch }, step };
    before = effect.after;
    return effect;
  });
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

const endOf = ({ row, from, step }: Transition) => commandHappened(step.patch.late === true ? events.lateResult : ENDS[row.status as EndStatus], row, from);

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
