// Enforces the limits of a tenant's plan, inside the transaction that adds something.
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Overrides, SystemScope } from "../../core/scope.ts";
import { limitOf, type PlanResource, planFor, planTable } from "./plans.ts";
import { findFacts, lockPlan } from "./store/tenants.ts";

/** Counts how many of a resource a tenant has. Each feature counts its own rows. */
export type CountUsed = (db: Tx, scope: SystemScope) => Promise<number>;
export type Counters = Readonly<Partial<Record<PlanResource, CountUsed>>>;

export interface Plan {
  /**
   * Throws PLAN_LIMIT_EXCEEDED when `adding` more would exceed the plan. Call it before the insert, in its transaction:
   * it locks the tenant's plan until that ends, so two callers cannot both take the last place.
   */
  require(tx: Tx, scope: SystemScope, resource: PlanResource, adding: number): Promise<void>;
}

export interface PlanDeps {
  /** PLAN_LIMITS_JSON: figures in place of the table's. */
  readonly replaced?: Readonly<Record<string, Overrides>> | undefined;
  readonly counters: Counters;
}

export const createPlan = ({ replaced, counters }: PlanDeps): Plan => {
  const table = planTable(replaced);
  return {
    require: async (tx, scope, resource, adding) => {
      // Bypasses the cache, so an override counts as soon as the operator has set it.
      const tenant = await findFacts(tx, scope.tenantId);
      if (tenant === null) throw new AppError("TENANT_NOT_FOUND", { details: { tenantId: scope.tenantId } });
      const limit = limitOf(table, tenant, resource);
      if (limit === null) return;
      const count = counters[resource];
      if (count === undefined) throw new Error(`no feature counts ${resource}`);
      await lockPlan(tx, scope);
      const used = await count(tx, scope);
      if (used + adding <= limit) return;
      throw new AppError("PLAN_LIMIT_EXCEEDED", {
        details: { resource, limit, used, plan: tenant.plan, requiredPlan: planFor(table, resource, used + adding) },
      });
    },
  };
};
