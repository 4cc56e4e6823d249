// Invites of people to a tenant: administrators make, resend and revoke them; a job ends those whose time is over.
import { contract, type Invite } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import { happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { withActor, withActors } from "../../core/people/actors.ts";
import type { FindLimited } from "../../core/ports/lookups.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature } from "../kit.ts";
import { createInviteAcceptance } from "./accept-invite.ts";
import { createInviteCreation, notPending } from "./create-invite.ts";
import {
  countPending,
  endInvite,
  expireInvite,
  findInvite,
  findLimitedInvites,
  findOver,
  forgetInvites,
  pageOfInvites,
  type StoredInvite,
  toInvite,
} from "./store.ts";
import type { InvitesDeps } from "./types.ts";

export type { InviteSettings, InvitesDeps } from "./types.ts";

const BATCH = 100;
const KEEP_DAYS = 90;
const { revoked, expired } = contract.invites.events;

export interface InvitesFeature extends Feature<typeof contract.invites> {
  readonly limitedTo: FindLimited;
}

export const createInvites = (deps: InvitesDeps): InvitesFeature => {
  const { clock } = deps;
  const { counters } = deps.tenants;
  return {
    handlers: implement(contract.invites, { ...createReads(deps), ...createInviteCreation(deps), ...createRevoke(deps), ...createInviteAcceptance(deps) }),
    // In place of the tenants' own counter: a person who accepts takes the place that the invite has held.
    counters: { members: async (db, scope) => (await counters.members(db, scope)) + (await countPending(db, scope, clock.now())) },
    jobs: createJobs(deps),
    limitedTo: (db, scope, fleetId, limit) => findLimitedInvites(db, scope, { fleetId, limit, now: clock.now() }),
  };
};

const createReads = ({ db, clock, mails }: InvitesDeps): Pick<Handlers<typeof contract.invites>, "list" | "get"> => {
  const shown = async (stored: readonly StoredInvite[]): Promise<Invite[]> => {
    const mailIds = stored.flatMap(({ mailId }) => mailId ?? []);
    const deliveries = await mails.deliveries(db, mailIds);
    return stored.map((each) => toInvite(each, deliveries));
  };
  return {
    list: async ({ scope }, query) => {
      const { items, ...page } = await pageOfInvites(db, scope, query, clock.now());
      return { items: await withActors(db, scope, await shown(items)), ...page };
    },

    get: async ({ scope, fail }, { inviteId }) => {
      const stored = await findInvite(db, scope, inviteId, clock.now());
      const [invite] = stored === null ? [] : await shown([stored]);
      if (invite === undefined) throw fail("INVITE_NOT_FOUND", { inviteId });
      return withActor(db, scope, invite);
    },
  };
};

const createRevoke = ({ clock, emit, mails, grants }: InvitesDeps): Pick<Handlers<typeof contract.invites>, "revoke"> => ({
  revoke: ({ scope, fail, commit }, { inviteId }) =>
    commit(async (tx) => {
      const now = clock.now();
      const stored = await findInvite(tx, scope, inviteId, now);
      if (stored === null) throw fail("INVITE_NOT_FOUND", { inviteId });
      await grants.checkRank(tx, scope, stored.invite.roleId);
      if (!(await endInvite(tx, scope, inviteId, { now, status: "revoked" })))
        throw notPending(fail, (await findInvite(tx, scope, inviteId, now)) ?? stored, "revoked");
      if (stored.mailId !== null) await mails.cancel(tx, stored.mailId);
      const { invite } = stored;
      await emit(tx, [happened(scope, revoked, invite.inviteId, { inviteId: invite.inviteId, roleId: invite.roleId })]);
      return null;
    }),
});

const createJobs = ({ db, clock, emit, mails }: InvitesDeps): readonly Job[] => {
  const end = ({ tenantId, invite: { inviteId, roleId }, mailId }: StoredInvite): Promise<void> =>
    db.tx(async (tx) => {
      const scope = { tenantId };
      if (!(await expireInvite(tx, scope, inviteId, clock.now()))) return;
      if (mailId !== null) await mails.cancel(tx, mailId);
      await emit(tx, [happened(scope, expired, inviteId, { inviteId, roleId })]);
    });
  return [
    {
      name: "invites.expire",
      everyMs: 60_000,
      run: async () => {
        const over = await findOver(db, clock.now(), BATCH);
        for (const each of over) await end(each);
        return over.length === BATCH;
      },
    },
    { name: "invites.forget", everyMs: 3_600_000, run: () => forgetInvites(db, secondsFromNow(-KEEP_DAYS * DAY_SECONDS, clock.now())) },
  ];
};
