// The step of a rollout, for the engine: pull, judge, order, write.
import { contract } from "../../../../protocol/index.ts";
import type { Tx } from "../../../core/database.ts";
import { happened } from "../../../core/events.ts";
import { type ManyStepper, type StepFacts, stepperOf, type Written } from "../../../core/many/types.ts";
import type { FeatureKit } from "../../kit.ts";
import type { FindFleet } from "../fleet.ts";
import { openOf, type RolloutRow } from "../record.ts";
import { isFinalRollout } from "../rules/states.ts";
import { endPending } from "../store/members.ts";
import { childOf, lockRollout, saveRollout } from "../store/rollouts.ts";
import { advanceRollout, type RollBack } from "./advance.ts";
import { begin } from "./begin.ts";
import { createDraft, type Draft, rolloutEventData } from "./draft.ts";
import { type OrderDeps, order } from "./order.ts";
import { isStopped, type PullDeps, pull, pullLateResults, withdraw } from "./pull.ts";

export const ROLLOUT_KIND = "rollout";

export interface RolloutStepperDeps extends Pick<PullDeps, "commands">, Pick<OrderDeps, "enqueueEach">, Pick<FeatureKit, "emit" | "hint"> {
  readonly apps: () => ReturnType<PullDeps["apps"]> & ReturnType<OrderDeps["apps"]>;
  readonly findFleet: FindFleet;
  readonly rollBack: RollBack;
}

/** As long as devices are under way, and after a slice. */
const POLL_MS = 2_000;
const PACE_MS = 1_000;
/** A device that has come back is ordered within ten seconds, even if the hint about it got lost. */
const LATE_MS = 8_000;
const ABORTED_AT_ONCE = 5_000;

interface Working {
  readonly draft: Draft;
  /** Until when it may order; null: it may not. */
  readonly until: Date | "always" | null;
}

/** Ends what is pending, in portions, and takes back what no device has. */
const windDown = async (tx: Tx, draft: Draft, deps: RolloutStepperDeps): Promise<void> => {
  const { now, scope } = draft;
  await withdraw(tx, draft, deps);
  if (draft.row.status === "paused" || draft.row.pending === 0) return;
  const end = { status: "aborted", code: "WITHDRAWN", now, limit: ABORTED_AT_ONCE, onlyLate: false } as const;
  const count = await endPending(tx, scope, draft.row.rolloutId, end);
  const { pending, aborted, late } = draft.row;
  draft.patch({ pending: pending - count, aborted: aborted + count, late: pending === count ? 0 : Math.min(late, pending - count) });
  if (draft.row.pending > 0) draft.by(now);
};

const followChild = async (tx: Tx, draft: Draft): Promise<void> => {
  const child = await childOf(tx, draft.scope, draft.row.rolloutId);
  if (child === null || !isFinalRollout(child.status) || openOf(draft.row) + draft.row.pending > 0) return;
  const isWhole = child.status === "completed" && child.failed + child.timedOut + child.aborted === 0;
  if (isWhole) {
    draft.to("rolled_back", { event: "rolled_back", by: "system" }, { completedAt: draft.now });
    draft.tell("rolledBack");
    return;
  }
  draft.to("failed", { event: "failed", by: "system", reason: "ROLLBACK_INCOMPLETE" }, { statusReason: "ROLLBACK_INCOMPLETE", completedAt: draft.now });
  draft.tellStop("failed");
};

const isIdle = ({ row }: Draft): boolean => {
  if (row.status === "awaiting_approval" || row.status === "draft") return true;
  return (row.status === "paused" || isFinalRollout(row.status)) && openOf(row) === 0 && (row.status === "paused" || row.pending === 0);
};

const nextOf = (draft: Draft): Date | null => {
  const { row, now } = draft;
  if (isIdle(draft)) return null;
  const at = (ms: number): void => draft.by(new Date(now.getTime() + ms));
  if (openOf(row) > 0 || row.status === "rolling_back") at(POLL_MS);
  if (row.late > 0) at(LATE_MS);
  // It waits for nothing that is known to come: look again.
  if (draft.next === null) at(15_000);
  return draft.next;
};

const waitFor = (draft: Draft, turn: { readonly isQuotaFull: boolean; readonly isElsewhere: boolean; readonly ordered: number }): void => {
  const { row } = draft;
  if (turn.ordered > 0) draft.wait(null);
  else if (turn.isQuotaFull) draft.wait("quota");
  else if (openOf(row) > 0) draft.wait("devices");
  else if (turn.isElsewhere) draft.wait("device_elsewhere");
};

export const createRolloutStepper = (deps: RolloutStepperDeps): ManyStepper =>
  stepperOf<Working>({
    kind: ROLLOUT_KIND,
    claim: async (tx, step) => {
      const row = await lockRollout(tx, step.scope, step.recordId);
      return row === null || row.status === "draft" ? null : { draft: createDraft(row, step), until: null };
    },
    pull: async (tx, { draft, until }) => {
      await pull(tx, draft, deps);
      await pullLateResults(tx, draft);
      return { draft, until };
    },
    judge: async (tx, { draft }) => {
      const { status } = draft.row;
      if (status === "scheduled") await begin(tx, draft, deps.findFleet);
      const isGoing = draft.row.status === "running" || draft.row.status === "waiting_window";
      return { draft, until: isGoing ? await advanceRollout(tx, draft, deps.rollBack) : null };
    },
    order: async (tx, { draft, until }) => {
      if (isStopped(draft)) await windDown(tx, draft, deps);
      if (draft.row.status === "rolling_back") await followChild(tx, draft);
      if (until === null || draft.row.status !== "running") return { draft, until };
      const isOfParent = draft.row.rollbackOf !== null || draft.row.retryOf !== null;
      const fleet = isOfParent ? null : await deps.findFleet(tx, draft.scope, draft.row.fleetId);
      const turn = await order(tx, draft, deps, { fleet, until });
      waitFor(draft, turn);
      if (turn.more || turn.ordered > 0) draft.by(new Date(draft.now.getTime() + PACE_MS));
      return { draft, until };
    },
    write: (tx, { draft }, step) => write(tx, draft, step, deps),
  });

const write = async (tx: Tx, draft: Draft, { scope }: StepFacts, { emit, hint }: RolloutStepperDeps): Promise<Written> => {
  const next = nextOf(draft);
  const row: RolloutRow = draft.isChanged ? await saveRollout(tx, scope, draft.row) : draft.row;
  if (draft.events.length > 0) await emit(tx, draft.events);
  return {
    next,
    notify: () => {
      for (const notify of draft.notifies) notify();
      if (draft.isChanged) hint(scope.tenantId, () => happened(scope, contract.rollouts.events.progressed, row.rolloutId, rolloutEventData(row)));
    },
  };
};
