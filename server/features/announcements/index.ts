// Announcements of the people who run the installation: scheduled, read by everybody through a cache of five seconds, dismissed by each for themselves.
import { type Announcement, contract } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { implement } from "../../core/feature.ts";
import { userOf } from "../../core/people/user-of.ts";
import { actorOf } from "../../core/scope.ts";
import { createCached } from "../../core/structures/cached.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import {
  allAnnouncements,
  countAnnouncements,
  deleteAnnouncement,
  deleteDismissalsOf,
  deleteEndedBefore,
  dismissedBy,
  findAnnouncement,
  insertAnnouncement,
  insertDismissal,
  lockAnnouncements,
  unendedAnnouncements,
  updateAnnouncement,
} from "./store.ts";

const MAX_ANNOUNCEMENTS = 100;
const CACHE_MS = 5_000;
const KEEP_ENDED_SECONDS = 90 * DAY_SECONDS;
const SWEEP_MS = 3_600_000;

export interface AnnouncementsFeature extends Feature<typeof contract.announcements> {
  /** What is announced now, the most severe first. */
  readonly current: () => Promise<Announcement[]>;
  /** Without what they have dismissed. */
  readonly undismissed: (userId: string) => Promise<Announcement[]>;
  readonly deleteUser: (tx: Tx, userId: string) => Promise<void>;
}

const RANKS = { critical: 0, warning: 1, info: 2 } as const;
const bySeverity = (a: Announcement, b: Announcement): number => RANKS[a.severity] - RANKS[b.severity];
const orNone = (at: string | null | undefined): Date | null | undefined => (typeof at === "string" ? new Date(at) : at);

export const createAnnouncements = ({ db, clock }: Pick<FeatureKit, "db" | "clock">): AnnouncementsFeature => {
  // One entry for all: its key says nothing.
  const unended = createCached({ load: () => unendedAnnouncements(db, clock.now(), MAX_ANNOUNCEMENTS), clock, ttlMs: CACHE_MS, maxEntries: 1 });
  const current = async (): Promise<Announcement[]> => {
    const now = clock.now().toISOString();
    const all = (await unended.get("")) ?? [];
    return all.filter(({ startsAt, endsAt }) => startsAt <= now && (endsAt === null || endsAt > now)).sort(bySeverity);
  };
  const unknown = (announcementId: string): AppError => new AppError("ANNOUNCEMENT_NOT_FOUND", { details: { announcementId } });
  const checkPeriod = (startsAt: Date, endsAt: Date | null): void => {
    if (endsAt !== null && (endsAt <= startsAt || endsAt <= clock.now())) throw new AppError("ANNOUNCEMENT_PERIOD_INVALID");
  };
  return {
    current,
    undismissed: async (userId) => {
      const all = await current();
      if (all.length === 0) return all;
      const dismissed = await dismissedBy(db, userId);
      return all.filter(({ announcementId, severity }) => severity === "critical" || !dismissed.has(announcementId));
    },
    deleteUser: deleteDismissalsOf,
    jobs: [{ name: "announcements.delete-ended", everyMs: SWEEP_MS, run: () => deleteEndedBefore(db, secondsFromNow(-KEEP_ENDED_SECONDS, clock.now())) }],
    handlers: implement(contract.announcements, {
      list: async () => ({ items: await allAnnouncements(db, MAX_ANNOUNCEMENTS) }),
      get: async (_call, { announcementId }) => {
        const found = await findAnnouncement(db, announcementId);
        if (found === null) throw unknown(announcementId);
        return found;
      },
      create: ({ scope, fail, commit }, { startsAt, endsAt, ...text }) =>
        commit(async (tx, afterwards) => {
          const period = { startsAt: orNone(startsAt) ?? clock.now(), endsAt: orNone(endsAt) ?? null };
          checkPeriod(period.startsAt, period.endsAt);
          await lockAnnouncements(tx);
          if ((await countAnnouncements(tx)) >= MAX_ANNOUNCEMENTS) throw fail("ANNOUNCEMENT_LIMIT_REACHED", { limit: MAX_ANNOUNCEMENTS });
          afterwards(unended.forgetAll);
          return insertAnnouncement(tx, { ...text, ...period, createdBy: actorOf(scope.principal) });
        }),
      update: ({ fail, commit }, { startsAt, endsAt, ...change }) =>
        commit(async (tx, afterwards) => {
          const changed = await updateAnnouncement(tx, { ...change, startsAt: orNone(startsAt) ?? undefined, endsAt: orNone(endsAt) });
          if (changed === null) {
            const present = await findAnnouncement(tx, change.announcementId);
            throw present === null ? unknown(change.announcementId) : fail("VERSION_CONFLICT", { currentVersion: present.version });
          }
          if (startsAt !== undefined || endsAt !== undefined) checkPeriod(new Date(changed.startsAt), orNone(changed.endsAt) ?? null);
          afterwards(unended.forgetAll);
          return changed;
        }),
      remove: ({ commit }, { announcementId }) =>
        commit(async (tx, afterwards) => {
          if (!(await deleteAnnouncement(tx, announcementId))) throw unknown(announcementId);
          afterwards(unended.forgetAll);
          return null;
        }),
      dismiss: ({ scope, fail, commit }, { announcementId }) =>
        commit(async (tx) => {
          const found = await findAnnouncement(tx, announcementId);
          // One that is not shown yet is nobody's business.
          if (found === null || found.startsAt > clock.now().toISOString()) throw unknown(announcementId);
          if (found.severity === "critical") throw fail("ANNOUNCEMENT_NOT_DISMISSIBLE");
          await insertDismissal(tx, userOf(scope).userId, announcementId);
          return null;
        }),
    }),
  };
};
