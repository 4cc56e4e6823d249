// Deployments, as far as other features need them: each device belongs to one, and every tenant has a default one from the start.

import type { Clients } from "../../core/database.ts";
import { newId } from "../../core/ids.ts";
import type { SystemScope } from "../../core/scope.ts";
import { countByTenant, countDeploymentsByStatus, findForDevices, hasGroup, insertDefault } from "./store/groups.ts";

export const deployments = {
  has: hasGroup,
  findForDevices,
  countByStatus: countDeploymentsByStatus,
  countByTenant,
  counters: { deployments: async (db: Clients, { tenantId }: SystemScope): Promise<number> => (await countByTenant(db, [tenantId])).get(tenantId) ?? 0 },
  ensureDefault: (db: Clients, scope: SystemScope): Promise<void> => insertDefault(db, scope, newId("dep")),
} as const;
export type Deployments = typeof deployments;
