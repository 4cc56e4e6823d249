// Reads of commands: one or some by their ids, the reason why it waits, and figures of the whole queue.
import type { CommandId, CommandStatus } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/database/db.ts";
import { ALL_COLUMNS, IN_FLIGHT, OPEN_COLUMNS, WITH_COMMAND } from "./columns.ts";
import { type CommandRow, type DbRow, toRow } from "./rows.ts";

const FIND_MANY = statement<DbRow>(
  "commands.findMany",
  `select ${ALL_COLUMNS} from unnest($1::text[], $2::text[]) as v(command_id, tenant_id)
     cross join lateral (select * from commands_now o where o.tenant_id = v.tenant_id and o.command_id = v.command_id offset 0) c`,
);

/** In the order of the refs; null for a command that the tenant does not have. */
export const findCommands = async (
  db: Db,
  refs: readonly { readonly tenantId: string; readonly commandId: string }[],
): Promise<readonly (CommandRow | null)[]> => {
  const rows = await db.query(FIND_MANY, [refs.map(({ commandId }) => commandId), refs.map(({ tenantId }) => tenantId)]);
  const found = new Map(rows.map((row) => [`${row.tenant_id} ${row.command_id}`, toRow(row)]));
  return refs.map(({ tenantId, commandId }) => found.get(`${tenantId} ${commandId}`) ?? null);
};

const FIND = statement<DbRow>(
  "commands.find",
  `select ${ALL_COLUMNS} from commands_now c where c.command_id = $1 and c.tenant_id = $2 and ($3::text is null or c.device_id is not distinct from $3)`,
);

/** With a device id, only as a command of that device. */
export const findCommand = async (db: SqlTx, { tenantId }: SystemScope, commandId: string, deviceId: string | null = null): Promise<CommandRow | null> => {
  const [row] = await db.query(FIND, [commandId, tenantId, deviceId]);
  return row === undefined ? null : toRow(row);
};

const FIND_STATES = statement<{ readonly command_id: string; readonly status: CommandStatus; readonly failure_code: string | null }>(
  "commands.findStates",
  `select c.command_id, c.status, c.failure_code from unnest($2::text[]) as v(command_id)
     cross join lateral (select * from commands_now o where o.tenant_id = $1 and o.command_id = v.command_id offset 0) c`,
);

export interface OrderedState {
  readonly status: CommandStatus;
  readonly failureCode: string | null;
}

/** The states of commands that a feature ordered; those that retention has deleted are missing. */
export const findStates = async (sql: SqlTx, { tenantId }: SystemScope, commandIds: readonly string[]): Promise<ReadonlyMap<string, OrderedState>> => {
  const rows = commandIds.length === 0 ? [] : await sql.query(FIND_STATES, [tenantId, commandIds]);
  return new Map(rows.map(({ command_id, status, failure_code }) => [command_id, { status, failureCode: failure_code }]));
};

export interface Surroundings {
  readonly now: Date;
  readonly connectivity: string;
  readonly lastSeenAt: Date | null;
  readonly inFlight: number;
  /** How many the device's newest session takes at once; null before its first session. */
  readonly maxInFlight: number | null;
  /** The open command before it in its lane. */
  readonly ahead: { readonly commandId: CommandId; readonly type: string; readonly status: CommandStatus; readonly since: Date } | null;
}

interface SurroundingsRow {
  readonly now: Date;
  readonly connectivity: string | null;
  readonly last_seen_at: Date | null;
  readonly in_flight: number;
  readonly max_in_flight: number | null;
  readonly ahead_id: CommandId | null;
  readonly ahead_type: string | null;
  readonly ahead_status: CommandStatus | null;
  readonly ahead_since: Date | null;
}

const READ_SURROUNDINGS = statement<SurroundingsRow>(
  "commands.readSurroundings",
  `select now(), p.connectivity, p.last_seen_at, p.max_in_flight, b.command_id as ahead_id, b.type as ahead_type, b.status as ahead_status,
          coalesce(b.started_at, b.sent_at, b.issued_at) as ahead_since,
          (select count(*) from command_queue o where o.tenant_id = $1 and o.device_id = $2 and o.status in ${IN_FLIGHT}) as in_flight
     from (select) one
     left join device_presence p on p.device_id = $2 and p.tenant_id = $1
     left join lateral (
       select q.command_id, c.type, q.status, q.started_at, q.sent_at, c.issued_at from command_queue q ${WITH_COMMAND}
        where q.tenant_id = $1 and q.device_id = $2 and q.lane = $3 and q.seq < $4 order by q.seq limit 1) b on true`,
);

export const readSurroundings = async (db: Db, row: CommandRow): Promise<Surroundings> => {
  const [found] = await db.query(READ_SURROUNDINGS, [row.tenantId, row.deviceId, row.lane, row.seq]);
  if (found === undefined) throw new Error("the query returned no row");
  return {
    now: found.now,
    connectivity: found.connectivity ?? "none",
    lastSeenAt: found.last_seen_at,
    inFlight: found.in_flight,
    maxInFlight: found.max_in_flight,
    ahead:
      found.ahead_id === null || found.ahead_type === null || found.ahead_status === null || found.ahead_since === null
        ? null
        : { commandId: found.ahead_id, type: found.ahead_type, status: found.ahead_status, since: found.ahead_since },
  };
};

export interface SessionHolder {
  readonly nodeId: string;
  readonly epoch: number;
}
const FIND_HOLDER = statement<SessionHolder>(
  "commands.findHolder",
  `select p.node_id as "nodeId", p.epoch from device_presence p where p.device_id = $2 and p.tenant_id = $1 and p.connectivity = 'realtime' and p.node_id is not null`,
);

/** The node that holds the device's session. */
export const findHolder = async (db: Db, { tenantId, deviceId }: DeviceRef): Promise<SessionHolder | null> =>
  (await db.query(FIND_HOLDER, [tenantId, deviceId]))[0] ?? null;

const FIND_PENDING = statement<{ readonly queued: number; readonly cancel: readonly CommandId[] | null }>(
  "commands.findPending",
  `select count(*) filter (where q.status = 'queued') as queued,
     array_agg(q.command_id order by q.seq) filter (where q.status = 'canceling' and q.deadline_at > now()) as cancel
   from command_queue q where q.tenant_id = $1 and q.device_id = $2`,
);

/** How many commands wait for the device, and which ones it must cancel until it acknowledges or the deadline passes. */
export const findPending = async (
  tx: Pick<Db, "query">,
  { tenantId, deviceId }: DeviceRef,
): Promise<{ readonly queued: number; readonly cancel: readonly CommandId[] }> => {
  const [row] = await tx.query(FIND_PENDING, [tenantId, deviceId]);
  return { queued: row?.queued ?? 0, cancel: row?.cancel ?? [] };
};

export interface OpenCount {
  readonly queued: number;
  /** The agent may hold them. */
  readonly inFlight: number;
}

// As subqueries the lists have the same estimated length in every call, so PostgreSQL keeps one plan instead of planning for each list.
const COUNT_OPEN_OF = statement<OpenCount & { readonly deviceId: string }>(
  "commands.countOpenOf",
  `select s.device_id as "deviceId", n.queued, n.in_flight as "inFlight" from unnest((select $1::text[]), (select $2::text[])) as s(tenant_id, device_id) cross join lateral (
     select count(*) filter (where q.status = 'queued') as queued, count(*) filter (where q.status <> 'queued') as in_flight
       from command_queue q where q.tenant_id = s.tenant_id and q.device_id = s.device_id) n
    where n.queued > 0 or n.in_flight > 0`,
);

/** By device; only devices that have any. The lateral join reads each device by itself: with a plain join the planner may read all open commands. */
export const countOpenOf = async (tx: Pick<Db, "query">, devices: readonly DeviceRef[]): Promise<ReadonlyMap<string, OpenCount>> => {
  const rows = await tx.query(COUNT_OPEN_OF, [devices.map(({ tenantId }) => tenantId), devices.map(({ deviceId }) => deviceId)]);
  return new Map(rows.map(({ deviceId, queued, inFlight }) => [deviceId, { queued, inFlight }]));
};

export interface SweepWindow {
  /** ISO time of the last sweep's upper bound; null sweeps everything. */
  readonly after: string | null;
  /** Younger commands are left to the hints. */
  readonly graceMs: number;
  readonly limit: number;
}

const SWEEP_UNTIL = statement<{ readonly until: string }>(
  "commands.sweepUntil",
  `select to_char((now() - $1 * interval '1 millisecond') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as until`,
);
const FIND_SWEEPABLE = statement<{ readonly device_id: string }>(
  "commands.findSweepable",
  `select distinct q.device_id from device_presence p join command_queue q on q.tenant_id = p.tenant_id and q.device_id = p.device_id
    where p.node_id = $1 and p.connectivity = 'realtime' and q.status = 'queued' and q.seq > 0
      and ($2::timestamptz is null or q.available_at > $2::timestamptz - interval '10 s') and q.available_at <= $3::timestamptz limit $4`,
);

const FIND_CANCELING = statement<DbRow>(
  "commands.findCanceling",
  `select ${OPEN_COLUMNS} from command_queue q ${WITH_COMMAND} join device_presence p on p.device_id = q.device_id
    where p.node_id = $1 and p.connectivity = 'realtime' and q.status = 'canceling' and q.seq > 0
      and ($2::timestamptz is null or q.cancel_requested_at > $2::timestamptz - interval '10 s') and q.cancel_requested_at <= $3::timestamptz limit $4`,
);

/** Devices of this node with something to claim, and the commands that they are to stop. The window keeps a backlog for absent devices from being read again and again. */
export const findSweepable = async (
  db: Db,
  nodeId: string,
  { after, graceMs, limit }: SweepWindow,
): Promise<{ readonly deviceIds: readonly string[]; readonly canceling: readonly CommandRow[]; readonly until: string }> => {
  const [bounds] = await db.query(SWEEP_UNTIL, [graceMs]);
  if (bounds === undefined) throw new Error("the query returned no time");
  const values = [nodeId, after, bounds.until, limit];
  const [due, canceling] = await Promise.all([db.query(FIND_SWEEPABLE, values), db.query(FIND_CANCELING, values)]);
  return { deviceIds: due.map(({ device_id }) => device_id), canceling: canceling.map(toRow), until: bounds.until };
};

const COUNT_OPEN = statement<{ readonly status: string; readonly count: number; readonly past: number }>(
  "commands.countOpen",
  `select q.status, count(*), count(*) filter (where q.deadline_at < now() - $1 * interval '1 millisecond') as past from command_queue q group by q.status`,
);

/** Over all tenants, for metrics. `pastDeadline` must be 0: a row past its deadline by more than the reaper's grace is a defect. */
export const countOpen = async (db: Db, graceMs: number): Promise<{ readonly open: Readonly<Record<string, number>>; readonly pastDeadline: number }> => {
  const rows = await db.query(COUNT_OPEN, [graceMs]);
  return { open: Object.fromEntries(rows.map(({ status, count }) => [status, count])), pastDeadline: rows.reduce((sum, { past }) => sum + past, 0) };
};

const LAST_STEP = "greatest(c.issued_at, q.sent_at, q.acked_at, q.started_at, q.cancel_requested_at, q.ack_at)";
const LIGHT_OPEN_COLUMNS = OPEN_COLUMNS.replace("q.output,", "null::jsonb as output,");
// The left join returns the time even if there are no rows.
const FIND_RECENT = statement<DbRow & { readonly until: string; readonly last_step: Date }>(
  "commands.findRecent",
  `with c as (
     select ${LIGHT_OPEN_COLUMNS}, ${LAST_STEP} as last_step from command_queue q ${WITH_COMMAND}
      where q.tenant_id = $1 and ${LAST_STEP} > coalesce($2::timestamptz, now()) - interval '2 s' order by last_step desc limit $3)
   select now()::text as until, c.* from (select) as one left join c on true order by c.last_step`,
);

// A transaction's rows become visible only when it commits, so each read overlaps the one before.
/** Open commands of a tenant that changed since the last read, or lately; the caller passes `until` as `since` the next time. */
export const findRecent = async (
  db: Db,
  tenantId: string,
  { since, limit }: { readonly since: string | null; readonly limit: number },
): Promise<{ readonly commands: readonly CommandRow[]; readonly until: string }> => {
  const rows = await db.query(FIND_RECENT, [tenantId, since, limit]);
  if (rows[0] === undefined) throw new Error("the query returned no time");
  return { commands: rows.flatMap((row) => (row.command_id === null ? [] : [toRow(row)])), until: rows[0].until };
};

const FIND_AWAITED = statement<{ readonly key: string }>(
  "commands.findAwaited",
  `select distinct q.device_id as key from unnest($1::text[], $2::text[]) as w(tenant_id, key) join command_queue q on q.tenant_id = w.tenant_id and q.device_id = w.key
    where (q.status = 'queued' and q.available_at <= now() and (q.expires_at is null or q.expires_at > now())) or (q.status = 'canceling' and q.deadline_at > now())
   union all select c.command_id from unnest($1::text[], $2::text[]) as w(tenant_id, key) join commands c on c.tenant_id = w.tenant_id and c.command_id = w.key
    where c.finished_at is not null`,
);

/** Which of these waiting calls can return: devices with a command to run or to cancel, and commands that have ended. */
export const findAwaited = async (db: Db, keys: readonly { readonly tenantId: string; readonly id: string }[]): Promise<readonly string[]> => {
  const rows = await db.query(FIND_AWAITED, [keys.map(({ tenantId }) => tenantId), keys.map(({ id }) => id)]);
  return rows.map(({ key }) => key);
};
