// Rows of repositories: one of each device at each destination, its password, and how much it holds.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { DeviceId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

export type RepositoryRow = Prisma.BackupRepositoryModel & { readonly deviceId: DeviceId };
const toRow = (row: Prisma.BackupRepositoryModel): RepositoryRow => row as RepositoryRow; // as: a row's id

export const findRepository = async (
  db: Clients,
  scope: SystemScope,
  at: { readonly destinationId: string; readonly deviceId: string },
): Promise<RepositoryRow | null> => {
  const row = await db.for(scope).backupRepository.findFirst({ where: at });
  return row === null ? null : toRow(row);
};

export const repositoriesAt = async (db: Clients, scope: SystemScope, destinationId: string, limit: number): Promise<readonly RepositoryRow[]> =>
  (await db.for(scope).backupRepository.findMany({ where: { destinationId }, orderBy: { repositoryId: "asc" }, take: limit })).map(toRow);

export interface NewRepository {
  readonly repositoryId: string;
  readonly deviceId: string;
  readonly destinationId: string;
  readonly password: Uint8Array<ArrayBuffer>;
}
/** Returns the one that is there if another call was faster. */
export const insertRepository = async (tx: Clients, { tenantId }: SystemScope, made: NewRepository): Promise<RepositoryRow> => {
  const { destinationId, deviceId } = made;
  await tx.for({ tenantId }).backupRepository.createMany({ data: [made], skipDuplicates: true });
  const row = await findRepository(tx, { tenantId }, { destinationId, deviceId });
  if (row === null) throw new Error("a repository that was just made is gone");
  return row;
};

export const usedBytes = async (db: Clients, { tenantId }: SystemScope, destinationIds: readonly string[]): Promise<ReadonlyMap<string, number>> => {
  const sums = await db
    .for({ tenantId })
    .backupRepository.groupBy({ by: ["destinationId"], where: { destinationId: { in: [...destinationIds] } }, _sum: { bytes: true } });
  return new Map(sums.map(({ destinationId, _sum }) => [destinationId, Number(_sum.bytes ?? 0)]));
};

const SUM_STORED = statement<{ readonly bytes: number }>(
  "backupRepositories.sumStored",
  `select coalesce(sum(r.bytes), 0)::int8 as bytes from backup_repositories r
     join backup_destinations d on d.tenant_id = r.tenant_id and d.destination_id = r.destination_id
    where r.tenant_id = $1 and d.kind = 'gateway'`,
);
/** What this installation stores of the tenant. */
export const storedBytes = async (sql: SqlTx, { tenantId }: SystemScope): Promise<number> => (await sql.query(SUM_STORED, [tenantId]))[0]?.bytes ?? 0;

const ADD_BYTES = statement<{ readonly repository_id: string }>(
  "backupRepositories.addBytes",
  "update backup_repositories r set bytes = greatest(0, r.bytes + $3) where r.tenant_id = $1 and r.repository_id = $2 returning r.repository_id",
);
export const addBytes = async (sql: SqlTx, { tenantId }: SystemScope, repositoryId: string, bytes: number): Promise<void> => {
  await sql.query(ADD_BYTES, [tenantId, repositoryId, Math.trunc(bytes)]);
};

/** From now on it is never made again: if it is not there, it is lost. */
export const markInitialized = async (tx: Clients, { tenantId }: SystemScope, repositoryId: string, initializedAt: Date): Promise<void> => {
  await tx.for({ tenantId }).backupRepository.updateMany({ where: { repositoryId, initializedAt: null }, data: { initializedAt } });
};
/** The destination is at another place now, where no repository has been. */
export const unmarkInitialized = async (tx: Clients, { tenantId }: SystemScope, destinationId: string): Promise<void> => {
  await tx.for({ tenantId }).backupRepository.updateMany({ where: { destinationId }, data: { initializedAt: null } });
};

type Change = Partial<Pick<RepositoryRow, "bytes" | "lastDeletedAt" | "lastPrunedAt" | "pruneStartedAt" | "pruneFailedAt">>;
export const saveRepository = async (tx: Clients, { tenantId }: SystemScope, repositoryId: string, change: Change): Promise<void> => {
  await tx.for({ tenantId }).backupRepository.updateMany({ where: { repositoryId }, data: change });
};

export interface PrunableRow {
  readonly tenant_id: string;
  readonly repository_id: string;
  readonly device_id: DeviceId;
  readonly destination_id: string;
}
const TAKE_PRUNABLE = statement<PrunableRow>(
  "backupRepositories.takePrunable",
  `select r.tenant_id, r.repository_id, r.device_id, r.destination_id from backup_repositories r
    where r.last_deleted_at is not null and r.last_deleted_at > coalesce(r.last_pruned_at, '-infinity')
      and coalesce(r.prune_started_at, '-infinity') < $1 and coalesce(r.last_pruned_at, '-infinity') < $1
      and exists (select from devices d where d.tenant_id = r.tenant_id and d.device_id = r.device_id and d.deleted_at is null)
    order by r.last_deleted_at limit $2 for update of r skip locked`,
);
/** Repositories that something was deleted from, and that nobody has pruned since `before`. */
export const takePrunable = (tx: SqlTx, before: Date, limit: number): Promise<PrunableRow[]> => tx.query(TAKE_PRUNABLE, [before, limit]);
