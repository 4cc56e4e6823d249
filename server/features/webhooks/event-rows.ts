// Rows of the event log.
import { DEVICE_OF } from "../../core/event-data.ts";
import { DISPATCHED, DISPATCHED_EVENT, EVENT_COLUMNS, type EventRow, SEQUENCE, toEvent } from "../../core/event-rows.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import { statement } from "../../core/statements.ts";
import type { Sql } from "../../platform/db.ts";

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

// A dispatch may lie on both sides of a bound, so the bounds choose whole dispatches by the index, then events.
const MATCHING = `select ${EVENT_COLUMNS} from ${DISPATCHED}
  where d.tenant_id = $1 and d.last_sequence > $2 and ${SEQUENCE} > $2 and ${SEQUENCE} < $3
    and d.last_sequence <= coalesce((select min(b.last_sequence) from outbox_dispatches b where b.tenant_id = $1 and b.last_sequence >= $3), $3)
    and ($4::text[] is null or e.type = any($4)) and ($5::text is null or e.subject_id = $5)
    and ($6::timestamptz is null or e.created_at >= $6) and ($7::timestamptz is null or e.created_at < $7)
    and ($8::text[] is null or e.subject_id = any($8) or ${DEVICE_OF} = any($8))`;
const OLDEST_FIRST = statement<EventRow>("webhooks.eventsOldestFirst", `${MATCHING} order by d.last_sequence, o.nth limit $9`);
const NEWEST_FIRST = statement<EventRow>("webhooks.eventsNewestFirst", `${MATCHING} order by d.last_sequence desc, o.nth desc limit $9`);

export const findEvents = async (
  db: Query,
  { tenantId, above, below, types, subjectId, since, until, deviceIds }: EventFilter,
  { isAscending, limit }: { readonly isAscending: boolean; readonly limit: number },
): Promise<readonly DispatchedEvent[]> => {
  const values = [tenantId, above, below, types, subjectId, since, until, deviceIds, limit];
  return (await db.query(isAscending ? OLDEST_FIRST : NEWEST_FIRST, values)).map(toEvent);
};

const FIND_ONE = statement<EventRow>("webhooks.event", `select ${EVENT_COLUMNS} from ${DISPATCHED_EVENT} where e.tenant_id = $1 and e.event_id = $2`);
export const findEvent = async (db: Query, tenantId: string, eventId: string): Promise<DispatchedEvent | null> => {
  const [row] = await db.query(FIND_ONE, [tenantId, eventId]);
  return row === undefined ? null : toEvent(row);
};
