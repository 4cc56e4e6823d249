// What a caller may do in a tenant: permissions, and the devices that the caller is limited to. Made once per cached look-up, so a call only reads it.
import { type DeviceSelector, HELD, isOfTenant, type Permission, type Role } from "../../protocol/index.ts";
import type { SystemScope } from "./scope.ts";

export interface Access {
  /** The key of a built-in role or of one of the tenant's own. */
  readonly role: string;
  /** What a call may need. A limited caller has no permission that concerns the tenant as a whole. */
  readonly permissions: ReadonlySet<Permission>;
  /** A device has to match each of these selectors. Empty: all devices. */
  readonly limits: readonly DeviceSelector[];
}

const NO_LIMITS: readonly DeviceSelector[] = [];
/** Of a caller outside of any tenant. */
export const NO_ACCESS = { role: null, permissions: new Set<Permission>(), limits: NO_LIMITS } as const;

export const createAccess = (role: string, granted: Iterable<Permission>, limits: readonly DeviceSelector[] = NO_LIMITS): Access => ({
  role,
  permissions: new Set(limits.length === 0 ? granted : [...granted].filter((permission) => !isOfTenant(permission))),
  limits,
});

const builtIn = (role: Role): Access => ({ role, permissions: HELD[role], limits: NO_LIMITS });
const BUILT_IN: Readonly<Record<Role, Access>> = { viewer: builtIn("viewer"), operator: builtIn("operator"), admin: builtIn("admin"), owner: builtIn("owner") };
/** Of an unlimited caller with a built-in role. */
export const accessOf = (role: Role): Access => BUILT_IN[role];

const NOTHING = new Set<Permission>();
/** Agents act for their own device; they hold no permission. */
export const permissionsIn = ({ principal }: Pick<SystemScope, "principal">): ReadonlySet<Permission> =>
  principal == null || principal.kind === "agent" ? NOTHING : principal.permissions;

/** Background work and agents have no limits of this kind. */
export const deviceLimitsOf = ({ principal }: Pick<SystemScope, "principal">): readonly DeviceSelector[] =>
  principal == null || principal.kind === "agent" ? NO_LIMITS : principal.limits;
export const isLimited = (scope: Pick<SystemScope, "principal">): boolean => deviceLimitsOf(scope).length > 0;

/** Whether both see the same devices. */
export const haveSameLimits = (a: Pick<SystemScope, "principal">, b: Pick<SystemScope, "principal">): boolean =>
  deviceLimitsOf(a) === deviceLimitsOf(b) || JSON.stringify(deviceLimitsOf(a)) === JSON.stringify(deviceLimitsOf(b));

/** For raw statements, beside their own condition: whether the caller sees the device in the row `d`. The parameter `n` is `limitsValue`. */
export const withinLimits = (d: string, n: string): string =>
  `(${n}::jsonb is null or not exists (select from jsonb_array_elements(${n}::jsonb) l where not (l -> 'deviceIds' ? ${d}.device_id or l -> 'tags' ?| ${d}.tags)))`;
/** Null for a caller without limits. */
export const limitsValue = (scope: Pick<SystemScope, "principal">): string | null => (isLimited(scope) ? JSON.stringify(deviceLimitsOf(scope)) : null);

/** Whether all limits select a device with these tags. */
export const isSelected = (limits: readonly DeviceSelector[], deviceId: string, tags: readonly string[]): boolean =>
  limits.every((limit) => (limit.deviceIds as readonly string[]).includes(deviceId) || limit.tags.some((tag) => tags.includes(tag)));
