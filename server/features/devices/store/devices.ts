// Rows of devices with their presence, as the contract shows them.
import type { AgentId, DeploymentId, Device, DeviceId, TenantId } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";

interface DeviceRow {
  readonly device_id: DeviceId;
  readonly tenant_id: TenantId;
  readonly deployment_id: DeploymentId;
  readonly agent_id: AgentId;
  readonly fingerprint: string;
  readonly name: string | null;
  readonly hostname: string | null;
  readonly platform: string | null;
  readonly arch: string | null;
  readonly os_version: string | null;
  readonly agent_version: string | null;
  readonly tags: string[];
  readonly status: Device["status"];
  readonly offline_reason: string | null;
  readonly maintenance: Device["maintenance"] | null;
  readonly repair_until: Date | null;
  readonly version: number;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly epoch: number;
  readonly connectivity: "realtime" | "polling" | "none";
  readonly node_id: string | null;
  readonly since: Date | null;
  readonly last_seen_at: Date | null;
  readonly last_heartbeat_at: Date | null;
  readonly metrics: Record<string, unknown> | null;
}

// A socket that broke keeps `realtime` until its grace is over, so that the sweep finds it; nobody else is to be told so.
const COLUMNS = `d.device_id, d.tenant_id, d.deployment_id, d.agent_id, d.fingerprint, d.name, d.hostname, d.platform, d.arch, d.os_version, d.agent_version, d.tags, d.status, d.offline_reason,
  d.maintenance, case when d.repair_until > now() then d.repair_until end as repair_until, d.version, d.created_at, d.updated_at, p.epoch, case when p.connectivity = 'realtime' and p.session_id is null then 'none' else p.connectivity end as connectivity,
  case when p.connectivity = 'realtime' then p.node_id end as node_id, p.since, p.last_seen_at, p.last_heartbeat_at, p.metrics`;
const LIVING = "from devices d join device_presence p on p.device_id = d.device_id where d.tenant_id = $1 and d.deleted_at is null";

const given = <K extends string, V>(name: K, value: V | null): { [N in K]?: V } => (value === null ? {} : { [name]: value }) as { [N in K]?: V }; // as: a computed key widens to string

const toDevice = (row: DeviceRow): Device => ({
  deviceId: row.device_id,
  tenantId: row.tenant_id,
  deploymentId: row.deployment_id,
  agentId: row.agent_id,
  fingerprint: row.fingerprint,
  status: row.status,
  createdAt: row.created_at.toISOString(),
  updatedAt: row.updated_at.toISOString(),
  version: row.version,
  tags: row.tags,
  ...given("lastSeen", row.last_seen_at?.toISOString() ?? null),
  ...given("lastHeartbeatAt", row.last_heartbeat_at?.toISOString() ?? null),
  ...given("offlineReason", row.status === "offline" ? row.offline_reason : null),
  ...given("name", row.name),
  ...given("hostname", row.hostname),
  ...given("platform", row.platform),
  ...given("arch", row.arch),
  ...given("osVersion", row.os_version),
  ...given("agentVersion", row.agent_version),
  ...given("metrics", row.metrics),
  ...given("maintenance", row.maintenance ?? null),
  ...given("repairUntil", row.repair_until?.toISOString() ?? null),
  connection: { connectivity: row.connectivity, epoch: row.epoch, ...given("nodeId", row.node_id), ...given("since", row.since?.toISOString() ?? null) },
});

export const findDevice = async (db: SqlTx, { tenantId }: SystemScope, deviceId: string): Promise<Device | undefined> =>
  (await db.query<DeviceRow>(`select ${COLUMNS} ${LIVING} and d.device_id = $2`, [tenantId, deviceId])).map(toDevice)[0];

export interface DeviceGlance {
  readonly deviceId: DeviceId;
  readonly status: Device["status"];
  readonly lastSeenAt: Date | null;
}

export const glanceAt = async (db: SqlTx, { tenantId }: SystemScope, deviceId: string): Promise<DeviceGlance | null> =>
  (
    await db.query<DeviceGlance>(`select d.device_id as "deviceId", d.status, p.last_seen_at as "lastSeenAt" ${LIVING} and d.device_id = $2`, [
      tenantId,
      deviceId,
    ])
  )[0] ?? null;

export const countDevices = async (db: SqlTx, { tenantId }: SystemScope): Promise<number> =>
  (await db.query<{ used: number }>("select count(*)::int8 as used from devices where tenant_id = $1 and deleted_at is null", [tenantId]))[0]?.used ?? 0;

export interface DeviceFilter {
  readonly status: string | null;
  readonly tag: string | null;
  readonly deploymentId: string | null;
  /** A LIKE pattern over name and hostname. */
  readonly namePattern: string | null;
  readonly limit: number;
  readonly offset: number;
}

/** Newest first; rows and total are of one moment. */
export const listDevices = async (db: SqlTx, { tenantId }: SystemScope, filter: DeviceFilter): Promise<{ items: Device[]; total: number }> => {
  const rows = await db.query<DeviceRow & { readonly total: number }>(
    `with matching as (select d.device_id, d.created_at ${LIVING} and ($2::text is null or d.status = $2) and ($3::text is null or $3 = any(d.tags))
       and ($4::text is null or d.deployment_id = $4) and ($5::text is null or d.name ilike $5 or d.hostname ilike $5)),
     page as (select device_id from matching order by created_at desc, device_id desc limit $6 offset $7),
     shown as (select ${COLUMNS} ${LIVING} and d.device_id in (select device_id from page))
     select counted.total, shown.* from (select count(*)::int8 as total from matching) counted left join shown on true order by shown.created_at desc, shown.device_id desc`,
    [tenantId, filter.status, filter.tag, filter.deploymentId, filter.namePattern, filter.limit, filter.offset],
  );
  // Beyond the last page the one row carries the total alone.
  return { items: rows.filter((row) => row.device_id !== null).map(toDevice), total: rows[0]?.total ?? 0 };
};

export interface DeviceChange {
  readonly deviceId: string;
  readonly name: string | null;
  readonly tags: readonly string[] | null;
  readonly deploymentId: string | null;
  readonly maintenance: { readonly enabled: boolean; readonly until: string | null } | null;
  readonly removed: readonly ("name" | "maintenance")[];
  /** The version that was read; null: whatever stands. */
  readonly version: number | null;
}

export const hasDeployment = async (db: SqlTx, { tenantId }: SystemScope, deploymentId: string): Promise<boolean> =>
  (await db.query("select 1 from deployments where tenant_id = $1 and deployment_id = $2", [tenantId, deploymentId])).length > 0;

/** What is null stays, unless it is removed. False when the version has moved on or the device is gone. */
export const updateDevice = async (db: SqlTx, { tenantId }: SystemScope, change: DeviceChange): Promise<boolean> => {
  const { deviceId, name, tags, deploymentId, maintenance, removed, version } = change;
  const rows = await db.query(
    `update devices set name = case when 'name' <> all($9::text[]) then coalesce($3, name) end, tags = coalesce($4::text[], tags), deployment_id = coalesce($5, deployment_id),
       maintenance = case when 'maintenance' = any($9::text[]) then null when $6::bool is null then maintenance else jsonb_build_object('enabled', $6::bool, 'until', to_char($7::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) end,
       version = version + 1, updated_at = now()
     where device_id = $1 and tenant_id = $2 and deleted_at is null and ($8::int is null or version = $8) returning device_id`,
    [deviceId, tenantId, name, tags, deploymentId, maintenance?.enabled ?? null, maintenance?.until ?? null, version, removed],
  );
  return rows.length > 0;
};

export interface RemovedDevice {
  readonly agent_id: string;
  readonly hostname: string | null;
  readonly status: Device["status"];
}

/** The row stays, its secrets do not, and its fingerprint is free again. Undefined when there was none. */
export const removeDevice = async (tx: SqlTx, { tenantId }: SystemScope, deviceId: string): Promise<RemovedDevice | undefined> =>
  (
    await tx.query<RemovedDevice>(
      `update devices set deleted_at = now(), secret = ''::bytea, pending_secret = null, updated_at = now(), version = version + 1
     where device_id = $1 and tenant_id = $2 and deleted_at is null returning agent_id, hostname, status`,
      [deviceId, tenantId],
    )
  )[0];

/** Null hours end it. Undefined: no such device. */
export const setRepair = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { deviceId, hours }: { readonly deviceId: string; readonly hours: number | null },
): Promise<{ readonly until: Date | null } | undefined> =>
  (
    await tx.query<{ until: Date | null }>(
      `update devices set repair_until = now() + make_interval(hours => $3::int), updated_at = now()
       where device_id = $1 and tenant_id = $2 and deleted_at is null returning repair_until as until`,
      [deviceId, tenantId, hours],
    )
  )[0];
