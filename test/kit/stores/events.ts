// What features have told the outbox.
import type { Db } from "../../../server/platform/database/db.ts";

interface StoredEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** In the order in which they happened: those about one record, or all. */
export const readEvents = (db: Pick<Db, "query">, subjectId?: string): Promise<StoredEvent[]> =>
  db.query<StoredEvent>(`select type, data from outbox_events where $1::text is null or subject_id = $1 order by position`, [subjectId ?? null]);
