// Claims. A session reads what it may send next (T2); what it has sent is written a little later, or at once where a command must not be delivered twice.
// A poller's claim is written before it gets the commands (T3).
import type { DeviceRef, Want } from "../../../core/ports/delivery.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { Timings } from "../state.ts";
import { IN_FLIGHT, OPEN_COLUMNS, placesInQueue, QUEUE_STATE, SAME_QUEUED, WITH_COMMAND } from "./columns.ts";
import { type CommandRow, type DbRow, toRow } from "./rows.ts";

const DUE = `q.status = 'queued' and q.available_at <= now() and (q.expires_at is null or q.expires_at > now())`;
const OPEN_WITH_PAYLOAD = `${OPEN_COLUMNS}, c.payload`;

export interface PeekWant extends Want {
  /** Sequence numbers of the commands that the session has in hand. */
  readonly held: readonly number[];
}

type PeekedRow = (DbRow | { readonly command_id: null }) & {
  readonly wanted_by: string;
  readonly left_waiting: boolean;
};

// Within a lane the earliest open command goes first and alone; across lanes priority and age decide. A command that this session received and has not
// answered keeps its place while it waits for its next attempt, and then goes first: the agent may be working on it silently. What the session has in hand
// is still queued here: it keeps its lane and uses up credit. A superseded session no longer finds its epoch.
// `left_waiting`: whether anything else stays queued, for whatever reason.
const PEEK = statement<PeekedRow>(
  "commands.peek",
  `
  with live as materialized (
    select p.tenant_id, w.device_id, w.epoch, w.max_in_flight, w.held, case when p.connectivity = 'realtime' then w.epoch end as live_epoch
      from (select device_id, epoch, max_in_flight, held::bigint[] as held from unnest($1::text[], $2::bigint[], $3::int[], $4::text[]) as u(device_id, epoch, max_in_flight, held)) w
      cross join lateral (select d.tenant_id, d.epoch, d.connectivity from device_presence d where d.device_id = w.device_id offset 0) p where p.epoch = w.epoch)
  select l.device_id as wanted_by, l.live_epoch, ${OPEN_WITH_PAYLOAD}, (
           select count(*) from command_queue a where a.tenant_id = l.tenant_id and a.device_id = l.device_id and a.status = 'queued')
           > cardinality(l.held) + count(h.seq) over (partition by l.device_id) as left_waiting
    from live l left join lateral (
      select q.seq, q.session_epoch is not distinct from l.epoch as known from command_queue q
       where q.tenant_id = l.tenant_id and q.device_id = l.device_id and ${DUE} and q.seq <> all(l.held)
         and not exists (select 1 from command_queue b where b.tenant_id = q.tenant_id and b.device_id = q.device_id and b.lane = q.lane and b.seq < q.seq)
       order by known desc, q.priority desc, q.seq
       limit greatest(0, l.max_in_flight - cardinality(l.held) - (
         select count(*) from command_queue o where o.tenant_id = l.tenant_id and o.device_id = l.device_id
            and (o.status in ${IN_FLIGHT} or (o.session_epoch = l.epoch and o.available_at > now()))))) h on true
    left join lateral (select * from command_queue o where o.tenant_id = l.tenant_id and o.device_id = l.device_id and o.seq = h.seq offset 0) q on true
    left join lateral (select * from commands f where f.tenant_id = q.tenant_id and f.command_id = q.command_id offset 0) c on true
   order by l.device_id, h.known desc, q.priority desc, q.seq`,
);

export interface Peeked {
  /** Still queued. */
  readonly rows: readonly CommandRow[];
  /** Something else is queued for the device. */
  readonly left: boolean;
}

/** By device; one whose session was superseded has no entry. */
export const peek = async (db: Db, wants: readonly PeekWant[]): Promise<ReadonlyMap<string, Peeked>> => {
  const found = await db.query(PEEK, [
    wants.map(({ deviceId }) => deviceId),
    wants.map(({ epoch }) => epoch),
    wants.map(({ maxInFlight }) => maxInFlight),
    wants.map(({ held }) => `{${held.join()}}`),
  ]);
  const peeked = new Map<string, { readonly rows: CommandRow[]; readonly left: boolean }>();
  for (const row of found) {
    const device = peeked.get(row.wanted_by) ?? { rows: [], left: row.left_waiting };
    if (row.command_id !== null) device.rows.push(toRow(row));
    peeked.set(row.wanted_by, device);
  }
  return peeked;
};

// Shares the presence row, so that this and a hello of the device run one after the other: a superseded session writes nothing, not even at the
// moment of the change. A command that was changed since it was sent is left as it is.
const WRITE_SENT = statement<{ readonly command_id: string }>(
  "commands.writeSent",
  `
  with v as materialized (
    select * from unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::int[], $6::bigint[], $7::text[], $8::timestamptz[], $9::timestamptz[], $10::json[])
      as v(tenant_id, device_id, seq, revision, attempt, session_epoch, node_id, sent_at, deadline_at, history)),
  live as materialized (
    select p.device_id, p.epoch from (select distinct device_id, session_epoch from v order by device_id) w
     cross join lateral (select d.device_id, d.epoch from device_presence d where d.device_id = w.device_id and d.epoch = w.session_epoch for share offset 0) p)
  update command_queue q set status = 'sent', channel = 'ws', revision = q.revision + 1, attempt = v.attempt, session_epoch = v.session_epoch, node_id = v.node_id,
         sent_at = v.sent_at, deadline_at = v.deadline_at, history = v.history
    from v join live l on l.device_id = v.device_id and l.epoch = v.session_epoch
   where q.ctid = any(${placesInQueue("o.revision = v.revision and o.status = 'queued'")}) and ${SAME_QUEUED}
  returning q.command_id`,
);

/** Rows as they were sent; `revision` is that of before. Returns the ids of those that it wrote. */
export const writeSent = async (db: Db, rows: readonly CommandRow[]): Promise<ReadonlySet<string>> => {
  const sorted = [...rows].sort((a, b) => (a.commandId < b.commandId ? -1 : 1));
  const names = ["attempt", "session_epoch", "node_id", "sent_at", "deadline_at", "history"];
  const columns = names.flatMap((name) => QUEUE_STATE.filter(({ column }) => column === name));
  const written = await db.query(WRITE_SENT, [
    sorted.map(({ tenantId }) => tenantId),
    sorted.map(({ deviceId }) => deviceId),
    sorted.map(({ seq }) => seq),
    sorted.map(({ revision }) => revision),
    ...columns.map(({ value }) => sorted.map(value)),
  ]);
  return new Set(written.map(({ command_id }) => command_id));
};

interface PollRow extends DbRow {
  readonly rank: number;
  readonly was: string;
}

export interface PollClaimer {
  readonly nodeId: string;
  readonly timings: Pick<Timings, "pollLeaseMs">;
  /** For so long a due command of a device with a socket is left to the socket, which may have sent it and not written it yet. */
  readonly graceMs: number;
}

const LEFT_TO_SOCKET = (q: string): string =>
  `case when p.connectivity = 'realtime' and ${q}.redeliver_safe and ${q}.requires_ack then $6 * interval '1 millisecond' else interval '0' end`;

// A poller runs the commands of a lane one after the other by itself, so it gets whole lanes. A command waits only for an earlier one of its lane that the
// agent does not hold and does not get now: one that is not due yet, or one that travels over a socket. The running minimum of the
// priority keeps a lane in order under the limit.
// A command that was polled and not acknowledged comes again, and an expired lease starts anew. The first claim gets a command: a row that another
// claim has locked is skipped together with its lane, and a row that another claim took meanwhile is returned as the lock found it.
const POLL = statement<PollRow>(
  "commands.poll",
  `
  with candidates as materialized (
    select q.seq, q.lane, min(q.priority) over (partition by q.lane order by q.seq) as rank
      from command_queue q left join device_presence p on p.device_id = q.device_id
     where q.tenant_id = $2 and q.device_id = $3
       and ((${DUE} and q.available_at <= now() - ${LEFT_TO_SOCKET("q")})
            or (q.status = 'sent' and q.channel = 'poll'
              and (q.deadline_at > now() or (q.requires_ack and q.attempt < q.max_attempts and coalesce(q.expires_at, 'infinity') > now()))))
       and not exists (
         select 1 from command_queue b where b.tenant_id = q.tenant_id and b.device_id = q.device_id and b.lane = q.lane and b.seq < q.seq
            and ((b.status = 'queued' and b.available_at > now() - ${LEFT_TO_SOCKET("b")}) or (b.status = 'sent' and b.channel = 'ws')))),
  picked as materialized (select * from candidates order by rank desc, seq limit $4),
  head as materialized (
    select q.*, k.rank, q.status as was, (q.status = 'queued' or q.deadline_at <= now()) as anew
      from picked k join command_queue q on q.tenant_id = $2 and q.device_id = $3 and q.seq = k.seq
     where case q.status when 'queued' then true when 'sent' then q.channel = 'poll' else false end for update of q skip locked),
  free as materialized (
    select h.* from head h where not exists (
      select 1 from picked k where k.lane = h.lane and k.seq < h.seq and not exists (select 1 from head o where o.seq = k.seq))),
  claimed as (
    update command_queue q set status = 'sent', attempt = q.attempt + 1, channel = 'poll', session_epoch = null, node_id = $1, sent_at = now(), revision = q.revision + 1,
           deadline_at = least(now() + $5 * interval '1 millisecond', coalesce(q.expires_at, 'infinity')),
           history = (q.history::jsonb || jsonb_build_object('at', floor(extract(epoch from now()) * 1000)::bigint, 'to', 'sent', 'by', 'poll', 'attempt', q.attempt + 1, 'epoch', null, 'node', $1::text))::json
      from free where q.tenant_id = $2 and q.device_id = $3 and q.seq = free.seq and free.anew
    returning q.*, free.rank, free.was)
  select ${OPEN_WITH_PAYLOAD}, q.rank, q.was from claimed q ${WITH_COMMAND}
  union all
  select ${OPEN_WITH_PAYLOAD}, q.rank, q.was from free q ${WITH_COMMAND} where not q.anew
  order by rank desc, seq`,
);

export interface PolledRow extends CommandRow {
  /** The agent has received it before and has not answered. */
  readonly again: boolean;
}

export const claimForPoll = async (db: Db, { tenantId, deviceId }: DeviceRef, limit: number, claimer: PollClaimer): Promise<readonly PolledRow[]> => {
  const { nodeId, timings, graceMs } = claimer;
  const rows = await db.query(POLL, [nodeId, tenantId, deviceId, limit, timings.pollLeaseMs, graceMs]);
  return rows.map((row) => ({ ...toRow(row), again: row.was === "sent" }));
};
