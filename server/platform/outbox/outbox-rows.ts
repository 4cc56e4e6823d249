// The rows of the outbox: inserts events, numbers those that wait for the relay, and deletes old ones.

import type { DispatchedEvent, Emit, SqlTx } from "../../core/events.ts";
import { dispatchedOf, EVENT_COLUMNS, type EventRow, eventColumns, eventSource, INSERT_EVENTS, toEvent } from "../../core/rows/event-rows.ts";
import { type ExpiryBatch, type ExpiryStep, runExpiry } from "../../core/rows/retention.ts";
import type { SystemScope } from "../../core/scope.ts";
import { statement } from "../../core/statements.ts";
import type { Db } from "../database/db.ts";

const INSERT = statement("outbox.insert", `${INSERT_EVENTS} from ${eventSource(1)}`);

export const insertEvents = async (tx: SqlTx, events: Parameters<Emit>[1]): Promise<void> => {
  if (events.length > 0) await tx.query(INSERT, eventColumns(events));
};

// One row of what waits may be taken in part. What is left keeps its place.
const DISPATCH = statement<EventRow>(
  "outbox.dispatch",
  `with next as (
     select q.position as key, q.tenant_id, p.position from outbox_pending q cross join lateral unnest(q.positions) as p(position)
      where q.tenant_id <> all($2::text[]) order by q.position, p.position limit $1
   ), taken as (
     select key, count(*)::int as taken from next group by key
   ), gone as (
     delete from outbox_pending q using taken t where q.position = t.key and cardinality(q.positions) = t.taken
   ), shortened as (
     update outbox_pending q set positions = q.positions[t.taken + 1:] from taken t where q.position = t.key and cardinality(q.positions) > t.taken
   ), numbered as (
     insert into outbox_dispatches (tenant_id, last_sequence, positions, highest_position)
     select n.tenant_id, coalesce((select max(l.last_sequence) from outbox_dispatches l where l.tenant_id = n.tenant_id), 0) + count(*),
            array_agg(n.position order by n.position), max(n.position)
       from next n group by n.tenant_id
     returning tenant_id, last_sequence, positions
   )
   select ${EVENT_COLUMNS} from ${dispatchedOf("numbered")} order by e.position`,
);

/** Numbers the next events in order of position, and takes them from those that wait. */
export const dispatchNext = async (tx: SqlTx, limit: number, heldTenants: readonly string[]): Promise<readonly DispatchedEvent[]> =>
  (await tx.query(DISPATCH, [limit, heldTenants])).map(toEvent);

const IS_WAITING = statement<{ readonly waiting: boolean }>("outbox.isWaiting", "select exists (select from outbox_pending) as waiting");
export const isWaiting = async (db: Pick<Db, "query">): Promise<boolean> => (await db.query(IS_WAITING))[0]?.waiting ?? false;

export interface OutboxFigures {
  readonly undispatched: number;
  /** 0 when nothing waits. */
  readonly oldestSeconds: number;
}

/** A scrape must stay cheap however long the outbox has become. */
const COUNTED_UP_TO = 10_000;

const COUNT_UNDISPATCHED = statement<{ readonly undispatched: number; readonly oldest: number }>(
  "outbox.countUndispatched",
  `select coalesce(sum(cardinality(positions)), 0)::int as undispatched, coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as oldest
     from (select positions, created_at from outbox_pending order by position limit $1) as waiting`,
);

export const countUndispatched = async (db: Pick<Db, "query">): Promise<OutboxFigures> => {
  const [row] = await db.query(COUNT_UNDISPATCHED, [COUNTED_UP_TO]);
  return { undispatched: row?.undispatched ?? 0, oldestSeconds: Math.max(0, row?.oldest ?? 0) };
};

const FIND_WAITING = statement<{ readonly tenant_id: string; readonly event_id: string; readonly since: Date; readonly count: number }>(
  "outbox.findWaiting",
  `select w.tenant_id, e.event_id, w.since, w.count
     from (select tenant_id, min(positions[1]) as position, min(created_at) as since, sum(cardinality(positions))::int as count
             from (select tenant_id, positions, created_at from outbox_pending order by position limit $1) as waiting
            where created_at < now() - $2 * interval '1 second' group by tenant_id order by 3 limit $3) as w
     join outbox_events e on e.position = w.position order by w.since`,
);

/** The tenants whose events wait for longer, with their oldest one. */
export const findWaiting = (db: Pick<Db, "query">, afterSeconds: number, limit: number) => db.query(FIND_WAITING, [COUNTED_UP_TO, afterSeconds, limit]);

// The newest event of each tenant stays: its dispatch holds the last sequence number, and without that numbering would restart. Its order makes the search for
// it use the index: one that only asks whether there is a newer one reads the table from its beginning.
const DELETE_OLD = statement<ExpiryStep>(
  "outbox.deleteOldEvents",
  `with old as (
     select o.tenant_id, o.last_sequence, o.positions, o.dispatched_at,
            (select n.last_sequence from outbox_dispatches n where n.tenant_id = o.tenant_id order by n.last_sequence desc limit 1) > o.last_sequence as followed
       from outbox_dispatches o where o.dispatched_at >= $1::timestamptz and o.dispatched_at < now() - $3 * interval '1 day' order by o.dispatched_at
   ), due as (
     select *, sum(cardinality(positions)) over (order by dispatched_at, tenant_id, last_sequence) - cardinality(positions) as before
       from (select tenant_id, last_sequence, dispatched_at, followed, case when followed then positions else trim_array(positions, 1) end as positions
               from old where followed or cardinality(positions) > 1 limit $2) as oldest
   ), gone as (
     delete from outbox_dispatches d using due where d.tenant_id = due.tenant_id and d.last_sequence = due.last_sequence and due.followed and due.before < $2
   ), shortened as (
     update outbox_dispatches d set positions = d.positions[cardinality(d.positions):] from due
      where d.tenant_id = due.tenant_id and d.last_sequence = due.last_sequence and not due.followed and due.before < $2
   ), deleted as (
     delete from outbox_events e using due, unnest(due.positions) as p(position) where e.position = p.position and due.before < $2
   )
   select coalesce(sum(cardinality(positions)), 0)::int as looked, max(dispatched_at) as last from due where before < $2`,
);

/** Looks at as many events as the limit says or, to the end of a dispatch, some more. */
export const deleteOldEvents = (db: Pick<Db, "query">, keepDays: number, batch: ExpiryBatch): Promise<ExpiryStep> =>
  runExpiry(db, DELETE_OLD, batch, [keepDays]);

const DELETE_DISPATCHED = statement<{ readonly deleted: number }>(
  "outbox.deleteDispatched",
  `with due as (
     select last_sequence, positions, sum(cardinality(positions)) over (order by last_sequence) - cardinality(positions) as before
       from (select last_sequence, positions from outbox_dispatches where tenant_id = $1 order by last_sequence limit $2) as oldest
   ), gone as (
     delete from outbox_dispatches d using due where d.tenant_id = $1 and d.last_sequence = due.last_sequence and due.before < $2
   ), deleted as (
     delete from outbox_events e using due, unnest(due.positions) as p(position) where e.position = p.position and e.tenant_id = $1 and due.before < $2
   )
   select count(*)::int as deleted from due where before < $2`,
);

/** Deletes a tenant's oldest events, without those that wait for the relay. Returns 0 when there are no more. */
export const deleteDispatched = async (db: SqlTx, { tenantId }: SystemScope, limit: number): Promise<number> =>
  (await db.query(DELETE_DISPATCHED, [tenantId, limit]))[0]?.deleted ?? 0;
