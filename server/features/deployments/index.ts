// Deployments: what people deploy. One with a template owns an app on one device and follows it (follow.ts); one without groups devices.
import { contract } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { FollowApps, LogReads, Placing } from "../apps/index.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createAgain, createChange, createCreation, createDeploymentChanges, createRemoval } from "./changes.ts";
import { createFollow, createTakeStep } from "./follow.ts";
import { createDeploymentReads } from "./reads.ts";
import { commandOfDeployment, findNamedDeployments, lockDeployment } from "./store/deployments.ts";
import { countByTenant, countDeploymentsByStatus, findForDevices, hasGroup, insertDefault } from "./store/groups.ts";

/** Deployments as groups: each device belongs to one, and every tenant has a default one from the start. */
export const deploymentGroups = {
  has: hasGroup,
  findForDevices,
  countByStatus: countDeploymentsByStatus,
  countByTenant,
  counters: { deployments: async (db: Clients, { tenantId }: SystemScope): Promise<number> => (await countByTenant(db, [tenantId])).get(tenantId) ?? 0 },
  ensureDefault: (db: Clients, scope: SystemScope): Promise<void> => insertDefault(db, scope, newId("dep")),
} as const;
export type DeploymentGroups = typeof deploymentGroups;

export interface DeploymentsDeps extends Pick<FeatureKit, "db" | "clock" | "until" | "emit" | "plan"> {
  /** Apps and deployments need each other. */
  readonly placing: () => Placing;
  readonly logs: () => LogReads;
}

export interface Deployments extends Feature<typeof contract.deployments> {
  readonly follow: FollowApps;
  /** Throws unless the deployment waits for its app. */
  adopt(tx: Tx, scope: SystemScope, deploymentId: string): Promise<void>;
  /** As the targets of bulk operations. */
  readonly targets: { readonly named: typeof findNamedDeployments; readonly commandOf: typeof commandOfDeployment };
}

export const createDeployments = (deps: DeploymentsDeps): Deployments => {
  const take = createTakeStep(deps);
  const parts = { ...deps, take };
  const work = createDeploymentChanges(parts);
  return {
    handlers: implement(contract.deployments, {
      ...createDeploymentReads(deps),
      ...createAgain(parts, work),
      create: createCreation(parts, work),
      change: createChange(parts, work),
      remove: createRemoval(parts, work),
      start: work.doing(work.start),
      stop: work.doing(work.stop),
      cancel: async (call, input) => {
        const cancel = await work.prepareCancel(call.scope, input.deploymentId);
        return work.doing(cancel)(call, input);
      },
    }),
    targets: { named: findNamedDeployments, commandOf: commandOfDeployment },
    follow: createFollow(deps),
    adopt: async (tx, scope, deploymentId) => {
      const row = await lockDeployment(tx, scope, deploymentId);
      if (row === null) throw new AppError("DEPLOYMENT_NOT_FOUND", { details: { deploymentId } });
      if (row.appId !== null || row.status !== "pending")
        throw new AppError("INVALID_STATE_TRANSITION", { details: { from: row.status, to: "queued", allowed: [] } });
    },
  };
};
