// Rows of restores.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { Page } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { OPEN_RESTORES } from "../states.ts";
import { type RestorePatch, type RestoreRow, restoreColumns, toRestoreRow } from "./backup-row.ts";
import type { StalledRow } from "./backups.ts";

const list = createListing("restores", { createdAt: { kind: "time" }, status: { kind: "text" } }, { column: "restoreId", kind: "text" });
type RestoresQuery = Parameters<typeof list>[0] & {
  readonly backupId?: string | undefined;
  readonly deviceId?: string | undefined;
  readonly appId?: string | undefined;
  readonly status?: readonly string[] | undefined;
};
export const pageOfRestores = (db: Clients, scope: SystemScope, query: RestoresQuery): Promise<Page<RestoreRow>> => {
  const { restore } = db.for(scope);
  const { backupId, deviceId, appId, status } = query;
  const where = given({ backupId, deviceId, targetAppId: appId, status: status === undefined ? undefined : { in: [...status] } });
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => restore.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => restore.count({ where }),
    record: toRestoreRow,
  });
};

export const findRestore = async (db: Clients, scope: SystemScope, restoreId: string): Promise<RestoreRow | null> => {
  const row = await db.for(scope).restore.findFirst({ where: { restoreId } });
  return row === null ? null : toRestoreRow(row);
};

const LOCK_ONE = statement<{ readonly restore_id: string }>(
  "restores.lockOne",
  "select r.restore_id from restores r where r.tenant_id = $1 and r.restore_id = $2 for no key update",
);
export const lockRestore = async (tx: Clients & SqlTx, scope: SystemScope, restoreId: string): Promise<RestoreRow | null> => {
  await tx.query(LOCK_ONE, [scope.tenantId, restoreId]);
  return findRestore(tx, scope, restoreId);
};

const open = { status: { in: [...OPEN_RESTORES] } };
export const findOpenRestore = async (
  tx: Clients,
  { tenantId }: SystemScope,
  where: { readonly targetAppId?: string; readonly backupId?: string; readonly safetyBackupId?: string },
) => {
  const row = await tx.for({ tenantId }).restore.findFirst({ where: { ...where, ...open } });
  return row === null ? null : toRestoreRow(row);
};
/** The backups among these that a restore reads now. */
export const inUseByRestores = async (tx: Clients, { tenantId }: SystemScope, backupIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await tx
    .for({ tenantId })
    .restore.findMany({ where: { backupId: { in: [...backupIds] }, ...open }, select: { backupId: true }, take: backupIds.length });
  return new Set(rows.map(({ backupId }) => backupId));
};

export type NewRestore = Pick<
  RestoreRow,
  | "restoreId"
  | "deviceId"
  | "backupId"
  | "targetAppId"
  | "restoreType"
  | "paths"
  | "overwriteExisting"
  | "dryRun"
  | "status"
  | "safetyBackupId"
  | "commandId"
  | "createdBy"
>;
export const insertRestore = async (tx: Clients, { tenantId }: SystemScope, made: NewRestore): Promise<RestoreRow> =>
  toRestoreRow(await tx.for({ tenantId }).restore.create({ data: restoreColumns(made) as Omit<Prisma.RestoreUncheckedCreateInput, "tenantId"> })); // as: `NewRestore` has what it needs

/** Changes a restore that is locked. */
export const saveRestore = async (tx: Clients, { tenantId }: SystemScope, restoreId: string, change: RestorePatch): Promise<RestoreRow> => {
  const [row] = await tx
    .for({ tenantId })
    .restore.updateManyAndReturn({ where: { restoreId }, data: { ...restoreColumns(change), version: { increment: 1 } } });
  if (row === undefined) throw new Error(`restore ${restoreId} is gone although it is locked`);
  return toRestoreRow(row);
};

export const hearRestore = async (
  tx: Clients,
  { tenantId }: SystemScope,
  restoreId: string,
  change: Pick<RestorePatch, "progress" | "heardAt">,
): Promise<void> => {
  await tx.for({ tenantId }).restore.updateMany({ where: { restoreId }, data: restoreColumns(change) });
};

const FIND_STALLED = statement<StalledRow>(
  "restores.findStalled",
  `select r.tenant_id, r.restore_id as id from restores r
    where r.heard_at < $1 and r.status in ('validating', 'in_progress', 'verifying', 'cancelling') order by r.heard_at limit $2`,
);
export const findStalledRestores = (sql: SqlTx, before: Date, limit: number): Promise<StalledRow[]> => sql.query(FIND_STALLED, [before, limit]);
