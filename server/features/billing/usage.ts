// What a tenant uses, by the counters that the plan asks too, beside its limits.
import type { BillingUsage, OverLimit, PlanResource, Plan as Tier } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import type { Overrides, TenantScope } from "../../core/scope.ts";
import type { Counters, Plan } from "../tenants/index.ts";

export interface UsageDeps {
  readonly clock: Clock;
  readonly counters: Counters;
  readonly plan: Pick<Plan, "limitsOf">;
}

type Used = Readonly<Partial<Record<PlanResource, number>>>;

/** More of these than the plan allows would have to stop working, so they block a downgrade. */
const BLOCKING: ReadonlySet<string> = new Set(["hosts", "members"]);
export const blocksDowngrade = ({ resource }: OverLimit): boolean => BLOCKING.has(resource);

const percentOf = (used: number, limit: number | null | undefined): number | null => {
  if (limit === null || limit === undefined) return null;
  return limit === 0 ? (used > 0 ? 100 : 0) : Math.round((used / limit) * 1_000) / 10;
};

export const createUsage = ({ clock, counters, plan }: UsageDeps) => {
  const count = async (db: Tx, scope: Pick<TenantScope, "tenantId">): Promise<Used> => {
    const used: Partial<Record<PlanResource, number>> = {};
    for (const [resource, counter] of Object.entries(counters)) used[resource as PlanResource] = await counter(db, scope); // as: entries lose their keys
    return used;
  };

  const record = (used: Used): BillingUsage => ({
    deploymentCount: used.deployments ?? 0,
    hostCount: used.hosts ?? 0,
    appCount: used.apps ?? 0,
    storageGB: used.storageGB ?? 0,
    customDomainCount: used.customDomains ?? 0,
    lastUpdated: clock.now().toISOString(),
  });

  return {
    usage: async (db: Tx, scope: Pick<TenantScope, "tenantId">): Promise<BillingUsage> => record(await count(db, scope)),

    compared: async (db: Tx, { tenantId, tenant }: Pick<TenantScope, "tenantId" | "tenant">) => {
      const used = await count(db, { tenantId });
      const limits = plan.limitsOf(tenant);
      const percent = Object.fromEntries(Object.entries(used).map(([resource, figure]) => [resource, percentOf(figure, limits[resource])]));
      return { ...record(used), used, limits, percent };
    },

    /** The resources of which the tenant has more than the other plan allows. */
    over: async (
      db: Tx,
      { tenantId }: Pick<TenantScope, "tenantId">,
      { limitOverrides, tier }: { readonly limitOverrides: Overrides; readonly tier: Tier },
    ) => {
      const limits = plan.limitsOf({ plan: tier, limitOverrides });
      return Object.entries(await count(db, { tenantId })).flatMap(([resource, used]): OverLimit[] => {
        const limit = limits[resource] ?? null;
        return limit !== null && used > limit ? [{ resource, limit, used }] : [];
      });
    },
  };
};
export type Usage = ReturnType<typeof createUsage>;
