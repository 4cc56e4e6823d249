// What the plans cost, and how they are shown. Amounts are in cents, the annual price per month.
import { type BillingInterval, type BillingPlan, PLAN_RESOURCES, PLANS, type Plan, type PlanResource } from "../../../protocol/index.ts";
import type { Overrides } from "../../core/scope.ts";

interface Price {
  readonly name: string;
  readonly monthlyPrice: number;
  readonly annualPrice: number;
}

const PRICES: Record<Plan, Price> = {
  free: { name: "Free", monthlyPrice: 0, annualPrice: 0 },
  starter: { name: "Starter", monthlyPrice: 900, annualPrice: 750 },
  pro: { name: "Pro", monthlyPrice: 2_900, annualPrice: 2_400 },
  team: { name: "Team", monthlyPrice: 7_900, annualPrice: 6_600 },
  business: { name: "Business", monthlyPrice: 24_900, annualPrice: 20_800 },
};

export const CURRENCY = "usd";
export const TRIAL_DAYS = 14;

/** Cents for one period. */
export const priceOf = (plan: Plan, interval: BillingInterval): number => (interval === "annual" ? PRICES[plan].annualPrice * 12 : PRICES[plan].monthlyPrice);

/** What a plan is chosen by. */
const FEATURES = [
  "hosts",
  "deployments",
  "apps",
  "storageGB",
  "members",
  "backupRetentionDays",
  "eventRetentionDays",
] as const satisfies readonly PlanResource[];

const featuresOf = (limits: Overrides): string[] => FEATURES.map((resource) => `${limits[resource] ?? "Unlimited"} ${PLAN_RESOURCES[resource]}`);

export const planDetails = (tier: Plan, limits: Overrides): BillingPlan => ({ tier, ...PRICES[tier], limits, features: featuresOf(limits) });

export const allPlans = (table: Readonly<Record<Plan, Overrides>>): BillingPlan[] => PLANS.map((tier) => planDetails(tier, table[tier]));
