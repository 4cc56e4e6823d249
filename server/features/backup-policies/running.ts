// The runs of policies: begins those that are due, makes up for a missed run, hands their apps out a few at a time, and ends them with their backups.
import { contract } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Backing } from "../apps/index.ts";
import type { FollowBackup, PolicyBackups } from "../backups/index.ts";
import { createDispatch, WAIT_SECONDS } from "./dispatching.ts";
import type { Retaining } from "./retaining.ts";
import { dueSince, jitterOf, readSchedule } from "./schedule.ts";
import { findPolicy, lockPolicy, type PolicyRow, savePolicy, takeDuePolicies, takeVerifications } from "./store/policies.ts";
import {
  countItems,
  findUnretained,
  forgetRuns,
  type ItemStatus,
  insertRun,
  insertRunItems,
  itemOf,
  lockRun,
  type RunRow,
  saveItem,
  saveRun,
} from "./store/runs.ts";
import type { Targets } from "./targets.ts";
import { createVerify } from "./verifying.ts";

/** A run that begins so much later was missed. */
const GRACE_SECONDS = 600;
const POLICIES_AT_ONCE = 20;
const RETAINED_AT_ONCE = 10;
const KEPT_DAYS = 90;
/** Until the next look for what can begin. Where something just began, places become free soon. */
const DISPATCH_MS = { busy: 500, idle: 3_000 };

export interface RunningDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly targets: Targets;
  readonly retaining: Retaining;
  readonly apps: () => Backing;
  readonly backups: () => PolicyBackups;
}

export interface Running {
  readonly jobs: readonly Job[];
  readonly follow: FollowBackup;
  /** Throws TARGET_EMPTY. The policy is locked. */
  begin(
    tx: Tx,
    scope: SystemScope,
    policy: PolicyRow,
    run: { readonly scheduledFor: Date; readonly by: string; readonly isManual: boolean },
  ): Promise<RunRow | null>;
}

const { runStarted, runCompleted, runFailed, missed } = contract.backupPolicies.events;
const ENDED: ReadonlySet<string> = new Set(["completed", "partially_failed", "failed", "cancelled"]);

const countsOf = ({ total, completed, partiallyFailed, failed, skipped }: RunRow) => ({ total, completed, partiallyFailed, failed, skipped });
const endOf = (counts: ReadonlyMap<string, number>, total: number): RunRow["status"] => {
  const completed = counts.get("completed") ?? 0;
  const partial = counts.get("partially_failed") ?? 0;
  if (completed === total) return "completed";
  return completed + partial > 0 ? "partially_failed" : "failed";
};

const all = (notices: readonly (() => void)[]): void => {
  for (const notify of notices) notify();
};

export const createRunning = ({ db, clock, emit, targets, retaining, apps, backups }: RunningDeps): Running => {
  const tell = (
    tx: Tx,
    scope: SystemScope,
    event: typeof runStarted | typeof runCompleted | typeof runFailed,
    { policy, run }: { readonly policy: PolicyRow; readonly run: RunRow },
  ) => {
    const { policyId, name } = policy;
    const data = { policyId, name, runId: run.runId, scheduledFor: run.scheduledFor.toISOString(), status: run.status, counts: countsOf(run) };
    return emit(tx, [happened(scope, event, policyId, data)]);
  };

  const begin: Running["begin"] = async (tx, scope, policy, { scheduledFor, by, isManual }) => {
    const now = clock.now();
    const found = await targets.appsOf(tx, scope, policy.target);
    if (found.length === 0 && isManual) throw new AppError("TARGET_EMPTY");
    const runId = newId("bpr");
    const isEmpty = found.length === 0;
    const run = await insertRun(tx, scope, {
      runId,
      policyId: policy.policyId,
      scheduledFor,
      createdBy: by,
      total: found.length,
      status: isEmpty ? "skipped" : "running",
      startedAt: now,
      endedAt: isEmpty ? now : null,
      retainedAt: isEmpty ? now : null,
      reason: isEmpty ? "TARGET_EMPTY" : null,
    });
    if (run === null) return null;
    await insertRunItems(
      tx,
      scope,
      found.map(({ appId, deviceId }) => {
        const dueAt = secondsFromNow(isManual ? 0 : jitterOf(policy.policyId, deviceId, policy.jitterSeconds), now);
        return { runId, appId, deviceId, dueAt, expiresAt: secondsFromNow(WAIT_SECONDS[policy.missedRun], dueAt) };
      }),
    );
    await savePolicy(tx, scope, policy.policyId, { lastRunAt: now, lastStatus: run.status, silent: true });
    if (!isEmpty) await tell(tx, scope, runStarted, { policy, run });
    return run;
  };

  /** The policy is locked. */
  const take = async (tx: Tx, policy: PolicyRow): Promise<void> => {
    const { policyId, tenantId, name, nextRunAt, missedRun } = policy;
    if (nextRunAt === null) return;
    const scope = { tenantId };
    const now = clock.now();
    const { latest, passed, next } = dueSince(readSchedule(policy.schedule, policy.timezone, nextRunAt), nextRunAt, now);
    await savePolicy(tx, scope, policyId, { nextRunAt: next, silent: true });
    const isLate = now.getTime() - latest.getTime() > GRACE_SECONDS * 1_000;
    const lost = passed - (isLate ? 0 : 1);
    if (lost > 0) await emit(tx, [happened(scope, missed, policyId, { policyId, name, missed: lost, missedRun })]);
    if (!isLate || missedRun === "run_once") await begin(tx, scope, policy, { scheduledFor: latest, by: "system", isManual: false });
  };

  const endIfDone = async (tx: Tx, scope: SystemScope, runId: string): Promise<void> => {
    const run = await lockRun(tx, scope, runId);
    if (run === null || run.endedAt !== null) return;
    const counts = await countItems(tx, scope, runId);
    const of = (...states: readonly ItemStatus[]): number => states.reduce((sum, state) => sum + (counts.get(state) ?? 0), 0);
    const figures = { completed: of("completed"), partiallyFailed: of("partially_failed"), failed: of("failed", "cancelled"), skipped: of("skipped") };
    const isOpen = of("queued", "started") > 0;
    const status = isOpen ? run.status : endOf(counts, run.total);
    const saved = await saveRun(tx, scope, runId, { ...figures, status, ...(isOpen ? {} : { endedAt: clock.now() }) });
    if (isOpen) return;
    const policy = await lockPolicy(tx, scope, run.policyId);
    if (policy === null) return;
    const consecutiveFailures = status === "failed" ? policy.consecutiveFailures + 1 : 0;
    await savePolicy(tx, scope, run.policyId, { lastStatus: status, consecutiveFailures, silent: true });
    await tell(tx, scope, status === "completed" ? runCompleted : runFailed, { policy, run: saved });
  };

  const follow: FollowBackup = async (tx, scope, { backupId, status, failure }) => {
    if (!ENDED.has(status)) return;
    const item = await itemOf(tx, scope, backupId);
    if (item === null || item.status !== "started") return;
    // The device went offline before it took the command.
    const wasAway = failure?.reason === "COMMAND_EXPIRED" || failure?.reason === "COMMAND_UNDELIVERABLE";
    await saveItem(tx, scope, item, { status: wasAway ? "skipped" : (status as ItemStatus), reason: failure?.reason ?? null }); // as: ended ones have the same names
    await endIfDone(tx, scope, item.runId);
  };

  const retainOne = (scope: SystemScope, runId: string): Promise<readonly (() => void)[]> =>
    db.tx(async (tx) => {
      const run = await lockRun(tx, scope, runId);
      if (run === null || run.retainedAt !== null) return [];
      const policy = await findPolicy(tx, scope, run.policyId);
      if (policy === null) throw new Error(`run ${runId} has no policy`);
      return retaining.apply(tx, scope, policy, run);
    });
  /** Some apps of each run that waits. One that fails keeps no other waiting. Returns whether there may be more. */
  const retain = async (signal: AbortSignal): Promise<boolean> => {
    const due = await db.tx((tx) => findUnretained(tx, RETAINED_AT_ONCE));
    const failures: unknown[] = [];
    for (const { tenant_id, run_id } of due) {
      if (signal.aborted) return false;
      await retainOne({ tenantId: tenant_id }, run_id).then(all, (error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
    return due.length > 0;
  };

  const dispatch = createDispatch({ db, clock, apps, backups, endIfDone });
  let dispatchPauseMs = DISPATCH_MS.idle;
  const verifyOf = createVerify({ clock, targets, backups });
  return {
    begin,
    follow,
    jobs: [
      {
        name: "backup-policies.begin",
        everyMs: 10_000,
        run: () =>
          db.tx(async (tx) => {
            const due = await takeDuePolicies(tx, clock.now(), POLICIES_AT_ONCE);
            for (const policy of due) await take(tx, policy);
            return due.length === POLICIES_AT_ONCE;
          }),
      },
      {
        name: "backup-policies.dispatch",
        everyMs: () => dispatchPauseMs,
        run: async () => {
          const { count, notices } = (await dispatch()) ?? { count: 0, notices: [] };
          dispatchPauseMs = count > 0 ? DISPATCH_MS.busy : DISPATCH_MS.idle;
          all(notices);
        },
      },
      { name: "backup-policies.retain", everyMs: 15_000, run: retain },
      {
        name: "backup-policies.verify",
        everyMs: 60_000,
        run: async () => {
          const notices = await db.tx(async (tx) =>
            (await Promise.all((await takeVerifications(tx, clock.now(), POLICIES_AT_ONCE)).map((policy) => verifyOf(tx, policy)))).flat(),
          );
          all(notices);
        },
      },
      { name: "backup-policies.forget", everyMs: 3_600_000, run: () => forgetRuns(db, secondsFromNow(-KEPT_DAYS * DAY_SECONDS, clock.now())) },
    ],
  };
};
