// Rows of backups.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { Page } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { goodBackup } from "../../../core/rows/good-backup.ts";
import { createListing, likeLiteral } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { LOCK, statement } from "../../../core/statements.ts";
import { OPEN_BACKUPS } from "../states.ts";
import { type BackupPatch, type BackupRow, backupColumns, toBackupRow } from "./backup-row.ts";

const list = createListing("backups", { createdAt: { kind: "time" }, name: { kind: "text" }, status: { kind: "text" } }, { column: "backupId", kind: "text" });
type BackupsQuery = Parameters<typeof list>[0] & {
  readonly deviceId?: string | undefined;
  readonly appId?: string | undefined;
  readonly policyId?: string | undefined;
  readonly destinationId?: string | undefined;
  readonly trigger?: string | undefined;
  readonly status?: readonly string[] | undefined;
  readonly q?: string | undefined;
};

export const pageOfBackups = (db: Clients, scope: SystemScope, query: BackupsQuery): Promise<Page<BackupRow>> => {
  const { backup } = db.for(scope);
  const { deviceId, appId, policyId, destinationId, trigger, status, q } = query;
  const where = {
    ...given({ deviceId, appId, policyId, destinationId, trigger }),
    status: status === undefined ? { not: "deleted" } : { in: [...status] },
    ...(q === undefined ? {} : { name: { contains: likeLiteral(q), mode: "insensitive" as const } }),
  };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => backup.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => backup.count({ where }),
    record: toBackupRow,
  });
};

export const findBackup = async (db: Clients, scope: SystemScope, backupId: string): Promise<BackupRow | null> => {
  const row = await db.for(scope).backup.findFirst({ where: { backupId } });
  return row === null ? null : toBackupRow(row);
};

const LOCK_ONE = statement<{ readonly backup_id: string }>(
  "backups.lockOne",
  "select b.backup_id from backups b where b.tenant_id = $1 and b.backup_id = $2 for no key update",
);
/** Until the transaction ends, nobody else changes the backup. */
export const lockBackup = async (tx: Clients & SqlTx, scope: SystemScope, backupId: string): Promise<BackupRow | null> => {
  await tx.query(LOCK_ONE, [scope.tenantId, backupId]);
  return findBackup(tx, scope, backupId);
};

/** Until the transaction ends, nobody else begins something with the app's data. */
export const lockAppData = async (tx: SqlTx, { tenantId }: SystemScope, appId: string): Promise<void> => {
  await tx.query(LOCK, [`backups of ${tenantId} ${appId}`]);
};

const LAST_GOOD = statement<{ readonly app_id: string; readonly at: Date }>(
  "backups.lastGood",
  `select b.app_id, max(b.completed_at) as at from backups b where b.tenant_id = $1 and b.app_id = any($2) and ${goodBackup("b")} group by b.app_id`,
);
/** When the last good backup of each of these apps was made; an app without one is missing. */
export const lastGoodBackups = async (sql: SqlTx, { tenantId }: SystemScope, appIds: readonly string[]): Promise<ReadonlyMap<string, Date>> =>
  new Map((await sql.query(LAST_GOOD, [tenantId, appIds])).map(({ app_id, at }) => [app_id, at]));

export const findNamedBackups = async (db: Clients, scope: SystemScope, backupIds: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const rows = await db.for(scope).backup.findMany({ where: { backupId: { in: [...backupIds] } }, select: { backupId: true, name: true } });
  return new Map(rows.map(({ backupId, name }) => [backupId, name]));
};

export const findOpenBackup = async (tx: Clients, { tenantId }: SystemScope, appId: string): Promise<BackupRow | null> => {
  const row = await tx.for({ tenantId }).backup.findFirst({ where: { appId, status: { in: [...OPEN_BACKUPS] } } });
  return row === null ? null : toBackupRow(row);
};

export type NewBackup = Pick<BackupRow, "backupId" | "deviceId" | "appId" | "name" | "type" | "trigger" | "status" | "createdBy" | "verification"> &
  BackupPatch;
export const insertBackup = async (tx: Clients, { tenantId }: SystemScope, made: NewBackup): Promise<BackupRow> =>
  toBackupRow(await tx.for({ tenantId }).backup.create({ data: backupColumns(made) as Omit<Prisma.BackupUncheckedCreateInput, "tenantId"> })); // as: `NewBackup` has what it needs

/** Changes a backup that is locked. */
export const saveBackup = async (tx: Clients, { tenantId }: SystemScope, backupId: string, change: BackupPatch): Promise<BackupRow> => {
  const [row] = await tx.for({ tenantId }).backup.updateManyAndReturn({ where: { backupId }, data: { ...backupColumns(change), version: { increment: 1 } } });
  if (row === undefined) throw new Error(`backup ${backupId} is gone although it is locked`);
  return toBackupRow(row);
};

/** The agent goes on: no change that a reader could overlook, so the version stays. */
export const hearBackup = async (
  tx: Clients,
  { tenantId }: SystemScope,
  backupId: string,
  change: Pick<BackupPatch, "progress" | "heardAt">,
): Promise<void> => {
  await tx.for({ tenantId }).backup.updateMany({ where: { backupId }, data: backupColumns(change) });
};

const existing = { status: { not: "deleted" } } as const;
export const countBackups = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).backup.count({ where: existing });

/** The backups that a command deletes. */
export const deletedBy = async (tx: Clients, { tenantId }: SystemScope, commandId: string, limit: number): Promise<readonly BackupRow[]> =>
  (await tx.for({ tenantId }).backup.findMany({ where: { commandId, status: "deleting" }, take: limit })).map(toBackupRow);

/** Backups of these apps that are there, newest first. */
export const keptBackups = async (db: Clients, { tenantId }: SystemScope, appIds: readonly string[], limit: number): Promise<readonly BackupRow[]> => {
  const where = { appId: { in: [...appIds] }, status: { in: ["completed", "partially_failed"] } };
  return (await db.for({ tenantId }).backup.findMany({ where, orderBy: [{ completedAt: "desc" }, { backupId: "desc" }], take: limit })).map(toBackupRow);
};

export const idsAt = async (tx: Clients, { tenantId }: SystemScope, destinationId: string, limit: number): Promise<readonly string[]> =>
  (
    await tx
      .for({ tenantId })
      .backup.findMany({ where: { destinationId, ...existing, NOT: { status: { in: ["failed", "cancelled"] } } }, select: { backupId: true }, take: limit })
  ).map(({ backupId }) => backupId);

export interface StalledRow {
  readonly tenant_id: string;
  readonly id: string;
}
const FIND_STALLED = statement<StalledRow>(
  "backups.findStalled",
  "select b.tenant_id, b.backup_id as id from backups b where b.heard_at < $1 and b.status in ('in_progress', 'cancelling') order by b.heard_at limit $2",
);
export const findStalledBackups = (sql: SqlTx, before: Date, limit: number): Promise<StalledRow[]> => sql.query(FIND_STALLED, [before, limit]);

const FORGOTTEN_AT_ONCE = 500;
/** Forgets deleted backups of all tenants. True if there may be more. */
export const forgetDeleted = async (db: Clients, before: Date): Promise<boolean> =>
  (await db.system.backup.deleteMany({ where: { status: "deleted", updatedAt: { lt: before } }, limit: FORGOTTEN_AT_ONCE })).count === FORGOTTEN_AT_ONCE;
