// Rows of impersonations. The database has only the hashes of their tokens.
import { Impersonation, type Page } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import { newId } from "../../core/ids.ts";
import { createListing } from "../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../core/rows/records.ts";
import type { OpenImpersonation, SystemScope } from "../../core/scope.ts";

type Row = RowOf<typeof Impersonation>;
const toImpersonation = (row: Row): Impersonation => recordOf(Impersonation, row);

export interface NewImpersonation {
  readonly hash: Uint8Array<ArrayBuffer>;
  readonly userId: string;
  readonly adminId: string;
  readonly reason: string;
  readonly readOnly: boolean;
  readonly startedAt: Date;
  readonly expiresAt: Date;
}
export const insertImpersonation = async (tx: Clients, scope: SystemScope, data: NewImpersonation): Promise<Impersonation> =>
  toImpersonation(await tx.for(scope).impersonation.create({ data: { ...data, impersonationId: newId("imp") } }));

/** Searches all tenants, because the token, or its stream ticket, is the credential. */
export const findOpenImpersonation = async (
  db: Clients,
  key: { readonly hash: Uint8Array<ArrayBuffer> } | { readonly impersonationId: string },
  now: Date,
): Promise<OpenImpersonation | null> => {
  const row = await db.system.impersonation.findFirst({ where: { ...key, endedAt: null, expiresAt: { gt: now } } });
  if (row === null) return null;
  const { impersonationId, userId, adminId, readOnly, expiresAt } = row;
  return { impersonationId, tenantId: row.tenantId as OpenImpersonation["tenantId"], userId, adminId, readOnly, expiresAt }; // as: the column holds nothing else
};

/** Within the tenant, or in all. */
const rowsOf = (db: Clients, scope: SystemScope | null) => (scope === null ? db.system.impersonation : db.for(scope).impersonation);

export const findImpersonation = async (db: Clients, scope: SystemScope | null, impersonationId: string): Promise<Impersonation | null> => {
  const row = await rowsOf(db, scope).findFirst({ where: { impersonationId } });
  return row === null ? null : toImpersonation(row);
};

/** Null: it is over already, or there is none. */
export const endImpersonation = async (
  tx: Clients,
  scope: SystemScope | null,
  { impersonationId, endedBy, endedAt }: { readonly impersonationId: string; readonly endedBy: string; readonly endedAt: Date },
): Promise<Impersonation | null> => {
  const [row] = await rowsOf(tx, scope).updateManyAndReturn({ where: { impersonationId, endedAt: null }, data: { endedBy, endedAt } });
  return row === undefined ? null : toImpersonation(row);
};

export const findExpiredImpersonations = async (db: Clients, now: Date, limit: number): Promise<readonly Impersonation[]> =>
  (await db.system.impersonation.findMany({ where: { endedAt: null, expiresAt: { lte: now } }, orderBy: { expiresAt: "asc" }, take: limit })).map(
    toImpersonation,
  );

export const deleteEndedImpersonations = async (db: Clients, at: Date): Promise<void> => {
  await db.system.impersonation.deleteMany({ where: { endedAt: { lt: at } } });
};

const list = createListing("impersonations", { startedAt: { kind: "time" } }, { column: "impersonationId", kind: "text" });
type Query = Parameters<typeof list>[0] & { readonly open?: boolean | undefined; readonly tenant?: string | undefined };

export const pageOfImpersonations = (db: Clients, scope: SystemScope | null, { open, tenant, ...query }: Query): Promise<Page<Impersonation>> => {
  const where = { ...given({ tenantId: tenant }), ...(open === undefined ? {} : { endedAt: open ? null : { not: null } }) };
  const rows = rowsOf(db, scope);
  return list(query, {
    owner: scope?.tenantId ?? "",
    rows: (asked) => rows.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => rows.count({ where }),
    record: toImpersonation,
  });
};
