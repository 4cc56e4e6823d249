// Rows of tenants and their members.
import type { z } from "zod";
import { Prisma } from "../../../../prisma/generated/client.ts";
import { HELD, isPermission, isRole, type Page, type Plan, type Role, Tenant, type TenantId } from "../../../../protocol/index.ts";
import { accessOf, createAccess, storedSelector, type ToLimit } from "../../../core/access.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { Membership } from "../../../core/ports/lookups.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../../core/rows/records.ts";
import type { Access, DeviceLimit, Overrides, SystemScope, TenantFacts } from "../../../core/scope.ts";
import { LOCK } from "../../../core/statements.ts";
import { orNull } from "../../../platform/database/db-errors.ts";

/** The features of deployments, apps and tunnels count their own rows. */
const StoredTenant = Tenant.omit({ deploymentCount: true, appCount: true, tunnelCount: true });
export type StoredTenant = z.infer<typeof StoredTenant>;

/** The purge may still need a while for the rows of a deleted one. */
const existing = { status: { not: "deleted" } } as const;

export const toTenant = (row: RowOf<typeof StoredTenant>): StoredTenant => recordOf(StoredTenant, row);

/** Until the transaction ends, every other transaction that creates a tenant for this user waits, so the count before the insert stays right. */
export const lockUser = async (tx: SqlTx, userId: string): Promise<void> => {
  await tx.query(LOCK, [`tenants of ${userId}`]);
};

export const countOwned = (db: Clients, userId: string): Promise<number> => db.system.membership.count({ where: { userId, role: "owner", tenant: existing } });

export interface NewTenant {
  readonly tenantId: TenantId;
  readonly name: string;
  readonly slug: string;
  readonly plan: Plan;
  readonly ownerUserId: string;
  readonly durableObjectId: string;
}

/** False when the slug is taken. */
export const insertTenant = async (db: Clients, tenant: NewTenant): Promise<boolean> =>
  (await db.system.tenant.createMany({ data: [tenant], skipDuplicates: true })).count === 1;

export interface NewMember {
  readonly memberId: string;
  readonly userId: string;
  readonly email: string | null;
  readonly role: Role;
}

/** Gives the user this role without limits, whatever the user had. Keeps a known email address. */
export const upsertMember = async (db: Clients, scope: SystemScope, member: NewMember): Promise<void> => {
  const { userId, role, email } = member;
  const { membership } = db.for(scope);
  const now = await membership.upsert({
    where: { tenantId_userId: { userId } },
    create: member,
    update: { role, roleId: null, selector: Prisma.DbNull, version: { increment: 1 } },
  });
  if (now.email === null && email !== null) await membership.updateMany({ where: { userId, email: null }, data: { email } });
};

export const findTenant = async (db: Clients, scope: SystemScope): Promise<StoredTenant | null> => {
  const row = await db.for(scope).tenant.findFirst();
  return row === null ? null : toTenant(row);
};

const listTenants = createListing("tenants", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "tenantId", kind: "text" });

export const pageOfTenants = (db: Clients, userId: string, query: Parameters<typeof listTenants>[0]): Promise<Page<StoredTenant>> => {
  const where = { ...existing, memberships: { some: { userId } } };
  return listTenants(query, {
    owner: userId,
    rows: (asked) => db.system.tenant.findMany({ ...asked, where: { ...where, ...asked.where } }),
    count: () => db.system.membership.count({ where: { userId, tenant: existing } }),
    record: toTenant,
  });
};

export interface TenantChange {
  readonly name?: string | undefined;
  readonly slug?: string | undefined;
  /** Changes nothing unless this is the current version; undefined skips the check. */
  readonly version?: number | undefined;
}

/** Null when the version is no longer current. */
export const updateTenant = async (db: Clients, scope: SystemScope, { version, ...change }: TenantChange): Promise<StoredTenant | null> => {
  const row = await orNull(db.for(scope).tenant.update({ where: given({ version }), data: { ...given(change), version: { increment: 1 } } }));
  return row === null ? null : toTenant(row);
};

export const findFacts = async (db: Clients, tenantId: string): Promise<TenantFacts | null> => {
  const row = await db.system.tenant.findFirst({
    where: { tenantId },
    select: {
      tenantId: true,
      slug: true,
      plan: true,
      status: true,
      statusSince: true,
      statusReason: true,
      limitOverrides: true,
      rateLimitOverrides: true,
      settings: { select: { allowedReturnHosts: true } },
    },
  });
  if (row === null) return null;
  const { settings, ...facts } = row;
  const returnHosts = settings?.allowedReturnHosts ?? [];
  return { ...(facts as typeof facts & { limitOverrides: Overrides; rateLimitOverrides: Overrides; tenantId: TenantId }), returnHosts }; // as: the operator's command line writes nothing else
};

/** The tenants among these that are not active. */
export const findSuspended = async (db: Clients, tenantIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await db.system.tenant.findMany({ where: { tenantId: { in: [...tenantIds] }, status: { not: "active" } }, select: { tenantId: true } });
  return new Set(rows.map(({ tenantId }) => tenantId));
};

/** For the plan. */
export const countMembers = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).membership.count();

export const writePlan = async (db: Clients, scope: SystemScope, plan: Plan): Promise<void> => {
  await db.for(scope).tenant.updateMany({ data: { plan, version: { increment: 1 } } });
};

/** By its slug, or by one that it gave up a short time ago. */
export const findIdBySlug = async (db: Clients, slug: string, now: Date): Promise<TenantId | null> => {
  const row = await db.system.tenant.findFirst({
    where: { OR: [{ slug }, { reservedSlugs: { some: { slug, expiresAt: { gt: now } } } }], ...existing },
    select: { tenantId: true },
  });
  return (row?.tenantId ?? null) as TenantId | null;
};

const NO_LIMIT = { "*": null };

/** Lifts the tenant's plan limits, and with `rates` its rate limits too. Never sets a limit again. */
export const liftLimits = async (db: Clients, scope: SystemScope, { rates }: { readonly rates: boolean }): Promise<void> => {
  await db.for(scope).tenant.updateMany({ data: { limitOverrides: NO_LIMIT, ...(rates ? { rateLimitOverrides: NO_LIMIT } : {}) } });
};

/** Until the transaction ends, every other `require` of this tenant waits. */
export const lockPlan = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`plan of ${tenantId}`]);
};

const select = { tenantId: true, role: true, email: true, selector: true, customRole: { select: { permissions: true } } } as const;
type MemberRow = Prisma.Result<Prisma.MembershipDelegate, { select: typeof select }, "findFirstOrThrow">;

const toMembership = async ({ email, role, selector, customRole, ...row }: MemberRow, toLimit: ToLimit): Promise<Membership> => {
  const tenantId = row.tenantId as TenantId; // as: the column holds nothing else
  const limit = storedSelector(selector);
  const limits = limit === null ? [] : [await toLimit(tenantId, limit)];
  return { tenantId, email, ...storedAccess(role, customRole?.permissions ?? null, limits) };
};

/** `permissions` are those of a role of the tenant's own, null for a built-in one. */
export const storedAccess = (role: string, permissions: readonly string[] | null, limits: readonly DeviceLimit[]): Access => {
  if (permissions !== null) return createAccess(role, permissions.filter(isPermission), limits);
  // A role that this release does not know grants the least.
  const known = isRole(role) ? role : "viewer";
  return limits.length === 0 ? accessOf(known) : createAccess(known, HELD[known], limits);
};

export const findMembership = async (
  db: Clients,
  toLimit: ToLimit,
  { tenantId, userId }: { readonly tenantId: string; readonly userId: string },
): Promise<Membership | null> => {
  const row = await db.system.membership.findFirst({ where: { tenantId, userId }, select });
  return row === null ? null : toMembership(row, toLimit);
};

export const listMemberships = async (db: Clients, toLimit: ToLimit, userId: string): Promise<readonly Membership[]> => {
  const rows = await db.system.membership.findMany({ where: { userId }, orderBy: [{ createdAt: "asc" }, { memberId: "asc" }], take: 100, select });
  return Promise.all(rows.map((row) => toMembership(row, toLimit)));
};
