// Cost allocation and budgets: what machines cost by the tenant's own rates and their measured use, added up by the day, allocated, forecast, and compared with budgets.
import { contract } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { implement } from "../../core/feature.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Feature } from "../kit.ts";
import { allocate, costsOf } from "./allocation.ts";
import { type BudgetsDeps, createBudgets } from "./budgets.ts";
import { type DayWindow, dayOf, daysBetween, firstOf, monthOf, periodsOf, windowBefore, windowOf } from "./days.ts";
import { ENOUGH_DAYS, forecastMonths } from "./forecast-rules.ts";
import { createLedger, type LedgerDeps } from "./ledger.ts";
import { minorDigitsOf, toMinor } from "./money.ts";
import { createRatesHandlers, type RatesDeps } from "./rates.ts";
import { countBudgets } from "./store/budgets.ts";
import { findCostDevices } from "./store/names.ts";
import { currencyOf, ledgerThrough } from "./store/rates.ts";
import { allDays, basisDays, countCostingDevices, sumAll } from "./store/reports.ts";

/** Each row with so many days at most. */
const MAX_STEPS = 92;

export type CostsDeps = BudgetsDeps & RatesDeps & Omit<LedgerDeps, "lookAtBudgets">;

export const createCosts = (deps: CostsDeps): Feature<typeof contract.costs> => {
  const { db, clock } = deps;
  const budgets = createBudgets(deps);
  const { jobs } = createLedger({ ...deps, lookAtBudgets: budgets.lookAtBudgets });

  const requireCurrency = async (tx: Tx, scope: SystemScope): Promise<{ readonly currency: string; readonly minorDigits: number }> => {
    const currency = await currencyOf(tx, scope);
    if (currency === null) throw new AppError("COST_RATES_MISSING");
    return { currency, minorDigits: minorDigitsOf(currency) };
  };
  /** Null: all devices, with what all share. */
  const seen = async (tx: Tx, scope: SystemScope): Promise<readonly string[] | null> =>
    isLimited(scope) ? (await findCostDevices(tx, scope)).map(({ deviceId }) => deviceId) : null;
  const shown = ({ from, to }: DayWindow, ledger: string | null) => {
    const through = ledger === null || ledger < from ? null : ledger > to ? to : ledger;
    return { from, to, through };
  };

  return {
    jobs,
    counters: { budgets: countBudgets },
    handlers: implement(contract.costs, {
      ...createRatesHandlers(deps),
      ...budgets.handlers,
      // One transaction each, so that a day that is being completed counts in all of an answer or in none.
      summary: ({ scope }, { window: asked }) =>
        db.tx(async (tx) => {
          const window = windowOf(asked, dayOf(clock.now()));
          const inCurrency = await requireCurrency(tx, scope);
          const deviceIds = await seen(tx, scope);
          const sum = await sumAll(tx, scope, window, deviceIds);
          const through = await ledgerThrough(tx, scope);
          const devices = await countCostingDevices(tx, scope, periodsOf(window, through), deviceIds);
          const before = windowBefore(window);
          const previous = await sumAll(tx, scope, before, deviceIds);
          const days = await allDays(tx, scope, window, deviceIds);
          const minorOf = (money: bigint): number => toMinor(money, inCurrency.minorDigits);
          return {
            window: shown(window, through),
            ...inCurrency,
            ...costsOf(sum, inCurrency.minorDigits),
            devices,
            previous: previous.total === 0n ? null : { ...before, totalCost: minorOf(previous.total) },
            days: days.map(({ day, total, idle }) => ({ date: day, totalCost: minorOf(total), idleCost: minorOf(idle) })),
          };
        }),
      allocation: ({ scope, fail }, { window: asked, aggregate, step, includeIdle, limit }) =>
        db.tx(async (tx) => {
          const window = windowOf(asked, dayOf(clock.now()));
          const inCurrency = await requireCurrency(tx, scope);
          const { minorDigits } = inCurrency;
          if (step === "1d" && daysBetween(window.from, window.to) > MAX_STEPS)
            throw fail("COST_WINDOW_INVALID", { window: asked, problem: `with step=1d at most ${MAX_STEPS} days` });
          const through = await ledgerThrough(tx, scope);
          const periods = periodsOf(window, through);
          const { totalCost, rows } = await allocate(tx, scope, { window, periods, aggregate, includeIdle, withDays: step === "1d", limit, minorDigits });
          const basis = aggregate === "app" || aggregate === "deployment" || !includeIdle ? "declared" : "measured";
          return { window: shown(window, through), aggregate, step, includeIdle, basis, ...inCurrency, totalCost, rows };
        }),
      forecast: ({ scope }, { months }) =>
        db.tx(async (tx) => {
          const { currency, minorDigits } = await requireCurrency(tx, scope);
          const deviceIds = await seen(tx, scope);
          const today = dayOf(clock.now());
          const through = await ledgerThrough(tx, scope);
          const days = through === null ? [] : await basisDays(tx, scope, through, deviceIds);
          const { total: actual } = await sumAll(tx, scope, { from: firstOf(monthOf(today)), to: today }, deviceIds);
          const minorOf = (money: bigint): number => toMinor(money, minorDigits);
          return {
            currency,
            minorDigits,
            confidence: days.length < ENOUGH_DAYS ? "low" : "normal",
            basisDays: days.length,
            byMonth: forecastMonths({ days, through, today, actual }, months).map(({ month, ...money }) => ({
              month,
              actual: minorOf(money.actual),
              expected: minorOf(money.expected),
              low: minorOf(money.low),
              high: minorOf(money.high),
            })),
          };
        }),
    }),
  };
};
