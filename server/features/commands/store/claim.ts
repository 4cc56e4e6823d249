// Claims: queued rows become sent, for many sessions in one statement (T2) or for one poller (T3). Committed when they return.
import type { DeviceRef, Want } from "../../../core/delivery.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/db.ts";
import type { Timings } from "../state.ts";
import { ALL_COLUMNS, type CommandRow, type DbRow, IN_FLIGHT, OPEN, toRow } from "./rows.ts";

export interface Claimer {
  readonly nodeId: string;
  readonly timings: Pick<Timings, "ackTimeoutMs" | "pollLeaseMs">;
}

const DUE = `c.status = 'queued' and c.available_at <= now() and (c.expires_at is null or c.expires_at > now())`;

const HISTORY = (from: string) =>
  `insert into command_events (tenant_id, command_id, from_status, to_status, actor, node_id, epoch, attempt)
   select tenant_id, command_id, ${from}, 'sent', actor, $1, session_epoch, attempt from claimed`;

type ClaimedRow = (DbRow | { readonly command_id: null }) & {
  readonly wanted_by: string;
  readonly actor: string;
  readonly known: boolean;
  readonly left_waiting: boolean;
};

// Locks the presence row, so a claim and a hello of the same device run one after the other: a superseded session no longer finds its
// epoch and claims nothing, not even at the moment of the change.
// The update finds rows by id alone: they are locked by then, and with a status beside it the planner would use the index of open commands.
// Within a lane the earliest open command goes first and alone; across lanes priority and age decide. A command that this session received and
// has not answered keeps its place while it waits for its next attempt, and then goes first: the agent may be working on it silently.
// `left_waiting` is as of the snapshot: whether anything stays queued, for whatever reason.
const CLAIM = statement<ClaimedRow>(
  "commands.claim",
  `
  with live as materialized (
    select w.device_id, w.epoch, w.max_in_flight from unnest($2::text[], $3::bigint[], $4::int[]) as w(device_id, epoch, max_in_flight)
      join device_presence p on p.device_id = w.device_id and p.epoch = w.epoch
     order by w.device_id for share of p),
  head as materialized (
    select h.command_id, h.known, l.epoch from live l cross join lateral (
      select c.command_id, c.session_epoch is not distinct from l.epoch as known from commands c
       where c.device_id = l.device_id and ${DUE}
         and not exists (select 1 from commands b where b.device_id = c.device_id and b.lane = c.lane and b.seq < c.seq and b.status in ${OPEN})
       order by known desc, c.priority desc, c.seq
       limit greatest(0, l.max_in_flight - (
         select count(*) from commands o where o.device_id = l.device_id and o.status in ${OPEN}
            and (o.status in ${IN_FLIGHT} or (o.session_epoch = l.epoch and o.available_at > now()))))
       for update skip locked) h),
  claimed as (
    update commands c set status = 'sent', attempt = c.attempt + 1, channel = 'ws', session_epoch = head.epoch, node_id = $1, sent_at = now(),
           deadline_at = least(now() + $5 * interval '1 millisecond', coalesce(c.expires_at, 'infinity'))
      from head where c.command_id = head.command_id
    returning ${ALL_COLUMNS}, 'session' as actor, head.known),
  history as (${HISTORY("'queued'")})
  select l.device_id as wanted_by, c.*, exists (
           select 1 from commands q where q.device_id = l.device_id and q.status = 'queued' and q.status in ${OPEN}
              and q.command_id not in (select command_id from head)) as left_waiting
    from live l left join claimed c on c.device_id = l.device_id order by l.device_id, c.known desc, c.priority desc, c.seq`,
);

export interface Claimed {
  readonly rows: readonly CommandRow[];
  /** Something is still queued for the device. */
  readonly left: boolean;
}

/** By device; one whose session was superseded has no entry. */
export const claimForSessions = async (db: Db, wants: readonly Want[], { nodeId, timings }: Claimer): Promise<ReadonlyMap<string, Claimed>> => {
  const sorted = [...wants].sort((a, b) => (a.deviceId < b.deviceId ? -1 : 1));
  const found = await db.query(CLAIM, [
    nodeId,
    sorted.map(({ deviceId }) => deviceId),
    sorted.map(({ epoch }) => epoch),
    sorted.map(({ maxInFlight }) => maxInFlight),
    timings.ackTimeoutMs,
  ]);
  const claims = new Map<string, { readonly rows: CommandRow[]; readonly left: boolean }>();
  for (const row of found) {
    const claim = claims.get(row.wanted_by) ?? { rows: [], left: row.left_waiting };
    if (row.command_id !== null) claim.rows.push(toRow(row));
    claims.set(row.wanted_by, claim);
  }
  return claims;
};

interface PollRow extends DbRow {
  readonly rank: number;
  readonly was: string;
}

// A poller runs the commands of a lane one after the other by itself, so it gets whole lanes. A command waits only for an earlier one of its lane that the
// agent does not hold and does not get now: one that is not due yet, or one that travels over a socket. The running minimum of the
// priority keeps a lane in order under the limit. The state is checked again under the lock, as a CASE for the planner (see above).
// A command that was polled and not acknowledged comes again, and an expired lease starts anew. The first claim gets a command: a row that another
// claim has locked is skipped together with its lane, and a row that another claim took meanwhile is returned as the lock found it.
const POLL = statement<PollRow>(
  "commands.poll",
  `
  with candidates as materialized (
    select c.command_id, c.lane, c.seq, min(c.priority) over (partition by c.lane order by c.seq) as rank
      from commands c
     where c.tenant_id = $2 and c.device_id = $3 and c.status in ${OPEN}
       and ((${DUE}) or (c.status = 'sent' and c.channel = 'poll'
              and (c.deadline_at > now() or (c.requires_ack and c.attempt < c.max_attempts and coalesce(c.expires_at, 'infinity') > now()))))
       and not exists (
         select 1 from commands b where b.device_id = c.device_id and b.lane = c.lane and b.seq < c.seq and b.status in ${OPEN}
            and ((b.status = 'queued' and b.available_at > now()) or (b.status = 'sent' and b.channel = 'ws')))),
  picked as materialized (select * from candidates order by rank desc, seq limit $4),
  head as materialized (
    select ${ALL_COLUMNS}, k.rank, c.status as was, (c.status = 'queued' or c.deadline_at <= now()) as anew
      from commands c join picked k using (command_id)
     where case c.status when 'queued' then true when 'sent' then c.channel = 'poll' else false end for update of c skip locked),
  free as materialized (
    select h.* from head h where not exists (
      select 1 from picked k where k.lane = h.lane and k.seq < h.seq and not exists (select 1 from head o where o.command_id = k.command_id))),
  claimed as (
    update commands c set status = 'sent', attempt = c.attempt + 1, channel = 'poll', session_epoch = null, node_id = $1, sent_at = now(),
           deadline_at = least(now() + $5 * interval '1 millisecond', coalesce(c.expires_at, 'infinity'))
      from free where c.command_id = free.command_id and free.anew
    returning ${ALL_COLUMNS}, 'poll' as actor, free.rank, free.was),
  history as (${HISTORY("was")})
  select ${ALL_COLUMNS}, c.rank, c.was from claimed c
  union all
  select ${ALL_COLUMNS}, c.rank, c.was from free c where not c.anew
  order by rank desc, seq`,
);

export interface PolledRow extends CommandRow {
  /** The agent has received it before and has not answered. */
  readonly again: boolean;
}

export const claimForPoll = async (db: Db, { tenantId, deviceId }: DeviceRef, limit: number, { nodeId, timings }: Claimer): Promise<readonly PolledRow[]> => {
  const rows = await db.query(POLL, [nodeId, tenantId, deviceId, limit, timings.pollLeaseMs]);
  return rows.map((row) => ({ ...toRow(row), again: row.was === "sent" }));
};
