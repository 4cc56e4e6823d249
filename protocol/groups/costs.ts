// Costs: what the tenant's machines cost by rates that it enters and use that the gateway measures, to whom that is allocated, and budgets.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { BudgetId, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import {
  BudgetScope,
  BudgetThreshold,
  CostAllocation,
  CostBudget,
  CostDay,
  CostForecast,
  CostRateHistory,
  CostRates,
  CostSummary,
  MAX_COST_AMOUNT,
  ratesFields,
} from "../records/costs.ts";

const read = { auth: ["user", "apiKey"], permission: "cost:read" } as const;
const readWhole = { auth: ["user", "apiKey"], permission: "cost_budget:read" } as const;
const write = { auth: ["user", "apiKey"], permission: "cost:write" } as const;

const Window = z
  .string()
  .min(1)
  .max(40)
  .default("30d")
  .describe(
    "`7d`, `30d` or any number of days up to `400d`, ending yesterday; `month`: this month so far; `last-month`; or the first and the last day, such as `2026-11-01,2026-11-15`. Days are days in UTC.",
  );
const Aggregate = z
  .string()
  .max(80)
  .regex(/^(?:device|app|deployment|fleet|tag:[\p{L}\p{N}_.:/-]{0,64})$/u)
  .describe(
    "`device`, `app`, `deployment`, `fleet`, or `tag:` and how the tags begin. A device with several counts in the first: of its tags in their order, of fleets in the oldest.",
  );

const one = z.strictObject({ budgetId: ref("bud") });
const Name = z.string().trim().min(1).max(100);
const Amount = z.int().min(1).max(MAX_COST_AMOUNT).describe("Minor units of the currency of the rates, such as cents.");
const Thresholds = z
  .array(BudgetThreshold)
  .max(10)
  .refine((all) => new Set(all.map(({ percent, basis }) => `${percent} ${basis}`)).size === all.length, "names a threshold twice")
  .describe("Each is told once a month, and again after the amount was raised.");

const ThresholdReached = z.object({
  budgetId: BudgetId,
  name: z.string(),
  month: z.string(),
  percent: z.int(),
  basis: z.enum(["actual", "forecast"]),
  amount: z.int(),
  spent: z.int(),
  expected: z.int().nullable(),
  currency: z.string(),
});

export const costs = group({
  tag: "Cost",
  records: { CostRates, CostRateHistory, CostSummary, CostAllocation, CostForecast, CostBudget },
  operations: {
    summary: query({
      ...read,
      summary: "Sum up costs",
      rest: ["GET /costs/summary"],
      input: z.strictObject({ window: Window }),
      output: CostSummary,
      errors: ["COST_RATES_MISSING", "COST_WINDOW_INVALID"],
    }),
    allocation: query({
      ...read,
      summary: "Allocate costs",
      rest: ["GET /costs/allocation"],
      input: z.strictObject({
        window: Window,
        aggregate: Aggregate.default("device"),
        step: z.enum(["1d", "window"]).default("window").describe("`1d`: each row has its days, too, of 92 days at most."),
        includeIdle: z.boolean().default(true).describe("False: only what apps used, and what all share."),
        limit: z.int().min(1).max(500).default(100).describe("Rows. What is beyond is one more, `__other__`."),
      }),
      output: CostAllocation,
      errors: ["COST_RATES_MISSING", "COST_WINDOW_INVALID"],
    }),
    forecast: query({
      ...read,
      summary: "Forecast costs",
      rest: ["GET /costs/forecast"],
      input: z.strictObject({ months: z.int().min(1).max(12).default(3).describe("This month, and those after it.") }),
      output: CostForecast,
      errors: ["COST_RATES_MISSING"],
    }),
    getRates: query({
      ...readWhole,
      summary: "Get the rates",
      rest: ["GET /costs/rates"],
      input: z.strictObject({}),
      output: CostRateHistory,
    }),
    setRates: mutation({
      ...write,
      summary: "Set the rates",
      rest: ["PUT /costs/rates"],
      input: z.strictObject({
        ...ratesFields,
        validFrom: CostDay.optional().describe("Today or later. Default: today. The first rates may begin up to 92 days ago, by default with this month."),
        version: Version.optional().describe("The latest version that you have read."),
      }),
      output: CostRates,
      errors: ["COST_RATES_INVALID", "CURRENCY_MISMATCH", "VERSION_CONFLICT"],
    }),
    listBudgets: query({
      ...readWhole,
      summary: "List budgets",
      rest: ["GET /costs/budgets"],
      list: "page",
      input: listQuery({ sort: ["createdAt", "name", "amount"], by: "name" }),
      output: paged(named(CostBudget)),
    }),
    getBudget: query({
      ...readWhole,
      summary: "Get a budget",
      rest: ["GET /costs/budgets/{budgetId}"],
      input: one,
      output: named(CostBudget),
      errors: ["BUDGET_NOT_FOUND"],
    }),
    createBudget: mutation({
      ...write,
      summary: "Create a budget",
      rest: ["POST /costs/budgets"],
      status: 201,
      location: "/costs/budgets/{budgetId}",
      input: z.strictObject({
        name: Name,
        amount: Amount,
        period: z.literal("month").default("month"),
        scope: BudgetScope.default({ kind: "all" }),
        thresholds: Thresholds.default([
          { percent: 50, basis: "actual" },
          { percent: 80, basis: "actual" },
          { percent: 100, basis: "actual" },
          { percent: 100, basis: "forecast" },
        ]),
      }),
      output: CostBudget,
      errors: ["COST_RATES_MISSING", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND", "PLAN_LIMIT_EXCEEDED"],
    }),
    updateBudget: mutation({
      ...write,
      summary: "Change a budget",
      rest: ["PATCH /costs/budgets/{budgetId}"],
      input: one.extend({
        name: Name.optional(),
        amount: Amount.optional(),
        scope: BudgetScope.optional(),
        thresholds: Thresholds.optional(),
        version: Version.optional(),
      }),
      output: CostBudget,
      errors: ["BUDGET_NOT_FOUND", "DEVICE_NOT_FOUND", "FLEET_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    removeBudget: mutation({
      ...write,
      summary: "Delete a budget",
      rest: ["DELETE /costs/budgets/{budgetId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["BUDGET_NOT_FOUND"],
    }),
  },
  events: {
    budgetThreshold: event("cost.budget_threshold", ThresholdReached, "A budget reached one of its thresholds"),
  },
});
