// Roles: the permissions and what a tenant builds from them, its members and their roles. Invites make members through `grants`.

import { contract, DESCRIBED, PERMISSIONS, ROLES, type RoleRecord } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { withActor, withActors } from "../../core/people/actors.ts";
import { requireHeld } from "../../core/ranks.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createGrants, type Grants, type GrantsDeps } from "./grants.ts";
import { createMemberHandlers, type MembersDeps } from "./members.ts";
import { builtInOf, builtInRole, isReserved, keyOf, toPermissions } from "./rules.ts";
import { type CustomRole, countRoles, deleteRole, findRole, insertRole, isTaken, listRoles, lockRoles, updateRole } from "./store.ts";

export type { Grants } from "./grants.ts";
export type RolesDeps = Pick<FeatureKit, "db" | "emit" | "plan"> & MembersDeps & GrantsDeps;

export interface RolesFeature extends Feature<typeof contract.roles> {
  readonly grants: Grants;
}

/** Whatever the plan allows. */
const MOST_ROLES = 50;

export const createRoles = (deps: RolesDeps): RolesFeature => {
  const grants = createGrants(deps);
  return {
    handlers: implement(contract.roles, { ...createReadHandlers(deps), ...createRoleHandlers(deps), ...createMemberHandlers(deps, grants) }),
    counters: { customRoles: countRoles },
    grants,
  };
};

const unknown = (roleId: string): AppError => new AppError("ROLE_NOT_FOUND", { details: { roleId } });

const createReadHandlers = ({ db, members }: RolesDeps): Pick<Handlers<typeof contract.roles>, "permissions" | "list" | "get"> => ({
  permissions: async () => ({
    items: PERMISSIONS.map((key) => {
      const [resource = key, ...action] = key.split(":");
      return { key, resource, action: action.join(":"), ...DESCRIBED[key] };
    }),
  }),
  list: async ({ scope }) => {
    const [own, counts] = await Promise.all([listRoles(db, scope), members.countByRole(db, scope)]);
    const all = [...ROLES.map((role) => builtInRole(role, scope.tenantId)), ...own];
    return {
      items: await withActors(
        db,
        scope,
        all.map((role) => ({ ...role, memberCount: counts.get(role.key) ?? 0 })),
      ),
    };
  },
  get: async ({ scope }, { roleId }) => {
    const builtIn = builtInOf(roleId);
    const role = builtIn === null ? await findRole(db, scope, roleId) : builtInRole(builtIn, scope.tenantId);
    if (role === null) throw unknown(roleId);
    return withActor(db, scope, { ...role, memberCount: (await members.countByRole(db, scope)).get(role.key) ?? 0 });
  },
});

const createRoleHandlers = ({ emit, plan, members }: RolesDeps): Pick<Handlers<typeof contract.roles>, "create" | "update" | "remove"> => {
  const { created, updated, deleted } = contract.roles.events;
  const toEvent = ({ roleId, key, name }: CustomRole) => ({ roleId, key, name });
  const counted = async (tx: Tx, scope: SystemScope, role: CustomRole): Promise<RoleRecord> => ({
    ...role,
    memberCount: (await members.countByRole(tx, scope)).get(role.key) ?? 0,
  });
  /** Locks the tenant's roles and finds one that may be changed. */
  const lockOne = async (tx: Tx, scope: SystemScope, roleId: string): Promise<CustomRole> => {
    if (builtInOf(roleId) !== null) throw new AppError("ROLE_IMMUTABLE", { details: { roleId } });
    await lockRoles(tx, scope);
    const role = await findRole(tx, scope, roleId);
    if (role === null) throw unknown(roleId);
    requireHeld(scope, role.permissions);
    return role;
  };
  const checkName = async (tx: Tx, scope: SystemScope, wanted: Parameters<typeof isTaken>[2]): Promise<void> => {
    const { name } = wanted;
    if (isReserved(name) || (await isTaken(tx, scope, wanted))) throw new AppError("ROLE_NAME_RESERVED", { details: { name } });
  };
  return {
    create: async ({ scope, commit }, { name, description, permissions: keys }) => {
      const permissions = toPermissions(keys);
      requireHeld(scope, permissions);
      const roleId = newId("rol");
      const key = keyOf(name) ?? `role-${roleId.slice(-8).toLowerCase()}`;
      return commit(async (tx) => {
        await lockRoles(tx, scope);
        await checkName(tx, scope, { name, key });
        await plan.require(tx, scope, "customRoles", 1);
        const used = await countRoles(tx, scope);
        if (used >= MOST_ROLES) throw new AppError("PLAN_LIMIT_EXCEEDED", { details: { resource: "customRoles", limit: MOST_ROLES, used } });
        const role = await insertRole(tx, scope, { roleId, key, name, description, permissions, createdBy: actorOf(scope.principal) });
        await emit(tx, [happened(scope, created, roleId, toEvent(role))]);
        return { ...role, memberCount: 0 };
      });
    },

    update: async ({ scope, fail, commit }, { roleId, name, description, permissions: keys, version }) => {
      const permissions = keys === undefined ? undefined : toPermissions(keys);
      requireHeld(scope, permissions ?? []);
      return commit(async (tx, afterwards) => {
        const before = await lockOne(tx, scope, roleId);
        if (name !== undefined) await checkName(tx, scope, { name, key: before.key, except: roleId });
        const role = await updateRole(tx, scope, roleId, { name, description, permissions, version });
        if (role === null) throw fail("VERSION_CONFLICT", { currentVersion: before.version });
        await emit(tx, [happened(scope, updated, roleId, toEvent(role))]);
        afterwards(members.forgetAll);
        return counted(tx, scope, role);
      });
    },

    remove: ({ scope, fail, commit }, { roleId }) =>
      commit(async (tx) => {
        const role = await lockOne(tx, scope, roleId);
        const { memberCount } = await counted(tx, scope, role);
        if (memberCount > 0) throw fail("ROLE_IN_USE", { roleId, memberCount });
        if (!(await deleteRole(tx, scope, roleId))) throw fail("ROLE_IN_USE", { roleId });
        await emit(tx, [happened(scope, deleted, roleId, toEvent(role))]);
        return null;
      }),
  };
};
