// Rows of all tenants and of their members, for administrators of the installation.
import type { z } from "zod";
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { AdminTenant, type AdminUser, isRole, type Tenant, type TenantId, type Window } from "../../../../protocol/index.ts";
import { secondsFromNow } from "../../../core/clock.ts";
import type { Clients } from "../../../core/database.ts";
import { given, type RowOf, recordOf } from "../../../core/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { orNull } from "../../../platform/db-errors.ts";
import type { OperatorChange } from "../any-tenant.ts";

const StoredAdminTenant = AdminTenant.omit({ deploymentCount: true, appCount: true, tunnelCount: true });
export type StoredAdminTenant = z.infer<typeof StoredAdminTenant>;

const toAdminTenant = (row: Omit<RowOf<typeof StoredAdminTenant>, "owner"> & { readonly ownerUserId: string }): StoredAdminTenant =>
  recordOf(StoredAdminTenant, { ...row, owner: row.ownerUserId });

export const findForAdmin = async (db: Clients, scope: SystemScope): Promise<StoredAdminTenant | null> => {
  const row = await db.for(scope).tenant.findFirst();
  return row === null ? null : toAdminTenant(row);
};

export interface TenantFilter extends Window {
  readonly plan?: Tenant["plan"] | undefined;
  readonly status?: string | undefined;
  /** A part of name or slug, with the signs of a LIKE pattern escaped. */
  readonly named?: string | undefined;
}

export const pageForAdmin = async (db: Clients, { limit, offset, named, ...same }: TenantFilter): Promise<{ items: StoredAdminTenant[]; total: number }> => {
  const part = { contains: named ?? "", mode: "insensitive" } as const;
  const where = { ...given(same), ...(named === undefined ? {} : { OR: [{ name: part }, { slug: part }] }) };
  const { tenant } = db.system;
  const [rows, total] = await Promise.all([
    tenant.findMany({ where, orderBy: [{ createdAt: "desc" }, { tenantId: "desc" }], take: limit, skip: offset }),
    tenant.count({ where }),
  ]);
  return { items: rows.map(toAdminTenant), total };
};

/** Null when there is no such tenant or its version is no longer current. */
export const updateForAdmin = async (db: Clients, scope: SystemScope, { version, ...change }: OperatorChange): Promise<StoredAdminTenant | null> => {
  const data: Prisma.TenantUncheckedUpdateInput = { ...given(change), version: { increment: 1 } };
  const row = await orNull(db.for(scope).tenant.update({ where: given({ version }), data }));
  return row === null ? null : toAdminTenant(row);
};

export interface UserFilter extends Window {
  /** A part of id or email address, with the signs of a LIKE pattern escaped. */
  readonly named?: string | undefined;
}

/** Counting stops here. */
const MAX_USERS = 10_000;

export const pageOfUsers = async (db: Clients, { limit, offset, named }: UserFilter): Promise<{ items: AdminUser[]; total: number }> => {
  const part = { contains: named ?? "", mode: "insensitive" } as const;
  const where = named === undefined ? {} : { OR: [{ userId: part }, { email: part }] };
  const found = await db.system.membership.findMany({ where, distinct: ["userId"], orderBy: { userId: "asc" }, take: MAX_USERS, select: { userId: true } });
  const userIds = found.slice(offset, offset + limit).map(({ userId }) => userId);
  const rows = await db.system.membership.findMany({
    where: { userId: { in: userIds } },
    orderBy: [{ createdAt: "asc" }, { memberId: "asc" }],
    take: MAX_USERS,
  });
  const items = userIds.map((userId) => {
    const own = rows.filter((row) => row.userId === userId);
    return { userId, email: own.find(({ email }) => email !== null)?.email ?? null, memberships: own.map(toMembership) };
  });
  return { items, total: found.length };
};

const toMembership = ({ tenantId, role }: { readonly tenantId: string; readonly role: string }): AdminUser["memberships"][number] => ({
  tenantId: tenantId as TenantId,
  role: isRole(role) ? role : "viewer",
});

export const countByStatus = async (db: Clients): Promise<Record<string, number>> =>
  Object.fromEntries((await db.system.tenant.groupBy({ by: ["status"], _count: true })).map(({ status, _count }) => [status, _count]));

export const findOverdueDeletions = async (db: Clients, afterSeconds: number, limit: number) => {
  const where = { deleteAfter: { lt: secondsFromNow(-afterSeconds) } };
  const rows = await db.system.tenant.findMany({
    where,
    orderBy: { deleteAfter: "asc" },
    take: limit,
    select: { tenantId: true, status: true, deleteAfter: true },
  });
  return rows.flatMap(({ deleteAfter, ...row }) => (deleteAfter === null ? [] : [{ ...row, deleteAfter }]));
};
