// The rows of the outbox: inserts events, numbers and marks them for the relay, and deletes old ones.
import { EVENT_COLUMNS, type EventRow, toEvent } from "../core/event-rows.ts";
import type { DispatchedEvent, Emit, SqlTx } from "../core/events.ts";
import { newId } from "../core/ids.ts";
import { statement, TRY_LOCK } from "../core/statements.ts";
import type { Db } from "./db.ts";

const INTO = "insert into outbox_events (event_id, tenant_id, type, subject_id, data, request_id, traceparent)";
const COLUMN_TYPES = ["text", "text", "text", "text", "jsonb", "text", "text"];

/** Inserts `eventColumns`, which begin at that parameter, if `where` holds of the event `e`. For a statement that writes events together with their cause. */
export const insertEventsSql = (first: number, where = "true"): string =>
  `${INTO} select e.* from unnest(${COLUMN_TYPES.map((type, index) => `$${first + index}::${type}[]`).join(", ")})
     as e(event_id, tenant_id, type, subject_id, data, request_id, traceparent) where ${where}`;

const INSERT = statement("outbox.insert", insertEventsSql(1));

export const insertEvents = async (tx: SqlTx, events: Parameters<Emit>[1]): Promise<void> => {
  if (events.length > 0) await tx.query(INSERT, eventColumns(events));
};

export const eventColumns = (events: Parameters<Emit>[1]): readonly unknown[][] => {
  for (const { event } of events) if (!event.durable) throw new Error(`${event.type} is a hint and has no place in the outbox`);
  return [
    events.map(({ eventId }) => eventId ?? newId("evt")),
    events.map(({ scope }) => scope.tenantId),
    events.map(({ event }) => event.type),
    events.map(({ subjectId }) => subjectId),
    events.map(({ event, data }) => JSON.stringify(event.schema.parse(data))),
    events.map(({ scope }) => scope.requestId ?? null),
    events.map(({ scope }) => scope.traceparent ?? null),
  ];
};

// Any number that nothing else locks. One relay runs at a time over all nodes; its lock ends with the transaction.
const RELAY_LOCK = 7_266_530_021;

export const becomeRelay = async (tx: SqlTx): Promise<boolean> => {
  const [row] = await tx.query(TRY_LOCK, [RELAY_LOCK]);
  return row?.mine ?? false;
};

const NEXT = statement<EventRow>(
  "outbox.next",
  `select ${EVENT_COLUMNS} from outbox_events where dispatched_at is null and tenant_id <> all($2::text[]) order by position limit $1`,
);

const LAST_SEQUENCES = statement<{ readonly tenant_id: string; readonly sequence: number | null }>(
  "outbox.lastSequences",
  `select t.tenant_id, (select max(e.sequence) from outbox_events e where e.tenant_id = t.tenant_id) as sequence from unnest($1::text[]) as t(tenant_id)`,
);

/** Undispatched events in order of position, already numbered within their tenant. */
export const nextEvents = async (tx: SqlTx, limit: number, heldTenants: readonly string[]): Promise<readonly DispatchedEvent[]> => {
  const rows = await tx.query(NEXT, [limit, heldTenants]);
  const last = await tx.query(LAST_SEQUENCES, [[...new Set(rows.map(({ tenant_id }) => tenant_id))]]);
  const counters = new Map(last.map(({ tenant_id, sequence }) => [tenant_id, sequence ?? 0]));
  return rows.map((row) => {
    const sequence = (counters.get(row.tenant_id) ?? 0) + 1;
    counters.set(row.tenant_id, sequence);
    return { ...toEvent(row), sequence };
  });
};

const MARK_DISPATCHED = statement(
  "outbox.markDispatched",
  `update outbox_events e set sequence = v.sequence, dispatched_at = now()
     from unnest($1::text[], $2::bigint[]) as v(event_id, sequence) where e.event_id = v.event_id`,
);

export const markDispatched = (tx: SqlTx, events: readonly DispatchedEvent[]): Promise<unknown> =>
  tx.query(MARK_DISPATCHED, [events.map(({ eventId }) => eventId), events.map(({ sequence }) => sequence)]);

export interface OutboxFigures {
  readonly undispatched: number;
  /** 0 when nothing waits. */
  readonly oldestSeconds: number;
}

/** A scrape must stay cheap however long the outbox has become. */
const COUNTED_UP_TO = 10_000;

const COUNT_UNDISPATCHED = statement<{ readonly undispatched: number; readonly oldest: number }>(
  "outbox.countUndispatched",
  `select count(*)::int as undispatched, coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as oldest
     from (select created_at from outbox_events where dispatched_at is null order by position limit $1) as waiting`,
);

export const countUndispatched = async (db: Pick<Db, "query">): Promise<OutboxFigures> => {
  const [row] = await db.query(COUNT_UNDISPATCHED, [COUNTED_UP_TO]);
  return { undispatched: row?.undispatched ?? 0, oldestSeconds: Math.max(0, row?.oldest ?? 0) };
};

const FIND_WAITING = statement<{ readonly tenant_id: string; readonly event_id: string; readonly since: Date; readonly count: number }>(
  "outbox.findWaiting",
  `select tenant_id, (array_agg(event_id order by position))[1] as event_id, min(created_at) as since, count(*)::int as count
     from (select tenant_id, event_id, position, created_at from outbox_events where dispatched_at is null order by position limit $1) as waiting
    where created_at < now() - $2 * interval '1 second' group by tenant_id order by 3 limit $3`,
);

/** The tenants whose events wait for longer, with their oldest one. */
export const findWaiting = (db: Pick<Db, "query">, afterSeconds: number, limit: number) => db.query(FIND_WAITING, [COUNTED_UP_TO, afterSeconds, limit]);

// The newest event of each tenant stays: it holds the last sequence number, and without it numbering would restart.
const DELETE_OLD = statement(
  "outbox.deleteOldEvents",
  `delete from outbox_events where event_id in (
     select o.event_id from outbox_events o
      where o.dispatched_at is not null and o.created_at < now() - $1 * interval '1 day'
        and exists (select 1 from outbox_events n where n.tenant_id = o.tenant_id and n.sequence > o.sequence)
      order by o.created_at limit $2)`,
);

export const deleteOldEvents = (db: Db, { keepDays, limit }: { readonly keepDays: number; readonly limit: number }): Promise<number> =>
  db.execute(DELETE_OLD, [keepDays, limit]);
