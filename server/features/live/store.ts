// Dispatched events of one tenant, from a place in its sequence onwards.
import { EVENT_COLUMNS, type EventRow, toEvent } from "../../core/event-rows.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import type { Db } from "../../platform/db.ts";

/** Null when the tenant has no such event, or has it no longer. */
export const findPosition = async (db: Db, tenantId: string, eventId: string): Promise<number | null> => {
  const [row] = await db.query<{ sequence: number }>(`select sequence from outbox_events where tenant_id = $1 and event_id = $2 and sequence is not null`, [
    tenantId,
    eventId,
  ]);
  return row?.sequence ?? null;
};

/** Of the tenant's newest dispatched event; 0 before the first. */
export const lastPosition = async (db: Db, tenantId: string): Promise<number> => {
  const [row] = await db.query<{ sequence: number | null }>("select max(sequence) as sequence from outbox_events where tenant_id = $1", [tenantId]);
  return row?.sequence ?? 0;
};

export const readAfter = async (
  db: Db,
  tenantId: string,
  { sequence, limit }: { readonly sequence: number; readonly limit: number },
): Promise<readonly DispatchedEvent[]> => {
  const rows = await db.query<EventRow>(`select ${EVENT_COLUMNS} from outbox_events where tenant_id = $1 and sequence > $2 order by sequence limit $3`, [
    tenantId,
    sequence,
    limit,
  ]);
  return rows.map(toEvent);
};
