// Rows of people, their sessions and sign-in links. The database has only hashes of the secrets.
import type { Prisma } from "../../../prisma/generated/client.ts";
import type { SessionId } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { given } from "../../core/rows/records.ts";
import { LOCK } from "../../core/statements.ts";
import { orNull } from "../../platform/database/db-errors.ts";

export type SessionRow = Prisma.SessionGetPayload<{ include: typeof WITH_EMAIL }>;
const WITH_EMAIL = { user: { select: { email: true, emailVerified: true } } } as const;

const newestFirst = (): Prisma.SessionOrderByWithRelationInput[] => [{ createdAt: "desc" }, { sessionId: "desc" }];

type Hash = Uint8Array<ArrayBuffer>;

export interface SignedInUser {
  readonly userId: string;
  /** Null if this sign-in does not tell; what is known stays. */
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly name: string | null;
}

/** Records what a sign-in tells of a person. */
export const noteUser = async (db: Clients, { userId, email, emailVerified, name }: SignedInUser, lastSignInAt: Date): Promise<void> => {
  const told = given({ name: name ?? undefined, ...(email === null ? {} : { email, emailVerified }), lastSignInAt });
  await db.system.user.upsert({ where: { userId }, create: { userId, ...told }, update: told });
};

export interface NewUserSession {
  readonly sessionId: SessionId;
  readonly userId: string;
  readonly hash: Hash;
  readonly method: "oidc" | "link";
  readonly claimedTenantId: string | null;
  readonly ip: string;
  readonly userAgent: string | null;
  readonly createdAt: Date;
  readonly lifeSeconds: number;
}

/** Beyond `most` the user's oldest sessions end. */
export const insertSession = async (tx: Tx, { lifeSeconds, ...session }: NewUserSession, most: number): Promise<SessionRow> => {
  const { userId } = session;
  await tx.query(LOCK, [`sessions of ${userId}`]);
  const old = await tx.system.session.findMany({ where: { userId }, orderBy: newestFirst(), select: { sessionId: true }, skip: most - 1 });
  if (old.length > 0) await tx.system.session.deleteMany({ where: { sessionId: { in: old.map(({ sessionId }) => sessionId) } } });
  return tx.system.session.create({
    data: { ...session, lastSeenAt: session.createdAt, expiresAt: secondsFromNow(lifeSeconds, session.createdAt) },
    include: WITH_EMAIL,
  });
};

/** Live ones only. */
const live = (idleSeconds: number, now: Date) => ({ expiresAt: { gt: now }, lastSeenAt: { gt: secondsFromNow(-idleSeconds, now) } });

export const findSession = (
  db: Clients,
  key: { readonly hash: Hash } | { readonly sessionId: string },
  idleSeconds: number,
  now: Date,
): Promise<SessionRow | null> => db.system.session.findFirst({ where: { ...key, ...live(idleSeconds, now) }, include: WITH_EMAIL });

export const sessionsOf = (db: Clients, userId: string, idleSeconds: number, now: Date): Promise<SessionRow[]> =>
  db.system.session.findMany({ where: { userId, ...live(idleSeconds, now) }, orderBy: newestFirst(), include: WITH_EMAIL });

/** The user's live sessions that are named, or all but those. Returns how many. */
export const deleteSessions = async (
  tx: Clients,
  userId: string,
  which: { readonly only: string } | { readonly except: string | undefined },
): Promise<number> => {
  const sessionId = "only" in which ? which.only : which.except === undefined ? undefined : { not: which.except };
  const { count } = await tx.system.session.deleteMany({ where: given({ userId, sessionId }) });
  return count;
};

/** All of everybody, and the links that would begin new ones. Returns how many sessions there were. */
export const deleteEverySession = async (tx: Clients): Promise<number> => {
  await tx.system.signInLink.deleteMany();
  return (await tx.system.session.deleteMany()).count;
};

export const writeSessionUses = async (db: Clients, sessionIds: readonly string[], at: Date): Promise<void> => {
  await db.system.session.updateMany({ where: { sessionId: { in: [...sessionIds] }, lastSeenAt: { lt: at } }, data: { lastSeenAt: at } });
};

export interface Link {
  readonly userId: string;
  readonly email: string | null;
  readonly claimedTenantId: string | null;
}

export const insertLink = async (db: Clients, link: Link & { readonly hash: Hash; readonly expiresAt: Date }): Promise<void> => {
  await db.system.signInLink.create({ data: link });
};

/** Deletes it, so only one of two callers signs in with it. Null: unknown, used or expired. */
export const takeLink = async (tx: Clients, hash: Hash, now: Date): Promise<Link | null> => {
  const link = await orNull(tx.system.signInLink.delete({ where: { hash } }));
  return link === null || link.expiresAt <= now ? null : link;
};

/** With the sessions; they end with their user. */
export const deleteUser = async (tx: Clients, userId: string): Promise<void> => {
  await tx.system.user.deleteMany({ where: { userId } });
  await tx.system.signInLink.deleteMany({ where: { userId } });
};

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const deleteOver = async (db: Clients, idleSeconds: number, now: Date): Promise<boolean> => {
  const over = { OR: [{ expiresAt: { lte: now } }, { lastSeenAt: { lte: secondsFromNow(-idleSeconds, now) } }] };
  const [sessions, links] = await Promise.all([
    db.system.session.deleteMany({ where: over, limit: SWEEP_ROWS }),
    db.system.signInLink.deleteMany({ where: { expiresAt: { lte: now } }, limit: SWEEP_ROWS }),
  ]);
  return sessions.count === SWEEP_ROWS || links.count === SWEEP_ROWS;
};
