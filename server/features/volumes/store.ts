// Rows of volumes, and of the scans that found them.
import type { Prisma } from "../../../prisma/generated/client.ts";
import { type AppId, type CommandId, type DeviceId, type FoundVolume, type Page, type TenantId, VolumeInfo } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { createListing, likeLiteral } from "../../core/rows/listing.ts";
import { given, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { LOCK, statement } from "../../core/statements.ts";

interface Narrowed {
  readonly deviceId: DeviceId;
  readonly appId: AppId | null;
  readonly commandId: CommandId | null;
  readonly status: VolumeInfo["status"];
  readonly sizeState: VolumeInfo["sizeState"];
  readonly labels: Record<string, string>;
}
export type VolumeRow = Omit<Prisma.VolumeModel, keyof Narrowed> & Narrowed;
const toRow = (row: Prisma.VolumeModel): VolumeRow => row as unknown as VolumeRow; // as: only this feature writes the columns

export const toVolume = (row: VolumeRow): VolumeInfo =>
  recordOf(VolumeInfo, {
    ...row,
    size: row.size === null ? undefined : Number(row.size),
    files: row.files === null ? null : Number(row.files),
    orphaned: row.appId === null,
  });

const list = createListing(
  "volumes",
  { name: { kind: "text" }, size: { kind: "number", nullable: true }, firstSeenAt: { kind: "time" } },
  { column: "name", kind: "text" },
);
type VolumesQuery = Parameters<typeof list>[0] & {
  readonly deviceId?: string | undefined;
  readonly orphaned?: boolean | undefined;
  readonly q?: string | undefined;
};
export const pageOfVolumes = (db: Clients, scope: SystemScope, query: VolumesQuery): Promise<Page<VolumeRow>> => {
  const { volume } = db.for(scope);
  const { deviceId, orphaned, q } = query;
  const where = {
    ...given({ deviceId }),
    ...(orphaned === undefined ? {} : { appId: orphaned ? null : { not: null } }),
    ...(q === undefined ? {} : { name: { contains: likeLiteral(q), mode: "insensitive" as const } }),
  };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => volume.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => volume.count({ where }),
    record: toRow,
  });
};

const MAX_OF_DEVICE = 1_000;
export const volumesOf = async (db: Clients, scope: SystemScope, deviceId: string): Promise<readonly VolumeRow[]> =>
  (await db.for(scope).volume.findMany({ where: { deviceId }, orderBy: { name: "asc" }, take: MAX_OF_DEVICE })).map(toRow);
export const findVolume = async (db: Clients, scope: SystemScope, at: { readonly deviceId: string; readonly name: string }): Promise<VolumeRow | null> => {
  const row = await db.for(scope).volume.findFirst({ where: at });
  return row === null ? null : toRow(row);
};

/** Until the transaction ends, nobody else changes the volumes of the device. */
export const lockVolumes = async (tx: SqlTx, { tenantId }: SystemScope, deviceId: string): Promise<void> => {
  await tx.query(LOCK, [`volumes of ${tenantId} ${deviceId}`]);
};

export interface Seen {
  readonly deviceId: string;
  readonly found: FoundVolume;
  readonly appId: AppId | null;
  readonly at: Date;
}
/** One that is being removed stays so until the command ends. */
export const saveSeen = async (tx: Clients, { tenantId }: SystemScope, { deviceId, found, appId, at }: Seen): Promise<void> => {
  const { name, driver, mountpoint, size, sizeState, files, labels, inUse } = found;
  const isExact = sizeState === "exact" && size !== undefined;
  const data = {
    driver,
    mountpoint,
    labels,
    appId,
    inUse,
    lastSeenAt: at,
    sizeState: size === undefined && sizeState === "exact" ? "unknown" : sizeState,
    size: isExact ? BigInt(size) : null,
    files: files === undefined ? null : BigInt(files),
  };
  await tx
    .for({ tenantId })
    .volume.upsert({ where: { tenantId_deviceId_name: { deviceId, name } }, create: { ...data, deviceId, name, firstSeenAt: at }, update: data });
};

export const saveVolume = async (
  tx: Clients,
  { tenantId }: SystemScope,
  at: { readonly deviceId: string; readonly name: string },
  change: Partial<Pick<VolumeRow, "status" | "commandId">>,
) => {
  await tx.for({ tenantId }).volume.updateMany({ where: at, data: change });
};
export const deleteVolumes = async (tx: Clients, { tenantId }: SystemScope, deviceId: string, names: readonly string[]): Promise<void> => {
  await tx.for({ tenantId }).volume.deleteMany({ where: { deviceId, name: { in: [...names] } } });
};

export const findScan = (db: Clients, scope: SystemScope, deviceId: string) => db.for(scope).volumeScan.findFirst({ where: { deviceId } });
export const saveScan = async (
  tx: Clients,
  { tenantId }: SystemScope,
  deviceId: string,
  change: { readonly discoveredAt?: Date; readonly orderedAt?: Date; readonly commandId?: string | null },
): Promise<void> => {
  const { volumeScan } = tx.for({ tenantId });
  await volumeScan.upsert({ where: { tenantId_deviceId: { deviceId } }, create: { ...change, deviceId }, update: change });
};

const FIND_UNSCANNED = statement<{ readonly tenant_id: TenantId; readonly device_id: DeviceId }>(
  "volumes.findUnscanned",
  `select d.tenant_id, d.device_id from devices d left join volume_scans s on s.tenant_id = d.tenant_id and s.device_id = d.device_id
    where d.status = 'online' and d.deleted_at is null and coalesce(s.ordered_at, '-infinity') < $1 and coalesce(s.discovered_at, '-infinity') < $1
      and exists (select from apps a where a.tenant_id = d.tenant_id and a.device_id = d.device_id and a.removed_at is null)
      and exists (select from tenants t where t.tenant_id = d.tenant_id and t.status = 'active')
    order by d.device_id limit $2`,
);
/** Devices with apps that are there and that nobody has looked through since. */
export const findUnscanned = (tx: SqlTx, before: Date, limit: number) => tx.query(FIND_UNSCANNED, [before, limit]);
