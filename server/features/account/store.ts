// Rows of what people have set for themselves. They belong to no tenant, so every condition names the user.
import type { Prisma } from "../../../prisma/generated/client.ts";
import type { Notice, Notification, TenantId } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import { given } from "../../core/rows/records.ts";

export type Choices = Readonly<Partial<Record<Notice, Omit<Notification, "event">>>>;

export interface Profile {
  readonly userId: string;
  readonly name: string | null;
  readonly locale: string | null;
  readonly timezone: string | null;
  readonly preferences: Readonly<Record<string, Prisma.JsonValue>>;
  readonly notifications: Choices;
  readonly defaultTenantId: TenantId | null;
  readonly deleteAfter: Date | null;
  readonly version: number;
  readonly updatedAt: Date | null;
}

const NONE: Omit<Profile, "userId"> = {
  name: null,
  locale: null,
  timezone: null,
  preferences: {},
  notifications: {},
  defaultTenantId: null,
  deleteAfter: null,
  version: 1,
  updatedAt: null,
};

type Row = Prisma.UserProfileGetPayload<object>;
const toProfile = (row: Row): Profile => ({
  ...row,
  // as: only this file writes these columns
  preferences: row.preferences as Profile["preferences"],
  notifications: row.notifications as Choices,
  defaultTenantId: row.defaultTenantId as TenantId | null,
});

export const findProfile = async (db: Clients, userId: string): Promise<Profile> => {
  const row = await db.system.userProfile.findFirst({ where: { userId } });
  return row === null ? { ...NONE, userId } : toProfile(row);
};

export const findProfiles = async (db: Clients, userIds: readonly string[]): Promise<ReadonlyMap<string, Profile>> => {
  const rows = await db.system.userProfile.findMany({ where: { userId: { in: [...userIds] } } });
  return new Map(rows.map((row) => [row.userId, toProfile(row)]));
};

export interface ProfileChange {
  readonly name?: string | null | undefined;
  readonly locale?: string | null | undefined;
  readonly timezone?: string | null | undefined;
  readonly preferences?: Prisma.InputJsonObject | undefined;
  readonly notifications?: Choices | undefined;
  readonly defaultTenantId?: string | undefined;
  readonly deleteAfter?: Date | null | undefined;
}

/** Null when the version has moved on; undefined skips the check. */
export const writeProfile = async (db: Clients, userId: string, change: ProfileChange, version?: number): Promise<Profile | null> => {
  const { userProfile } = db.system;
  await userProfile.createMany({ data: [{ userId }], skipDuplicates: true });
  const rows = await userProfile.updateManyAndReturn({
    where: given({ userId, version }),
    data: { ...(given(change) as Prisma.UserProfileUpdateInput), version: { increment: 1 } }, // as: JSON columns take any object
  });
  const [row] = rows;
  return row === undefined ? null : toProfile(row);
};

/** The users among these whose account is about to be deleted. */
export const findLeaving = async (db: Clients, userIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await db.system.userProfile.findMany({ where: { userId: { in: [...userIds] }, deleteAfter: { not: null } }, select: { userId: true } });
  return new Set(rows.map(({ userId }) => userId));
};

const dueAt = (now: Date) => ({ deleteAfter: { lte: now } });

export const findDue = async (db: Clients, now: Date, limit: number): Promise<readonly string[]> =>
  (await db.system.userProfile.findMany({ where: dueAt(now), orderBy: { deleteAfter: "asc" }, take: limit, select: { userId: true } })).map(
    ({ userId }) => userId,
  );

/** False when the user has restored the account, or another node was first. */
export const deleteDue = async (db: Clients, userId: string, now: Date): Promise<boolean> =>
  (await db.system.userProfile.deleteMany({ where: { userId, ...dueAt(now) } })).count === 1;

export const postponeDue = async (db: Clients, userId: string, { now, deleteAfter }: { readonly now: Date; readonly deleteAfter: Date }): Promise<void> => {
  await db.system.userProfile.updateMany({ where: { userId, ...dueAt(now) }, data: { deleteAfter } });
};
