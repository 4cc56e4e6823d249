// Rows of update policies.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { type Page, UpdatePolicy, UpdateSettings } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { createListing, likeLiteral } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { unlessReferenced } from "../../../platform/database/db-errors.ts";

/** One phase of so many devices or more leaves them without the protection of phases. */
const toPolicy = ({ settings, createdAt, updatedAt, ...row }: Prisma.UpdatePolicyModel): UpdatePolicy => {
  const stored = UpdateSettings.parse(settings);
  return UpdatePolicy.parse({
    ...row,
    ...stored,
    warnings: stored.phases.length === 1 ? ["SINGLE_PHASE"] : [],
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  });
};

/** For the plan. */
export const countUpdatePolicies = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).updatePolicy.count();

const list = createListing("update-policies", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "updatePolicyId", kind: "text" });
type PoliciesQuery = Parameters<typeof list>[0] & { readonly q?: string | undefined };

export const pageOfUpdatePolicies = (db: Clients, scope: SystemScope, query: PoliciesQuery): Promise<Page<UpdatePolicy>> => {
  const { updatePolicy } = db.for(scope);
  const where = query.q === undefined ? {} : { name: { contains: likeLiteral(query.q), mode: "insensitive" as const } };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => updatePolicy.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => updatePolicy.count({ where }),
    record: toPolicy,
  });
};

export const findUpdatePolicy = async (db: Clients, scope: SystemScope, updatePolicyId: string): Promise<UpdatePolicy | null> => {
  const row = await db.for(scope).updatePolicy.findFirst({ where: { updatePolicyId } });
  return row === null ? null : toPolicy(row);
};

export interface PolicyFields {
  readonly name: string;
  readonly description: string;
  readonly enabled: boolean;
  readonly settings: UpdateSettings;
}

const asColumns = <T extends { readonly settings?: UpdateSettings }>(fields: T) => fields as T & { settings: Prisma.InputJsonObject }; // as: parsed JSON

export const insertUpdatePolicy = async (
  db: Clients,
  scope: SystemScope,
  policy: PolicyFields & { readonly updatePolicyId: string; readonly createdBy: string },
): Promise<UpdatePolicy> => toPolicy(await db.for(scope).updatePolicy.create({ data: asColumns(policy) }));

/** Null when the version has moved on or the policy is gone. */
export const saveUpdatePolicy = async (
  db: Clients,
  scope: SystemScope,
  { updatePolicyId, version }: { readonly updatePolicyId: string; readonly version: number },
  change: PolicyFields,
): Promise<UpdatePolicy | null> => {
  const [row] = await db
    .for(scope)
    .updatePolicy.updateManyAndReturn({ where: { updatePolicyId, version }, data: { ...given(asColumns(change)), version: { increment: 1 } } });
  return row === undefined ? null : toPolicy(row);
};

/** "used" when a fleet names it. */
export const deleteUpdatePolicy = async (db: Clients, scope: SystemScope, updatePolicyId: string): Promise<"deleted" | "used" | "gone"> => {
  const deleted = await unlessReferenced(db.for(scope).updatePolicy.deleteMany({ where: { updatePolicyId } }));
  return deleted === null ? "used" : deleted.count === 0 ? "gone" : "deleted";
};
