// Roles and their permissions. A role has its own permissions and those of every role listed before it; each operation requires exactly one.
export const ROLES = ["viewer", "operator", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];

const GRANTS = {
  viewer: [
    "tenant:read",
    "device:read",
    "fleet:read",
    "app:read",
    "deployment:read",
    "command:read",
    "event:read",
    "trace:read",
    "member:read",
    "role:read",
    "security:read",
    "alert:read",
    "alert_rule:read",
    "webhook:read",
  ],
  operator: [
    "device:pair",
    "device:update",
    "device:command",
    "app:create",
    "app:update",
    "app:delete",
    "app:rollback",
    "app:logs",
    "deployment:create",
    "deployment:update",
    "deployment:delete",
    "deployment:deploy",
    "trace:write",
    "security:respond",
    "alert:acknowledge",
    "alert:silence",
    "webhook:deliver",
  ],
  admin: [
    "device:delete",
    "device:provision",
    "device:disconnect",
    "device:secrets:read",
    "device:secrets:rotate",
    "device:shell",
    "app:secrets:read",
    "app:secrets:write",
    "fleet:write",
    "enrollment:write",
    "tenant:update",
    "api_key:read",
    "api_key:write",
    "invite:read",
    "invite:write",
    "audit:read",
    "billing:read",
    "webhook:write",
    "member:write",
    "role:write",
    "security:rules",
    "security:block",
    "alert_rule:write",
  ],
  owner: ["tenant:delete", "billing:write", "tenant:transfer"],
} as const satisfies Record<Role, readonly string[]>;

export type Permission = (typeof GRANTS)[Role][number];

/** All permissions of a role. */
export const permissionsOf = (role: Role): readonly Permission[] => ROLES.slice(0, ROLES.indexOf(role) + 1).flatMap((each) => GRANTS[each]);

const held = (role: Role): ReadonlySet<Permission> => new Set(permissionsOf(role));
/** The permissions of the built-in roles. */
export const HELD: Readonly<Record<Role, ReadonlySet<Permission>>> = {
  viewer: held("viewer"),
  operator: held("operator"),
  admin: held("admin"),
  owner: held("owner"),
};
export const permits = (role: Role, permission: Permission): boolean => HELD[role].has(permission);
export const PERMISSIONS: readonly Permission[] = permissionsOf("owner");
export const isPermission = (value: string): value is Permission => (HELD.owner as ReadonlySet<string>).has(value);
export const isRole = (value: string): value is Role => (ROLES as readonly string[]).includes(value);

/** The damage that a wrong hand can do with it. */
export type Risk = "low" | "medium" | "high";

interface Described {
  readonly description: string;
  readonly risk: Risk;
  /**
   * `device`: an operation that needs it shows and changes single devices, so a caller who is limited to some devices may call it and meets only
   * those. `tenant`: it concerns the tenant as a whole, and a limited caller never has it.
   */
  readonly reach: "device" | "tenant";
}
const row = (reach: Described["reach"], risk: Risk, description: string): Described => ({ reach, risk, description });

/** Every permission with its meaning. A permission without a line here does not compile. */
export const DESCRIBED: Readonly<Record<Permission, Described>> = {
  "tenant:read": row("device", "low", "See the tenant, its dashboard and its metrics"),
  "device:read": row("device", "low", "See devices, their state and their metrics"),
  "fleet:read": row("device", "low", "See fleets and their devices"),
  "app:read": row("device", "low", "See apps, their configuration and their state"),
  "deployment:read": row("device", "low", "See deployments and their revisions"),
  "command:read": row("device", "low", "See commands and their results"),
  "event:read": row("device", "low", "Watch events as they happen"),
  "trace:read": row("device", "low", "See traces of calls, commands and devices"),
  "member:read": row("tenant", "low", "See the members and their roles"),
  "role:read": row("tenant", "low", "See the roles and what each may do"),
  "alert:read": row("device", "low", "See alerts"),
  "alert_rule:read": row("tenant", "low", "See alert rules, silences and channels, without their secrets"),
  "device:pair": row("tenant", "medium", "Pair a device with the tenant"),
  "device:update": row("device", "low", "Change a device's name, tags, deployment and maintenance"),
  "device:command": row("device", "medium", "Send commands to devices and cancel them"),
  "app:create": row("device", "medium", "Install apps on devices"),
  "app:update": row("device", "medium", "Start, stop, change and update apps"),
  "app:delete": row("device", "high", "Remove apps from devices, with their data"),
  "app:rollback": row("device", "medium", "Roll apps back to a snapshot"),
  "app:logs": row("device", "medium", "Read the logs of apps"),
  "deployment:create": row("device", "medium", "Deploy to devices"),
  "deployment:update": row("device", "medium", "Change deployments"),
  "deployment:delete": row("device", "high", "Delete deployments, with their data"),
  "deployment:deploy": row("device", "medium", "Deploy again, start, stop, cancel and roll back deployments"),
  "trace:write": row("tenant", "low", "Send spans of traces"),
  "alert:acknowledge": row("device", "low", "Acknowledge, snooze and resolve alerts"),
  "alert:silence": row("tenant", "medium", "Silence alerts for a time"),
  "device:delete": row("device", "high", "Remove devices"),
  "device:provision": row("tenant", "high", "Create many devices at once, with their secrets"),
  "device:disconnect": row("device", "low", "Close a device's connection"),
  "device:secrets:read": row("device", "high", "Read a device's secrets"),
  "device:secrets:rotate": row("device", "medium", "Rotate a device's secret and allow its repair"),
  "device:shell": row("device", "high", "Run shell commands on devices"),
  "app:secrets:read": row("device", "high", "Read the secrets of apps"),
  "app:secrets:write": row("device", "high", "Set the secrets of apps"),
  "fleet:write": row("tenant", "high", "Create, change and delete fleets, which may decide who sees a device"),
  "enrollment:write": row("tenant", "high", "Create and revoke enrollment tokens"),
  "tenant:update": row("tenant", "medium", "Change the tenant's name and settings"),
  "api_key:read": row("tenant", "low", "See API keys, without the keys themselves"),
  "api_key:write": row("tenant", "high", "Create, change, rotate and revoke API keys"),
  "invite:read": row("tenant", "low", "See invites"),
  "invite:write": row("tenant", "high", "Invite people, send invites again and revoke them"),
  "audit:read": row("tenant", "medium", "Read and export the audit log"),
  "billing:read": row("tenant", "low", "See invoices and usage"),
  "webhook:read": row("tenant", "low", "See webhooks, without their secrets, and the types of events"),
  "webhook:deliver": row("tenant", "medium", "See what webhooks have sent and received, send it again and send tests"),
  "webhook:write": row("tenant", "high", "Create, change and delete webhooks, which send events to others"),
  "member:write": row("tenant", "high", "Change the roles of members and remove them"),
  "role:write": row("tenant", "high", "Create, change and delete roles"),
  "security:read": row("tenant", "low", "See security events, security alerts, their rules and what is blocked"),
  "security:respond": row("tenant", "low", "Acknowledge and resolve security alerts"),
  "security:rules": row("tenant", "high", "Create, change and delete rules that raise security alerts and block callers"),
  "security:block": row("tenant", "high", "Block addresses, users, keys and devices, and unblock them"),
  "alert_rule:write": row("tenant", "medium", "Change alert rules and the channels that alerts go to"),
  "tenant:delete": row("tenant", "high", "Delete the tenant, and restore it"),
  "billing:write": row("tenant", "high", "Buy, change and cancel the plan"),
  "tenant:transfer": row("tenant", "high", "Make another member the owner"),
};
export const isOfTenant = (permission: Permission): boolean => DESCRIBED[permission].reach === "tenant";
