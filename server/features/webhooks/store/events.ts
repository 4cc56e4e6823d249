// Rows of the event log.

import type { DispatchedEvent } from "../../../core/events.ts";
import { DEVICE_OF } from "../../../core/rows/event-data.ts";
import { DISPATCHED_EVENT, dispatchedWithin, EVENT_COLUMNS, type EventRow, eventEnds, toEvent } from "../../../core/rows/event-rows.ts";
import { statement } from "../../../core/statements.ts";
import type { Sql } from "../../../platform/database/db.ts";

type Query = Pick<Sql, "query">;

export interface EventFilter {
  readonly tenantId: string;
  /** Sequence numbers, both exclusive. */
  readonly above: number;
  readonly below: number;
  readonly types: readonly string[] | null;
  readonly subjectId: string | null;
  readonly since: Date | null;
  readonly until: Date | null;
  /** Only events about these devices; null: all. */
  readonly deviceIds: readonly string[] | null;
}

const matching = (order: "asc" | "desc"): string => `select ${EVENT_COLUMNS}
  from ${dispatchedWithin({ tenant: "$1", above: "$2::int8", below: "$3::int8", order, count: "$10::int8" })}
    and ($4::text[] is null or e.type = any($4)) and ($5::text is null or e.subject_id = $5)
    and ($6::timestamptz is null or e.created_at >= $6) and ($7::timestamptz is null or e.created_at < $7)
    and ($8::text[] is null or e.subject_id = any($8) or ${DEVICE_OF} = any($8))
  order by d.last_sequence ${order}, o.nth ${order} limit $9`;
const OLDEST_FIRST = statement<EventRow>("webhooks.eventsOldestFirst", matching("asc"));
const NEWEST_FIRST = statement<EventRow>("webhooks.eventsNewestFirst", matching("desc"));

/** Most pages are full after so few events; only a filter that fits rarely looks at more. */
const FIRST_LOOK = 2_000;

/** The lowest and the highest sequence number of a tenant's events. */
export interface EventEnds {
  readonly lowest: number;
  readonly highest: number;
}
const ENDS = statement<EventEnds>("webhooks.eventEnds", eventEnds("$1"));
export const findEnds = async (db: Query, tenantId: string): Promise<EventEnds> => (await db.query(ENDS, [tenantId]))[0] ?? { lowest: 1, highest: 0 };

/** Between `above` and `below` no more than a page may look at. */
export const findEvents = async (
  db: Query,
  { tenantId, above, below, types, subjectId, since, until, deviceIds }: EventFilter,
  { isAscending, limit }: { readonly isAscending: boolean; readonly limit: number },
): Promise<readonly DispatchedEvent[]> => {
  const values = [tenantId, above, below, types, subjectId, since, until, deviceIds, limit];
  const look = async (count: number) => (await db.query(isAscending ? OLDEST_FIRST : NEWEST_FIRST, [...values, count])).map(toEvent);
  const first = await look(FIRST_LOOK);
  return first.length === limit ? first : look(Number.MAX_SAFE_INTEGER);
};

const FIND_ONE = statement<EventRow>("webhooks.event", `select ${EVENT_COLUMNS} from ${DISPATCHED_EVENT} where e.tenant_id = $1 and e.event_id = $2`);
export const findEvent = async (db: Query, tenantId: string, eventId: string): Promise<DispatchedEvent | null> => {
  const [row] = await db.query(FIND_ONE, [tenantId, eventId]);
  return row === undefined ? null : toEvent(row);
};
