// Provokes the error codes of costs.
import { call, done, own, type Scenario } from "./scenario.ts";

export const COST_SCENARIOS = {
  BUDGET_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/costs/budgets/bud_unknown")),
  COST_RATES_MISSING: async ({ odd }, probe) => probe(call(odd, "GET", "/costs/summary", { as: (await odd.tenant()).apiKey })),
  COST_RATES_INVALID: (at, probe) => probe(own(at, "PUT", "/costs/rates", { body: { currency: "ZZZ", device: {} } })),
  COST_WINDOW_INVALID: (at, probe) => probe(own(at, "GET", "/costs/summary?window=13mo")),
  CURRENCY_MISMATCH: async (at, probe) => {
    await done(at.world, at.stock.owner, "PUT /costs/rates", { body: { currency: "EUR", device: {} } });
    await probe(own(at, "PUT", "/costs/rates", { body: { currency: "USD", device: {} } }));
  },
} satisfies Readonly<Record<string, Scenario>>;
