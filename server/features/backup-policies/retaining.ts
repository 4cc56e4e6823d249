// Applies a policy's retention: per app and destination, over good backups only.
import { type BackupPolicy, contract } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import { type Fate, fatesOf, faultIn, type RetentionRules } from "../../core/retention.ts";
import type { SystemScope } from "../../core/scope.ts";
import { groupBy } from "../../core/structures/group-by.ts";
import type { BackupRow, PolicyBackups } from "../backups/index.ts";
import type { PolicyRow } from "./store/policies.ts";
import { completedApps, type RunRow, saveRun } from "./store/runs.ts";

const MAX_BACKUPS = 5_000;
/** Each of them may have five hundred backups. */
const APPS_AT_ONCE = 10;
/** As a command takes them. */
const DELETED_AT_ONCE = 100;

export interface RetainingDeps {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly backups: () => PolicyBackups;
  /** The days that the tenant's plan keeps backups; null: no limit. */
  readonly retentionDays: (tx: Clients, scope: SystemScope) => Promise<number | null>;
}

export const requireValid = (retention: RetentionRules): void => {
  const reason = faultIn(retention);
  if (reason !== null) throw new AppError("RETENTION_INVALID", { details: { reason } });
};

const isGood = ({ status, verification }: BackupRow): boolean => status === "completed" && verification.status !== "failed";
const placeOf = ({ appId, destinationId }: BackupRow): string => `${appId} ${destinationId}`;

export interface JudgedBackup {
  readonly row: BackupRow;
  readonly fate: Fate;
}
export interface Retaining {
  judge(db: Clients, scope: SystemScope, appIds: readonly string[], policy: Pick<BackupPolicy, "retention" | "timezone">): Promise<readonly JudgedBackup[]>;
  /** Judges the backups of the next apps of a run that has ended and is locked. Returns what to call after the commit. */
  apply(tx: Tx, scope: SystemScope, policy: PolicyRow, run: RunRow): Promise<readonly (() => void)[]>;
}

export const createRetaining = ({ clock, emit, backups, retentionDays }: RetainingDeps): Retaining => {
  const isHeld = ({ retainUntil }: BackupRow): boolean => retainUntil !== null && retainUntil > clock.now();
  const judge: Retaining["judge"] = async (db, scope, appIds, { retention, timezone }) => {
    const days = await retentionDays(db, scope);
    const maxAgeDays = days === null ? retention.maxAgeDays : Math.min(retention.maxAgeDays ?? days, days);
    const good = (await backups().kept(db, scope, appIds, MAX_BACKUPS)).filter(isGood);
    const inUse = await backups().inUse(
      db as Tx,
      scope,
      good.map(({ backupId }) => backupId),
    ); // as: it only reads
    const groups = groupBy(good, placeOf);
    return [...groups.values()].flatMap((rows) => {
      const byId = new Map(rows.map((row) => [row.backupId as string, row]));
      const retained = rows.map((row) => ({
        id: row.backupId,
        at: row.completedAt ?? row.createdAt,
        bytes: Number(row.size ?? 0),
        protectedBy: isHeld(row) ? ("held" as const) : inUse.has(row.backupId) ? ("in_use" as const) : undefined,
      }));
      return fatesOf(retained, { ...retention, maxAgeDays }, timezone).flatMap((fate) => {
        const row = byId.get(fate.id);
        return row === undefined ? [] : [{ row, fate }];
      });
    });
  };

  const lockGood = async (tx: Tx, scope: SystemScope, rows: readonly BackupRow[]): Promise<readonly BackupRow[]> => {
    const locked: BackupRow[] = [];
    for (const { backupId } of rows) {
      const row = await backups().lock(tx, { tenantId: scope.tenantId }, backupId);
      if (row !== null && isGood(row) && row.verification.status !== "verifying" && !isHeld(row)) locked.push(row);
    }
    // Somebody may have held one or begun to restore it since they were judged.
    const inUse = await backups().inUse(
      tx,
      scope,
      locked.map(({ backupId }) => backupId),
    );
    return locked.filter(({ backupId }) => !inUse.has(backupId));
  };
  /** Takes backups of one device and destination. Returns how many are deleted. */
  const removeSome = async (tx: Tx, scope: SystemScope, rows: readonly BackupRow[], notices: (() => void)[]): Promise<number> => {
    const locked = await lockGood(tx, scope, rows);
    if (locked.length === 0) return 0;
    try {
      notices.push((await backups().remove(tx, scope, locked, "system")).notify);
    } catch (error) {
      // The device has gone, or its queue is full: the next run tries again.
      if (!isAppError(error)) throw error;
      return 0;
    }
    for (const row of locked) await backups().tellExpired(tx, scope, row);
    return locked.length;
  };
  /** Deletes what nobody works with, in as few commands as possible. */
  const remove = async (
    tx: Tx,
    scope: SystemScope,
    rows: readonly BackupRow[],
  ): Promise<{ readonly deleted: number; readonly notify: readonly (() => void)[] }> => {
    const notify: (() => void)[] = [];
    let deleted = 0;
    for (const group of groupBy(rows, ({ deviceId, destinationId }) => `${deviceId} ${destinationId}`).values())
      for (let from = 0; from < group.length; from += DELETED_AT_ONCE)
        deleted += await removeSome(tx, scope, group.slice(from, from + DELETED_AT_ONCE), notify);
    return { deleted, notify };
  };

  return {
    judge,
    apply: async (tx, scope, policy, run) => {
      // After a failure everything stays: what is there may be all that there will be.
      const appIds = run.status === "failed" ? [] : await completedApps(tx, scope, run, APPS_AT_ONCE);
      const isLast = appIds.length < APPS_AT_ONCE;
      await saveRun(tx, scope, run.runId, { ...(isLast ? { retainedAt: clock.now() } : {}), retainedUpTo: appIds.at(-1) ?? run.retainedUpTo });
      if (appIds.length === 0) return [];
      const judged = (await judge(tx, scope, appIds, policy)).filter(({ row }) => row.policyId === policy.policyId || row.trigger === "pre_update");
      const { deleted, notify } = await remove(
        tx,
        scope,
        judged.filter(({ fate }) => !fate.keep).map(({ row }) => row),
      );
      if (deleted > 0) {
        const { policyId, name } = policy;
        const data = { policyId, name, runId: run.runId, deleted, kept: judged.length - deleted };
        await emit(tx, [happened(scope, contract.backupPolicies.events.retentionApplied, policyId, data)]);
      }
      return notify;
    },
  };
};
