// Rows of the event log.
import { EVENT_COLUMNS, type EventRow, toEvent } from "../../core/event-rows.ts";
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

const MATCHING = `select ${EVENT_COLUMNS} from outbox_events
  where tenant_id = $1 and sequence > $2 and sequence < $3 and ($4::text[] is null or type = any($4)) and ($5::text is null or subject_id = $5)
    and ($6::timestamptz is null or created_at >= $6) and ($7::timestamptz is null or created_at < $7)
    and ($8::text[] is null or subject_id = any($8) or data ->> 'deviceId' = any($8))`;
const OLDEST_FIRST = statement<EventRow>("webhooks.eventsOldestFirst", `${MATCHING} order by sequence limit $9`);
const NEWEST_FIRST = statement<EventRow>("webhooks.eventsNewestFirst", `${MATCHING} order by sequence desc limit $9`);

export const findEvents = async (
  db: Query,
  { tenantId, above, below, types, subjectId, since, until, deviceIds }: EventFilter,
  { isAscending, limit }: { readonly isAscending: boolean; readonly limit: number },
): Promise<readonly DispatchedEvent[]> => {
  const values = [tenantId, above, below, types, subjectId, since, until, deviceIds, limit];
  return (await db.query(isAscending ? OLDEST_FIRST : NEWEST_FIRST, values)).map(toEvent);
};

const FIND_ONE = statement<EventRow>(
  "webhooks.event",
  `select ${EVENT_COLUMNS} from outbox_events where tenant_id = $1 and event_id = $2 and sequence is not null`,
);
export const findEvent = async (db: Query, tenantId: string, eventId: string): Promise<DispatchedEvent | null> => {
  const [row] = await db.query(FIND_ONE, [tenantId, eventId]);
  return row === undefined ? null : toEvent(row);
};
