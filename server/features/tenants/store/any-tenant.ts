// Rows of all tenants and of their members, for administrators of the installation.
import type { z } from "zod";
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { AdminTenant, type AdminUser, isRole, type Page, type Tenant, type TenantId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { createListing, type ListArguments, likeLiteral } from "../../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../../core/rows/records.ts";
import type { Overrides, SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import type { Db } from "../../../platform/database/db.ts";
import { orNull } from "../../../platform/database/db-errors.ts";

const StoredAdminTenant = AdminTenant.omit({ deploymentCount: true, appCount: true, tunnelCount: true });
export type StoredAdminTenant = z.infer<typeof StoredAdminTenant>;

const toAdminTenant = (row: Omit<RowOf<typeof StoredAdminTenant>, "owner"> & { readonly ownerUserId: string }): StoredAdminTenant =>
  recordOf(StoredAdminTenant, { ...row, owner: row.ownerUserId });

export const findForAdmin = async (db: Clients, scope: SystemScope): Promise<StoredAdminTenant | null> => {
  const row = await db.for(scope).tenant.findFirst();
  return row === null ? null : toAdminTenant(row);
};

const listForAdmin = createListing(
  "admin-tenants",
  { createdAt: { kind: "time" }, name: { kind: "text" }, slug: { kind: "text" }, statusSince: { kind: "time" } },
  { column: "tenantId", kind: "text" },
);

export type TenantsQuery = Parameters<typeof listForAdmin>[0] & {
  readonly plan?: Tenant["plan"] | undefined;
  readonly status?: string | undefined;
  /** A part of name or slug. */
  readonly q?: string | undefined;
};

export const pageForAdmin = (db: Clients, query: TenantsQuery): Promise<Page<StoredAdminTenant>> => {
  const { plan, status, q } = query;
  const part = { contains: likeLiteral(q ?? ""), mode: "insensitive" } as const;
  const where = { ...given({ plan, status }), ...(q === undefined ? {} : { OR: [{ name: part }, { slug: part }] }) };
  const { tenant } = db.system;
  return listForAdmin(query, {
    owner: "",
    rows: (asked) => tenant.findMany({ ...asked, where: { ...where, ...asked.where } }),
    count: () => tenant.count({ where }),
    record: toAdminTenant,
  });
};

export interface OperatorChange {
  readonly limitOverrides?: Overrides | undefined;
  readonly rateLimitOverrides?: Overrides | undefined;
  readonly operatorNotes?: string | null | undefined;
  readonly version?: number | undefined;
}

/** Null when there is no such tenant or its version is no longer current. */
export const updateForAdmin = async (db: Clients, scope: SystemScope, { version, ...change }: OperatorChange): Promise<StoredAdminTenant | null> => {
  const data: Prisma.TenantUncheckedUpdateInput = { ...given(change), version: { increment: 1 } };
  const row = await orNull(db.for(scope).tenant.update({ where: given({ version }), data }));
  return row === null ? null : toAdminTenant(row);
};

const listUsers = createListing("admin-users", { userId: { kind: "text" } }, { column: "userId", kind: "text" });

export type UsersQuery = Parameters<typeof listUsers>[0] & {
  /** A part of id, name or email address. */
  readonly q?: string | undefined;
};

/** Counting stops here. */
const MAX_USERS = 10_000;

// The database's collation orders them, as it orders the rows that they come from.
const ORDER_IDS = statement<{ readonly id: string }>(
  "admin.orderUserIds",
  `select distinct given.id
     from unnest($1::text[]) as given (id) order by given.id`,
);

/** Ids of members and of those who have signed in; some are both. */
const findUserIds = async (db: Clients, q: string | undefined, asked: Partial<Pick<ListArguments, "where" | "orderBy">> & { readonly take: number }) => {
  const part = { contains: likeLiteral(q ?? ""), mode: "insensitive" } as const;
  const own = (...fields: readonly object[]) => ({ AND: [q === undefined ? {} : { OR: [...fields] }, asked.where ?? {}] });
  const { membership, user } = db.system;
  const select = { userId: true } as const;
  const [members, users] = await Promise.all([
    membership.findMany({ ...asked, distinct: ["userId"], select, where: own({ userId: part }, { email: part }) }),
    user.findMany({ ...asked, select, where: own({ userId: part }, { email: part }, { name: part }) }),
  ]);
  return [...members, ...users].map(({ userId }) => userId);
};

export const pageOfUsers = (db: Db, query: UsersQuery): Promise<Page<AdminUser>> =>
  listUsers(query, {
    owner: "",
    rows: async ({ where, orderBy, skip, take }) => {
      const found = await findUserIds(db, query.q, { where, orderBy, take: skip + take });
      const ids = (await db.query(ORDER_IDS, [found])).map(({ id }) => id);
      return usersOf(db, (query.sort.startsWith("-") ? ids.reverse() : ids).slice(skip, skip + take));
    },
    count: async () => new Set(await findUserIds(db, query.q, { take: MAX_USERS })).size,
    record: (user) => user,
  });

/** In the order of the ids. */
const usersOf = async (db: Clients, userIds: readonly string[]): Promise<readonly AdminUser[]> => {
  const where = { userId: { in: [...userIds] } };
  const [rows, users] = await Promise.all([
    db.system.membership.findMany({ where, orderBy: [{ createdAt: "asc" }, { memberId: "asc" }], take: MAX_USERS }),
    db.system.user.findMany({ where }),
  ]);
  return userIds.map((userId) => {
    const own = rows.filter((row) => row.userId === userId);
    const user = users.find((row) => row.userId === userId);
    const email = user?.email ?? own.find((row) => row.email !== null)?.email ?? null;
    return { userId, email, name: user?.name ?? null, lastSignInAt: user?.lastSignInAt.toISOString() ?? null, memberships: own.map(toMembership) };
  });
};

const toMembership = ({ tenantId, role }: { readonly tenantId: string; readonly role: string }): AdminUser["memberships"][number] => ({
  tenantId: tenantId as TenantId,
  role: isRole(role) ? role : "viewer",
});

export const countByStatus = async (db: Clients): Promise<Record<string, number>> =>
  Object.fromEntries((await db.system.tenant.groupBy({ by: ["status"], _count: true })).map(({ status, _count }) => [status, _count]));

export const findOverdueDeletions = async (db: Clients, before: Date, limit: number) => {
  const where = { deleteAfter: { lt: before } };
  const rows = await db.system.tenant.findMany({
    where,
    orderBy: { deleteAfter: "asc" },
    take: limit,
    select: { tenantId: true, status: true, deleteAfter: true },
  });
  return rows.flatMap(({ deleteAfter, ...row }) => (deleteAfter === null ? [] : [{ ...row, deleteAfter }]));
};
