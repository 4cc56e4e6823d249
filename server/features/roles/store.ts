// Rows of the tenant's own roles.
import type { RoleId, RoleRecord, TenantId } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { given } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { LOCK } from "../../core/statements.ts";
import { orNull, unlessReferenced } from "../../platform/database/db-errors.ts";

interface Row {
  readonly roleId: string;
  readonly tenantId: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}
const toRole = <R extends Row>(row: R) => ({
  ...row,
  roleId: row.roleId as RoleId, // as: the columns hold nothing else
  tenantId: row.tenantId as TenantId,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
  builtIn: false,
});
export type CustomRole = Omit<RoleRecord, "memberCount">;

/** Until the transaction ends, every other change of this tenant's roles waits, so names and their number stay right. */
export const lockRoles = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`roles of ${tenantId}`]);
};

export const countRoles = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).role.count();

export const findRole = async (db: Clients, scope: SystemScope, roleId: string): Promise<CustomRole | null> => {
  const row = await db.for(scope).role.findFirst({ where: { roleId } });
  return row === null ? null : toRole(row);
};

export const listRoles = async (db: Clients, scope: SystemScope): Promise<readonly CustomRole[]> =>
  (await db.for(scope).role.findMany({ orderBy: [{ createdAt: "asc" }, { roleId: "asc" }] })).map(toRole);

/** Whether another role of the tenant has the name or the key. */
export const isTaken = async (
  db: Clients,
  scope: SystemScope,
  wanted: { readonly name: string; readonly key: string; readonly except?: string },
): Promise<boolean> => {
  const same = [{ name: { equals: wanted.name, mode: "insensitive" as const } }, { key: wanted.key }];
  return (await db.for(scope).role.count({ where: { OR: same, roleId: { not: wanted.except ?? "" } } })) > 0;
};

export interface NewRole {
  readonly roleId: RoleId;
  readonly key: string;
  readonly name: string;
  readonly description: string;
  readonly permissions: string[];
  readonly createdBy: string;
}
export const insertRole = async (db: Clients, scope: SystemScope, role: NewRole): Promise<CustomRole> =>
  toRole(await db.for(scope).role.create({ data: role }));

export interface RoleChange {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly permissions?: string[] | undefined;
  readonly version?: number | undefined;
}

/** Null when the version has moved on or the role is gone. */
export const updateRole = async (db: Clients, scope: SystemScope, roleId: string, { version, ...change }: RoleChange): Promise<CustomRole | null> => {
  const data = { ...given(change), version: { increment: 1 } };
  const row = await orNull(db.for(scope).role.update({ where: given({ roleId, version }), data }));
  return row === null ? null : toRole(row);
};

/** False while a member has the role. */
export const deleteRole = async (db: Clients, scope: SystemScope, roleId: string): Promise<boolean> =>
  (await unlessReferenced(db.for(scope).role.deleteMany({ where: { roleId } }))) !== null;
