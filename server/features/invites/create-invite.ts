// Makes invites and sends them again. Without a mail server the caller gets the link.
import { contract, type DeviceSelector, INVITES_PER_HOUR, type Invite, messageOf } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Afterwards, Handlers } from "../../core/feature.ts";
import { newId, newSecret, secretHash } from "../../core/ids.ts";
import { findActors } from "../../core/people/actors.ts";
import { userOf } from "../../core/people/user-of.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import { inviteLetter } from "./invite-mail.ts";
import { expireOf, findInvite, hasPending, insertInvite, lockInvites, recentInvites, renewInvite, type StoredInvite, toInvite } from "./store.ts";
import type { InvitesDeps } from "./types.ts";

const MAX_RESENDS = 5;
const { created, expired } = contract.invites.events;

type Made = Invite & { link?: string };
interface Addressed {
  readonly email: string;
  readonly roleId: string;
  readonly selector: DeviceSelector | null;
  readonly message: string | null;
  readonly inviterName: string | null;
  readonly expiresInDays: number;
}
interface Making {
  readonly now: Date;
  readonly tx: Tx;
  readonly afterwards: Afterwards;
  readonly scope: TenantScope;
}

export const createInviteCreation = (deps: InvitesDeps): Pick<Handlers<typeof contract.invites>, "create" | "resend"> => {
  const { clock, grants, tenants } = deps;
  const { members } = tenants;
  const prepareLink = createPrepareLink(deps);
  const makeOne = createMakeOne(deps, prepareLink);
  return {
    create: async ({ scope, commit }, { email, emails, ...same }) => {
      const user = userOf(scope);
      return commit(async (tx, afterwards) => {
        await grants.check(tx, scope, same);
        await lockInvites(tx, scope);
        const wanted = emails ?? [email ?? ""];
        const now = clock.now();
        await checkRate({ now, tx, scope, adding: wanted.length, perHour: deps.settings.perHour });
        const known = await members.withEmails(tx, scope, wanted);
        const inviter = actorOf(scope.principal);
        const inviterName = (await findActors(tx, scope, [inviter]))(inviter).name ?? user.email;
        const make = (address: string) => makeOne({ now, tx, afterwards, scope }, { ...same, email: address, inviterName }, known.has(address));
        if (emails === undefined) return make(email ?? "");
        return makeAll(emails, make);
      });
    },

    resend: ({ scope, fail, commit }, { inviteId, expiresInDays }) =>
      commit(async (tx, afterwards) => {
        await lockInvites(tx, scope);
        const now = clock.now();
        const stored = await findInvite(tx, scope, inviteId, now);
        if (stored === null) throw fail("INVITE_NOT_FOUND", { inviteId });
        const { email, roleId, selector, message, sendCount } = stored.invite;
        await grants.check(tx, scope, { roleId, selector });
        if (sendCount > MAX_RESENDS) throw fail("INVITE_RESENT_TOO_OFTEN", { limit: MAX_RESENDS });
        const addressed = { email, roleId, selector, message, inviterName: stored.inviterName, expiresInDays };
        const { shown, ...renewal } = await prepareLink({ now, tx, afterwards, scope }, inviteId, addressed);
        const renewed = await renewInvite(tx, scope, inviteId, { now, ...renewal });
        if (renewed === null) throw notPending(fail, stored);
        if (stored.mailId !== null) await deps.mails.cancel(tx, stored.mailId);
        return shown(renewed);
      }),
  };
};

type Fail = (code: "INVALID_STATE_TRANSITION", details: Record<string, unknown>) => AppError;
export const notPending = (fail: Fail, stored: StoredInvite, to = "pending"): AppError =>
  fail("INVALID_STATE_TRANSITION", { from: toInvite(stored, new Map()).status, to, allowed: [] });

/** One after another, each with its own result. If none could be made, the first error is the answer. */
const makeAll = async (emails: readonly string[], make: (email: string) => Promise<Made>) => {
  const results = [];
  let first: Made | undefined;
  let refusal: AppError | undefined;
  for (const email of emails)
    try {
      const { link, ...invite } = await make(email);
      first ??= { ...invite, ...linkOf(link) };
      results.push({ email, invite, ...linkOf(link), code: null, message: null });
    } catch (error) {
      if (!isAppError(error)) throw error;
      refusal ??= error;
      results.push({ email, invite: null, code: error.code, message: messageOf(error.code, error.details) });
    }
  if (first === undefined) throw refusal ?? new Error("no address was given");
  return { ...first, results };
};
const linkOf = (link: string | undefined) => (link === undefined ? {} : { link });

/** Counts the rows, so a batch costs as much as its invites. The caller holds the lock. */
const checkRate = async ({
  now,
  tx,
  scope,
  adding,
  perHour,
}: Pick<Making, "now" | "tx" | "scope"> & { readonly adding: number; readonly perHour: number | null }): Promise<void> => {
  const { name: bucket, windowSeconds } = INVITES_PER_HOUR;
  const { rateLimitOverrides: own } = scope.tenant;
  const limit = perHour === null ? null : bucket in own ? own[bucket] : "*" in own ? own["*"] : perHour;
  if (limit === null || limit === undefined) return;
  const recent = await recentInvites(tx, scope, secondsFromNow(-windowSeconds, now));
  const tooMany = recent.length + adding - limit;
  if (tooMany <= 0) return;
  const resetAt = secondsFromNow(windowSeconds, recent[Math.min(tooMany, recent.length) - 1] ?? now);
  const retryAfter = Math.max(1, Math.ceil((resetAt.getTime() - now.getTime()) / 1_000));
  throw new AppError("RATE_LIMIT_EXCEEDED", { details: { bucket, limit, windowSeconds, resetAt: resetAt.toISOString() }, retryAfter });
};

/** A new link: ordered as mail, or else told to the caller and the log. */
const createPrepareLink =
  ({ mails, tenants, log, settings }: InvitesDeps) =>
  async ({ now, tx, afterwards, scope }: Making, inviteId: string, { email, roleId, message, inviterName, expiresInDays }: Addressed) => {
    const token = newSecret();
    const expiresAt = secondsFromNow(expiresInDays * DAY_SECONDS, now);
    const url = new URL("invite", settings.portalUrl().replace(/\/?$/, "/"));
    url.searchParams.set("token", token);
    const tenantName = (await tenants.nameOf(tx, scope)) ?? scope.tenant.slug;
    const letter = inviteLetter({ tenantName, inviterName, roleId, message, url: url.href, expiresAt });
    const mailId = await mails.order(tx, { tenantId: scope.tenantId, to: email, letter });
    const link = mails.enabled ? {} : { link: url.href };
    if (!mails.enabled) afterwards(() => log.info({ inviteId, ...link }, "hand over the link of this invite: no mail server is configured"));
    const shown = async (stored: StoredInvite): Promise<Made> => {
      const deliveries = mailId === null ? new Map() : await mails.deliveries(tx, [mailId]);
      return { ...toInvite(stored, deliveries), ...link };
    };
    return { hash: secretHash(token), expiresAt, mailId, shown };
  };

/** Throws no error that PostgreSQL has raised: the caller goes on with the next address. */
const createMakeOne =
  ({ emit, plan }: InvitesDeps, prepareLink: ReturnType<typeof createPrepareLink>) =>
  async (making: Making, addressed: Addressed, isMember: boolean): Promise<Made> => {
    const { now, tx, scope } = making;
    const { email, roleId, selector, message, inviterName } = addressed;
    const gone = await expireOf(tx, scope, email, now);
    if (isMember) throw new AppError("ALREADY_MEMBER", { details: { email } });
    if (await hasPending(tx, scope, email, now)) throw new AppError("INVITE_ALREADY_PENDING", { details: { email } });
    await plan.require(tx, scope, "members", 1);
    const inviteId = newId("inv");
    const { shown, ...link } = await prepareLink(making, inviteId, addressed);
    const invitedBy = actorOf(scope.principal);
    const stored = await insertInvite(tx, scope, { inviteId, email, roleId, message, inviterName, invitedBy, selector, ...link }, now);
    const over = gone.map((each) => happened(scope, expired, each.inviteId, { inviteId: each.inviteId as typeof inviteId, roleId: each.roleId }));
    await emit(tx, [...over, happened(scope, created, inviteId, { inviteId, roleId })]);
    return shown(stored);
  };
