// What a role may be: its permissions, its key, and who may grant it.
import {
  capitalized,
  HELD,
  isPermission,
  isRole,
  type Permission,
  ROLES,
  type Role,
  type RoleId,
  type RoleRecord,
  type TenantId,
} from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";

const ID_LENGTH = 20;
/** The same in every tenant and installation. */
export const builtInId = (role: Role): RoleId => `rol_${role.padStart(ID_LENGTH, "0")}`;
const BY_ID: ReadonlyMap<string, Role> = new Map(ROLES.map((role) => [builtInId(role), role]));
/** By its id or its key. */
export const builtInOf = (roleId: string): Role | null => (isRole(roleId) ? roleId : (BY_ID.get(roleId) ?? null));

const DESCRIPTIONS: Readonly<Record<Role, string>> = {
  viewer: "Reads everything but secrets.",
  operator: "Runs the devices: pairs them and sends commands.",
  admin: "Everything but deleting the tenant, its ownership and its plan.",
  owner: "Everything.",
};

export const builtInRole = (role: Role, tenantId: TenantId): Omit<RoleRecord, "memberCount"> => ({
  roleId: builtInId(role),
  tenantId,
  key: role,
  name: capitalized(role),
  description: DESCRIPTIONS[role],
  builtIn: true,
  permissions: [...HELD[role]],
  version: 1,
});

const KEY_LENGTH = 40;
/** Letters that a key cannot have become hyphens; a name of none but such letters gives no key. */
export const keyOf = (name: string): string | null => {
  const key = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, KEY_LENGTH)
    .replace(/^-+|-+$/g, "");
  return key === "" ? null : key;
};
export const isReserved = (name: string): boolean => isRole(keyOf(name) ?? "");

/** Each once. Throws PERMISSION_UNKNOWN for words that name none. */
export const toPermissions = (keys: readonly string[]): Permission[] => {
  const unknown = keys.filter((key) => !isPermission(key));
  if (unknown.length > 0) throw new AppError("PERMISSION_UNKNOWN", { details: { permissions: unknown } });
  return [...new Set(keys.filter(isPermission))];
};
