// Rows of the runs of policies, and of the apps in them.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import {
  type AppId,
  type BackupId,
  type BackupPolicyId,
  BackupRun,
  type BackupRunId,
  type DeviceId,
  type Page,
  type TenantId,
} from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { groupBy } from "../../../core/structures/group-by.ts";

interface Narrowed {
  readonly runId: BackupRunId;
  readonly policyId: BackupPolicyId;
  readonly tenantId: TenantId;
  readonly status: BackupRun["status"];
}
export type RunRow = Omit<Prisma.BackupRunModel, keyof Narrowed> & Narrowed;
const toRow = (row: Prisma.BackupRunModel): RunRow => row as RunRow; // as: only this feature writes the columns
export type ItemStatus = "queued" | "started" | "completed" | "partially_failed" | "failed" | "cancelled" | "skipped";

const MAX_SHOWN = 1_000;
const STATUS_OF: Readonly<Record<ItemStatus, BackupRun["backups"][number]["status"]>> = {
  queued: "pending",
  started: "in_progress",
  completed: "completed",
  partially_failed: "partially_failed",
  failed: "failed",
  cancelled: "cancelled",
  skipped: "skipped",
};
const itemsOf = async (db: Clients, scope: SystemScope, runIds: readonly string[]) => {
  const rows = await db
    .for(scope)
    .backupRunItem.findMany({ where: { runId: { in: [...runIds] } }, orderBy: { appId: "asc" }, take: MAX_SHOWN * Math.max(1, runIds.length) });
  return groupBy(rows, ({ runId }) => runId);
};

export const shownRuns = async (db: Clients, scope: SystemScope, rows: readonly RunRow[]): Promise<BackupRun[]> => {
  const items = await itemsOf(
    db,
    scope,
    rows.map(({ runId }) => runId),
  );
  return rows.map((row) => {
    const { total, completed, partiallyFailed, failed, skipped } = row;
    const backups = (items.get(row.runId) ?? []).slice(0, MAX_SHOWN).map(({ backupId, appId, deviceId, status, reason }) => ({
      backupId: backupId as BackupId | null, // as: a row's ids
      appId: appId as AppId,
      deviceId: deviceId as DeviceId,
      status: STATUS_OF[status as ItemStatus], // as: only this feature writes it
      reason,
    }));
    return recordOf(BackupRun, { ...row, counts: { total, completed, partiallyFailed, failed, skipped }, backups });
  });
};

const list = createListing("backup-runs", { scheduledFor: { kind: "time" } }, { column: "runId", kind: "text" });
type RunsQuery = Parameters<typeof list>[0] & { readonly policyId: string; readonly status?: readonly string[] | undefined };
export const pageOfRuns = (db: Clients, scope: SystemScope, query: RunsQuery): Promise<Page<RunRow>> => {
  const { backupRun } = db.for(scope);
  const where = { policyId: query.policyId, ...(query.status === undefined ? {} : { status: { in: [...query.status] } }) };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => backupRun.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => backupRun.count({ where }),
    record: toRow,
  });
};

export type NewRun = Pick<RunRow, "runId" | "policyId" | "scheduledFor" | "status" | "createdBy" | "total" | "startedAt" | "endedAt" | "reason" | "retainedAt">;
/** Null: another node has written this run. */
export const insertRun = async (tx: Clients, { tenantId }: SystemScope, made: NewRun): Promise<RunRow | null> => {
  const { count } = await tx.for({ tenantId }).backupRun.createMany({ data: [made], skipDuplicates: true });
  return count === 0 ? null : findRun(tx, { tenantId }, made.runId);
};
export const findRun = async (db: Clients, scope: SystemScope, runId: string): Promise<RunRow | null> => {
  const row = await db.for(scope).backupRun.findFirst({ where: { runId } });
  return row === null ? null : toRow(row);
};
export const hasOpenRun = async (tx: Clients, { tenantId }: SystemScope, policyId: string): Promise<boolean> =>
  (await tx.for({ tenantId }).backupRun.count({ where: { policyId, endedAt: null } })) > 0;

const LOCK_ONE = statement<{ readonly run_id: string }>(
  "backupRuns.lockOne",
  "select r.run_id from backup_runs r where r.tenant_id = $1 and r.run_id = $2 for no key update",
);
export const lockRun = async (tx: Clients & SqlTx, { tenantId }: SystemScope, runId: string): Promise<RunRow | null> => {
  await tx.query(LOCK_ONE, [tenantId, runId]);
  return findRun(tx, { tenantId }, runId);
};
type RunChange = Partial<
  Pick<RunRow, "status" | "startedAt" | "endedAt" | "completed" | "partiallyFailed" | "failed" | "skipped" | "reason" | "retainedAt" | "retainedUpTo">
>;
export const saveRun = async (tx: Clients, { tenantId }: SystemScope, runId: string, change: RunChange): Promise<RunRow> => {
  const [row] = await tx.for({ tenantId }).backupRun.updateManyAndReturn({ where: { runId }, data: given(change) });
  if (row === undefined) throw new Error(`run ${runId} is gone although it is locked`);
  return toRow(row);
};

export interface NewItem {
  readonly runId: string;
  readonly appId: string;
  readonly deviceId: string;
  readonly dueAt: Date;
  readonly expiresAt: Date;
}
export const insertRunItems = async (tx: Clients, { tenantId }: SystemScope, items: readonly NewItem[]): Promise<void> => {
  await tx.for({ tenantId }).backupRunItem.createMany({ data: [...items] });
};
export const saveItem = async (
  tx: Clients,
  { tenantId }: SystemScope,
  at: { readonly runId: string; readonly appId: string },
  change: { readonly status: ItemStatus; readonly backupId?: string; readonly reason?: string | null },
) => {
  await tx.for({ tenantId }).backupRunItem.updateMany({ where: at, data: given(change) });
};
export const itemOf = (tx: Clients, { tenantId }: SystemScope, backupId: string) => tx.for({ tenantId }).backupRunItem.findFirst({ where: { backupId } });

export const countItems = async (tx: Clients, { tenantId }: SystemScope, runId: string): Promise<ReadonlyMap<string, number>> => {
  const groups = await tx.for({ tenantId }).backupRunItem.groupBy({ by: ["status"], where: { runId }, _count: true });
  return new Map(groups.map(({ status, _count }) => [status, _count]));
};
/** The next apps of the run whose backup is complete, in the order of their ids. */
export const completedApps = async (
  tx: Clients,
  { tenantId }: SystemScope,
  { runId, retainedUpTo }: Pick<RunRow, "runId" | "retainedUpTo">,
  limit: number,
): Promise<readonly string[]> => {
  const where = { runId, status: "completed", ...(retainedUpTo === null ? {} : { appId: { gt: retainedUpTo } }) };
  const rows = await tx.for({ tenantId }).backupRunItem.findMany({ where, select: { appId: true }, orderBy: { appId: "asc" }, take: limit });
  return rows.map(({ appId }) => appId);
};

export interface QueuedRow {
  readonly tenant_id: TenantId;
  readonly run_id: string;
  readonly policy_id: string;
  readonly app_id: string;
  readonly device_id: DeviceId;
  readonly expired: boolean;
}
const FIND_QUEUED = statement<QueuedRow>(
  "backupRuns.findQueued",
  `select r.tenant_id, r.run_id, r.policy_id, i.app_id, i.device_id, i.expired from backup_runs r cross join lateral (
     select i.app_id, i.device_id, i.due_at, i.expires_at <= $1 as expired
       from backup_run_items i join devices d on d.tenant_id = i.tenant_id and d.device_id = i.device_id
      where i.tenant_id = r.tenant_id and i.run_id = r.run_id and i.status = 'queued' and i.due_at <= $1
        and (i.expires_at <= $1 or d.status = 'online' or d.deleted_at is not null)
      order by expired desc, i.due_at limit $2) i
    where r.ended_at is null and r.retained_at is null order by i.due_at`,
);
/** The next apps of each run that are due on devices that are there, and those that are due no more. A run with many apps keeps no other waiting. */
export const findQueued = (tx: SqlTx, now: Date, perRun: number): Promise<QueuedRow[]> => tx.query(FIND_QUEUED, [now, perRun]);

export interface BusyRow {
  readonly tenant_id: string;
  readonly policy_id: string;
  readonly busy: number;
}
const COUNT_BUSY = statement<BusyRow>(
  "backupRuns.countBusy",
  `select i.tenant_id, r.policy_id, count(*)::int as busy from backup_run_items i join backup_runs r on r.tenant_id = i.tenant_id and r.run_id = i.run_id
    where i.status = 'started' group by i.tenant_id, r.policy_id`,
);
export const countBusy = (tx: SqlTx): Promise<BusyRow[]> => tx.query(COUNT_BUSY);

const FIND_UNRETAINED = statement<{ readonly tenant_id: TenantId; readonly run_id: string }>(
  "backupRuns.findUnretained",
  "select r.tenant_id, r.run_id from backup_runs r where r.retained_at is null and r.ended_at is not null order by r.ended_at limit $1",
);
export const findUnretained = (tx: SqlTx, limit: number) => tx.query(FIND_UNRETAINED, [limit]);

const FORGOTTEN_AT_ONCE = 500;
export const forgetRuns = async (db: Clients, before: Date): Promise<boolean> =>
  (await db.system.backupRun.deleteMany({ where: { endedAt: { lt: before } }, limit: FORGOTTEN_AT_ONCE })).count === FORGOTTEN_AT_ONCE;
