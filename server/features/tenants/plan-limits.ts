// Enforces the limits of a tenant's plan, inside the transaction that adds something.
import type { PlanResource, Plan as Tier } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Overrides, SystemScope, TenantFacts } from "../../core/scope.ts";
import { isLifted, limitOf, limitsOf, type PlanHolder, type PlanTable, planFor, planTable, tierOf } from "./plan-table.ts";
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
  /** What each plan allows. */
  readonly table: PlanTable;
  tierOf(tenant: Pick<PlanHolder, "plan">): Tier;
  /** What the tenant may have: its plan's figures and its own overrides. */
  limitsOf(tenant: PlanHolder): Overrides;
  /** The first plan that allows so many; null: none does. */
  cheapestFor(resource: PlanResource, wanted: number): Tier | null;
  /** Until the end of the transaction nothing is added to this tenant; take it before a change of plan. */
  lock(tx: Tx, scope: SystemScope): Promise<void>;
}

/** An addition that takes a resource to a limit, or to 80 % of it. */
export interface LimitCrossing {
  readonly kind: "warning" | "reached";
  readonly resource: PlanResource;
  readonly limit: number;
  readonly used: number;
}

export interface PlanDeps {
  /** PLAN_LIMITS_JSON: figures in place of the table's. */
  readonly replaced?: Readonly<Record<string, Overrides>> | undefined;
  readonly counters: Counters;
  /** Called in the transaction of the addition. */
  readonly crossed?: ((tx: Tx, scope: SystemScope, crossing: LimitCrossing) => Promise<void>) | undefined;
}

const WARN_AT = 0.8;

const crossingOf = (limit: number, before: number, used: number): LimitCrossing["kind"] | null => {
  if (used >= limit && before < limit) return "reached";
  return used >= limit * WARN_AT && before < limit * WARN_AT ? "warning" : null;
};

export const createPlan = ({ replaced, counters, crossed }: PlanDeps): Plan => {
  const table = planTable(replaced);
  const factsOf = async (tx: Tx, { tenantId }: SystemScope): Promise<TenantFacts> => {
    const tenant = await findFacts(tx, tenantId);
    if (tenant === null) throw new AppError("TENANT_NOT_FOUND", { details: { tenantId } });
    return tenant;
  };
  return {
    table,
    limitsOf: (tenant) => limitsOf(table, tenant),
    cheapestFor: (resource, wanted) => planFor(table, resource, wanted),
    tierOf,
    lock: lockPlan,
    require: async (tx, scope, resource, adding) => {
      // No change of plan can limit what the operator has lifted.
      if (isLifted(await factsOf(tx, scope), resource)) return;
      await lockPlan(tx, scope);
      // Bypasses the cache, and reads under the lock: a change of plan holds it until the new plan is committed.
      const tenant = await factsOf(tx, scope);
      const limit = limitOf(table, tenant, resource);
      if (limit === null) return;
      const count = counters[resource];
      if (count === undefined) throw new Error(`no feature counts ${resource}`);
      const before = await count(tx, scope);
      const used = before + adding;
      if (used > limit)
        throw new AppError("PLAN_LIMIT_EXCEEDED", {
          details: { resource, limit, used: before, plan: tenant.plan, requiredPlan: planFor(table, resource, used) },
        });
      const kind = crossingOf(limit, before, used);
      if (kind !== null) await crossed?.(tx, scope, { kind, resource, limit, used });
    },
  };
};
