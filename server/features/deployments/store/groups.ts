// Rows of deployments as groups of devices. Each tenant has one default deployment, which new devices join unless they name another.
import type { DeploymentId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SystemScope } from "../../../core/scope.ts";

const existing = { deletedAt: null } as const;
/** One with a template has an app of its own, and no device joins it. */
const group = { ...existing, template: null } as const;

/** Does nothing when the tenant already has a default deployment. */
export const insertDefault = async (db: Clients, scope: SystemScope, deploymentId: DeploymentId): Promise<void> => {
  await db.for(scope).deployment.createMany({ data: [{ deploymentId, name: "default", status: "active", isDefault: true }], skipDuplicates: true });
};

/** Also for a caller who is limited to some devices: a group belongs to none. */
export const hasGroup = async (db: Clients, { tenantId }: SystemScope, deploymentId: string): Promise<boolean> =>
  (await db.for({ tenantId }).deployment.count({ where: { deploymentId, ...group } })) > 0;

/** The tenant's default deployment, and which of the given ids belong to the tenant. */
export const findForDevices = async (
  db: Clients,
  scope: SystemScope,
  deploymentIds: readonly string[],
): Promise<{ readonly standard: string; readonly own: ReadonlySet<string> }> => {
  const rows = await db.for(scope).deployment.findMany({
    where: { OR: [{ isDefault: true }, { deploymentId: { in: [...deploymentIds] }, ...group }] },
    select: { deploymentId: true, isDefault: true },
  });
  const standard = rows.find(({ isDefault }) => isDefault);
  if (standard === undefined) throw new Error(`tenant ${scope.tenantId} has no default deployment`);
  return { standard: standard.deploymentId, own: new Set(rows.map(({ deploymentId }) => deploymentId)) };
};

export const countByTenant = async (db: Clients, tenantIds: readonly string[]): Promise<ReadonlyMap<string, number>> => {
  const where = { tenantId: { in: [...tenantIds] }, ...existing };
  const counts = await db.system.deployment.groupBy({ by: ["tenantId"], where, _count: true });
  return new Map(counts.map(({ tenantId, _count }) => [tenantId, _count]));
};

export const countDeploymentsByStatus = async (db: Clients, scope: SystemScope): Promise<ReadonlyMap<string, number>> => {
  const counts = await db.for(scope).deployment.groupBy({ by: ["status"], where: existing, _count: true });
  return new Map(counts.map(({ status, _count }) => [status, _count]));
};
