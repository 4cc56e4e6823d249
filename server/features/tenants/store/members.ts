// Rows of members: as the tenant's administrators see and change them, and as invites and accounts need them.
import { Prisma } from "../../../../prisma/generated/client.ts";
import type { DeviceSelector, Page, Permission, RoleId, TenantId } from "../../../../protocol/index.ts";
import { storedSelector } from "../../../core/access.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { newId } from "../../../core/ids.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { LOCK } from "../../../core/statements.ts";
import { orNull } from "../../../platform/database/db-errors.ts";
import { storedAccess } from "./tenants.ts";

const existing = { status: { not: "deleted" } } as const;
const MAX_TENANTS = 100;
const include = { customRole: { select: { permissions: true } } } as const;
type Row = Prisma.Result<Prisma.MembershipDelegate, { include: typeof include }, "findFirstOrThrow">;

export interface MemberRow extends Omit<Row, "tenantId" | "selector" | "customRole"> {
  readonly tenantId: TenantId;
  readonly selector: DeviceSelector | null;
  /** What the role grants, whatever the limits take away. */
  readonly granted: ReadonlySet<Permission>;
}

const toMember = ({ customRole, ...row }: Row): MemberRow => ({
  ...row,
  tenantId: row.tenantId as TenantId, // as: the column holds nothing else
  selector: storedSelector(row.selector),
  granted: storedAccess(row.role, customRole?.permissions ?? null, []).permissions,
});

/** Until the transaction ends, every other change of this tenant's members waits, so one of two owners who leave at the same time stays. */
export const lockMembers = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`members of ${tenantId}`]);
};

export const findMember = async (
  db: Clients,
  scope: SystemScope,
  named: { readonly memberId: string } | { readonly userId: string },
): Promise<MemberRow | null> => {
  const row = await db.for(scope).membership.findFirst({ where: named, include });
  return row === null ? null : toMember(row);
};

const listMembers = createListing("members", { createdAt: { kind: "time" }, role: { kind: "text" } }, { column: "memberId", kind: "text" });
export type MembersQuery = Parameters<typeof listMembers>[0];

export const pageOfMembers = (db: Clients, scope: SystemScope, query: MembersQuery): Promise<Page<MemberRow>> => {
  const { membership } = db.for(scope);
  return listMembers(query, {
    owner: scope.tenantId,
    rows: (asked) => membership.findMany({ ...asked, include }),
    count: () => membership.count(),
    record: toMember,
  });
};

/** How many members have each role, by its key. */
export const countByRole = async (db: Clients, scope: SystemScope): Promise<ReadonlyMap<string, number>> => {
  const counts = await db.for(scope).membership.groupBy({ by: ["role"], _count: true });
  return new Map(counts.map(({ role, _count }) => [role, _count]));
};

/** Owners who are limited to some devices cannot run the tenant, so they do not count. */
export const countOwners = (db: Clients, scope: SystemScope): Promise<number> =>
  db.for(scope).membership.count({ where: { role: "owner", selector: { equals: Prisma.DbNull } } });

/** The ids of members who are limited to the fleet. */
export interface MemberToReview {
  readonly tenantId: string;
  readonly userId: string;
  readonly email: string | null;
  readonly role: string;
}

/** Members of all tenants, the newest first. */
export const findEveryMember = (db: Clients, limit: number): Promise<readonly MemberToReview[]> =>
  db.system.membership.findMany({
    orderBy: [{ createdAt: "desc" }, { memberId: "desc" }],
    take: limit,
    select: { tenantId: true, userId: true, email: true, role: true },
  });

export const findLimitedMembers = async (db: Clients, scope: SystemScope, fleetId: string, limit: number): Promise<readonly string[]> => {
  const where = { selector: { path: ["fleetIds"], array_contains: [fleetId] } };
  return (await db.for(scope).membership.findMany({ where, take: limit, select: { memberId: true } })).map(({ memberId }) => memberId);
};

export interface RoleOfMember {
  /** The role's key. */
  readonly role: string;
  /** Null: a built-in role. */
  readonly roleId: RoleId | null;
}

export interface MemberChange extends Partial<RoleOfMember> {
  /** Undefined keeps the limit, null lifts it. */
  readonly selector?: DeviceSelector | null | undefined;
  /** Changes nothing unless this is the current version; undefined skips the check. */
  readonly version?: number | undefined;
}

/** Null when the version has moved on or the member is gone. */
export const updateMember = async (
  db: Clients,
  scope: SystemScope,
  memberId: string,
  { version, selector, ...role }: MemberChange,
): Promise<MemberRow | null> => {
  const limit = selector === undefined ? {} : { selector: selector ?? Prisma.DbNull };
  const data = { ...given(role), ...limit, version: { increment: 1 } };
  const row = await orNull(db.for(scope).membership.update({ where: given({ memberId, version }), data, include }));
  return row === null ? null : toMember(row);
};

export const deleteMember = async (db: Clients, scope: SystemScope, memberId: string): Promise<void> => {
  await db.for(scope).membership.deleteMany({ where: { memberId } });
};

export interface JoiningMember extends RoleOfMember {
  readonly userId: string;
  readonly email: string | null;
  readonly selector: DeviceSelector | null;
}

/** Null when the user is a member already. */
export const insertMember = async (db: Clients, scope: SystemScope, { selector, ...member }: JoiningMember): Promise<MemberRow | null> => {
  const data = { ...member, memberId: newId("mem"), selector: selector ?? Prisma.DbNull };
  const { count } = await db.for(scope).membership.createMany({ data: [data], skipDuplicates: true });
  return count === 0 ? null : findMember(db, scope, { userId: member.userId });
};

export const writeOwner = async (db: Clients, scope: SystemScope, ownerUserId: string): Promise<void> => {
  await db.for(scope).tenant.updateMany({ data: { ownerUserId, version: { increment: 1 } } });
};

/** The addresses among these, in lower case, that a member is known by. */
export const findMemberEmails = async (db: Clients, scope: SystemScope, emails: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await db.for(scope).membership.findMany({ where: { email: { in: [...emails], mode: "insensitive" } }, select: { email: true } });
  return new Set(rows.flatMap(({ email }) => (email === null ? [] : [email.toLowerCase()])));
};

export interface MemberTenant {
  readonly tenantId: TenantId;
  /** The role's key. */
  readonly role: string;
  readonly name: string;
  readonly slug: string;
  readonly status: string;
}

/** Oldest membership first. */
export const findTenantsOf = async (db: Clients, userId: string): Promise<readonly MemberTenant[]> => {
  const rows = await db.system.membership.findMany({
    where: { userId, tenant: existing },
    orderBy: [{ createdAt: "asc" }, { memberId: "asc" }],
    take: MAX_TENANTS,
    select: { tenantId: true, role: true, tenant: { select: { name: true, slug: true, status: true } } },
  });
  return rows.map(({ tenantId, role, tenant }) => ({ tenantId: tenantId as TenantId, role, ...tenant })); // as: the column holds nothing else
};

export interface Recipient {
  readonly userId: string;
  readonly email: string;
}

/** Members with a known address: those of a role, or one of them. */
export const findRecipients = async (
  db: Clients,
  scope: SystemScope,
  who: { readonly role: "owner" | { in: string[] } } | { readonly userId: string },
  limit: number,
): Promise<readonly Recipient[]> => {
  const rows = await db.for(scope).membership.findMany({ where: { ...who, email: { not: null } }, take: limit, select: { userId: true, email: true } });
  return rows.flatMap(({ userId, email }) => (email === null ? [] : [{ userId, email }]));
};

export const findOwners = async (db: Clients, scope: SystemScope): Promise<readonly string[]> =>
  (await db.for(scope).membership.findMany({ where: { role: "owner" }, select: { userId: true } })).map(({ userId }) => userId);
