// Roles and their permissions. A role has its own permissions and those of every role listed before it; each operation requires exactly one.
export const ROLES = ["viewer", "operator", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];

const GRANTS = {
  viewer: ["tenant:read", "device:read", "command:read", "event:read", "member:read"],
  operator: ["device:pair", "device:update", "device:command"],
  admin: [
    "device:delete",
    "device:provision",
    "device:disconnect",
    "device:secrets:read",
    "device:secrets:rotate",
    "device:shell",
    "enrollment:write",
    "tenant:update",
    "api_key:read",
    "api_key:write",
    "audit:read",
    "billing:read",
  ],
  owner: ["tenant:delete", "billing:write"],
} as const satisfies Record<Role, readonly string[]>;

export type Permission = (typeof GRANTS)[Role][number];

/** All permissions of a role. */
export const permissionsOf = (role: Role): readonly Permission[] => ROLES.slice(0, ROLES.indexOf(role) + 1).flatMap((each) => GRANTS[each]);

const held = (role: Role): ReadonlySet<string> => new Set(permissionsOf(role));
const HELD: Record<Role, ReadonlySet<string>> = { viewer: held("viewer"), operator: held("operator"), admin: held("admin"), owner: held("owner") };
export const permits = (role: Role, permission: Permission): boolean => HELD[role].has(permission);
export const PERMISSIONS: readonly Permission[] = permissionsOf("owner");
export const isRole = (value: string): value is Role => (ROLES as readonly string[]).includes(value);
