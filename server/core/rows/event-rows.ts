// The rows of durable events: how an event is written, in the SQL of whoever writes it, and how dispatched ones are read with their sequence numbers.

import type { DispatchedEvent, Emit } from "../events.ts";
import { newId } from "../ids.ts";
import { packData, unpackData } from "./event-data.ts";

/** Takes the values of `eventColumns` as its parameters, of which the first has this number; the rows are called `e`. */
export const eventSource = (first: number): string => {
  const arrays = [0, 1, 2, 3, 4, 5, 6].map((at) => (at === DATA ? `string_to_array($${first + at}, e'\\n')::json[]` : `$${first + at}::text[]`));
  return `unnest(${arrays.join(", ")}) as e(${WRITTEN})`;
};
const WRITTEN = "event_id, tenant_id, type, subject_id, data, request_id, traceparent";
const DATA = 4;

/** Followed by `from` and a source of events, which may be joined with what decides whether they happened. */
export const INSERT_EVENTS = `insert into outbox_events (${WRITTEN}) select e.event_id, e.tenant_id, e.type, e.subject_id, e.data, e.request_id, e.traceparent`;

/** JSON contains no line break, so its texts need no quotes between them. */
const LINES = "\n";

const dataText = ({ event, subjectId, data }: Parameters<Emit>[1][number]): string =>
  JSON.stringify(packData({ type: event.type, subjectId, data: event.schema.parse(data) }));

export const eventColumns = (events: Parameters<Emit>[1]): readonly unknown[] => {
  for (const { event } of events) if (!event.durable) throw new Error(`${event.type} is a hint and has no place in the outbox`);
  return [
    events.map(({ eventId }) => eventId ?? newId("evt")),
    events.map(({ scope }) => scope.tenantId),
    events.map(({ event }) => event.type),
    events.map(({ subjectId }) => subjectId),
    events.map(dataText).join(LINES),
    events.map(({ scope }) => scope.requestId ?? null),
    events.map(({ scope }) => scope.traceparent ?? null),
  ];
};

/** The row of a dispatched event. */
export interface EventRow {
  readonly event_id: string;
  readonly position: number;
  readonly sequence: number;
  readonly tenant_id: string;
  readonly type: string;
  readonly subject_id: string;
  readonly data: string;
  readonly created_at: Date;
  readonly request_id: string | null;
  readonly traceparent: string | null;
}

/** Dispatched events `e`, each with its place `o` in its dispatch `d`; order them by `d.last_sequence, o.nth`. The limit keeps the planner from reading all events. */
export const dispatchedOf = (dispatches: string): string =>
  `${dispatches} d cross join lateral unnest(d.positions) with ordinality as o(position, nth)
   cross join lateral (select * from outbox_events where position = o.position limit 1) as e`;
export const DISPATCHED = dispatchedOf("outbox_dispatches");
export const SEQUENCE = "(d.last_sequence - cardinality(d.positions) + o.nth)";
const EVENT = "e.event_id, e.position, e.tenant_id, e.type, e.subject_id, e.data::text as data, e.created_at, e.request_id, e.traceparent";
/** The columns of `DISPATCHED`. */
export const EVENT_COLUMNS = `${EVENT}, ${SEQUENCE} as sequence`;

interface Window {
  readonly tenant: string;
  /** Both exclusive. */
  readonly above: string;
  readonly below: string;
  readonly order: "asc" | "desc";
  /** The number of events to look at. */
  readonly count: string | number;
}

/**
 * As `DISPATCHED`, of one tenant and between two sequence numbers: the first dispatches that have so many events there. It is bounded by itself, since
 * a planner that takes the tenant for a small one would read and sort all of its events for any page.
 */
export const dispatchedWithin = ({ tenant, above, below, order, count }: Window): string => {
  const within = `least(cardinality(positions), last_sequence - ${above}, ${below} - 1 - last_sequence + cardinality(positions))`;
  const dispatches = `(select last_sequence, positions, sum(${within}) over (order by last_sequence ${order}) - ${within} as before
     from outbox_dispatches where tenant_id = ${tenant} and last_sequence > ${above} and last_sequence - cardinality(positions) + 1 < ${below}
      and last_sequence <= coalesce((select min(b.last_sequence) from outbox_dispatches b where b.tenant_id = ${tenant} and b.last_sequence >= ${below}), ${below})
    order by last_sequence ${order} limit ${count})`;
  return `${dispatchedOf(dispatches)} where d.before < ${count} and ${SEQUENCE} > ${above} and ${SEQUENCE} < ${below}`;
};

/** Finds one event and its place by the condition that follows. `is true` keeps the planner from reading all dispatches of the tenant. */
export const DISPATCHED_EVENT = `outbox_events e cross join lateral (
    select d.last_sequence, d.positions from outbox_dispatches d
     where (d.tenant_id = e.tenant_id) is true and d.highest_position >= e.position and e.position = any(d.positions) order by d.highest_position limit 1
  ) as d cross join lateral (select array_position(d.positions, e.position) as nth) as o`;

/** Few look at the data of an event, so it is parsed for the first who does. */
class StoredEvent implements DispatchedEvent {
  readonly eventId: string;
  readonly position: number;
  readonly sequence: number;
  readonly tenantId: string;
  readonly type: string;
  readonly subjectId: string;
  readonly createdAt: Date;
  readonly requestId: string | null;
  readonly traceparent: string | null;
  #data: string | DispatchedEvent["data"];

  constructor(row: EventRow) {
    this.eventId = row.event_id;
    this.position = row.position;
    this.sequence = row.sequence;
    this.tenantId = row.tenant_id;
    this.type = row.type;
    this.subjectId = row.subject_id;
    this.createdAt = row.created_at;
    this.requestId = row.request_id;
    this.traceparent = row.traceparent;
    this.#data = row.data;
  }

  get data(): DispatchedEvent["data"] {
    if (typeof this.#data === "string") this.#data = unpackData(this.subjectId, JSON.parse(this.#data));
    return this.#data;
  }
}

export const toEvent = (row: EventRow): DispatchedEvent => new StoredEvent(row);

/** Selects the lowest and the highest sequence number of a tenant's events. */
export const eventEnds = (tenant: string): string => `select
  coalesce((select last_sequence - cardinality(positions) + 1 from outbox_dispatches where tenant_id = ${tenant} order by last_sequence limit 1), 1) as lowest,
  coalesce((select last_sequence from outbox_dispatches where tenant_id = ${tenant} order by last_sequence desc limit 1), 0) as highest`;
