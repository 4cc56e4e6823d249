// Reads the dispatched events of one tenant from a position in its sequence on.

import type { DispatchedEvent } from "../../core/events.ts";
import { DISPATCHED, DISPATCHED_EVENT, dispatchedWithin, EVENT_COLUMNS, type EventRow, SEQUENCE, toEvent } from "../../core/rows/event-rows.ts";
import { statement } from "../../core/statements.ts";
import type { Db } from "../../platform/database/db.ts";

/** A position in a tenant's sequence, with the id of the event there. */
export interface Position {
  readonly eventId: string;
  readonly sequence: number;
}

/** The position before the tenant's first event. */
export const START: Position = { eventId: "0", sequence: 0 };

interface PositionRow {
  readonly event_id: string;
  readonly sequence: number;
}

const toPosition = (row: PositionRow | undefined): Position | null => (row === undefined ? null : { eventId: row.event_id, sequence: row.sequence });

const FIND_POSITION = statement<PositionRow>(
  "live.findPosition",
  `select e.event_id, ${SEQUENCE} as sequence from ${DISPATCHED_EVENT} where e.tenant_id = $1 and e.event_id = $2`,
);

/** Null when the tenant has no such event or retention has deleted it. */
export const findPosition = async (db: Db, tenantId: string, eventId: string): Promise<Position | null> => {
  if (eventId === START.eventId) return START;
  const [row] = await db.query(FIND_POSITION, [tenantId, eventId]);
  return toPosition(row);
};

const NEWEST_POSITION = statement<PositionRow>(
  "live.newestPosition",
  `select e.event_id, ${SEQUENCE} as sequence from ${DISPATCHED} where d.tenant_id = $1 order by d.last_sequence desc, o.nth desc limit 1`,
);

/** The position of the tenant's newest dispatched event. */
export const newestPosition = async (db: Db, tenantId: string): Promise<Position> => {
  const [row] = await db.query(NEWEST_POSITION, [tenantId]);
  return toPosition(row) ?? START;
};

/** Events per read. */
export const PAGE = 200;

const FAR = `${Number.MAX_SAFE_INTEGER}`;
const READ_AFTER = statement<EventRow>(
  "live.readAfter",
  `select ${EVENT_COLUMNS} from ${dispatchedWithin({ tenant: "$1", above: "$2::int8", below: FAR, order: "asc", count: PAGE })}
    order by d.last_sequence, o.nth limit ${PAGE}`,
);

export const readAfter = async (db: Db, tenantId: string, sequence: number): Promise<readonly DispatchedEvent[]> => {
  const rows = await db.query(READ_AFTER, [tenantId, sequence]);
  return rows.map(toEvent);
};

const READ_NEWEST = statement<EventRow>(
  "live.readNewest",
  `select ${EVENT_COLUMNS} from ${dispatchedWithin({ tenant: "$1", above: "0", below: FAR, order: "desc", count: "$2::int8" })}
    order by d.last_sequence desc, o.nth desc limit $2`,
);

/** Nobody has to look at a command that succeeded, and most events are of these. */
const READ_NOTABLE = statement<EventRow>(
  "live.readNotable",
  `select ${EVENT_COLUMNS} from ${dispatchedWithin({ tenant: "$1", above: "0", below: FAR, order: "desc", count: "$2::int8" })}
      and e.type <> 'command.completed'
    order by d.last_sequence desc, o.nth desc limit $3`,
);
/** Among the newest `looksAt` events. */
export const readNotable = async (db: Db, tenantId: string, looksAt: number, limit: number): Promise<readonly DispatchedEvent[]> =>
  (await db.query(READ_NOTABLE, [tenantId, looksAt, limit])).map(toEvent);

export const readNewest = async (db: Db, tenantId: string, limit: number): Promise<readonly DispatchedEvent[]> =>
  (await db.query(READ_NEWEST, [tenantId, limit])).map(toEvent);
