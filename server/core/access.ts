// What a caller may do in a tenant: permissions, and the devices that the caller is limited to. Made once per cached look-up, so a call only reads it.
import {
  contract,
  DeviceSelector,
  HELD,
  isOfTenant,
  type Operation,
  type Permission,
  type Role,
  type TenantId,
  WITHHELD_FROM_IMPERSONATION,
} from "../../protocol/index.ts";
import type { Clients } from "./database.ts";
import { type DeviceTraits, matchesAnyRule, matchesRule } from "./people/fleet-rules.ts";
import type { Access, DeviceLimit, SystemScope } from "./scope.ts";

/** Reads the fleets that a selector names. Within a transaction, `db` is that one. */
export type ToLimit = (tenantId: TenantId, selector: DeviceSelector, db?: Clients) => Promise<DeviceLimit>;

/** A row may be older than a field of the selector. */
export const storedSelector = (stored: unknown): DeviceSelector | null => (stored === null ? null : DeviceSelector.parse(stored));

const NO_LIMITS: readonly DeviceLimit[] = [];
/** The access of a caller outside of any tenant. */
export const NO_ACCESS = { role: null, permissions: new Set<Permission>(), limits: NO_LIMITS } as const;

export const createAccess = (role: string, granted: Iterable<Permission>, limits: readonly DeviceLimit[] = NO_LIMITS): Access => ({
  role,
  permissions: new Set(limits.length === 0 ? granted : [...granted].filter((permission) => !isOfTenant(permission))),
  limits,
});

const builtIn = (role: Role): Access => ({ role, permissions: HELD[role], limits: NO_LIMITS });
const BUILT_IN: Readonly<Record<Role, Access>> = { viewer: builtIn("viewer"), operator: builtIn("operator"), admin: builtIn("admin"), owner: builtIn("owner") };
/** The access of an unlimited caller with a built-in role. */
export const accessOf = (role: Role): Access => BUILT_IN[role];

const SEEING: ReadonlySet<string> = new Set(
  Object.values(contract).flatMap(({ operations }) =>
    Object.values<Operation>(operations).flatMap(({ kind, permission }) => (kind === "mutation" ? [] : [permission])),
  ),
);

/** What an administrator may do in a member's name. */
export const whileImpersonated = (permissions: ReadonlySet<Permission>, readOnly: boolean): ReadonlySet<Permission> =>
  new Set([...permissions].filter((permission) => !WITHHELD_FROM_IMPERSONATION.has(permission) && (!readOnly || SEEING.has(permission))));

const NOTHING = new Set<Permission>();
/** Agents act for their own device; they hold no permission. */
export const permissionsIn = ({ principal }: Pick<SystemScope, "principal">): ReadonlySet<Permission> =>
  principal == null || principal.kind === "agent" ? NOTHING : principal.permissions;

/** Background work and agents have no limits of this kind. */
export const deviceLimitsOf = ({ principal }: Pick<SystemScope, "principal">): readonly DeviceLimit[] =>
  principal == null || principal.kind === "agent" ? NO_LIMITS : principal.limits;
export const isLimited = (scope: Pick<SystemScope, "principal">): boolean => deviceLimitsOf(scope).length > 0;

/** The selector of the caller itself; null: it has none. */
export const selectorOf = (scope: Pick<SystemScope, "principal">): DeviceSelector | null => {
  const [limit] = deviceLimitsOf(scope);
  if (limit === undefined) return null;
  const { rules: _, ...selector } = limit;
  return selector;
};

/** Whether both see the same devices. */
export const haveSameLimits = (a: Pick<SystemScope, "principal">, b: Pick<SystemScope, "principal">): boolean =>
  deviceLimitsOf(a) === deviceLimitsOf(b) || JSON.stringify(deviceLimitsOf(a)) === JSON.stringify(deviceLimitsOf(b));

/** For raw statements, beside their own condition: whether the caller sees the device in the row `d`. The parameter `n` is `limitsValue`. */
export const withinLimits = (d: string, n: string): string =>
  `(${n}::jsonb is null or not exists (select from jsonb_array_elements(${n}::jsonb) l
      where (l -> 'deviceIds' ? ${d}.device_id or l -> 'tags' ?| ${d}.tags or l -> 'fleetIds' ?| ${d}.fleet_ids or ${matchesAnyRule(d, "l -> 'rules'")}) is not true))`;
/** Null for a caller without limits. */
export const limitsValue = (scope: Pick<SystemScope, "principal">): string | null => (isLimited(scope) ? JSON.stringify(deviceLimitsOf(scope)) : null);

/** Whether all limits select the device. */
export const isSelected = (limits: readonly DeviceLimit[], device: DeviceTraits): boolean =>
  limits.every(
    ({ deviceIds, tags, fleetIds, rules }) =>
      (deviceIds as readonly string[]).includes(device.deviceId) ||
      tags.some((tag) => device.tags.includes(tag)) ||
      fleetIds.some((fleetId) => device.fleetIds.includes(fleetId)) ||
      rules.some((rule) => matchesRule(rule, device)),
  );
