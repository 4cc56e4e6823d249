// Guide to costs. The figures are those of the example in docs/cost.md.
import type { Guide } from "./guide.ts";
import { AT, IDS, shownWithActors } from "./records.ts";

const { appId, tenantId, userId } = IDS;
const budgetId = "bud_01J9ZQF5H7K9M1P3R5T7W9Y1A3";
const createdBy = `user:${userId}`;
const currency = { currency: "EUR", minorDigits: 2 };

const device = {
  purchase: 24_000,
  lifetimeMonths: 60,
  fixedMonthly: 0,
  wattsIdle: 6,
  wattsMax: 25,
  kwhPrice: "0.32",
  cpuCoreHour: "0",
  memoryGBHour: "0",
  storageGBMonth: "0",
};
const given = { currency: "EUR", sharedMonthly: 900, device, byTag: [] };
const rates = { tenantId, version: 1, validFrom: "2026-11-01", ...given, createdBy, createdAt: AT };

const window = { from: "2026-11-01", to: "2026-11-21", through: "2026-11-20" };
const none = { deviceCost: 0, fixedCost: 0, energyCost: 0, cpuCost: 0, memoryCost: 0, storageCost: 0, sharedCost: 0 };
const ofApp = { ...none, deviceCost: 3, energyCost: 2, totalCost: 5, idleCost: 0 };
const ofIdle = { ...none, deviceCost: 263, energyCost: 120, totalCost: 383, idleCost: 383 };
const shared = { ...none, sharedCost: 600, totalCost: 600, idleCost: 0 };

const thresholds = [
  { percent: 80, basis: "actual" },
  { percent: 100, basis: "forecast" },
] as const;
const budget = {
  budgetId,
  tenantId,
  name: "All machines",
  amount: 1_500,
  ...currency,
  period: "month",
  scope: { kind: "all" },
  thresholds: thresholds.map((threshold) => ({ ...threshold, reachedAt: null })),
  month: "2026-11",
  spent: 988,
  expected: 1_482,
  through: "2026-11-20",
  createdBy,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};
const raised = { ...budget, amount: 2_000, version: 2 };

export const costs: Guide<"costs"> = {
  summary: {
    description:
      "What the window cost, in minor units of the currency of the rates. Only days that are over are added up, by the job that adds up metrics: yesterday appears within minutes of midnight UTC. The parts add up to `totalCost`. With limited access you see your own devices only, without what all share.",
    input: { window: "month" },
    output: {
      window,
      ...currency,
      ...none,
      deviceCost: 267,
      energyCost: 121,
      sharedCost: 600,
      totalCost: 988,
      idleCost: 383,
      devices: 1,
      previous: null,
      days: [{ date: "2026-11-20", totalCost: 49, idleCost: 19 }],
    },
  },
  allocation: {
    description:
      "The same costs by device, app, deployment, fleet or tag. The rows add up to `totalCost`, and that is the summary's. Tags and fleets are those that the devices have now. Apps share a device by the memory that their templates declare, and its disk by the disk; what is left is the row `__idle__`, and what all share is `__shared__`.",
    input: { window: "month", aggregate: "app" },
    output: {
      window,
      aggregate: "app",
      step: "window",
      includeIdle: true,
      basis: "declared",
      ...currency,
      totalCost: 988,
      rows: [
        { key: "__shared__", name: null, ...shared, minutes: null, efficiency: null },
        { key: "__idle__", name: null, ...ofIdle, minutes: null, efficiency: 0 },
        { key: appId, name: "key-value", ...ofApp, minutes: null, efficiency: 1 },
      ],
    },
  },
  forecast: {
    description:
      "This month: what it has cost, and for each day to come the mean of the last 14 days, of the devices that exist now. The months after it: so much for each of their days. What is paid by the month is spread over the days that a month has.",
    input: { months: 1 },
    output: { ...currency, confidence: "normal", basisDays: 14, byMonth: [{ month: "2026-11", actual: 988, expected: 1_482, low: 1_482, high: 1_482 }] },
  },
  getRates: {
    description: "The rates that hold today, and all versions: those to come are in effect from their `validFrom` on.",
    output: { current: shownWithActors(rates), versions: [shownWithActors(rates)] },
  },
  setRates: {
    description:
      "Makes a version that holds from `validFrom` on, which is today unless you say otherwise. Days that are over keep what they cost by the rates of their time. The first rates may begin in the past. Another version for the same day replaces it. The currency stays that of the first rates.",
    input: { currency: "EUR", sharedMonthly: 900, device: { purchase: 24_000, wattsIdle: 6, wattsMax: 25, kwhPrice: "0.32" } },
    output: rates,
  },
  listBudgets: {
    description: "With what the month has cost and is expected to cost, as of the last day that was added up.",
    output: { items: [shownWithActors(budget)], total: 1 },
  },
  getBudget: { description: "With what the month has cost and is expected to cost.", input: { budgetId }, output: shownWithActors(budget) },
  createBudget: {
    description:
      "Watches what a month costs and stops nothing. Each threshold tells once a month, after the day that reaches it was added up: with the event `cost.budget_threshold`, and as an alert of the rule on `cost.budget`, which the tenant's first budget brings along.",
    input: { name: "All machines", amount: 1_500, thresholds: [...thresholds] },
    output: budget,
  },
  updateBudget: {
    description: "A threshold that is no longer reached, because the amount was raised, tells again when it is.",
    input: { budgetId, amount: 2_000 },
    output: raised,
  },
  removeBudget: { description: "Its alerts resolve by themselves. The costs stay.", input: { budgetId }, output: null },
};
