// Rows of a tenant's life: its status, the slugs that it gave up, and its end.
import type { TenantId } from "../../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../../core/clock.ts";
import type { Clients } from "../../../core/database.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { orNull } from "../../../platform/database/db-errors.ts";
import { type StoredTenant, toTenant } from "./tenants.ts";

const RESERVED_DAYS = 30;

export type TenantStatus = "active" | "suspended" | "pending_deletion" | "deleted";
export interface TenantStatusChange {
  readonly now: Date;
  readonly from: TenantStatus;
  /** Changes nothing unless the tenant is suspended for this reason; undefined skips the check. */
  readonly suspendedFor?: string | undefined;
  readonly to: TenantStatus;
  readonly reason?: string;
  readonly deleteAfter?: Date;
}

/** Null when the tenant is not in the status that the change begins with. */
export const changeStatus = async (
  db: Clients,
  scope: SystemScope,
  { now, from, suspendedFor, to, reason, deleteAfter }: TenantStatusChange,
): Promise<StoredTenant | null> => {
  const data = { status: to, statusSince: now, statusReason: reason ?? null, deleteAfter: deleteAfter ?? null, version: { increment: 1 } };
  const row = await orNull(db.for(scope).tenant.update({ where: { status: from, ...given({ statusReason: suspendedFor }) }, data }));
  return row === null ? null : toTenant(row);
};

/** Keeps a slug for the tenant that gives it up. */
export const reserveSlug = async (db: Clients, { tenantId }: SystemScope, slug: string, now: Date): Promise<void> => {
  const expiresAt = secondsFromNow(RESERVED_DAYS * DAY_SECONDS, now);
  await db.system.slugReservation.upsert({ where: { slug }, create: { slug, tenantId, expiresAt }, update: { tenantId, expiresAt } });
};

/** Ask after the slug has been written: PostgreSQL has then waited for the tenant that was giving it up. */
export const isSlugReserved = async (db: Clients, slug: string, { tenantId }: SystemScope, now: Date): Promise<boolean> =>
  (await db.system.slugReservation.count({ where: { slug, tenantId: { not: tenantId }, expiresAt: { gt: now } } })) > 0;

export const forgetReservations = async (db: Clients, now: Date): Promise<void> => {
  await db.system.slugReservation.deleteMany({ where: { expiresAt: { lte: now } }, limit: 1_000 });
};

/** Tenants whose days are over, whatever is left of them. */
export const findDueTenants = async (
  db: Clients,
  now: Date,
  limit: number,
): Promise<readonly { readonly tenantId: TenantId; readonly status: string; readonly slug: string }[]> => {
  const where = { deleteAfter: { lte: now }, status: { in: ["pending_deletion", "deleted"] } };
  const rows = await db.system.tenant.findMany({ where, orderBy: { deleteAfter: "asc" }, take: limit, select: { tenantId: true, status: true, slug: true } });
  return rows.map((row) => ({ ...row, tenantId: row.tenantId as TenantId }));
};

/** From now on nobody restores the tenant. False when somebody has, or another node was first. */
export const markDeleted = async (db: Clients, scope: SystemScope, now: Date): Promise<boolean> => {
  const where = { status: "pending_deletion", deleteAfter: { lte: now } };
  return (await db.for(scope).tenant.updateMany({ where, data: { status: "deleted", statusSince: now } })).count === 1;
};

/** Lets others go first; `statusSince` keeps the time since which it waits. */
export const postponeDeletion = async (db: Clients, scope: SystemScope, deleteAfter: Date): Promise<void> => {
  await db.for(scope).tenant.updateMany({ where: { status: "deleted" }, data: { deleteAfter } });
};

export const deleteTenantRow = async (db: Clients, scope: SystemScope): Promise<void> => {
  await db.for(scope).tenant.deleteMany({ where: { status: "deleted" } });
};
