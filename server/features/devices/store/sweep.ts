// Statements of the sweeps that take devices offline. Rows are locked in the order presence, devices.
import type { SqlTx } from "../../../core/events.ts";
import { notDeleted } from "../../../core/rows/not-deleted.ts";
import { statement } from "../../../core/statements.ts";
import { ms, type StatusChange } from "./presence.ts";

// Leaves a row whose socket is silent but whose agent called over REST within the window: the next call takes it over. Leaves a silent device as
// long as its tenant's settings say, unless the agent announced that it shuts down.
const SWEEP_OFFLINE = statement<StatusChange>(
  "presence.sweepOffline",
  `with due as (
     select device_id, connectivity, session_id from device_presence where connectivity <> 'none' and offline_after < now()
       and not (session_id is not null and last_seen_at > now() - ${ms("$1")})
       and not exists (
         select 1 from tenant_settings s join devices patient on patient.device_id = device_presence.device_id
          where s.tenant_id = device_presence.tenant_id and device_presence.last_seen_at > now() - make_interval(secs => s.offline_after_seconds) and patient.offline_reason is null)
       order by device_id limit $2 for update skip locked),
   gone as (
     update device_presence p set connectivity = 'none', since = now() from due where p.device_id = due.device_id
     returning p.device_id, p.last_seen_at, case when due.connectivity = 'polling' then 'poll_missed' when due.session_id is null then 'connection_lost' else 'heartbeat_missed' end as inferred),
   old as (select device_id, status from devices o where device_id in (select device_id from gone) and ${notDeleted("o")} and status <> 'offline' order by device_id for update)
   update devices d set status = 'offline', offline_reason = coalesce(d.offline_reason, gone.inferred), updated_at = now()
   from gone join old on old.device_id = gone.device_id where d.device_id = gone.device_id
   returning d.device_id, d.tenant_id, d.hostname, old.status as previous, d.offline_reason as reason, gone.last_seen_at`,
);

/** Sets silent devices offline; returns each real transition once, whichever node sweeps. */
export const sweepOffline = (tx: SqlTx, { offlineAfterMs, limit }: { offlineAfterMs: number; limit: number }): Promise<StatusChange[]> =>
  tx.query(SWEEP_OFFLINE, [offlineAfterMs, limit]);

const UNTIL_OFFLINE = statement<{ readonly ms: number | null }>(
  "presence.untilOffline",
  "select extract(epoch from min(offline_after) - now())::float8 * 1000 as ms from device_presence where connectivity <> 'none'",
);

/** Milliseconds until the first device that is not offline may be; it may turn out to have more time. */
export const untilOffline = async (tx: SqlTx): Promise<number> => (await tx.query(UNTIL_OFFLINE))[0]?.ms ?? Number.POSITIVE_INFINITY;

const SWEEP_NEVER_CONNECTED = statement<StatusChange>(
  "presence.sweepNeverConnected",
  `with old as (select device_id, status from devices where status = 'provisioning' and deleted_at is null and created_at < now() - ${ms("$1")} order by device_id limit $2 for update skip locked)
   update devices d set status = 'offline', offline_reason = 'never_connected', updated_at = now() from old where d.device_id = old.device_id
   returning d.device_id, d.tenant_id, d.hostname, old.status as previous, d.offline_reason as reason, null::timestamptz as last_seen_at`,
);

export const sweepNeverConnected = (tx: SqlTx, { afterMs, limit }: { afterMs: number; limit: number }): Promise<StatusChange[]> =>
  tx.query(SWEEP_NEVER_CONNECTED, [afterMs, limit]);
