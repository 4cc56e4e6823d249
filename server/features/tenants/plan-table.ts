// What each plan allows; null is unlimited. PLAN_LIMITS_JSON replaces figures, a tenant's overrides replace them for it alone.
import { PLANS, type Plan, type PlanResource } from "../../../protocol/index.ts";
import type { Overrides } from "../../core/scope.ts";

/** In the order free, starter, pro, team, business. */
const ROWS = {
  hosts: [2, 5, 25, 100, 500],
  deployments: [3, 15, 75, 300, 2_000],
  apps: [5, 25, 100, 500, 3_000],
  storageGB: [5, 50, 250, 1_000, 5_000],
  customDomains: [1, 3, 15, 50, 250],
  members: [2, 3, 10, 30, null],
  customRoles: [0, 1, 3, 10, 50],
  tunnels: [2, 10, 50, 200, 1_000],
  meshRoutes: [1, 5, 25, 100, 500],
  webhooks: [2, 5, 20, 50, 200],
  apiKeys: [2, 5, 20, 50, 200],
  enrollmentTokens: [1, 5, 20, 50, 200],
  backupPolicies: [1, 5, 25, 100, 500],
  minBackupIntervalMinutes: [1_440, 360, 60, 15, 5],
  backupRetentionDays: [7, 30, 90, 180, 365],
  fleets: [1, 2, 10, 50, 200],
  updatePolicies: [1, 2, 10, 50, 200],
  liveRollouts: [1, 2, 5, 10, 20],
  alertRules: [10, 20, 100, 300, 1_000],
  budgets: [1, 3, 10, 25, 50],
  bulkTargets: [10, 50, 250, 1_000, 5_000],
  eventRetentionDays: [3, 7, 30, 60, 90],
  auditRetentionDays: [7, 30, 90, 180, 365],
  traceRetentionDays: [1, 3, 7, 14, 30],
  spansPerDay: [10_000, 100_000, 1_000_000, 5_000_000, 25_000_000],
  exportsPerDay: [1, 2, 5, 10, 24],
  requestsPerMinute: [100, 100, 100, 100, 100],
} as const satisfies Record<PlanResource, readonly [Limit, Limit, Limit, Limit, Limit]>;

type Limit = number | null;
export type PlanTable = Readonly<Record<Plan, Overrides>>;
/** New tenants begin with a trial of this plan; `free` comes only after the trial. */
export const DEFAULT_PLAN: Plan = "starter";

/** Our table, with the figures of PLAN_LIMITS_JSON in place of ours. */
export const planTable = (replaced: Readonly<Record<string, Overrides>> = {}): PlanTable => {
  const column = (plan: Plan, index: number): Overrides => ({
    ...Object.fromEntries(Object.entries(ROWS).map(([resource, row]) => [resource, row[index] ?? null])),
    ...replaced[plan],
  });
  const [free, starter, pro, team, business] = PLANS;
  return { free: column(free, 0), starter: column(starter, 1), pro: column(pro, 2), team: column(team, 3), business: column(business, 4) };
};

const isPlan = (plan: string): plan is Plan => (PLANS as readonly string[]).includes(plan);

/** A plan that this release does not know counts as the default. */
export const tierOf = ({ plan }: Pick<PlanHolder, "plan">): Plan => (isPlan(plan) ? plan : DEFAULT_PLAN);

export interface PlanHolder {
  readonly plan: string;
  readonly limitOverrides: Overrides;
}

/** The tenant's own override, else its override for everything; undefined when its plan decides. */
const overrideOf = ({ limitOverrides }: PlanHolder, resource: PlanResource): Limit | undefined =>
  limitOverrides[resource] ?? (resource in limitOverrides ? null : limitOverrides["*"]);

export const isLifted = (tenant: PlanHolder, resource: PlanResource): boolean => overrideOf(tenant, resource) === null;

export const limitOf = (table: PlanTable, tenant: PlanHolder, resource: PlanResource): Limit => {
  const own = overrideOf(tenant, resource);
  return own === undefined ? (table[tierOf(tenant)][resource] ?? null) : own;
};

/** Every limit of the tenant by its resource. */
export const limitsOf = (table: PlanTable, tenant: PlanHolder): Overrides =>
  Object.fromEntries((Object.keys(ROWS) as PlanResource[]).map((resource) => [resource, limitOf(table, tenant, resource)]));

/** The cheapest plan that allows so many; null when none does. */
export const planFor = (table: PlanTable, resource: PlanResource, wanted: number): Plan | null =>
  PLANS.find((plan) => wanted <= (table[plan][resource] ?? Number.POSITIVE_INFINITY)) ?? null;
