// A rollout while a step works on it: its row with the figures as they become, and what is to be told once it is written.
import { contract, type RolloutDeviceStatus, type RolloutStatus } from "../../../../protocol/index.ts";
import type { DurableEvent, Happened } from "../../../core/events.ts";
import { happened } from "../../../core/events.ts";
import type { StepFacts } from "../../../core/many/types.ts";
import { addRolloutStep, countsOf, type Happening, type RolloutRow } from "../record.ts";
import { boundsOf, phaseAt, type StoredPhase } from "../rules/phases.ts";
import { move } from "../rules/states.ts";

const COUNTER = {
  pending: "pending",
  ordered: "ordered",
  verifying: "verifying",
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timedOut",
  skipped: "skipped",
  aborted: "aborted",
} as const satisfies Record<RolloutDeviceStatus, keyof RolloutRow>;

const PLACE: Readonly<Record<RolloutDeviceStatus, "open" | "succeeded" | "failed" | "left" | "waiting">> = {
  pending: "waiting",
  ordered: "open",
  verifying: "open",
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "failed",
  skipped: "left",
  aborted: "left",
};

export interface Moved {
  readonly position: number;
  readonly from: RolloutDeviceStatus;
  readonly to: RolloutDeviceStatus;
  readonly wasLate?: boolean;
  readonly isLate?: boolean;
}

const MAX_TOLD = 100;
type Stopping = "paused" | "failed" | "aborted";
type Plain = "created" | "awaitingApproval" | "started" | "phaseCompleted" | "resumed" | "completed" | "rolledBack";

export const rolloutEventData = (row: RolloutRow) => {
  const { rolloutId, name, fleetId, target, status, phase } = row;
  return { rolloutId, name, fleetId, targetVersion: target.version, status, phase, counts: countsOf(row) };
};

export const createDraft = (first: RolloutRow, { scope, now }: Pick<StepFacts, "scope" | "now">) => {
  let row = first;
  const events: Happened<DurableEvent>[] = [];
  const notifies: (() => void)[] = [];
  let next: Date | null = null;
  const bounds = (): readonly number[] => boundsOf(row.phases);

  const patch = (change: Partial<RolloutRow>): void => {
    row = { ...row, ...change };
  };
  const patchPhase = (phase: number, change: Partial<StoredPhase>): void => {
    patch({ phases: row.phases.map((each) => (each.phase === phase ? { ...each, ...change } : each)) });
  };
  const add = (name: (typeof COUNTER)[RolloutDeviceStatus] | "late", by: number): void => patch({ [name]: row[name] + by });

  return {
    scope,
    now,
    get row() {
      return row;
    },
    get next() {
      return next;
    },
    get isChanged() {
      return row !== first;
    },
    events,
    notifies,
    bounds,
    patch,
    patchPhase,
    current: (): StoredPhase | undefined => row.phases[row.phase - 1],
    /** Moves devices in all figures. */
    moved: (moves: readonly Moved[]): void => {
      const limits = bounds();
      const phases = row.phases.map((phase) => ({ ...phase }));
      for (const { position, from, to, wasLate = false, isLate = false } of moves) {
        add(COUNTER[from], -1);
        add(COUNTER[to], 1);
        if (wasLate !== isLate) add("late", isLate ? 1 : -1);
        const phase = phases[(phaseAt(limits, position) ?? 0) - 1];
        if (phase === undefined) continue;
        phase[wasLate ? "late" : PLACE[from]] -= 1;
        phase[isLate ? "late" : PLACE[to]] += 1;
      }
      if (moves.length > 0) patch({ phases });
    },
    /** The step is taken again by then. */
    by: (at: Date): void => {
      if (next === null || at < next) next = at;
    },
    wait: (waitingFor: RolloutRow["waitingFor"], until: Date | null = null): void => {
      if (row.waitingFor !== waitingFor || row.waitUntil?.getTime() !== until?.getTime())
        patch({ waitingFor, waitUntil: until, waitingSince: row.waitingFor === waitingFor ? row.waitingSince : now });
    },
    note: (happening: Happening): void => patch({ steps: addRolloutStep(row, row.status, happening, now) }),
    to: (status: RolloutStatus, happening: Happening, change: Partial<RolloutRow> = {}): void => {
      const from = row.status;
      patch({ ...change, status: move(from, status) });
      patch({ steps: addRolloutStep(row, from, happening, now) });
    },
    tell: (name: Plain): void => void events.push(happened(scope, contract.rollouts.events[name], row.rolloutId, rolloutEventData(row))),
    tellStop: (name: Stopping): void =>
      void events.push(
        happened(scope, contract.rollouts.events[name], row.rolloutId, { ...rolloutEventData(row), reason: row.statusReason, text: row.reasonText }),
      ),
    tellFailure: (deviceId: string, code: string, message: string | null): void => {
      if (row.failuresTold >= MAX_TOLD) return;
      patch({ failuresTold: row.failuresTold + 1 });
      const data = { rolloutId: row.rolloutId, deviceId: deviceId as `dev_${string}`, code, message, more: row.failuresTold === MAX_TOLD }; // as: a row's id
      events.push(happened(scope, contract.rollouts.events.deviceFailed, row.rolloutId, data));
    },
  };
};
export type Draft = ReturnType<typeof createDraft>;
