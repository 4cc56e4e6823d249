// Presence from signed REST calls of agents: each call keeps the device online, and a poll makes its process the only poller of the identity.

import type { SqlTx } from "../../../core/events.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import { notDeleted } from "../../../core/rows/not-deleted.ts";
import { statement } from "../../../core/statements.ts";
import { ms } from "./presence.ts";

export interface Contact {
  readonly deviceId: string;
  readonly heartbeat: boolean;
  readonly metrics: Readonly<Record<string, unknown>> | null;
  readonly poll: Poll | null;
}

export interface Poll {
  /** Names the agent's process; null when the agent does not name it. */
  readonly instanceId: string | null;
  /** A process that has ended, by the word of this one, which takes its place. */
  readonly formerInstanceId?: string | null | undefined;
  /** How long the process counts as alive without another poll. */
  readonly aliveForMs: number;
}

// While a socket is live its flushes decide how long the device is online. REST takes over only after they have stopped.
const LIVE_SOCKET = "(p.connectivity = 'realtime' and p.session_id is not null and p.offline_after > now())";

export interface Contacted {
  /** The device's row must be set online or loses the reason of an announced disconnect. */
  readonly greet: boolean;
  readonly at: Date;
  /** Another process polled, and was refused, since the last poll of this one. */
  readonly contested: boolean;
}

const CONTACT = statement<Contacted>(
  "contact.presence",
  `with before as materialized (
     select device_id, poll_instance_id = $6 and poll_refused_at is not null as contested from device_presence
     where device_id = $1 and tenant_id = $2 and ($6::text is null or poll_instance_id is null or poll_instance_id = $6 or poll_instance_id = $8 or poll_until <= now()) for update),
   beat as (
     update device_presence p set last_seen_at = now(), last_heartbeat_at = case when $3 then now() else p.last_heartbeat_at end, metrics = coalesce($4::jsonb, p.metrics),
       connectivity = case when ${LIVE_SOCKET} then 'realtime' else 'polling' end,
       session_id = case when ${LIVE_SOCKET} then p.session_id end, node_id = case when ${LIVE_SOCKET} then p.node_id end,
       since = case when ${LIVE_SOCKET} or p.connectivity = 'polling' then p.since else now() end,
       offline_after = case when ${LIVE_SOCKET} then p.offline_after else now() + ${ms("$5")} end,
       poll_instance_id = coalesce($6, p.poll_instance_id), poll_until = case when $6::text is null then p.poll_until else now() + ${ms("$7")} end,
       poll_refused_at = case when $6::text is null then p.poll_refused_at end
     from before where p.device_id = before.device_id returning p.device_id, p.last_seen_at, coalesce(before.contested, false) as contested)
   select d.status <> 'online' or d.offline_reason is not null as greet, beat.last_seen_at as at, beat.contested from beat join devices d on d.device_id = beat.device_id where ${notDeleted("d")}`,
);

/** Records the call. Undefined when the device is gone or another process polls for it. */
export const contactPresence = async (
  db: SqlTx,
  { tenantId }: Pick<DeviceRef, "tenantId">,
  { contact, offlineAfterMs }: { contact: Contact; offlineAfterMs: number },
): Promise<Contacted | undefined> => {
  const [row] = await db.query(CONTACT, [
    contact.deviceId,
    tenantId,
    contact.heartbeat,
    contact.metrics === null ? null : JSON.stringify(contact.metrics),
    offlineAfterMs,
    contact.poll?.instanceId ?? null,
    contact.poll?.aliveForMs ?? null,
    contact.poll?.formerInstanceId ?? null,
  ]);
  return row;
};

const REFUSE_POLL = statement<{ readonly seconds: number }>(
  "contact.refusePoll",
  `update device_presence set poll_refused_at = now() where device_id = $1 and tenant_id = $2 and poll_instance_id <> $3 and poll_until > now()
     returning ceil(extract(epoch from poll_until - now()))::float8 as seconds`,
);

/** Refuses the poll and returns how many seconds the other poller still counts as alive; undefined when there is none. */
export const refusePoll = async (db: SqlTx, { tenantId, deviceId }: DeviceRef, instanceId: string): Promise<number | undefined> =>
  (await db.query(REFUSE_POLL, [deviceId, tenantId, instanceId]))[0]?.seconds;
