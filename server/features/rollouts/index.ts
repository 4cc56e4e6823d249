// Rollouts (staged, canary, progressive): the devices of a fleet get a new agent or a new app in phases, and the update stops by itself when it goes wrong. The way of a rollout:
//
// 1. handlers/create.ts makes it, and starting.ts starts it: the plan, other rollouts of the same devices, the approval.
// 2. The engine of server/core/many takes its steps. step/begin.ts freezes its devices; from then on each step pulls what has become of the orders
//    (step/pull.ts, rules/decide.ts), judges (step/advance.ts, core/many/threshold.ts) and orders the next devices (step/order.ts).
// 3. handlers/changes.ts does what people want, between two steps. rules/states.ts is the table of what they may.
import { contract, type OverviewChange } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createRolloutAttention } from "./attention.ts";
import { createComplianceOf } from "./compliance.ts";
import type { FindFleet } from "./fleet.ts";
import { followNewDevices } from "./follow.ts";
import { createRolloutChanges } from "./handlers/changes.ts";
import { createCreate } from "./handlers/create.ts";
import { createPolicies } from "./handlers/policies.ts";
import { createRolloutReads } from "./handlers/reads.ts";
import { createFindAim, type UpdateSettingsDeps } from "./settings.ts";
import { createStarting } from "./starting.ts";
import type { OrderDeps } from "./step/order.ts";
import type { PullDeps } from "./step/pull.ts";
import { createRolloutStepper } from "./step/stepper.ts";
import { countLiveOf } from "./store/devices.ts";
import { cameOnline } from "./store/members.ts";
import { countUpdatePolicies, findUpdatePolicy } from "./store/policies.ts";
import type { RolloutRow } from "./store/rollout-row.ts";
import { countLiveRollouts, findUnderWay, forgetEnded, liveRolloutsOf } from "./store/rollouts.ts";

export type { RolloutFleet } from "./fleet.ts";

export interface RolloutsDeps
  extends Pick<FeatureKit, "db" | "clock" | "emit" | "hint" | "until" | "plan" | "many" | "enqueueEach">,
    Pick<UpdateSettingsDeps, "newestRelease"> {
  readonly apps: () => ReturnType<OrderDeps["apps"]> & ReturnType<PullDeps["apps"]> & ReturnType<UpdateSettingsDeps["apps"]>;
  readonly commands: PullDeps["commands"];
  readonly findFleet: FindFleet;
}

export interface Rollouts extends Feature<typeof contract.rollouts> {
  /** Throws UPDATE_POLICY_NOT_FOUND. */
  readonly requirePolicy: (db: Clients, scope: SystemScope, updatePolicyId: string) => Promise<void>;
  /** The rollouts of the fleet that have not ended, at most so many. */
  readonly liveOf: typeof liveRolloutsOf;
  readonly countLive: typeof countLiveOf;
  readonly complianceOf: ReturnType<typeof createComplianceOf>;
  /** Rollouts that have not ended, the newest first. */
  readonly underWay: (scope: SystemScope, limit: number) => Promise<readonly OverviewChange[]>;
}

const HOUR_MS = 3_600_000;
const KEPT_DAYS = 400;

const tenantsOnline = (events: readonly DispatchedEvent[]): ReadonlyMap<string, readonly string[]> => {
  const found = new Map<string, string[]>();
  for (const { type, tenantId, subjectId } of events) if (type === "device.online") found.set(tenantId, [...(found.get(tenantId) ?? []), subjectId]);
  return found;
};

const changeOf = ({ rolloutId: id, name, status, phase, phases, total, ...row }: RolloutRow): OverviewChange => {
  const failed = row.failed + row.timedOut;
  const done = row.succeeded + failed + row.skipped + row.aborted;
  return { kind: "rollout", id, name, status, phase, phases: phases.length, done, failed, total };
};

export const createRollouts = (given: RolloutsDeps): Rollouts => {
  const { db, clock, many } = given;
  const findAim = createFindAim(given);
  const starting = createStarting(given);
  const deps = { ...given, findAim, starting };
  const requireFleet = async (scope: SystemScope, fleetId: string): Promise<void> => {
    if ((await given.findFleet(db, scope, fleetId)) === null) throw new AppError("FLEET_NOT_FOUND", { details: { fleetId } });
  };
  return {
    handlers: implement(contract.rollouts, {
      ...createPolicies({ ...deps, requireFleet }),
      ...createRolloutReads(deps),
      ...createCreate(deps),
      ...createRolloutChanges(deps),
    }),
    steppers: [
      createRolloutStepper({
        ...deps,
        rollBack: async (tx, { scope, row }) => {
          await starting.rollBack(tx, scope, row, { by: row.createdBy, inWindow: false });
        },
      }),
    ],
    attention: createRolloutAttention(deps),
    counters: { updatePolicies: countUpdatePolicies, liveRollouts: countLiveRollouts },
    /** Devices that come back are ordered soon: whoever waits for them looks again. */
    consumer: async (tx: Tx, events) => {
      for (const [tenantId, deviceIds] of tenantsOnline(events)) {
        const scope = { tenantId: tenantId as SystemScope["tenantId"] }; // as: a row's id
        await many.wakeIdle(tx, scope, await cameOnline(tx, scope, deviceIds));
      }
    },
    jobs: [
      { name: "rollouts.follow", everyMs: HOUR_MS, run: () => followNewDevices(deps) },
      { name: "rollouts.forget", everyMs: HOUR_MS, run: () => forgetEnded(db, secondsFromNow(-KEPT_DAYS * DAY_SECONDS, clock.now())) },
    ],
    requirePolicy: async (tx, scope, updatePolicyId) => {
      if ((await findUpdatePolicy(tx, scope, updatePolicyId)) === null) throw new AppError("UPDATE_POLICY_NOT_FOUND", { details: { updatePolicyId } });
    },
    liveOf: liveRolloutsOf,
    countLive: countLiveOf,
    complianceOf: createComplianceOf(findAim),
    underWay: async (scope, limit) => (await findUnderWay(db, scope, limit)).map(changeOf),
  };
};
