// Statements of presence. Rows are locked in the order presence, devices, commands, wherever more than one is touched.
import type { DeviceAddress, DeviceHardware, DeviceId, TenantId } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { HeldSession, Machine, PresenceUpdate, SessionRef } from "../../../core/ports/agent-sessions.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import { notDeleted } from "../../../core/rows/not-deleted.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

export const ms = (parameter: string): string => `make_interval(secs => ${parameter}::float8 / 1000)`;

export interface StatusChange {
  readonly device_id: DeviceId;
  readonly tenant_id: TenantId;
  readonly hostname: string | null;
  readonly previous: "online" | "offline" | "provisioning";
  readonly reason: string | null;
  readonly last_seen_at: Date | null;
}

const MARK_DUPLICATE_REPORTED = statement<{ readonly tenantId: TenantId; readonly deviceId: DeviceId }>(
  "presence.markDuplicateReported",
  `update device_presence set duplicate_told_at = now() where device_id = $1 and tenant_id = $2
       and (duplicate_told_at is null or duplicate_told_at < now() - ${ms("$3")}) returning tenant_id as "tenantId", device_id as "deviceId"`,
);

/** Answers one caller on any node, which then reports the duplicate; every other gets undefined until the pause is over. */
export const markDuplicateReported = async (
  tx: SqlTx,
  { tenantId, deviceId }: DeviceRef,
  pauseMs: number,
): Promise<{ readonly tenantId: TenantId; readonly deviceId: DeviceId } | undefined> =>
  (await tx.query(MARK_DUPLICATE_REPORTED, [deviceId, tenantId, pauseMs]))[0];

const DESCRIBE_DEVICE = statement<{ readonly updated_at: Date }>(
  "presence.describeDevice",
  `update devices d set hostname = n.hostname, platform = n.platform, arch = n.arch, os_version = n.os_version, agent_version = n.agent_version, inventory = coalesce($8::jsonb, d.inventory),
     addresses = coalesce($9::jsonb, d.addresses), model = coalesce($10, d.model), hardware = coalesce($11::jsonb, d.hardware), runtimes = coalesce($12::jsonb, d.runtimes),
     updated_at = case when (d.hostname, d.platform, d.arch, d.os_version, d.agent_version) is distinct from (n.hostname, n.platform, n.arch, n.os_version, n.agent_version)
       or $8::jsonb is not null then now() else d.updated_at end
   from (select device_id, coalesce($3, hostname) hostname, coalesce($4, platform) platform, coalesce($5, arch) arch, coalesce($6, os_version) os_version,
     coalesce($7, agent_version) agent_version from devices where device_id = $1 and tenant_id = $2 and deleted_at is null for update) n
   where d.device_id = n.device_id returning d.updated_at`,
);

export interface MachineReport {
  readonly deviceId: string;
  readonly machine: Machine;
  readonly inventory?: {
    readonly model?: string | undefined;
    readonly hardware?: DeviceHardware | undefined;
    readonly runtimes?: readonly string[] | undefined;
  };
  readonly addresses?: readonly DeviceAddress[] | undefined;
}

/** Stores what the machine reports about itself; absent parts stay. Undefined when the device is gone. */
export const describeDevice = async (
  tx: SqlTx,
  { tenantId }: Pick<DeviceRef, "tenantId">,
  { deviceId, machine, inventory, addresses }: MachineReport,
): Promise<Date | undefined> => {
  const [row] = await tx.query(DESCRIBE_DEVICE, [
    deviceId,
    tenantId,
    machine.hostname ?? null,
    machine.platform ?? null,
    machine.arch ?? null,
    machine.osVersion ?? null,
    machine.agentVersion ?? null,
    inventory === undefined ? null : JSON.stringify(inventory),
    addresses === undefined ? null : JSON.stringify(addresses),
    inventory?.model ?? null,
    inventory?.hardware === undefined ? null : JSON.stringify(inventory.hardware),
    inventory?.runtimes === undefined ? null : JSON.stringify(inventory.runtimes),
  ]);
  return row?.updated_at;
};

const SET_ONLINE = statement<StatusChange>(
  "presence.setOnline",
  `with old as (select device_id, status from devices o where device_id = any($1) and ${notDeleted("o")} and (status <> 'online' or offline_reason is not null) order by device_id for update)
   update devices d set status = 'online', offline_reason = null, updated_at = now() from old where d.device_id = old.device_id
   returning d.device_id, d.tenant_id, d.hostname, old.status as previous, null as reason, null::timestamptz as last_seen_at`,
);

/** Sets devices online and returns those that were not. Clears the reason of an announced disconnect in any case. */
export const setOnline = async (tx: SqlTx, deviceIds: readonly string[]): Promise<StatusChange[]> => {
  const rows = await tx.query(SET_ONLINE, [deviceIds]);
  return rows.filter(({ previous }) => previous !== "online");
};

/** Rows are locked in the order of the list. One order for all nodes prevents deadlocks when devices move between them. */
const inOrder = <T extends { readonly deviceId: string }>(items: readonly T[]): readonly T[] => [...items].sort((a, b) => (a.deviceId < b.deviceId ? -1 : 1));

export interface Flushed {
  /** Devices that had been set offline meanwhile. */
  readonly revived: readonly string[] | null;
  /** The devices whose sessions are still the newest; null when all of them are. */
  readonly current: readonly string[] | null;
}

const SYNCHRONOUS_COMMIT = statement<{ readonly set_config: string }>("presence.synchronousCommit", "select set_config('synchronous_commit', $1, true)");

/** Makes the transaction of a flush wait for the disk after all. */
export const commitToDisk = (tx: SqlTx): Promise<unknown> => tx.query(SYNCHRONOUS_COMMIT, ["on"]);

// Neither indexed column changes here, so the update stays on its page (HOT). A session that has closed has no session_id any more; the coalesce
// hides this from the planner, whose statistics from before anybody connected would make it expect no row and choose a nested loop.
// The flush does not wait for the disk: if a database crash loses a beat, the next one follows.
const FLUSH_BEATS = statement<Flushed>(
  "presence.flushBeats",
  `with flushed as (
   update device_presence p set
     last_seen_at = greatest(p.last_seen_at, now() - ${ms("v.seen_ago")}),
     last_heartbeat_at = greatest(p.last_heartbeat_at, now() - ${ms("v.beat_ago")}),
     offline_after = greatest(p.offline_after, now() - ${ms("v.seen_ago")} + ${ms("v.patience")}),
     metrics = coalesce(nullif(v.metrics, 'null'), p.metrics),
     since = case when p.connectivity = 'none' then now() else p.since end,
     connectivity = 'realtime'
   from rows from (unnest($1::text[], $2::int8[], $3::float8[], $4::float8[], $5::float8[]), jsonb_array_elements($6::jsonb))
     as v(id, epoch, seen_ago, beat_ago, patience, metrics)
   where p.device_id = v.id and p.epoch = v.epoch and coalesce(p.session_id, '') <> ''
   returning p.device_id, p.since = now()::timestamptz(3) as revived)
   select array_agg(device_id) filter (where revived) as revived,
     case when count(*) < cardinality($1::text[]) then coalesce(array_agg(device_id), '{}') end as current from flushed`,
);

export const flushBeats = async (tx: SqlTx, unsorted: readonly PresenceUpdate[]): Promise<Flushed | undefined> => {
  const beats = inOrder(unsorted);
  const set = tx.query(SYNCHRONOUS_COMMIT, ["off"]);
  const flushed = tx.query(FLUSH_BEATS, [
    beats.map(({ deviceId }) => deviceId),
    beats.map(({ epoch }) => epoch),
    beats.map(({ seenAgoMs }) => seenAgoMs),
    beats.map(({ heartbeatAgoMs }) => heartbeatAgoMs),
    beats.map(({ patienceMs }) => patienceMs),
    JSON.stringify(beats.map(({ metrics }) => metrics)),
  ]);
  return (await Promise.all([flushed, set]))[0][0];
};

export interface SupersededRow {
  readonly device_id: string;
  readonly removed: boolean;
  readonly handed_over: boolean;
  readonly pushed_out: number;
}

const FIND_SUPERSEDED = statement<SupersededRow>(
  "presence.findSuperseded",
  `select v.id as device_id, d.device_id is null or d.deleted_at is not null as removed, coalesce(p.handed_from = v.session_id, false) as handed_over,
     coalesce(p.supersessions, 0) as pushed_out
   from unnest($1::text[], $2::int8[], $3::text[]) as v(id, epoch, session_id)
     left join device_presence p on p.device_id = v.id left join devices d on d.device_id = p.device_id
   where p.epoch is distinct from v.epoch or p.session_id is null`,
);

export interface HeldDigest {
  readonly part: string;
  readonly digest: string;
}

const HELD_DIGESTS = statement<HeldDigest>(
  "presence.heldDigests",
  `select right(device_id, 1) as part, bit_xor(hashtextextended(session_id, epoch))::text as digest
   from device_presence where node_id = $1 and session_id is not null group by 1`,
);

/** Digests of all sessions that hold presence on this node, in parts by the last character of the device's id: a digest changes when one of its part does. */
export const heldDigests = (db: SqlTx, nodeId: string): Promise<HeldDigest[]> => db.query(HELD_DIGESTS, [nodeId]);

export const findSuperseded = (db: SqlTx, sessions: readonly HeldSession[]): Promise<SupersededRow[]> =>
  db.query(FIND_SUPERSEDED, [sessions.map(({ deviceId }) => deviceId), sessions.map(({ epoch }) => epoch), sessions.map(({ id }) => id)]);

// Sets an empty name instead of null: the device stays connected for every reader while its agent reconnects.
const RELEASE = statement<{ readonly device_id: string }>(
  "presence.release",
  `with held as (
     select p.device_id from unnest($1::text[], $2::int8[]) as v(id, epoch) join device_presence p on p.device_id = v.id and p.epoch = v.epoch
      where p.session_id is not null order by p.device_id for update of p)
   update device_presence p set session_id = '' from held where p.device_id = held.device_id returning p.device_id`,
);

/** Marks sessions that are about to be closed, so no later hello supersedes them. Returns those that none has superseded before. */
export const releasePresence = (tx: SqlTx, unsorted: readonly SessionRef[]): Promise<{ readonly device_id: string }[]> => {
  const sessions = inOrder(unsorted);
  return tx.query(RELEASE, [sessions.map(({ deviceId }) => deviceId), sessions.map(({ epoch }) => epoch)]);
};

const CLOSE = statement(
  "presence.close",
  `update device_presence p set session_id = null, node_id = null, offline_after = least(p.offline_after, now() + ${ms("$3")})
   from unnest($1::text[], $2::int8[]) as v(id, epoch) where p.device_id = v.id and p.epoch = v.epoch and p.session_id is not null`,
);

export const closePresence = (tx: SqlTx, unsorted: readonly SessionRef[], graceMs: number): Promise<unknown> => {
  const sessions = inOrder(unsorted);
  return tx.query(CLOSE, [sessions.map(({ deviceId }) => deviceId), sessions.map(({ epoch }) => epoch), graceMs]);
};

const LEAVE = statement<{ readonly device_id: string }>(
  "presence.leave",
  `update device_presence set session_id = null, node_id = null, poll_instance_id = null, offline_after = now() + ${ms("$3")} where device_id = $1 and ($2::int8 is null or epoch = $2) returning device_id`,
);

const KEEP_REASON = statement("presence.keepReason", "update devices set offline_reason = $2 where device_id = $1 and status = 'online'");

/** Ends the presence of a session that announced its disconnect, if it is still the newest. The sweep finds the reason in the device's row. */
export const leavePresence = async (
  tx: SqlTx,
  { deviceId, epoch }: { deviceId: string; epoch: number | null },
  { reason, expectBackMs }: { reason: string; expectBackMs: number },
): Promise<void> => {
  const left = await tx.query(LEAVE, [deviceId, epoch, expectBackMs]);
  if (left.length > 0) await tx.query(KEEP_REASON, [deviceId, reason]);
};

const FENCE = statement<{ readonly device_id: string; readonly epoch: number }>(
  "presence.fence",
  `with old as (select device_id from device_presence where device_id = any($1) and tenant_id = $2 order by device_id for update)
   update device_presence p set epoch = p.epoch + 1, session_id = null, node_id = null, offline_after = least(p.offline_after, now() + ${ms("$3")})
   from old where p.device_id = old.device_id returning p.device_id, p.epoch`,
);

/** Prevents every older session of these devices from writing or claiming. Returns the new epochs. */
export const fencePresence = (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { deviceIds, graceMs }: { deviceIds: readonly string[]; graceMs: number },
): Promise<{ readonly device_id: string; readonly epoch: number }[]> => tx.query(FENCE, [deviceIds, tenantId, graceMs]);
