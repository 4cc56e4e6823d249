// Rows of invites. The database has only the hash of a link's token.
import { Prisma } from "../../../prisma/generated/client.ts";
import { type DeviceSelector, Invite, type Page, type TenantId } from "../../../protocol/index.ts";
import { storedSelector } from "../../core/access.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import type { MailDelivery } from "../../core/ports/mail.ts";
import { createListing } from "../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { LOCK } from "../../core/statements.ts";
import { orNull } from "../../platform/database/db-errors.ts";

const StoredInvite = Invite.omit({ delivery: true });
type Row = RowOf<typeof StoredInvite> & {
  readonly roleId: string;
  readonly mailId: string | null;
  readonly inviterName: string | null;
  readonly expiresAt: Date;
};

/** An invite with what only the feature reads. */
export interface StoredInvite {
  readonly invite: Omit<Invite, "delivery">;
  readonly tenantId: TenantId;
  readonly mailId: string | null;
  readonly inviterName: string | null;
  readonly isOver: boolean;
}

const toStored = (row: Row, now: Date): StoredInvite => {
  const invite = recordOf(StoredInvite, { ...row, selector: storedSelector(row.selector) });
  const { mailId, inviterName, expiresAt } = row;
  return { invite, tenantId: invite.tenantId, mailId, inviterName, isOver: invite.status === "pending" && expiresAt <= now };
};

export const toInvite = ({ invite, mailId, isOver }: StoredInvite, deliveries: ReadonlyMap<string, MailDelivery>): Invite => ({
  ...invite,
  // A job writes it within a minute.
  status: isOver ? "expired" : invite.status,
  delivery: deliveries.get(mailId ?? "") ?? null,
});

const pending = (now: Date) => ({ status: "pending", expiresAt: { gt: now } });
const over = (now: Date) => ({ status: "pending", expiresAt: { lte: now } });
const ofStatus = (status: Invite["status"], now: Date) => {
  if (status === "pending") return pending(now);
  return status === "expired" ? { OR: [{ status }, over(now)] } : { status };
};

/** Until the transaction ends, every other transaction that creates invites of this tenant waits. */
export const lockInvites = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`invites of ${tenantId}`]);
};

/** For the plan. */
export const countPending = (db: Clients, scope: SystemScope, now: Date): Promise<number> => db.for(scope).invite.count({ where: pending(now) });

/** The times of the invites made since then, oldest first. */
export const recentInvites = async (db: Clients, scope: SystemScope, since: Date): Promise<readonly Date[]> => {
  const where = { createdAt: { gt: since } };
  return (await db.for(scope).invite.findMany({ where, orderBy: { createdAt: "asc" }, select: { createdAt: true } })).map(({ createdAt }) => createdAt);
};

export const hasPending = async (db: Clients, scope: SystemScope, email: string, now: Date): Promise<boolean> =>
  (await db.for(scope).invite.count({ where: { email, ...pending(now) } })) > 0;

/** The ids of pending invites whose members will be limited to the fleet. */
export const findLimitedInvites = async (
  db: Clients,
  scope: SystemScope,
  { fleetId, limit, now }: { readonly fleetId: string; readonly limit: number; readonly now: Date },
): Promise<readonly string[]> => {
  const where = { ...pending(now), selector: { path: ["fleetIds"], array_contains: [fleetId] } };
  return (await db.for(scope).invite.findMany({ where, take: limit, select: { inviteId: true } })).map(({ inviteId }) => inviteId);
};

export interface NewInvite {
  readonly inviteId: string;
  readonly email: string;
  readonly roleId: string;
  readonly message: string | null;
  readonly hash: Uint8Array<ArrayBuffer>;
  readonly invitedBy: string;
  readonly inviterName: string | null;
  readonly expiresAt: Date;
  readonly mailId: string | null;
  readonly selector: DeviceSelector | null;
}

export const insertInvite = async (db: Clients, scope: SystemScope, { selector, ...invite }: NewInvite, now: Date): Promise<StoredInvite> =>
  toStored(await db.for(scope).invite.create({ data: { ...invite, selector: selector ?? Prisma.DbNull } }), now);

export const findInvite = async (db: Clients, scope: SystemScope, inviteId: string, now: Date): Promise<StoredInvite | null> => {
  const row = await db.for(scope).invite.findFirst({ where: { inviteId } });
  return row === null ? null : toStored(row, now);
};

/** Searches all tenants, because the link is the credential. */
export const findInviteByHash = async (db: Clients, hash: Uint8Array<ArrayBuffer>, now: Date): Promise<StoredInvite | null> => {
  const row = await db.system.invite.findFirst({ where: { hash } });
  return row === null ? null : toStored(row, now);
};

const listInvites = createListing(
  "invites",
  { createdAt: { kind: "time" }, email: { kind: "text" }, expiresAt: { kind: "time" } },
  { column: "inviteId", kind: "text" },
);

export type InvitesQuery = Parameters<typeof listInvites>[0] & { readonly status?: Invite["status"] | undefined };

export const pageOfInvites = (db: Clients, scope: SystemScope, query: InvitesQuery, now: Date): Promise<Page<StoredInvite>> => {
  const { invite } = db.for(scope);
  const where = query.status === undefined ? {} : ofStatus(query.status, now);
  return listInvites(query, {
    owner: scope.tenantId,
    rows: (asked) => invite.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => invite.count({ where }),
    record: (row) => toStored(row, now),
  });
};

export interface Renewal {
  readonly now: Date;
  readonly hash: Uint8Array<ArrayBuffer>;
  readonly expiresAt: Date;
  readonly mailId: string | null;
}

/** Null when the invite is no longer pending. */
export const renewInvite = async (db: Clients, scope: SystemScope, inviteId: string, { now, ...renewal }: Renewal): Promise<StoredInvite | null> => {
  const data = { ...renewal, sendCount: { increment: 1 }, lastSentAt: now, version: { increment: 1 } };
  const row = await orNull(db.for(scope).invite.update({ where: { inviteId, ...pending(now) }, data }));
  return row === null ? null : toStored(row, now);
};

export interface Ending {
  readonly now: Date;
  readonly status: "accepted" | "declined" | "revoked";
  /** Ends the invite only while this link is its current one. */
  readonly hash?: Uint8Array<ArrayBuffer> | undefined;
  readonly acceptedBy?: string;
}

const ENDED_AT = { accepted: "acceptedAt", declined: "declinedAt", revoked: "revokedAt" } as const;

/** False when the invite is not pending any more. */
export const endInvite = async (db: Clients, scope: SystemScope, inviteId: string, { now, status, hash, ...by }: Ending): Promise<boolean> => {
  const where = { inviteId, ...given({ hash }), ...pending(now) };
  const data = { status, ...by, [ENDED_AT[status]]: now, version: { increment: 1 } };
  return (await db.for(scope).invite.updateMany({ where, data })).count === 1;
};

/** Marks an invite whose time is over; false when another node was first. */
export const expireInvite = async (db: Clients, scope: SystemScope, inviteId: string, now: Date): Promise<boolean> =>
  (await db.for(scope).invite.updateMany({ where: { inviteId, ...over(now) }, data: { status: "expired", version: { increment: 1 } } })).count === 1;

/** Makes room for a new invite to an address whose last one is over. The ids of those that it marked. */
export const expireOf = async (db: Clients, scope: SystemScope, email: string, now: Date): Promise<readonly { inviteId: string; roleId: string }[]> =>
  db.for(scope).invite.updateManyAndReturn({
    where: { email, ...over(now) },
    data: { status: "expired", version: { increment: 1 } },
    select: { inviteId: true, roleId: true },
  });

export const findOver = async (db: Clients, now: Date, limit: number): Promise<readonly StoredInvite[]> =>
  (await db.system.invite.findMany({ where: over(now), orderBy: { expiresAt: "asc" }, take: limit })).map((row) => toStored(row, now));

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const forgetInvites = async (db: Clients, before: Date): Promise<boolean> => {
  const where = { status: { not: "pending" }, updatedAt: { lte: before } };
  return (await db.system.invite.deleteMany({ where, limit: SWEEP_ROWS })).count === SWEEP_ROWS;
};
