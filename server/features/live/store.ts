// Dispatched events of one tenant, from a place in its sequence onwards.
import { EVENT_COLUMNS, type EventRow, toEvent } from "../../core/event-rows.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import type { Db } from "../../platform/db.ts";

/** A place in a tenant's sequence, named by the event that stands there. */
export interface Position {
  readonly eventId: string;
  readonly sequence: number;
}

/** Before the tenant's first event. */
export const START: Position = { eventId: "0", sequence: 0 };

const toPosition = (row: { readonly event_id: string; readonly sequence: number } | undefined): Position | null =>
  row === undefined ? null : { eventId: row.event_id, sequence: row.sequence };

/** Null when the tenant has no such event, or has it no longer. */
export const findPosition = async (db: Db, tenantId: string, eventId: string): Promise<Position | null> => {
  if (eventId === START.eventId) return START;
  const [row] = await db.query<{ event_id: string; sequence: number }>(
    `select event_id, sequence from outbox_events where tenant_id = $1 and event_id = $2 and sequence is not null`,
    [tenantId, eventId],
  );
  return toPosition(row);
};

/** Of the tenant's newest dispatched event. */
export const newestPosition = async (db: Db, tenantId: string): Promise<Position> => {
  const [row] = await db.query<{ event_id: string; sequence: number }>(
    `select event_id, sequence from outbox_events where tenant_id = $1 and sequence is not null order by sequence desc limit 1`,
    [tenantId],
  );
  return toPosition(row) ?? START;
};

/** How much is read at once. */
export const PAGE = 200;

export const readAfter = async (db: Db, tenantId: string, sequence: number): Promise<readonly DispatchedEvent[]> => {
  const rows = await db.query<EventRow>(`select ${EVENT_COLUMNS} from outbox_events where tenant_id = $1 and sequence > $2 order by sequence limit ${PAGE}`, [
    tenantId,
    sequence,
  ]);
  return rows.map(toEvent);
};
