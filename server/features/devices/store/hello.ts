// The statements of hellos, each for many devices at once. They lock rows in the order presence, devices, and within a table by id.
import type { AgentId } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { Holder, SessionHello } from "../../../core/ports/agent-sessions.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import { notDeleted } from "../../../core/rows/not-deleted.ts";
import { statement } from "../../../core/statements.ts";
import { ms, type StatusChange } from "./presence.ts";

export interface OpenedPresence {
  readonly device_id: string;
  readonly epoch: number;
  readonly node_id: string | null;
  readonly session_id: string | null;
  /** How many times in a row sessions have superseded each other, this one included; 0 when it superseded none. */
  readonly pushed_out: number;
  readonly instance_id: string | null;
}

/** Supersessions with no longer pause in between count as one series. Longer than the pause that the gateway imposes on a series. */
const PING_PONG_PAUSE = "20 minutes";

const OPEN = statement<OpenedPresence>(
  "hello.openPresence",
  `with old as (
     select p.device_id, p.node_id, p.session_id, p.instance_id, v.its_node, v.its_session, v.clock_offset, v.instance, v.credit, h.handed_from,
       case when coalesce(p.session_id, '') in ('', h.handed_from) then 0
            when p.superseded_at > now() - interval '${PING_PONG_PAUSE}' then least(p.supersessions + 1, 1000) else 1 end as pushed_out
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::text[], $7::int[], $9::text[])
         as v(device_id, tenant_id, its_node, its_session, clock_offset, instance, credit, handed_from)
       join device_presence p on p.device_id = v.device_id and p.tenant_id = v.tenant_id
       cross join lateral (select case when p.session_id = v.handed_from and p.instance_id = v.instance then p.session_id end as handed_from) h
      order by p.device_id for update of p)
   update device_presence p set epoch = p.epoch + 1, connectivity = 'realtime', node_id = old.its_node, session_id = old.its_session, since = now(),
     last_seen_at = now(), offline_after = now() + ${ms("$8")}, clock_offset_ms = old.clock_offset, instance_id = old.instance, max_in_flight = old.credit,
     handed_from = old.handed_from, supersessions = case old.pushed_out when 0 then p.supersessions else old.pushed_out end,
     superseded_at = case old.pushed_out when 0 then p.superseded_at else now() end,
     poll_instance_id = null, poll_until = null, poll_refused_at = null
   from old where p.device_id = old.device_id returning p.device_id, p.epoch, old.node_id, old.session_id, old.instance_id, old.pushed_out`,
);

/** Raises the epochs and hands presence to these sessions, each of another device. Leaves out devices that the tenant does not have. */
export const openPresence = (tx: SqlTx, hellos: readonly SessionHello[], offlineAfterMs: number): Promise<OpenedPresence[]> =>
  tx.query(OPEN, [
    hellos.map(({ device }) => device.deviceId),
    hellos.map(({ device }) => device.tenantId),
    hellos.map(({ nodeId }) => nodeId),
    hellos.map(({ sessionId }) => sessionId),
    hellos.map(({ clockOffsetMs }) => clockOffsetMs),
    hellos.map(({ instanceId }) => instanceId),
    hellos.map(({ maxInFlight }) => maxInFlight),
    offlineAfterMs,
    hellos.map(({ handoffFrom }) => handoffFrom),
  ]);

export interface Welcomed extends StatusChange {
  readonly agent_id: AgentId;
  /** The gateway refuses v1 signatures from this device from now on. */
  readonly locked: boolean;
}

const FIND_NOT_DELETED = statement<{ readonly device_id: string }>(
  "hello.findNotDeleted",
  `select device_id from devices d where device_id = any($1) and ${notDeleted("d")}`,
);

// The caller has locked the presence rows, which a removal locks too: a device found here is not removed before the transaction ends.
export const findNotDeleted = (tx: SqlTx, hellos: readonly SessionHello[]): Promise<{ readonly device_id: string }[]> =>
  tx.query(FIND_NOT_DELETED, [hellos.map(({ device }) => device.deviceId)]);

const WELCOME = statement<Welcomed>(
  "hello.welcomeDevices",
  `with old as (
     select d.device_id, d.status, d.min_sig_version, coalesce(v.hostname, d.hostname) hostname, coalesce(v.platform, d.platform) platform,
       coalesce(v.arch, d.arch) arch, coalesce(v.os_version, d.os_version) os_version, coalesce(v.agent_version, d.agent_version) agent_version,
       case when v.locks then 2 else d.min_sig_version end as sig_version
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bool[])
         as v(device_id, hostname, platform, arch, os_version, agent_version, locks)
       join devices d on d.device_id = v.device_id
     where ${notDeleted("d")} and (d.status <> 'online' or d.offline_reason is not null or v.locks and d.min_sig_version < 2
       or (d.hostname, d.platform, d.arch, d.os_version, d.agent_version) is distinct from (coalesce(v.hostname, d.hostname), coalesce(v.platform, d.platform),
         coalesce(v.arch, d.arch), coalesce(v.os_version, d.os_version), coalesce(v.agent_version, d.agent_version)))
     order by d.device_id for update of d)
   update devices d set status = 'online', offline_reason = null, hostname = old.hostname, platform = old.platform, arch = old.arch, os_version = old.os_version,
     agent_version = old.agent_version, min_sig_version = old.sig_version, updated_at = now()
   from old where d.device_id = old.device_id
   returning d.device_id, d.tenant_id, d.agent_id, d.hostname, old.status as previous, null as reason, null::timestamptz as last_seen_at,
     old.sig_version > old.min_sig_version as locked`,
);

/** Updates and returns the devices whose rows a hello changes. Most hellos change nothing and are only read. */
export const welcomeDevices = (tx: SqlTx, hellos: readonly SessionHello[]): Promise<Welcomed[]> =>
  tx.query(WELCOME, [
    hellos.map(({ device }) => device.deviceId),
    hellos.map(({ machine }) => machine.hostname ?? null),
    hellos.map(({ machine }) => machine.platform ?? null),
    hellos.map(({ machine }) => machine.arch ?? null),
    hellos.map(({ machine }) => machine.osVersion ?? null),
    hellos.map(({ machine }) => machine.agentVersion ?? null),
    hellos.map(({ locksSignature }) => locksSignature),
  ]);

const FIND_HOLDERS = statement<Holder & { readonly deviceId: string }>(
  "hello.findHolders",
  `select p.device_id as "deviceId", p.node_id as "nodeId", p.session_id as "sessionId", p.instance_id as "instanceId",
     extract(epoch from now() - p.last_seen_at)::float8 * 1000 as "seenAgoMs"
   from unnest($1::text[], $2::text[]) as v(device_id, tenant_id) join device_presence p on p.device_id = v.device_id and p.tenant_id = v.tenant_id
   where p.session_id is not null and p.node_id is not null`,
);

/** Leaves out devices that no socket holds. */
export const findHolders = (db: SqlTx, devices: readonly DeviceRef[]): Promise<(Holder & { readonly deviceId: string })[]> =>
  db.query(FIND_HOLDERS, [devices.map(({ deviceId }) => deviceId), devices.map(({ tenantId }) => tenantId)]);
