// The dependencies of the account feature, and how it shows what it stores.
import { type Account, type AuditLog, NOTICES, type Notification } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { UserPrincipal } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import type { MemberTenant, Tenants } from "../tenants/index.ts";
import { defaultsOf } from "./notices.ts";
import type { Choices, Profile } from "./store.ts";

export interface AccountDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "mails"> {
  readonly tenants: Pick<Tenants, "members" | "nameOf">;
  /** What sign-ins told of the person, with the sessions. */
  readonly deleteUser: (tx: Tx, userId: string) => Promise<void>;
  readonly audit: { recordsOf(db: Clients, actorId: string, tenantIds: readonly string[], limit: number): Promise<readonly AuditLog[]> };
}

export const toAccount = ({ userId, email, emailVerified }: UserPrincipal, profile: Profile, tenants: readonly MemberTenant[]): Account => {
  const { name, locale, timezone, preferences, defaultTenantId, deleteAfter, version, updatedAt } = profile;
  return {
    userId,
    email,
    emailVerified: emailVerified === true,
    name,
    locale,
    timezone,
    preferences: { ...preferences } as Account["preferences"],
    version,
    defaultTenantId: tenants.some(({ tenantId }) => tenantId === defaultTenantId) ? defaultTenantId : null,
    memberships: tenants.map(({ tenantId, role }) => ({ tenantId, role })),
    deleteAfter: deleteAfter?.toISOString() ?? null,
    updatedAt: updatedAt?.toISOString() ?? null,
  };
};

export const showTenant = (tenant: MemberTenant, { defaultTenantId }: Profile) => ({ ...tenant, isDefault: tenant.tenantId === defaultTenantId });

export const toNotifications = (choices: Choices): Notification[] => NOTICES.map((event) => ({ event, ...defaultsOf(event), ...choices[event] }));
