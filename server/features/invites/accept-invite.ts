// What the invited person does with a link: read the invite, accept it or decline it.

import { contract, type MemberId, type TenantId } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { secretHash } from "../../core/ids.ts";
import { userOf } from "../../core/people/user-of.ts";
import { type SystemScope, userIdOf } from "../../core/scope.ts";
import { endInvite, findInviteByHash, type StoredInvite, toInvite } from "./store.ts";
import type { InvitesDeps } from "./types.ts";

const { accepted, declined, joined } = contract.invites.events;
const ANYBODY = { type: "anonymous", id: "anonymous", email: null } as const;

const masked = (email: string): string => email.replace(/^(.)[^@]*/u, "$1***");

const refusal = (stored: StoredInvite | null): AppError | null => {
  const status = stored === null ? "revoked" : toInvite(stored, new Map()).status;
  if (status === "pending") return null;
  if (status === "revoked") return new AppError("INVITE_NOT_FOUND");
  return status === "expired" ? new AppError("INVITE_EXPIRED", { details: { expiredAt: stored?.invite.expiresAt } }) : new AppError("INVITE_ALREADY_USED");
};

const usable = async ({ db, clock }: Pick<InvitesDeps, "db" | "clock">, hash: Buffer<ArrayBuffer>): Promise<StoredInvite> => {
  const stored = await findInviteByHash(db, hash, clock.now());
  const refused = refusal(stored);
  if (stored === null || refused !== null) throw refused ?? new AppError("INVITE_NOT_FOUND");
  return stored;
};

/** Somebody else was first, or the invite was revoked or sent again a moment ago. */
const lost = async (db: Clients, hash: Buffer<ArrayBuffer>, now: Date): Promise<AppError> =>
  refusal(await findInviteByHash(db, hash, now)) ?? new AppError("INVITE_ALREADY_USED");

export const createInviteAcceptance = (deps: InvitesDeps): Pick<Handlers<typeof contract.invites>, "lookup" | "accept" | "decline"> => {
  const { db, clock, emit, audit, tenants, grants } = deps;
  const checkInviter = createCheckInviter(deps);
  const checkActive = async (tenantId: TenantId): Promise<void> => {
    const status = (await tenants.lookup.find(tenantId))?.status ?? "deleted";
    if (status === "deleted") throw new AppError("INVITE_NOT_FOUND");
    if (status !== "active") throw new AppError("TENANT_SUSPENDED", { details: { status } });
  };
  return {
    lookup: async ({ fail }, { token }) => {
      const { invite, inviterName } = await usable(deps, secretHash(token));
      const { tenantId, roleId, email, message, expiresAt } = invite;
      const tenantName = await tenants.nameOf(db, { tenantId });
      if (tenantName === null) throw fail("INVITE_NOT_FOUND");
      return { tenantName, inviter: inviterName, roleId, email: masked(email), message, expiresAt };
    },

    accept: async ({ scope: call, fail, commit }, { token }) => {
      const { userId, email, emailVerified } = userOf(call);
      const hash = secretHash(token);
      const stored = await usable(deps, hash);
      const { inviteId, tenantId, roleId, selector, email: invited, invitedBy } = stored.invite;
      if (emailVerified !== true) throw fail("INVITE_EMAIL_MISMATCH", { reason: "email_not_verified" });
      if (email?.toLowerCase() !== invited) throw fail("INVITE_EMAIL_MISMATCH", { reason: "other_address" });
      await checkActive(tenantId);
      await checkInviter(stored);
      const scope: SystemScope = { ...call, tenantId };
      return commit(async (tx, afterwards) => {
        const now = clock.now();
        if (!(await endInvite(tx, scope, inviteId, { now, status: "accepted", hash, acceptedBy: userId }))) throw await lost(tx, hash, now);
        const member = await grants.join(tx, scope, { userId, email: invited, roleId, selector });
        if (member === null) throw fail("ALREADY_MEMBER");
        const memberId = member.memberId as MemberId; // as: the column holds nothing else
        afterwards(() => grants.forget(tenantId, userId));
        await emit(tx, [
          happened(scope, accepted, inviteId, { inviteId, roleId, userId, invitedBy }),
          happened(scope, joined, memberId, { memberId, userId, roleId }),
        ]);
        return { inviteId, tenantId, memberId, roleId };
      });
    },

    decline: async ({ scope: call }, { token }) => {
      const hash = secretHash(token);
      const { invite, mailId } = await usable(deps, hash);
      const { inviteId, tenantId, roleId, invitedBy } = invite;
      const scope: SystemScope = { ...call, tenantId };
      await db.tx(async (tx) => {
        audit.begin(tx);
        const now = clock.now();
        if (!(await endInvite(tx, scope, inviteId, { now, status: "declined", hash }))) throw await lost(tx, hash, now);
        if (mailId !== null) await deps.mails.cancel(tx, mailId);
        await emit(tx, [happened(scope, declined, inviteId, { inviteId, roleId, invitedBy })]);
        const resource = { type: "invites", id: inviteId };
        await audit.append(tx, { tenantId, actor: ANYBODY, action: "invites.decline", resource, code: null, call });
      });
      return null;
    },
  };
};

/** Who may no longer grant the role has no invites to it either. */
const createCheckInviter =
  ({ db, grants, tenants }: InvitesDeps) =>
  async ({ invite: { tenantId, invitedBy, roleId } }: StoredInvite): Promise<void> => {
    const inviter = await tenants.memberships.find(tenantId, userIdOf(invitedBy) ?? "");
    const held: ReadonlySet<string> = inviter?.permissions ?? new Set();
    const permissions = [...(await grants.resolve(db, { tenantId }, roleId)).permissions].filter((each) => !held.has(each));
    if (permissions.length > 0) throw new AppError("PRIVILEGE_ESCALATION", { details: { reason: "inviter_lost_the_right", permissions } });
  };
