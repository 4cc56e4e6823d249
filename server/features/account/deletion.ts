// The end of an account: scheduled after a recent sign-in, canceled by its user or by the next sign-in within 30 days, carried out by a job.
import { contract } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { requireRecentSignIn } from "../../core/people/recent-sign-in.ts";
import { userOf } from "../../core/people/user-of.ts";
import type { Job } from "../../platform/jobs.ts";
import type { MemberTenant } from "../tenants/index.ts";
import { deleteDue, findDue, findLeaving, findProfile, postponeDue, writeProfile } from "./store.ts";
import { type AccountDeps, toAccount } from "./types.ts";

const GRACE_SECONDS = 30 * 86_400;
const BATCH = 20;
const { deletionScheduled, restored, deleted } = contract.account.events;

export const createDeletion = (deps: AccountDeps) => {
  const { db, clock, emit, mails, tenants } = deps;
  const { members } = tenants;

  /** The tenants that would be left without an owner. An owner who leaves as well does not count. Holds their locks from now on. */
  const abandoned = async (tx: Tx, userId: string, of: readonly MemberTenant[]): Promise<readonly string[]> => {
    const found: string[] = [];
    // In one order, so that two who leave several tenants do not wait for each other.
    const owned = of.filter(({ role }) => role === "owner").sort((a, b) => (a.tenantId < b.tenantId ? -1 : 1));
    for (const scope of owned) {
      await members.lock(tx, scope);
      const others = (await members.owners(tx, scope)).filter((owner) => owner !== userId);
      const leaving = await findLeaving(tx, others);
      if (others.every((owner) => leaving.has(owner))) found.push(scope.tenantId);
    }
    return found;
  };

  const restore = async (tx: Tx, userId: string): Promise<void> => {
    if ((await findProfile(tx, userId)).deleteAfter === null) return;
    await writeProfile(tx, userId, { deleteAfter: null });
    const mine = await members.tenantsOf(tx, userId);
    await emit(
      tx,
      mine.map(({ tenantId }) => happened({ tenantId }, restored, userId, { userId })),
    );
  };

  const handlers: Pick<Handlers<typeof contract.account>, "remove" | "restore"> = {
    remove: async ({ scope, fail, commit }) => {
      const user = userOf(scope);
      const { userId, email, emailVerified } = user;
      requireRecentSignIn(user, clock);
      return commit(async (tx) => {
        const mine = await members.tenantsOf(tx, userId);
        const before = await findProfile(tx, userId);
        if (before.deleteAfter !== null) return toAccount(user, before, mine);
        const tenantIds = await abandoned(tx, userId, mine);
        if (tenantIds.length > 0) throw fail("LAST_OWNER", { tenantIds });
        const deleteAfter = secondsFromNow(GRACE_SECONDS, clock.now());
        const profile = await writeProfile(tx, userId, { deleteAfter });
        const told = { userId, deleteAfter: deleteAfter.toISOString() };
        await emit(
          tx,
          mine.map(({ tenantId }) => happened({ ...scope, tenantId }, deletionScheduled, userId, told)),
        );
        if (email !== null && emailVerified === true) await mails.order(tx, { tenantId: null, to: email, letter: deletionLetter(told.deleteAfter) });
        return toAccount(user, profile ?? before, mine);
      });
    },

    restore: ({ scope, commit }) =>
      commit(async (tx) => {
        const user = userOf(scope);
        await restore(tx, user.userId);
        return toAccount(user, await findProfile(tx, user.userId), await members.tenantsOf(tx, user.userId));
      }),
  };

  /** A user who has become a tenant's last owner meanwhile stays, and the job looks again a day later. */
  const end = async (userId: string): Promise<void> => {
    const left = await db.tx(async (tx) => {
      const mine = await members.tenantsOf(tx, userId);
      if ((await abandoned(tx, userId, mine)).length > 0) {
        const now = clock.now();
        await postponeDue(tx, userId, { now, deleteAfter: secondsFromNow(DAY_SECONDS, now) });
        return [];
      }
      if (!(await deleteDue(tx, userId, clock.now()))) return [];
      for (const scope of mine) {
        const member = await members.find(tx, scope, { userId });
        if (member !== null) await members.remove(tx, scope, member);
      }
      await deps.deleteUser(tx, userId);
      await emit(
        tx,
        mine.map(({ tenantId }) => happened({ tenantId }, deleted, userId, { userId })),
      );
      return mine;
    });
    for (const { tenantId } of left) members.forget(tenantId, userId);
  };

  const job: Job = {
    name: "account.delete",
    everyMs: 60_000,
    run: async () => {
      const due = await findDue(db, clock.now(), BATCH);
      for (const userId of due) await end(userId);
      return due.length === BATCH;
    },
  };
  return { handlers, job, restore };
};

const deletionLetter = (deleteAfter: string) => ({
  subject: "Your account will be deleted",
  lines: [
    `Your account will be deleted after ${deleteAfter}, with its memberships.`,
    "Sign in before that time if you want to keep the account: that restores it.",
  ],
});
