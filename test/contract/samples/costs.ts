// Costs, for samples. Each has rates, without a ledger that a job would go on with; the plan bounds budgets, so each sample has its own alone.
import { newId } from "../../../server/core/ids.ts";
import type { Stock } from "../stock.ts";

type Place = Pick<Stock, "world" | "tenant">;

const insertRates = ({ world, tenant }: Place) =>
  world.sql.query(
    `insert into cost_rates (tenant_id, version, valid_from, currency, shared_monthly, device, by_tag, created_by)
     values ($1, 1, '2026-01-01', 'EUR', 9000000, '{"fixedMonthly": 500}', '[]', 'user:usr_x') on conflict do nothing`,
    [tenant.tenantId],
  );
const withRates =
  (input: Record<string, unknown> = {}) =>
  async (stock: Place) => {
    await insertRates(stock);
    return input;
  };
const withoutBudgets = async (stock: Place): Promise<void> => {
  await insertRates(stock);
  await stock.world.sql.query("delete from cost_budgets where tenant_id = $1", [stock.tenant.tenantId]);
};
const aBudget =
  (more: Record<string, unknown> = {}) =>
  async (stock: Place) => {
    await withoutBudgets(stock);
    const budgetId = newId("bud");
    await stock.world.sql.query(
      `insert into cost_budgets (tenant_id, budget_id, name, amount, scope, thresholds, month, created_by, updated_at)
       values ($1, $2, 'All machines', 100000000, '{"kind": "all"}', '[{"percent": 80, "basis": "actual"}]', '2026-11', 'user:usr_x', now())`,
      [stock.tenant.tenantId, budgetId],
    );
    return { budgetId, ...more };
  };

export const COST_SAMPLES = {
  "costs.summary": withRates(),
  "costs.allocation": withRates({ aggregate: "app", step: "1d" }),
  "costs.forecast": withRates(),
  "costs.getRates": withRates(),
  "costs.setRates": withRates({ currency: "EUR", device: { purchase: 24_000, wattsIdle: 6, wattsMax: 25, kwhPrice: "0.32" } }),
  "costs.listBudgets": withRates(),
  "costs.getBudget": aBudget(),
  "costs.createBudget": async (stock: Stock) => {
    await withoutBudgets(stock);
    return { name: "All machines", amount: 10_000 };
  },
  "costs.updateBudget": aBudget({ amount: 20_000 }),
  "costs.removeBudget": aBudget(),
};
