// The provider's events that have been received, so that each has its effect once.
import type { Clients } from "../../../core/database.ts";

/** False: it was received before. Of two at once the second waits here for the first. */
export const insertProviderEvent = async (tx: Clients, event: { readonly eventId: string; readonly type: string }): Promise<boolean> =>
  (await tx.system.providerEvent.createMany({ data: [{ eventId: event.eventId, type: event.type }], skipDuplicates: true })).count === 1;

/** At most `limit` of them; true when there may be more. */
export const deleteProviderEvents = async (db: Clients, before: Date, limit: number): Promise<boolean> =>
  (await db.system.providerEvent.deleteMany({ where: { receivedAt: { lt: before } }, limit })).count === limit;
