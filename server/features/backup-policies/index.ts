// Backup policies: when which apps are backed up, and how long their backups stay.
import { type BackupPolicy, contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { given } from "../../core/rows/records.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { BackedApp } from "../apps/index.ts";
import type { FindUses } from "../backup-destinations/index.ts";
import type { FollowBackup } from "../backups/index.ts";
import type { Feature } from "../kit.ts";
import { createPolicyAttention } from "./attention.ts";
import type { PoliciesDeps } from "./policies-deps.ts";
import { createPreview } from "./preview.ts";
import { createRetaining, requireValid } from "./retaining.ts";
import { createRunning } from "./running.ts";
import { readSchedule, requireGap } from "./schedule.ts";
import {
  countPolicies,
  deletePolicy,
  findPolicy,
  insertPolicy,
  lockPolicy,
  type PolicyRow,
  pageOfPolicies,
  policiesAt,
  policiesBeforeUpdates,
  savePolicy,
  toPolicy,
} from "./store/policies.ts";
import { hasOpenRun, pageOfRuns, shownRuns } from "./store/runs.ts";
import { createPolicyTargets } from "./targets.ts";

export interface PoliciesFeature extends Feature<typeof contract.backupPolicies> {
  readonly count: (scope: SystemScope) => Promise<number>;
  readonly follow: FollowBackup;
  readonly asksBeforeUpdate: (
    tx: Tx,
    scope: SystemScope,
    apps: readonly BackedApp[],
  ) => Promise<ReadonlyMap<string, { readonly destinationId: string | null }>>;
  readonly usesOf: FindUses;
}

const NO_RULES: BackupPolicy["retention"] = {
  keepLast: null,
  keepHourly: null,
  keepDaily: null,
  keepWeekly: null,
  keepMonthly: null,
  keepYearly: null,
  keepWithin: null,
  maxAgeDays: null,
  maxTotalGB: null,
};
const { created, updated, paused, resumed, deleted } = contract.backupPolicies.events;
const unknownPolicy = (policyId: string): AppError => new AppError("BACKUP_POLICY_NOT_FOUND", { details: { policyId } });

type GivenRetention = { readonly [K in keyof BackupPolicy["retention"]]?: BackupPolicy["retention"][K] | undefined };
const rulesOf = (retention: GivenRetention): BackupPolicy["retention"] => {
  const rules = { ...NO_RULES, ...given(retention) };
  requireValid(rules);
  return rules;
};

export const createBackupPolicies = (deps: PoliciesDeps): PoliciesFeature => {
  const { db, clock, emit, plan, destinations, timezoneOf } = deps;
  const targets = createPolicyTargets(deps);
  const retaining = createRetaining(deps);
  const running = createRunning({ ...deps, targets, retaining });

  const tell = (
    tx: Tx,
    scope: SystemScope,
    event: typeof created | typeof updated | typeof paused | typeof resumed | typeof deleted,
    { policyId, name }: PolicyRow,
  ) => emit(tx, [happened(scope, event, policyId, { policyId, name })]);
  const find = async (scope: SystemScope, policyId: string): Promise<PolicyRow> => {
    const row = await findPolicy(db, scope, policyId);
    if (row === null) throw unknownPolicy(policyId);
    return row;
  };
  const locked = async (tx: Tx, scope: SystemScope, policyId: string): Promise<PolicyRow> => {
    const row = await lockPolicy(tx, scope, policyId);
    if (row === null) throw unknownPolicy(policyId);
    return row;
  };
  const gapOf = ({ tenant }: TenantScope): number | null => plan.limitsOf(tenant)["minBackupIntervalMinutes"] ?? null;
  /** When the policy runs and verifies next. */
  const timesOf = (scope: TenantScope, { schedule, timezone, verify, enabled }: Pick<PolicyRow, "schedule" | "timezone" | "verify" | "enabled">) => {
    const now = clock.now();
    const read = readSchedule(schedule, timezone, now);
    requireGap(read, now, gapOf(scope));
    const verification = verify === null ? null : readSchedule(verify.schedule, timezone, now);
    if (verification !== null) requireGap(verification, now, gapOf(scope));
    return enabled ? { nextRunAt: read.after(now), nextVerifyAt: verification?.after(now) ?? null } : { nextRunAt: null, nextVerifyAt: null };
  };
  const checkTarget = async (tx: Tx, scope: SystemScope, target: PolicyRow["target"], allowEmpty: boolean): Promise<void> => {
    await targets.check(tx, scope, target);
    if (!allowEmpty && (await targets.appsOf(tx, scope, target)).length === 0) throw new AppError("TARGET_EMPTY");
  };
  const turn =
    (enabled: boolean) =>
    (scope: TenantScope, policyId: string) =>
    async (tx: Tx): Promise<BackupPolicy> => {
      const row = await locked(tx, scope, policyId);
      if (row.enabled === enabled) return toPolicy(row);
      const saved = await savePolicy(tx, scope, policyId, { enabled, ...timesOf(scope, { ...row, enabled }) });
      await tell(tx, scope, enabled ? resumed : paused, saved);
      return toPolicy(saved);
    };

  return {
    handlers: implement(contract.backupPolicies, {
      list: async ({ scope }, query) => {
        const { items, ...page } = await pageOfPolicies(db, scope, query);
        return pageWithActors(db, scope, { ...page, items: items.map(toPolicy) });
      },
      get: async ({ scope }, { policyId }) => withActor(db, scope, toPolicy(await find(scope, policyId))),
      create: ({ scope, commit }, { timezone, retention, allowEmpty, ...body }) =>
        commit(async (tx) => {
          const rules = rulesOf(retention);
          const zone = timezone ?? (await timezoneOf(tx, scope));
          const times = timesOf(scope, { ...body, timezone: zone });
          if (body.destinationId !== null) await destinations().hold(tx, scope, body.destinationId);
          await checkTarget(tx, scope, body.target, allowEmpty);
          await plan.require(tx, scope, "backupPolicies", 1);
          const row = await insertPolicy(tx, scope, {
            ...body,
            ...times,
            policyId: newId("bpl"),
            destinationId: body.destinationId as PolicyRow["destinationId"], // as: it was just found
            timezone: zone,
            retention: rules,
            createdBy: actorOf(scope.principal),
          });
          await tell(tx, scope, created, row);
          return toPolicy(row);
        }),
      change: ({ scope, commit, fail }, { policyId, version, retention, allowEmpty, target, destinationId, ...change }) =>
        commit(async (tx) => {
          const before = await locked(tx, scope, policyId);
          if (version !== undefined && version !== before.version) throw fail("VERSION_CONFLICT", { currentVersion: before.version });
          if (destinationId != null) await destinations().hold(tx, scope, destinationId);
          if (target !== undefined) await checkTarget(tx, scope, target, allowEmpty);
          const isTimed = change.schedule !== undefined || change.timezone !== undefined || change.verify !== undefined;
          const row = await savePolicy(tx, scope, policyId, {
            ...given({ ...change, target, destinationId: destinationId as PolicyRow["destinationId"] | undefined }), // as: it was just found
            ...(retention === undefined ? {} : { retention: rulesOf(retention) }),
            ...(isTimed ? timesOf(scope, { ...before, ...given(change) }) : {}),
          });
          await tell(tx, scope, updated, row);
          return toPolicy(row);
        }),
      remove: ({ scope, commit }, { policyId }) =>
        commit(async (tx) => {
          const row = await locked(tx, scope, policyId);
          await deletePolicy(tx, scope, policyId);
          await tell(tx, scope, deleted, row);
          return null;
        }),
      run: ({ scope, commit, fail }, { policyId }) =>
        commit(async (tx) => {
          const policy = await locked(tx, scope, policyId);
          if (await hasOpenRun(tx, scope, policyId)) throw fail("BACKUP_IN_PROGRESS", { policyId });
          const run = await running.begin(tx, scope, policy, { scheduledFor: clock.now(), by: actorOf(scope.principal), isManual: true });
          const [shown] = run === null ? [] : await shownRuns(tx, scope, [run]);
          if (shown === undefined) throw fail("BACKUP_IN_PROGRESS", { policyId });
          return shown;
        }),
      pause: ({ scope, commit }, { policyId }) => commit(turn(false)(scope, policyId)),
      resume: ({ scope, commit }, { policyId }) => commit(turn(true)(scope, policyId)),
      listRuns: async ({ scope }, query) => {
        await find(scope, query.policyId);
        const { items, ...page } = await pageOfRuns(db, scope, query);
        return pageWithActors(db, scope, { ...page, items: await shownRuns(db, scope, items) });
      },
      ...createPreview({ ...deps, targets, retaining, rulesOf }),
    }),
    jobs: running.jobs,
    follow: running.follow,
    attention: createPolicyAttention(deps),
    count: ({ tenantId }) => countPolicies(db, { tenantId }),
    counters: { backupPolicies: countPolicies },
    usesOf: async (tx, scope, destinationId, limit) => (await policiesAt(tx, scope, destinationId, limit)).map((id) => ({ type: "backupPolicy", id })),
    asksBeforeUpdate: async (tx, scope, apps) => {
      const asked = new Map<string, { readonly destinationId: string | null }>();
      for (const { target, destinationId } of await policiesBeforeUpdates(tx, scope))
        for (const appId of await targets.among(tx, scope, target, apps)) if (!asked.has(appId)) asked.set(appId, { destinationId });
      return asked;
    },
  };
};
