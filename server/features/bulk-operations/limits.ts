// How much a tenant may have done in bulk.
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { countLive } from "./store/operations.ts";

const MAX_LIVE = 50;

/** Throws if the plan allows fewer targets, or too many operations have not ended. */
export const requireLimits = async ({ plan }: Pick<FeatureKit, "plan">, tx: Tx, scope: TenantScope, found: number): Promise<void> => {
  requireTargets({ plan }, scope, found);
  if ((await countLive(tx, scope)) >= MAX_LIVE) throw new AppError("BULK_LIMIT_REACHED", { details: { limit: MAX_LIVE } });
};

export const requireTargets = ({ plan }: Pick<FeatureKit, "plan">, { tenant }: Pick<TenantScope, "tenant">, found: number): void => {
  const limit = plan.limitsOf(tenant)["bulkTargets"] ?? null;
  if (limit === null || found <= limit) return;
  throw new AppError("BULK_TARGET_LIMIT_EXCEEDED", { details: { limit, found, requiredPlan: plan.cheapestFor("bulkTargets", found) } });
};
