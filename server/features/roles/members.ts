// The members of a tenant: their roles and devices, how they leave, and how the tenant gets another owner.

import { contract, isRole, type Member } from "../../../protocol/index.ts";
import { isLimited, permissionsIn } from "../../core/access.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { userOf } from "../../core/people/user-of.ts";
import { requireHeld } from "../../core/ranks.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { MemberRow, Members } from "../tenants/index.ts";
import type { Grants } from "./grants.ts";
import { builtInId } from "./rules.ts";

type MemberHandlers = Pick<Handlers<typeof contract.roles>, "listMembers" | "getMember" | "updateMember" | "removeMember" | "transferOwnership">;
export interface MembersDeps {
  readonly db: Db;
  readonly emit: Emit;
  readonly members: Members;
  /** The tenant has another owner. */
  readonly forgetTenant: (tenantId: string) => void;
}

const toMember = ({ granted: _, memberId, roleId, role, createdAt, updatedAt, ...row }: MemberRow): Member => ({
  ...row,
  memberId: memberId as Member["memberId"], // as: the column holds nothing else
  role,
  roleId: roleId === null ? builtInId(isRole(role) ? role : "viewer") : (roleId as Member["roleId"]),
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});
const toEvent = ({ memberId, userId, role }: Pick<MemberRow, "memberId" | "userId" | "role">) => ({ memberId: memberId as Member["memberId"], userId, role });

const unknown = (memberId: string): AppError => new AppError("MEMBER_NOT_FOUND", { details: { memberId } });
const WRITE = "member:write";

/** Everybody may leave; the contract says no more of this operation than that a member calls it. Null: there is no such member. */
const checkMayRemove = (scope: TenantScope, member: MemberRow | null): void => {
  if (member?.userId === userOf(scope).userId) return;
  const held = permissionsIn(scope);
  // A caller who may not see the members learns nothing from an id that exists.
  if (!held.has(WRITE) && !(member === null && held.has("member:read"))) {
    const details = { requiredPermission: WRITE, role: scope.principal.kind === "user" ? scope.principal.role : null };
    throw new AppError("FORBIDDEN", { details: isLimited(scope) ? { ...details, reason: "limited_access" } : details });
  }
  requireHeld(scope, member?.granted ?? []);
};

export const createMemberHandlers = ({ db, emit, members, forgetTenant }: MembersDeps, grants: Grants): MemberHandlers => {
  const { memberChanged, memberRemoved, ownershipTransferred } = contract.roles.events;
  return {
    listMembers: async ({ scope }, query) => {
      const { items, ...page } = await members.page(db, scope, query);
      return { items: items.map(toMember), ...page };
    },

    getMember: async ({ scope }, { memberId }) => {
      const member = await members.find(db, scope, { memberId });
      if (member === null) throw unknown(memberId);
      return toMember(member);
    },

    updateMember: ({ scope, fail, commit }, { memberId, roleId, selector, version }) =>
      commit(async (tx, afterwards) => {
        await members.lock(tx, scope);
        const before = await members.find(tx, scope, { memberId });
        if (before === null) throw unknown(memberId);
        requireHeld(scope, before.granted);
        const { permissions = [], ...role } = roleId === undefined ? {} : await grants.resolve(tx, scope, roleId);
        requireHeld(scope, permissions);
        await grants.checkSelector(tx, scope, selector);
        const member = await members.update(tx, scope, before, { ...role, selector, version });
        if (member === null) throw fail("VERSION_CONFLICT", { currentVersion: before.version });
        await emit(tx, [happened(scope, memberChanged, memberId, { ...toEvent(member), previous: before.role })]);
        afterwards(() => members.forget(scope.tenantId, member.userId));
        return toMember(member);
      }),

    removeMember: ({ scope, commit }, { memberId }) =>
      commit(async (tx, afterwards) => {
        await members.lock(tx, scope);
        const member = await members.find(tx, scope, { memberId });
        checkMayRemove(scope, member);
        if (member === null) throw unknown(memberId);
        await members.remove(tx, scope, member);
        await emit(tx, [happened(scope, memberRemoved, memberId, toEvent(member))]);
        afterwards(() => members.forget(scope.tenantId, member.userId));
        return null;
      }),

    transferOwnership: async ({ scope, fail, commit }, { tenantId, userId }) => {
      if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
      const previousOwner = userOf(scope).userId;
      return commit(async (tx, afterwards) => {
        await members.lock(tx, scope);
        const [from, to] = [await members.find(tx, scope, { userId: previousOwner }), await members.find(tx, scope, { userId })];
        if (from === null || to === null) throw fail("MEMBER_NOT_FOUND", { userId });
        // Meanwhile another owner may have taken the ownership away.
        if (!members.isOwner(from)) throw new AppError("FORBIDDEN", { details: { requiredPermission: "tenant:transfer", role: from.role } });
        if (from.memberId !== to.memberId) await members.transfer(tx, scope, from, to);
        await emit(tx, [happened(scope, ownershipTransferred, scope.tenantId, { tenantId: scope.tenantId, userId, previousUserId: previousOwner })]);
        afterwards(() => {
          for (const each of [previousOwner, userId]) members.forget(scope.tenantId, each);
          forgetTenant(scope.tenantId);
        });
        return { tenantId: scope.tenantId, owner: userId, previousOwner };
      });
    },
  };
};
