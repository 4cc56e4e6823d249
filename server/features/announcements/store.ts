// Rows of announcements, and of who has dismissed them.
import { Announcement, ManagedAnnouncement } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { given, type RowOf, recordOf } from "../../core/rows/records.ts";
import { LOCK } from "../../core/statements.ts";

const managed = (row: RowOf<typeof ManagedAnnouncement>): ManagedAnnouncement => recordOf(ManagedAnnouncement, row);

/** Until the transaction ends, nobody else adds one. */
export const lockAnnouncements = async (tx: SqlTx): Promise<void> => {
  await tx.query(LOCK, ["announcements"]);
};
export const countAnnouncements = (db: Clients): Promise<number> => db.system.announcement.count();

/** Newest first. */
export const allAnnouncements = async (db: Clients, limit: number): Promise<ManagedAnnouncement[]> =>
  (await db.system.announcement.findMany({ orderBy: { announcementId: "desc" }, take: limit })).map(managed);

export const findAnnouncement = async (db: Clients, announcementId: string): Promise<ManagedAnnouncement | null> => {
  const row = await db.system.announcement.findFirst({ where: { announcementId } });
  return row === null ? null : managed(row);
};

/** All that have not ended: the later ones begin while a reader still has this list. */
export const unendedAnnouncements = async (db: Clients, now: Date, limit: number): Promise<Announcement[]> => {
  const where = { OR: [{ endsAt: null }, { endsAt: { gt: now } }] };
  const rows = await db.system.announcement.findMany({ where, orderBy: { announcementId: "desc" }, take: limit });
  return rows.map((row) => recordOf(Announcement, row));
};

interface NewAnnouncement {
  readonly severity: string;
  readonly title: string;
  readonly body: string;
  readonly startsAt: Date;
  readonly endsAt: Date | null;
  readonly createdBy: string;
}
export const insertAnnouncement = async (tx: Clients, data: NewAnnouncement): Promise<ManagedAnnouncement> =>
  managed(await tx.system.announcement.create({ data: { ...data, announcementId: newId("ann") } }));

export interface AnnouncementChange {
  readonly announcementId: string;
  /** Changes nothing unless this is the present version; undefined skips the check. */
  readonly version?: number | undefined;
  readonly severity?: string | undefined;
  readonly title?: string | undefined;
  readonly body?: string | undefined;
  readonly startsAt?: Date | undefined;
  readonly endsAt?: Date | null | undefined;
}
/** Null when it has another version or is gone. */
export const updateAnnouncement = async (tx: Clients, { announcementId, version, ...fields }: AnnouncementChange): Promise<ManagedAnnouncement | null> => {
  const where = { announcementId, ...given({ version }) };
  const [row] = await tx.system.announcement.updateManyAndReturn({ where, data: { ...given(fields), version: { increment: 1 } } });
  return row === undefined ? null : managed(row);
};

/** False when it is gone. */
export const deleteAnnouncement = async (tx: Clients, announcementId: string): Promise<boolean> =>
  (await tx.system.announcement.deleteMany({ where: { announcementId } })).count === 1;

export const deleteEndedBefore = async (db: Clients, at: Date): Promise<void> => {
  await db.system.announcement.deleteMany({ where: { endsAt: { lt: at } } });
};

export const dismissedBy = async (db: Clients, userId: string): Promise<ReadonlySet<string>> =>
  new Set((await db.system.announcementDismissal.findMany({ where: { userId } })).map(({ announcementId }) => announcementId));

export const insertDismissal = async (tx: Clients, userId: string, announcementId: string): Promise<void> => {
  await tx.system.announcementDismissal.createMany({ data: [{ userId, announcementId }], skipDuplicates: true });
};

/** Deletes what the account of a person who leaves has dismissed. */
export const deleteDismissalsOf = async (tx: Clients, userId: string): Promise<void> => {
  await tx.system.announcementDismissal.deleteMany({ where: { userId } });
};
