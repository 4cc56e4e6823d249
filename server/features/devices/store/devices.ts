// Rows of devices with their presence, as records of the contract.
import { Prisma } from "../../../../prisma/generated/client.ts";
import { Device, type DeviceId, type FleetSelector, type TenantId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { type DeviceTraits, ruleCondition } from "../../../core/people/fleet-rules.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import type { Matching } from "../../../core/ports/lookups.ts";
import { given, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { orNull } from "../../../platform/database/db-errors.ts";

/** What no record of a device shows. */
export const omit = {
  secret: true,
  pendingSecret: true,
  inventory: true,
  fleetIds: true,
  minSigVersion: true,
  secretRotatedAt: true,
  nextCommandSeq: true,
  deletedAt: true,
} as const;
const select = {
  deviceId: true,
  epoch: true,
  connectivity: true,
  nodeId: true,
  sessionId: true,
  since: true,
  lastSeenAt: true,
  lastHeartbeatAt: true,
  metrics: true,
} as const;
export type DeviceRow = Prisma.Result<Prisma.DeviceDelegate, { omit: typeof omit }, "findFirstOrThrow">;
type PresenceRow = Prisma.Result<Prisma.DevicePresenceDelegate, { select: typeof select }, "findFirstOrThrow">;

const connectionOf = ({ connectivity, sessionId, nodeId, epoch, since }: PresenceRow): Device["connection"] =>
  recordOf(Device.shape.connection, {
    // A socket that broke keeps `realtime` until its grace is over, so that the sweep finds it. The contract does not show that.
    connectivity: connectivity === "realtime" && sessionId === null ? "none" : connectivity,
    epoch: Number(epoch),
    nodeId: connectivity === "realtime" ? nodeId : null,
    since,
  });

const toDevice = (device: DeviceRow, presence: PresenceRow, now: Date): Device => {
  const { status, offlineReason, repairUntil } = device;
  return recordOf(Device, {
    ...device,
    offlineReason: status === "offline" ? offlineReason : null,
    repairUntil: repairUntil !== null && repairUntil > now ? repairUntil : null,
    lastSeen: presence.lastSeenAt,
    lastHeartbeatAt: presence.lastHeartbeatAt,
    metrics: presence.metrics,
    apps: null,
    connection: connectionOf(presence),
  });
};

export const living = { deletedAt: null } as const;

export const findDevice = async (db: Clients, scope: SystemScope, deviceId: string, now: Date): Promise<Device | undefined> => {
  const { device, devicePresence } = db.for(scope);
  const [row, presence] = await Promise.all([
    device.findFirst({ where: { deviceId, ...living }, omit }),
    devicePresence.findFirst({ where: { deviceId }, select }),
  ]);
  return row === null || presence === null ? undefined : toDevice(row, presence, now);
};

export interface DeviceSummary {
  readonly deviceId: DeviceId;
  readonly status: Device["status"];
  readonly lastSeenAt: Date | null;
}

const FIND_SUMMARY = statement<DeviceSummary>(
  "devices.findSummary",
  `select d.device_id as "deviceId", d.status, p.last_seen_at as "lastSeenAt" from devices d join device_presence p on p.device_id = d.device_id
   where d.tenant_id = $1 and d.deleted_at is null and d.device_id = $2`,
);

/** Raw SQL, because it runs for every command that is posted. */
export const findDeviceSummary = async (sql: SqlTx, { tenantId }: SystemScope, deviceId: string): Promise<DeviceSummary | null> => {
  const [row] = await sql.query(FIND_SUMMARY, [tenantId, deviceId]);
  return row ?? null;
};

export const findKnown = async (db: Clients, scope: SystemScope, deviceIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await db.for(scope).device.findMany({ where: { deviceId: { in: [...deviceIds] }, ...living }, select: { deviceId: true } });
  return new Set(rows.map(({ deviceId }) => deviceId));
};

/** What the device's agent says of restic: null, it is missing; undefined, the agent has not said. */
export const findRestic = async (db: Clients, scope: SystemScope, deviceId: string): Promise<string | null | undefined> => {
  const row = await db.for(scope).device.findFirst({ where: { deviceId, ...living }, select: { inventory: true } });
  const { resticVersion } = (row?.inventory ?? {}) as { readonly resticVersion?: string | null }; // as: checked when it was reported
  return resticVersion;
};

export interface NetworkPlace {
  readonly hostname: string | null;
  readonly addresses: Device["addresses"];
}

/** Where these devices are in their networks. */
export const findMachines = async (db: Clients, scope: SystemScope, deviceIds: readonly string[]): Promise<ReadonlyMap<string, NetworkPlace>> => {
  const select = { deviceId: true, hostname: true, addresses: true } as const;
  const rows = await db.for(scope).device.findMany({ where: { deviceId: { in: [...deviceIds] }, ...living }, select });
  return new Map(rows.map(({ deviceId, hostname, addresses }) => [deviceId, { hostname, addresses: Device.shape.addresses.parse(addresses) }]));
};

/** The devices among these that the caller sees. */
export const findNamesAndTags = async (
  db: Clients,
  scope: SystemScope,
  deviceIds: readonly string[],
): Promise<ReadonlyMap<string, { readonly name: string; readonly tags: readonly string[] }>> => {
  if (deviceIds.length === 0) return new Map();
  const select = { deviceId: true, name: true, hostname: true, tags: true } as const;
  const rows = await db.for(scope).device.findMany({ where: { deviceId: { in: [...deviceIds] } }, select });
  return new Map(rows.map(({ deviceId, name, hostname, tags }) => [deviceId, { name: name ?? hostname ?? deviceId, tags }]));
};

/** The first `limit` devices that match, by id; the count is exact beyond that too. */
export const findMatching = async (db: Clients, scope: SystemScope, selector: FleetSelector, limit: number): Promise<Matching> => {
  const { device } = db.for(scope);
  const where = { ...living, AND: ruleCondition(selector) };
  const rows = await device.findMany({ where, select: { deviceId: true }, orderBy: { deviceId: "asc" }, take: limit + 1 });
  const count = rows.length > limit ? await device.count({ where }) : rows.length;
  return { deviceIds: rows.slice(0, limit).map(({ deviceId }) => deviceId as DeviceId), count };
};

export const listIds = async (db: Clients, scope: SystemScope): Promise<readonly string[]> =>
  (await db.for(scope).device.findMany({ select: { deviceId: true } })).map(({ deviceId }) => deviceId);

/** Null: no such device, or none that a limited caller sees. */
export const findTraits = (db: Clients, scope: SystemScope, deviceId: string): Promise<DeviceTraits | null> =>
  db.for(scope).device.findFirst({
    where: { deviceId },
    select: { deviceId: true, tags: true, fleetIds: true, platform: true, agentVersion: true, status: true },
  });

const FIND_NAMES = statement<{ readonly device_id: string; readonly name: string | null }>(
  "devices.findNames",
  `select d.device_id, coalesce(d.name, d.hostname) as name
     from unnest($1::text[], $2::text[]) as v(tenant_id, device_id) join devices d on d.tenant_id = v.tenant_id and d.device_id = v.device_id`,
);

/** In the order of the devices: the name, or else the hostname. */
export const findNames = async (sql: SqlTx, devices: readonly DeviceRef[]): Promise<readonly (string | null)[]> => {
  const rows = await sql.query(FIND_NAMES, [devices.map(({ tenantId }) => tenantId), devices.map(({ deviceId }) => deviceId)]);
  const names = new Map(rows.map(({ device_id, name }) => [device_id, name]));
  return devices.map(({ deviceId }) => names.get(deviceId) ?? null);
};

export const countDevices = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).device.count({ where: living });

export const countDevicesByStatus = async (db: Clients, scope: SystemScope, among: Prisma.DeviceWhereInput = {}): Promise<Record<Device["status"], number>> => {
  const counts = await db.for(scope).device.groupBy({ by: ["status"], where: { ...living, AND: among }, _count: true });
  return { online: 0, offline: 0, provisioning: 0, ...Object.fromEntries(counts.map(({ status, _count }) => [status, _count])) };
};

export const withPresence = async (db: Clients, scope: SystemScope, rows: readonly DeviceRow[], now: Date): Promise<Device[]> => {
  const presences = await db.for(scope).devicePresence.findMany({ where: { deviceId: { in: rows.map(({ deviceId }) => deviceId) } }, select });
  const presenceOf = new Map(presences.map((presence) => [presence.deviceId, presence]));
  return rows.flatMap((row) => {
    const presence = presenceOf.get(row.deviceId);
    return presence === undefined ? [] : [toDevice(row, presence, now)];
  });
};

export const getDevices = async (db: Clients, scope: SystemScope, deviceIds: readonly string[], now: Date): Promise<Device[]> => {
  const rows = await db.for(scope).device.findMany({ where: { deviceId: { in: [...deviceIds] }, ...living }, omit });
  return withPresence(db, scope, rows, now);
};

/** Undefined keeps a field, null clears it. */
export interface DeviceChange {
  readonly name?: string | null | undefined;
  readonly tags?: string[] | undefined;
  readonly deploymentId?: string | undefined;
  readonly maintenance?: { readonly enabled: boolean; readonly until: string | null } | null | undefined;
  /** Changes nothing unless this is the current version; undefined skips the check. */
  readonly version?: number | undefined;
}

type Maintenance = DeviceChange["maintenance"];
const storedMaintenance = (maintenance: NonNullable<Maintenance> | null) =>
  maintenance === null ? Prisma.DbNull : { enabled: maintenance.enabled, until: maintenance.until === null ? null : new Date(maintenance.until).toISOString() };

/** False when the version is no longer current or the device is gone. */
export const updateDevice = async (db: Clients, scope: SystemScope, deviceId: string, { version, maintenance, ...change }: DeviceChange): Promise<boolean> => {
  const { count } = await db.for(scope).device.updateMany({
    where: { deviceId, ...living, ...given({ version }) },
    data: { ...given(change), ...(maintenance === undefined ? {} : { maintenance: storedMaintenance(maintenance) }), version: { increment: 1 } },
  });
  return count === 1;
};

export interface RemovedDevice {
  readonly agentId: string;
  readonly hostname: string | null;
  readonly status: Device["status"];
}

/** Keeps the row, deletes its secrets and frees its fingerprint. Null: no such device. */
export const removeDevice = async (db: Clients, scope: SystemScope, deviceId: string, deletedAt: Date): Promise<RemovedDevice | null> => {
  const removed = await orNull(
    db.for(scope).device.update({
      where: { deviceId, ...living },
      data: { deletedAt, secret: new Uint8Array(), pendingSecret: null, version: { increment: 1 } },
      select: { agentId: true, hostname: true, status: true },
    }),
  );
  return removed === null ? null : { ...removed, status: removed.status as Device["status"] }; // as: only this feature writes it
};

/** Devices of all tenants that are not online, by id. */
export const findNotOnline = async (
  db: Clients,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly { readonly tenantId: TenantId; readonly deviceId: DeviceId }[]> => {
  const where = { deviceId: { gt: after }, status: { not: "online" }, ...living };
  const rows = await db.system.device.findMany({ where, orderBy: { deviceId: "asc" }, take: limit, select: { tenantId: true, deviceId: true } });
  return rows as { tenantId: TenantId; deviceId: DeviceId }[]; // as: only this feature makes such ids
};

/** Opens the repair until then; null closes it. Returns null when there is no such device. */
export const setRepair = (
  db: Clients,
  scope: SystemScope,
  { deviceId, repairUntil }: { readonly deviceId: string; readonly repairUntil: Date | null },
): Promise<{ readonly repairUntil: Date | null } | null> =>
  orNull(
    db.for(scope).device.update({
      where: { deviceId, ...living },
      data: { repairUntil },
      select: { repairUntil: true },
    }),
  );
