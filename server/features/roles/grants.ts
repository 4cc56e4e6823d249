// Resolves what a member is about to get: a role and the devices it is limited to. Roles and invites grant through it.
import type { DeviceSelector, Permission } from "../../../protocol/index.ts";
import { HELD } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { requireHeld } from "../../core/ranks.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { JoiningMember, MemberRow, Members, RoleOfMember } from "../tenants/index.ts";
import { builtInOf } from "./rules.ts";
import { findRole } from "./store.ts";

export interface GrantsDeps {
  readonly members: Members;
  /** The devices among these that the tenant has. */
  readonly knownDevices: (tx: Tx, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Throws FLEET_NOT_FOUND, or VALIDATION_FAILED for a fleet that nobody can be limited to; keeps the others until the transaction ends. */
  readonly holdFleets: (tx: Tx, scope: SystemScope, fleetIds: readonly string[]) => Promise<void>;
}

export interface ResolvedRole extends RoleOfMember {
  readonly permissions: Iterable<Permission | string>;
}

export const createGrants = ({ members, knownDevices, holdFleets }: GrantsDeps) => {
  /** Throws ROLE_NOT_FOUND. */
  const resolve = async (tx: Tx, scope: SystemScope, roleId: string): Promise<ResolvedRole> => {
    const builtIn = builtInOf(roleId);
    if (builtIn !== null) return { role: builtIn, roleId: null, permissions: HELD[builtIn] };
    const role = await findRole(tx, scope, roleId);
    if (role === null) throw new AppError("ROLE_NOT_FOUND", { details: { roleId } });
    return { role: role.key, roleId: role.roleId, permissions: role.permissions };
  };
  /** Throws DEVICE_NOT_FOUND or FLEET_NOT_FOUND for what the tenant does not have. */
  const checkSelector = async (tx: Tx, scope: SystemScope, selector: DeviceSelector | null | undefined): Promise<void> => {
    const { deviceIds = [], fleetIds = [] } = selector ?? {};
    const known = deviceIds.length === 0 ? new Set() : await knownDevices(tx, scope, deviceIds);
    const deviceId = deviceIds.find((each) => !known.has(each));
    if (deviceId !== undefined) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
    if (fleetIds.length > 0) await holdFleets(tx, scope, fleetIds);
  };
  return {
    resolve,
    checkSelector,
    /** Whether the caller holds what this role gives; a role that is gone gives nothing. Throws PRIVILEGE_ESCALATION. */
    checkRank: async (tx: Tx, scope: SystemScope, roleId: string): Promise<void> => {
      const builtIn = builtInOf(roleId);
      requireHeld(scope, builtIn === null ? ((await findRole(tx, scope, roleId))?.permissions ?? []) : HELD[builtIn]);
    },
    /** Whether the caller may give this role, for an invitation: throws ROLE_NOT_FOUND, DEVICE_NOT_FOUND, FLEET_NOT_FOUND or PRIVILEGE_ESCALATION. */
    check: async (tx: Tx, scope: SystemScope, { roleId, selector }: { readonly roleId: string; readonly selector: DeviceSelector | null }): Promise<void> => {
      requireHeld(scope, (await resolve(tx, scope, roleId)).permissions);
      await checkSelector(tx, scope, selector);
    },
    /**
     * Makes the user a member; null when the user is one already. It looks neither at the caller's own rights nor at the plan, where the invite
     * has held a place. Call `forget` after the commit.
     */
    join: async (
      tx: Tx,
      scope: SystemScope,
      { roleId, ...member }: Pick<JoiningMember, "userId" | "email" | "selector"> & { readonly roleId: string },
    ): Promise<MemberRow | null> => {
      const { role, roleId: custom } = await resolve(tx, scope, roleId);
      await members.lock(tx, scope);
      if ((await members.find(tx, scope, { userId: member.userId })) !== null) return null;
      return members.join(tx, scope, { ...member, role, roleId: custom });
    },
    forget: members.forget,
  };
};
export type Grants = ReturnType<typeof createGrants>;
