// The start of a rollout, whoever starts it: the plan, other rollouts of the same devices, the approval, and the work of the engine.
import { contract, type FleetId, type UpdatePhase } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import type { NewWork } from "../../core/many/types.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import type { FindFleet, RolloutFleet } from "./fleet.ts";
import { addRolloutStep, type RolloutRow } from "./record.ts";
import { move } from "./rules/states.ts";
import { rolloutEventData } from "./step/draft.ts";
import { ROLLOUT_KIND } from "./step/stepper.ts";
import { countCommon, findConflicts } from "./store/freeze.ts";
import { findUnfrozen, insertRollout, type NewRollout, saveRollout } from "./store/rollouts.ts";

export interface StartingDeps extends Pick<FeatureKit, "clock" | "emit" | "many" | "plan"> {
  readonly findFleet: FindFleet;
}

export interface Starting {
  insert(tx: Tx, scope: SystemScope, made: NewRollout): Promise<RolloutRow>;
  /** Throws PLAN_LIMIT_EXCEEDED or ROLLOUT_CONFLICT. */
  start(tx: Tx, scope: SystemScope, row: RolloutRow, fleet: RolloutFleet): Promise<RolloutRow>;
  /** The engine takes it from here. */
  begin(tx: Tx, scope: SystemScope, row: RolloutRow): Promise<void>;
  /** A child that undoes the rollout; it begins when the rollout's own orders have ended. */
  rollBack(tx: Tx, scope: SystemScope, row: RolloutRow, child: { readonly by: string; readonly inWindow: boolean }): Promise<RolloutRow>;
  retry(tx: Tx, scope: SystemScope, row: RolloutRow, by: string): Promise<RolloutRow>;
  /** A rollout of the same for devices that joined the fleet since. */
  follow(tx: Tx, scope: SystemScope, row: RolloutRow): Promise<RolloutRow>;
}

/** Before bulk operations of the same tenant. */
const PRIORITY = 1;
const { created, awaitingApproval } = contract.rollouts.events;

const WHOLE: UpdatePhase = { percent: 100, count: null, tag: null, minSuccessPercent: 1, soakMinutes: 0, requireApproval: false };

const ZERO = { total: 0, pending: 0, ordered: 0, verifying: 0, succeeded: 0, failed: 0, timedOut: 0, skipped: 0, aborted: 0, late: 0 };
const insertWithStep = (tx: Tx, scope: SystemScope, made: NewRollout, at: Date): Promise<RolloutRow> => {
  const draft = { phase: 0, ...ZERO, ...made, steps: [] } as unknown as RolloutRow; // as: all that a step reads
  return insertRollout(tx, scope, { ...made, steps: addRolloutStep(draft, null, { event: "created", by: made.createdBy }, at) });
};

export const createStarting = ({ clock, emit, many, plan, findFleet }: StartingDeps): Starting => {
  const workOf = ({ rolloutId, startAt }: RolloutRow): NewWork => ({ recordId: rolloutId, kind: ROLLOUT_KIND, priority: PRIORITY, stepAt: startAt });

  const insert: Starting["insert"] = async (tx, scope, made) => {
    const row = await insertWithStep(tx, scope, made, clock.now());
    await emit(tx, [happened(scope, created, row.rolloutId, rolloutEventData(row))]);
    return row;
  };

  /** Rollouts that have their devices already, and those that will have them when they begin. The plan's lock keeps two starts from passing each other. */
  const requireAlone = async (tx: Tx, scope: SystemScope, row: RolloutRow, fleet: RolloutFleet): Promise<void> => {
    const own = { tenantId: scope.tenantId };
    const frozen = await findConflicts(tx, own, row, fleet);
    const found = frozen.map(({ rollout_id: rolloutId, devices }) => ({ rolloutId, devices }));
    for (const { rolloutId, fleetId } of await findUnfrozen(tx, own, row)) {
      const other = await findFleet(tx, own, fleetId);
      const devices = other === null ? 0 : await countCommon(tx, own, fleet, other);
      if (devices > 0) found.push({ rolloutId, devices });
    }
    if (found.length === 0) return;
    throw new AppError("ROLLOUT_CONFLICT", { details: { rollouts: found, devices: found.reduce((sum, { devices }) => sum + devices, 0) } });
  };

  const begin: Starting["begin"] = (tx, scope, row) => many.begin(tx, scope, workOf(row));

  const child = async (tx: Tx, scope: SystemScope, made: NewRollout): Promise<RolloutRow> => {
    const row = await insert(tx, scope, { ...made, status: "scheduled" });
    await begin(tx, scope, row);
    return row;
  };
  const copyOf = ({ name, fleetId, updatePolicyId, subject, settings, target, content }: RolloutRow) => ({
    rolloutId: newId("rlt"),
    name,
    fleetId: fleetId as FleetId,
    updatePolicyId,
    subject,
    settings,
    target,
    content,
    conflicts: "skip" as const,
    status: "scheduled" as const,
  });

  return {
    insert,
    begin,
    start: async (tx, scope, row, fleet) => {
      await plan.lock(tx, scope);
      await plan.require(tx, scope, "liveRollouts", 1);
      if (row.conflicts === "refuse") await requireAlone(tx, scope, row, fleet);
      const { approval } = row.settings;
      const status = move(row.status, approval.required && row.approvedBy === null ? "awaiting_approval" : "scheduled");
      const moved = { ...row, status, waitingFor: status === "scheduled" ? ("start" as const) : ("approval" as const), waitingSince: clock.now() };
      const by = scope.principal == null ? "system" : row.createdBy;
      const saved = await saveRollout(tx, scope, { ...moved, steps: addRolloutStep(moved, row.status, { event: "start", by }, clock.now()) });
      if (status === "scheduled") await begin(tx, scope, saved);
      else await emit(tx, [happened(scope, awaitingApproval, row.rolloutId, rolloutEventData(saved))]);
      return saved;
    },
    rollBack: (tx, scope, row, { by, inWindow }) => {
      const { maintenanceWindows } = row.settings;
      const settings = { ...row.settings, phases: [WHOLE], onFailure: "pause" as const, offlinePolicy: "later" as const, newDevices: "ignore" as const };
      const copy = { ...copyOf(row), settings: { ...settings, maintenanceWindows: inWindow ? maintenanceWindows : [] } };
      return child(tx, scope, { ...copy, name: `Back from ${row.name}`.slice(0, 100), rollbackOf: row.rolloutId, createdBy: by });
    },
    retry: (tx, scope, row, by) => child(tx, scope, { ...copyOf(row), retryOf: row.rolloutId, createdBy: by }),
    follow: (tx, scope, row) => child(tx, scope, { ...copyOf(row), followOf: row.followOf ?? row.rolloutId, createdBy: row.createdBy }),
  };
};
