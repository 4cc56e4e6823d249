// Where a stream begins: after the last event that its viewer saw, or now, with the gap that the viewer has missed.
import type { StreamGap } from "../../../protocol/index.ts";
import type { DispatchedEvent } from "../../core/events.ts";
import type { Db } from "../../platform/database/db.ts";
import { findPosition, newestPosition, PAGE, type Position, readAfter } from "./store.ts";

export interface Beginning {
  readonly from: Position;
  readonly gap: StreamGap | null;
}

export const findBeginning = async (
  db: Db,
  tenantId: string,
  { lastEventId, replayedEvents }: { readonly lastEventId: string | null; readonly replayedEvents: number },
): Promise<Beginning> => {
  const newest = await newestPosition(db, tenantId);
  if (lastEventId === null) return { from: newest, gap: null };
  const asked = await findPosition(db, tenantId, lastEventId);
  if (asked === null) return { from: newest, gap: { reason: "unknown_position", missed: null } };
  // A tenant's sequence numbers have no holes.
  const missed = newest.sequence - asked.sequence;
  return missed > replayedEvents ? { from: newest, gap: { reason: "too_many", missed } } : { from: asked, gap: null };
};

/** Yields the missed events in order, and a number where so many have been deleted. */
export async function* readMissed(db: Db, tenantId: string, from: number): AsyncGenerator<DispatchedEvent | number> {
  for (let after = from; ; ) {
    const events = await readAfter(db, tenantId, after);
    for (const event of events) {
      if (event.sequence > after + 1) yield event.sequence - after - 1;
      after = event.sequence;
      yield event;
    }
    if (events.length < PAGE) return;
  }
}
