// Rows of stream tickets: hashes, each valid for one use within a minute.
import type { Clients } from "../../core/database.ts";
import type { StreamTicketOwner } from "../../core/ports/lookups.ts";
import type { SystemScope } from "../../core/scope.ts";
import { orNull } from "../../platform/database/db-errors.ts";

export interface NewTicket {
  readonly hash: Uint8Array<ArrayBuffer>;
  readonly userId: string;
  /** The session that asks for it. */
  readonly sessionId: string | null;
  readonly impersonationId: string | null;
  readonly expiresAt: Date;
}

export const insertTicket = async (db: Clients, scope: SystemScope, ticket: NewTicket): Promise<void> => {
  await db.for(scope).streamTicket.create({ data: ticket });
};

/** Searches all tenants, because the ticket is the credential. Deletes it, so only one of two callers redeems it. */
export const takeTicket = async (db: Clients, hash: Uint8Array<ArrayBuffer>, now: Date): Promise<StreamTicketOwner | null> => {
  const ticket = await orNull(db.system.streamTicket.delete({ where: { hash } }));
  if (ticket === null || ticket.expiresAt <= now) return null;
  const { userId, sessionId, impersonationId } = ticket;
  return { tenantId: ticket.tenantId as StreamTicketOwner["tenantId"], userId, sessionId, impersonationId }; // as: the column holds nothing else
};

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const deleteExpired = async (db: Clients, now: Date): Promise<boolean> => {
  const { count } = await db.system.streamTicket.deleteMany({ where: { expiresAt: { lte: now } }, limit: SWEEP_ROWS });
  return count === SWEEP_ROWS;
};
