// Rows of stream tickets: hashes, each valid for one use within a minute.
import { secondsFromNow, systemClock } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import type { StreamTicketOwner } from "../../core/ports/lookups.ts";
import type { SystemScope } from "../../core/scope.ts";
import { orNull } from "../../platform/database/db-errors.ts";

export interface NewTicket {
  readonly hash: Uint8Array<ArrayBuffer>;
  readonly userId: string;
  /** The session that asks for it. */
  readonly sessionId: string | null;
  readonly lifeSeconds: number;
}

export const insertTicket = async (db: Clients, scope: SystemScope, { lifeSeconds, ...ticket }: NewTicket): Promise<Date> => {
  const { expiresAt } = await db.for(scope).streamTicket.create({ data: { ...ticket, expiresAt: secondsFromNow(lifeSeconds) } });
  return expiresAt;
};

/** Searches all tenants, because the ticket is the credential. Deletes it, so only one of two callers redeems it. */
export const takeTicket = async (db: Clients, hash: Uint8Array<ArrayBuffer>): Promise<StreamTicketOwner | null> => {
  const ticket = await orNull(db.system.streamTicket.delete({ where: { hash } }));
  if (ticket === null || ticket.expiresAt <= systemClock.now()) return null;
  return { tenantId: ticket.tenantId as StreamTicketOwner["tenantId"], userId: ticket.userId, sessionId: ticket.sessionId }; // as: the column holds nothing else
};

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const deleteExpired = async (db: Clients): Promise<boolean> => {
  const { count } = await db.system.streamTicket.deleteMany({ where: { expiresAt: { lte: systemClock.now() } }, limit: SWEEP_ROWS });
  return count === SWEEP_ROWS;
};
