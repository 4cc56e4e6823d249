// What the creator of lasting work may do at this moment: a step acts with that access, and never with what the creator had once.
import type { Permission, TenantId } from "../../../protocol/index.ts";
import { permissionsIn, whileImpersonated } from "../access.ts";
import type { ApiKeyRecord, Memberships, TenantLookup } from "../ports/lookups.ts";
import { type Blocks, isBlocked } from "../ports/security.ts";
import { adminIdOf, type Principal, type SystemScope, type TenantScope, userIdOf } from "../scope.ts";
import { runAs, Work } from "../work.ts";

export interface AccessDeps {
  readonly tenants: Pick<TenantLookup, "find">;
  readonly memberships: Pick<Memberships, "find">;
  readonly keyById: (scope: SystemScope, keyId: string) => Promise<ApiKeyRecord | null>;
  readonly blocks: () => Pick<Blocks, "any" | "refuses">;
}

/** Nobody calls, so there is no address. */
const NOWHERE = "0.0.0.0";

const principalOf = async ({ memberships, keyById }: AccessDeps, tenantId: TenantId, actor: string): Promise<Principal | null> => {
  const userId = userIdOf(actor);
  if (userId !== null) {
    const member = await memberships.find(tenantId, userId);
    if (member === null) return null;
    const { email, role, permissions, limits } = member;
    const adminId = adminIdOf(actor);
    if (adminId === null) return { kind: "user", userId, email, role, permissions, limits };
    return { kind: "user", userId, email, role, limits, permissions: whileImpersonated(permissions, false), impersonator: { adminId, impersonation: null } };
  }
  const key = await keyById({ tenantId }, actor);
  if (key === null || key.status !== "active") return null;
  const { keyId, role, permissions, limits } = key;
  return { kind: "apiKey", keyId, role, permissions, limits };
};

/** Work and who has ordered it. */
export interface OrderedWork {
  readonly tenantId: TenantId;
  readonly workId: string;
  readonly createdBy: string;
}
export interface WorkNeeds {
  readonly permissions: readonly Permission[];
  readonly unlimitedOnly?: boolean | undefined;
}

/** Null: the creator may not do it any more. */
export const createPresentAccess =
  (deps: AccessDeps) =>
  async ({ tenantId, workId, createdBy }: OrderedWork, { permissions, unlimitedOnly }: WorkNeeds): Promise<TenantScope | null> => {
    // The step that asks is in a transaction and holds a session of background work. Were these reads of that class too, so many steps at once as it has
    // sessions would all wait for one more.
    const [tenant, principal] = await runAs(new Work("lists"), () => Promise.all([deps.tenants.find(tenantId), principalOf(deps, tenantId, createdBy)]));
    if (tenant === null || principal === null) return null;
    const scope: TenantScope = { tenantId, tenant, principal, requestId: workId, ip: NOWHERE, traceparent: null };
    const may = permissionsIn(scope);
    const isLost = permissions.some((permission) => !may.has(permission)) || isBlocked(scope, deps.blocks());
    return isLost || (unlimitedOnly === true && principal.kind !== "agent" && principal.limits.length > 0) ? null : scope;
  };
export type PresentAccess = ReturnType<typeof createPresentAccess>;
