// Rows of backup destinations.
import { Prisma } from "../../../../prisma/generated/client.ts";
import { BackupDestination, type BackupDestinationId, type BackupFailure, type DestinationKind, type Page } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { newId } from "../../../core/ids.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { LOCK, statement } from "../../../core/statements.ts";
import type { DestinationSettings } from "../settings.ts";
import { usedBytes } from "./repositories.ts";

interface Narrowed {
  readonly destinationId: BackupDestinationId;
  readonly kind: DestinationKind;
  readonly settings: DestinationSettings;
  readonly lastError: BackupFailure | null;
}
export type DestinationRow = Omit<Prisma.BackupDestinationModel, keyof Narrowed> & Narrowed;
const toRow = (row: Prisma.BackupDestinationModel): DestinationRow => row as unknown as DestinationRow; // as: only this feature writes the columns

export const toDestination = (row: DestinationRow, used: number): BackupDestination =>
  recordOf(BackupDestination, { ...row, id: row.destinationId, hasCredentials: row.credentials !== null, usedBytes: used });

export const shownDestinations = async (db: Clients, scope: SystemScope, rows: readonly DestinationRow[]): Promise<BackupDestination[]> => {
  const used = await usedBytes(
    db,
    scope,
    rows.map(({ destinationId }) => destinationId),
  );
  return rows.map((row) => toDestination(row, used.get(row.destinationId) ?? 0));
};

const list = createListing("backup-destinations", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "destinationId", kind: "text" });
export const pageOfDestinations = async (
  db: Clients,
  scope: SystemScope,
  query: Parameters<typeof list>[0] & { readonly kind?: string | undefined },
): Promise<Page<DestinationRow>> => {
  const { backupDestination } = db.for(scope);
  const where = given({ kind: query.kind });
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => backupDestination.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => backupDestination.count({ where }),
    record: toRow,
  });
};

export const findDestination = async (db: Clients, scope: SystemScope, destinationId: string): Promise<DestinationRow | null> => {
  const row = await db.for(scope).backupDestination.findFirst({ where: { destinationId } });
  return row === null ? null : toRow(row);
};
/** Destinations whose last use failed. */
export const findBrokenDestinations = async (db: Clients, scope: SystemScope, take: number): Promise<readonly DestinationRow[]> => {
  const where = { lastError: { not: Prisma.DbNull } };
  return (await db.for(scope).backupDestination.findMany({ where, orderBy: { destinationId: "asc" }, take })).map(toRow);
};

export const findDefault = async (db: Clients, scope: SystemScope): Promise<DestinationRow | null> => {
  const row = await db.for(scope).backupDestination.findFirst({ where: { isDefault: true } });
  return row === null ? null : toRow(row);
};

const LOCK_ONE = statement<{ readonly destination_id: string }>(
  "backupDestinations.lockOne",
  "select d.destination_id from backup_destinations d where d.tenant_id = $1 and d.destination_id = $2 for update",
);
/** Until the transaction ends, nobody else changes it, and no backup begins there. */
export const lockDestination = async (tx: Clients & SqlTx, scope: SystemScope, destinationId: string): Promise<DestinationRow | null> => {
  await tx.query(LOCK_ONE, [scope.tenantId, destinationId]);
  return findDestination(tx, scope, destinationId);
};

/** Until the transaction ends, nobody else makes a destination or another the default. */
export const lockDestinations = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`backup destinations of ${tenantId}`]);
};

export const countDestinations = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).backupDestination.count();

export type NewDestination = Pick<DestinationRow, "name" | "kind" | "settings" | "credentials" | "isDefault" | "createdBy" | "destinationId">;
export const insertDestination = async (tx: Clients, scope: SystemScope, made: NewDestination): Promise<DestinationRow> =>
  toRow(await tx.for(scope).backupDestination.create({ data: { ...made, settings: { ...made.settings } } }));

export const newDestinationId = (): BackupDestinationId => newId("bkd");

type Change = Partial<Pick<DestinationRow, "name" | "settings" | "credentials" | "isDefault" | "lastCheckedAt" | "lastError">>;
/** Changes a destination that is locked. `silent`: readers overlook nothing if they keep what they have read. */
export const saveDestination = async (
  tx: Clients,
  { tenantId }: SystemScope,
  destinationId: string,
  { lastError, settings, silent = false, ...change }: Change & { readonly silent?: boolean },
): Promise<DestinationRow> => {
  const [row] = await tx.for({ tenantId }).backupDestination.updateManyAndReturn({
    where: { destinationId },
    data: {
      ...given(change),
      ...(settings === undefined ? {} : { settings: { ...settings } }),
      ...(lastError === undefined ? {} : { lastError: lastError === null ? Prisma.DbNull : { ...lastError } }),
      ...(silent ? {} : { version: { increment: 1 } }),
    },
  });
  if (row === undefined) throw new Error(`backup destination ${destinationId} is gone although it is locked`);
  return toRow(row);
};

export const clearDefault = async (tx: Clients, scope: SystemScope): Promise<void> => {
  await tx.for(scope).backupDestination.updateMany({ where: { isDefault: true }, data: { isDefault: false, version: { increment: 1 } } });
};

export const deleteDestination = async (tx: Clients, scope: SystemScope, destinationId: string): Promise<void> => {
  await tx.for(scope).backupDestination.deleteMany({ where: { destinationId } });
};
