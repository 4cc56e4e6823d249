// The records of costs: rates, what an installation costs by them, and budgets.
import { z } from "zod";
import { Tag } from "../kit/device-selector.ts";
import { BudgetId, ref, TenantId } from "../kit/ids.ts";
import { named } from "./actor.ts";

const Timestamp = z.iso.datetime();
export const MAX_COST_AMOUNT = 2_147_483_647;
const MAX_WATTS = 100_000;

/** Amounts of money are whole minor units of the currency of the rates, such as cents. */
const MinorUnits = z.int().min(0).max(MAX_COST_AMOUNT);
const Price = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,6})?$/)
  .describe("In the currency itself, as decimal text with up to 6 places, such as `0.325`.");
export const CostDay = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}$/)
  .describe("A day in UTC.");
export const Currency = z
  .string()
  .regex(/^[A-Z]{3}$/)
  .describe("Code of ISO 4217.");

const Watts = z.number().min(0).max(MAX_WATTS);
const rateFields = {
  purchase: MinorUnits.default(0).describe("What the machine cost. Spread over `lifetimeMonths`."),
  lifetimeMonths: z.int().min(1).max(240).default(60),
  fixedMonthly: MinorUnits.default(0).describe("What it costs a month however it is used, such as a rented server or a line."),
  wattsIdle: Watts.default(0).describe("What it draws while it does nothing."),
  wattsMax: Watts.default(0).describe("What it draws under full load. Between both it follows the measured load of the processor."),
  kwhPrice: Price.default("0"),
  cpuCoreHour: Price.default("0").describe("For each core of the machine and hour in which it reports, as decimal text."),
  memoryGBHour: Price.default("0").describe("For each 10^9 bytes of memory and hour in which it reports, as decimal text."),
  storageGBMonth: Price.default("0").describe("For each 10^9 bytes of its disk and month, as decimal text."),
};
export const DeviceRates = z
  .strictObject(rateFields)
  .refine(({ wattsIdle, wattsMax }) => wattsMax >= wattsIdle, { path: ["wattsMax"], message: "must not be below wattsIdle" });
export type DeviceRates = z.infer<typeof DeviceRates>;

const TagRates = z.strictObject({ tag: Tag, rates: DeviceRates });
export const ratesFields = {
  currency: Currency,
  sharedMonthly: MinorUnits.default(0).describe("What all devices share a month, such as a subscription or a line. Shown as `__shared__`."),
  device: DeviceRates.describe("The rates of each device, unless one of its tags has its own."),
  byTag: z.array(TagRates).max(50).default([]).describe("The first that fits a device counts."),
};

export const CostRates = z.object({
  tenantId: TenantId,
  version: z.int(),
  validFrom: CostDay.describe("The first day that costs by these rates, in UTC; until the next version begins."),
  ...ratesFields,
  createdBy: z.string(),
  createdAt: Timestamp,
});
export type CostRates = z.infer<typeof CostRates>;

export const CostRateHistory = z.object({
  current: named(CostRates).nullable().describe("`null`: none hold yet."),
  versions: z.array(named(CostRates)).max(100).describe("The latest first: those to come, the current one, and those before it."),
});

export const CostWindow = z.object({
  from: CostDay,
  to: CostDay.describe("The last day, which counts."),
  through: CostDay.nullable().describe("The last day of the window that has been added up; `null`: none yet. A day is added up once it is over."),
});

const Amount = z.int().describe("Minor units of `currency`.");
/** Its parts add up to `totalCost`. */
export const Costs = z.object({
  deviceCost: Amount.describe("Purchase, spread over its lifetime, in minor units of `currency`."),
  fixedCost: Amount.describe("Fixed monthly costs, in minor units of `currency`."),
  energyCost: Amount,
  cpuCost: Amount,
  memoryCost: Amount,
  storageCost: Amount,
  sharedCost: Amount,
  totalCost: Amount,
  idleCost: Amount.describe("How much of `totalCost` no app used, in minor units of `currency`."),
});
export type Costs = z.infer<typeof Costs>;

const inCurrency = {
  currency: Currency,
  minorDigits: z.int().describe("How many digits the minor unit has: 2 means that 1234 is 12.34."),
};
const CostDayTotal = z.object({ date: CostDay, totalCost: Amount, idleCost: Amount });

export const CostSummary = z.object({
  window: CostWindow,
  ...inCurrency,
  ...Costs.shape,
  devices: z.int().describe("Devices that cost something in the window."),
  previous: z.object({ from: CostDay, to: CostDay, totalCost: Amount }).nullable().describe("As many days before the window; `null` if they are not added up."),
  days: z.array(CostDayTotal),
});
export type CostSummary = z.infer<typeof CostSummary>;

export const COST_KEYS = ["__idle__", "__shared__", "__untagged__", "__unallocated__", "__other__"] as const;
export const CostAllocationRow = z.object({
  key: z
    .string()
    .describe(
      "The id, or the tag. `__idle__`: what no app used; `__shared__`: what all share; `__untagged__`: devices without such a tag; `__unallocated__`: devices of no fleet, apps of no deployment; `__other__`: the rest, beyond `limit`.",
    ),
  name: z.string().nullable(),
  ...Costs.shape,
  minutes: z.int().nullable().describe("How long its devices reported; `null` where apps share devices."),
  efficiency: z.number().nullable().describe("Which part apps used, from 0 to 1; `null` if it cost nothing."),
  days: z
    .array(z.object({ date: CostDay, totalCost: Amount }))
    .optional()
    .describe("With `step=1d`."),
});
export type CostAllocationRow = z.infer<typeof CostAllocationRow>;

export const CostAllocation = z.object({
  window: CostWindow,
  aggregate: z.string(),
  step: z.enum(["1d", "window"]),
  includeIdle: z.boolean(),
  basis: z
    .enum(["measured", "declared"])
    .describe("`declared`: apps share a device by the memory and disk that their templates declare, until their use is measured."),
  ...inCurrency,
  totalCost: Amount.describe("The sum of the rows, in minor units of `currency`."),
  rows: z.array(CostAllocationRow).describe("The most expensive first."),
});
export type CostAllocation = z.infer<typeof CostAllocation>;

export const CostForecast = z.object({
  ...inCurrency,
  confidence: z.enum(["low", "normal"]).describe("`low`: fewer than 7 days have been added up."),
  basisDays: z.int().describe("From how many days, of the last 14, it is made."),
  byMonth: z.array(
    z.object({
      month: z.string().regex(/^\d{4}-\d{2}$/),
      actual: Amount.describe("What has been added up, in minor units of `currency`."),
      expected: Amount.describe("`actual` and what is still to come, in minor units of `currency`."),
      low: Amount.describe("If all days cost as little as the 10th percentile, in minor units of `currency`."),
      high: Amount.describe("If all days cost as much as the 90th percentile, in minor units of `currency`."),
    }),
  ),
});
export type CostForecast = z.infer<typeof CostForecast>;

export const BudgetScope = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("all") }),
    z.strictObject({ kind: z.literal("fleet"), fleetId: ref("flt") }),
    z.strictObject({ kind: z.literal("tag"), tag: Tag }),
    z.strictObject({ kind: z.literal("devices"), deviceIds: z.array(ref("dev")).min(1).max(1_000) }),
  ])
  .describe("What it watches. Only `all` has what devices share.");
export type BudgetScope = z.infer<typeof BudgetScope>;

export const BudgetThreshold = z.strictObject({
  percent: z.int().min(1).max(1_000),
  basis: z.enum(["actual", "forecast"]).default("actual").describe("`actual`: what the month has cost so far; `forecast`: what it is expected to cost."),
});
export type BudgetThreshold = z.infer<typeof BudgetThreshold>;

export const CostBudget = z.object({
  budgetId: BudgetId,
  tenantId: TenantId,
  name: z.string(),
  amount: Amount,
  ...inCurrency,
  period: z.literal("month").describe("A month in UTC."),
  scope: BudgetScope,
  thresholds: z.array(BudgetThreshold.extend({ reachedAt: Timestamp.nullable().describe("When people were told, in this month; `null`: not yet.") })),
  month: z.string().describe("The month that these figures are of."),
  spent: Amount.describe("In the month so far, in minor units of `currency`."),
  expected: Amount.nullable().describe("For the whole month, in minor units of `currency`; `null` while fewer than 7 days have been added up."),
  through: CostDay.nullable().describe("The last day that these figures have; `null`: none yet."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type CostBudget = z.infer<typeof CostBudget>;
