// Rows of backup policies.
import { Prisma } from "../../../../prisma/generated/client.ts";
import { type BackupDestinationId, BackupPolicy, type BackupPolicyId, type Page, type TenantId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing, likeLiteral } from "../../../core/rows/listing.ts";
import { given, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

interface Narrowed {
  readonly policyId: BackupPolicyId;
  readonly destinationId: BackupDestinationId | null;
  readonly tenantId: TenantId;
  readonly type: BackupPolicy["type"];
  readonly missedRun: BackupPolicy["missedRun"];
  readonly consistency: BackupPolicy["consistency"];
  readonly target: BackupPolicy["target"];
  readonly retention: BackupPolicy["retention"];
  readonly verify: BackupPolicy["verify"];
  readonly lastStatus: BackupPolicy["lastStatus"];
}
export type PolicyRow = Omit<Prisma.BackupPolicyModel, keyof Narrowed> & Narrowed;
const toRow = (row: Prisma.BackupPolicyModel): PolicyRow => row as unknown as PolicyRow; // as: only this feature writes the columns
export const toPolicy = (row: PolicyRow): BackupPolicy => recordOf(BackupPolicy, { ...row, id: row.policyId });

const list = createListing("backup-policies", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "policyId", kind: "text" });
type PoliciesQuery = Parameters<typeof list>[0] & { readonly enabled?: boolean | undefined; readonly q?: string | undefined };
export const pageOfPolicies = (db: Clients, scope: SystemScope, query: PoliciesQuery): Promise<Page<PolicyRow>> => {
  const { backupPolicy } = db.for(scope);
  const { enabled, q } = query;
  const where = { ...given({ enabled }), ...(q === undefined ? {} : { name: { contains: likeLiteral(q), mode: "insensitive" as const } }) };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => backupPolicy.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: () => backupPolicy.count({ where }),
    record: toRow,
  });
};

export const findPolicy = async (db: Clients, scope: SystemScope, policyId: string): Promise<PolicyRow | null> => {
  const row = await db.for(scope).backupPolicy.findFirst({ where: { policyId } });
  return row === null ? null : toRow(row);
};

const LOCK_ONE = statement<{ readonly policy_id: string }>(
  "backupPolicies.lockOne",
  "select p.policy_id from backup_policies p where p.tenant_id = $1 and p.policy_id = $2 for no key update",
);
export const lockPolicy = async (tx: Clients & SqlTx, scope: SystemScope, policyId: string): Promise<PolicyRow | null> => {
  await tx.query(LOCK_ONE, [scope.tenantId, policyId]);
  return findPolicy(tx, scope, policyId);
};

/** For the plan. */
export const countPolicies = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).backupPolicy.count();

/** Enabled ones that failed last, each with its last run that has ended. */
export const findFailingPolicies = (db: Clients, scope: SystemScope, take: number) =>
  db.for(scope).backupPolicy.findMany({
    where: { enabled: true, consecutiveFailures: { gt: 0 } },
    orderBy: [{ consecutiveFailures: "desc" }, { policyId: "asc" }],
    take,
    include: { runs: { where: { endedAt: { not: null } }, orderBy: { scheduledFor: "desc" }, take: 1 } },
  });

const MAX_BEFORE_UPDATES = 100;
export const policiesBeforeUpdates = async (db: Clients, { tenantId }: SystemScope): Promise<readonly PolicyRow[]> =>
  (
    await db.for({ tenantId }).backupPolicy.findMany({ where: { beforeUpdates: true, enabled: true }, orderBy: { policyId: "asc" }, take: MAX_BEFORE_UPDATES })
  ).map(toRow);

export const policiesAt = async (db: Clients, { tenantId }: SystemScope, destinationId: string, limit: number): Promise<readonly string[]> =>
  (await db.for({ tenantId }).backupPolicy.findMany({ where: { destinationId }, select: { policyId: true }, take: limit })).map(({ policyId }) => policyId);

type Json = Prisma.InputJsonObject;
type Columns = Partial<Omit<PolicyRow, "policyId" | "tenantId" | "version" | "createdAt" | "updatedAt">>;
const columns = ({ target, retention, verify, ...rest }: Columns) => ({
  ...given(rest),
  ...(target === undefined ? {} : { target: target as Json }),
  ...(retention === undefined ? {} : { retention: retention as Json }),
  ...(verify === undefined ? {} : { verify: verify === null ? Prisma.DbNull : (verify as Json) }),
});

export type NewPolicy = Columns &
  Pick<
    PolicyRow,
    | "policyId"
    | "name"
    | "schedule"
    | "timezone"
    | "jitterSeconds"
    | "missedRun"
    | "target"
    | "type"
    | "retention"
    | "consistency"
    | "timeoutSeconds"
    | "createdBy"
  >;
export const insertPolicy = async (tx: Clients, { tenantId }: SystemScope, { policyId, ...made }: NewPolicy): Promise<PolicyRow> =>
  toRow(await tx.for({ tenantId }).backupPolicy.create({ data: { policyId, ...columns(made) } as Omit<Prisma.BackupPolicyUncheckedCreateInput, "tenantId"> })); // as: `NewPolicy` has what it needs

/** Changes a policy that is locked. `silent`: the scheduler's own news. */
export const savePolicy = async (
  tx: Clients,
  { tenantId }: SystemScope,
  policyId: string,
  { silent = false, ...change }: Columns & { readonly silent?: boolean },
): Promise<PolicyRow> => {
  const data = { ...columns(change), ...(silent ? {} : { version: { increment: 1 } }) } as Prisma.BackupPolicyUncheckedUpdateInput; // as: parsed JSON
  const [row] = await tx.for({ tenantId }).backupPolicy.updateManyAndReturn({ where: { policyId }, data });
  if (row === undefined) throw new Error(`backup policy ${policyId} is gone although it is locked`);
  return toRow(row);
};

export const deletePolicy = async (tx: Clients, scope: SystemScope, policyId: string): Promise<boolean> =>
  (await tx.for(scope).backupPolicy.deleteMany({ where: { policyId } })).count === 1;

interface DueRow {
  readonly tenant_id: TenantId;
  readonly policy_id: string;
}
const living = "exists (select from tenants t where t.tenant_id = p.tenant_id and t.status = 'active')";
const TAKE_DUE = statement<DueRow>(
  "backupPolicies.takeDuePolicies",
  `select p.tenant_id, p.policy_id from backup_policies p where p.next_run_at <= $1 and p.enabled and ${living}
    order by p.next_run_at limit $2 for no key update of p skip locked`,
);
const TAKE_VERIFICATIONS = statement<DueRow>(
  "backupPolicies.takeVerifications",
  `select p.tenant_id, p.policy_id from backup_policies p where p.next_verify_at <= $1 and p.enabled and ${living}
    order by p.next_verify_at limit $2 for no key update of p skip locked`,
);
const taken = async (tx: Clients & SqlTx, rows: readonly DueRow[]): Promise<readonly PolicyRow[]> => {
  const found = await Promise.all(rows.map(({ tenant_id, policy_id }) => findPolicy(tx, { tenantId: tenant_id }, policy_id)));
  return found.filter((row) => row !== null);
};
/** Another node takes others. */
export const takeDuePolicies = async (tx: Clients & SqlTx, now: Date, limit: number): Promise<readonly PolicyRow[]> =>
  taken(tx, await tx.query(TAKE_DUE, [now, limit]));
export const takeVerifications = async (tx: Clients & SqlTx, now: Date, limit: number): Promise<readonly PolicyRow[]> =>
  taken(tx, await tx.query(TAKE_VERIFICATIONS, [now, limit]));
