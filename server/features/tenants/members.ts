// The members of a tenant, for the features that manage them: roles, invites and accounts.
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { SystemScope } from "../../core/scope.ts";
import {
  countByRole,
  countOwners,
  deleteMember,
  findLimitedMembers,
  findMember,
  findMemberEmails,
  findOwners,
  findRecipients,
  findTenantsOf,
  insertMember,
  type JoiningMember,
  lockMembers,
  type MemberChange,
  type MemberRow,
  pageOfMembers,
  updateMember,
  writeOwner,
} from "./store/members.ts";

export type { JoiningMember, MemberRow, MemberTenant, Recipient, RoleOfMember } from "./store/members.ts";

const OWNER = "owner";
const isOwner = ({ role, selector }: Pick<MemberRow, "role" | "selector">): boolean => role === OWNER && selector === null;

/** Its functions change rows only: `forget` the member after the commit. */
export const createMembers = (forget: (tenantId: string, userId: string) => void, forgetAll: () => void) => {
  const keepOwner = async (tx: Tx, scope: SystemScope): Promise<void> => {
    if ((await countOwners(tx, scope)) === 0) throw new AppError("LAST_OWNER");
  };
  return {
    isOwner,
    find: findMember,
    page: pageOfMembers,
    countByRole,
    withEmails: findMemberEmails,
    recipients: findRecipients,
    tenantsOf: findTenantsOf,
    owners: findOwners,
    limitedTo: findLimitedMembers,
    /** Take it before any of the changes below. */
    lock: lockMembers,
    /** Null when the version has moved on. Throws LAST_OWNER when nobody else owns the tenant. */
    update: async (tx: Tx, scope: SystemScope, member: MemberRow, change: MemberChange): Promise<MemberRow | null> => {
      const changed = await updateMember(tx, scope, member.memberId, change);
      if (changed !== null && isOwner(member)) await keepOwner(tx, scope);
      return changed;
    },
    /** Throws LAST_OWNER when nobody else owns the tenant. */
    remove: async (tx: Tx, scope: SystemScope, member: MemberRow): Promise<void> => {
      await deleteMember(tx, scope, member.memberId);
      if (isOwner(member)) await keepOwner(tx, scope);
    },
    /** Null when the user is a member already. */
    join: (tx: Tx, scope: SystemScope, member: JoiningMember): Promise<MemberRow | null> => insertMember(tx, scope, member),
    /** Both are members; the old owner becomes an admin. */
    transfer: async (tx: Tx, scope: SystemScope, from: MemberRow, to: MemberRow): Promise<void> => {
      await updateMember(tx, scope, to.memberId, { role: OWNER, roleId: null, selector: null });
      await updateMember(tx, scope, from.memberId, { role: "admin", roleId: null });
      await writeOwner(tx, scope, to.userId);
    },
    forget,
    forgetAll,
  };
};
export type Members = ReturnType<typeof createMembers>;
