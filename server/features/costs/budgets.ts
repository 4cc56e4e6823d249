// Budgets: what a month may cost. Whenever a day has been added up, each is compared with it, and each of its thresholds tells once a month.
import { type BudgetScope, type BudgetThreshold, type CostRates, contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { actorOf, type SystemScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { dayOf, firstOf, monthOf } from "./days.ts";
import { ENOUGH_DAYS, forecastMonth } from "./forecast-rules.ts";
import { fromMinor, minorDigitsOf, toMinor } from "./money.ts";
import type { Money } from "./parts.ts";
import {
  allBudgets,
  type BudgetFigures,
  type BudgetRow,
  countBudgets,
  deleteBudget,
  findBudget,
  insertBudget,
  insertNotices,
  keepNotices,
  pageOfBudgets,
  type Reached,
  saveFigures,
  toBudget,
  updateBudget,
} from "./store/budgets.ts";
import { findCostDevices, findCostFleets } from "./store/names.ts";
import { currencyOf, ledgerThrough } from "./store/rates.ts";
import { basisDays, sumAll } from "./store/reports.ts";

const MAX_BUDGETS = 1_000;
const { budgetThreshold } = contract.costs.events;

export interface BudgetsDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan"> {
  /** The devices among these that the tenant has. */
  readonly knownDevices: (tx: Tx, scope: SystemScope, deviceIds: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Throws FLEET_NOT_FOUND. */
  readonly holdFleets: (tx: Tx, scope: SystemScope, fleetIds: readonly string[]) => Promise<void>;
  /** Gives the tenant a rule that turns reached thresholds into alerts. */
  readonly addAlertRule: (tx: Tx, scope: SystemScope) => Promise<void>;
}

interface Priced {
  readonly row: BudgetRow;
  readonly currency: string;
}

const unknown = (budgetId: string): AppError => new AppError("BUDGET_NOT_FOUND", { details: { budgetId } });

const isReached = ({ percent, basis }: BudgetThreshold, amount: Money, { spent, expected }: Pick<BudgetFigures, "spent" | "expected">): boolean => {
  const money = basis === "actual" ? spent : expected;
  return money !== null && money * 100n >= amount * BigInt(percent);
};

/** Null: all, with what all share. */
const devicesOf = async (tx: Tx, scope: SystemScope, watched: BudgetScope): Promise<readonly string[] | null> => {
  if (watched.kind === "all") return null;
  if (watched.kind === "devices") return watched.deviceIds;
  const devices = await findCostDevices(tx, scope);
  const fleet = watched.kind === "fleet" ? (await findCostFleets(tx, scope)).find(({ fleetId }) => fleetId === watched.fleetId) : undefined;
  const isWatched = watched.kind === "tag" ? ({ tags }: (typeof devices)[number]) => tags.includes(watched.tag) : (fleet?.has ?? (() => false));
  return devices.filter(isWatched).map(({ deviceId }) => deviceId);
};

const figuresOf = async (tx: Tx, scope: SystemScope, watched: BudgetScope, at: { readonly through: string | null; readonly today: string }) => {
  const { through } = at;
  const today = through ?? at.today;
  const month = monthOf(today);
  if (through === null) return { month, spent: 0n, expected: null, through };
  const deviceIds = await devicesOf(tx, scope, watched);
  const { total: spent } = await sumAll(tx, scope, { from: firstOf(month), to: through }, deviceIds);
  const days = await basisDays(tx, scope, through, deviceIds);
  const expected = days.length < ENOUGH_DAYS ? null : forecastMonth({ days, through, today, actual: spent }, month).expected;
  return { month, spent, expected, through };
};

type Names = "listBudgets" | "getBudget" | "createBudget" | "updateBudget" | "removeBudget";

export const createBudgets = ({ db, clock, emit, plan, knownDevices, holdFleets, addAlertRule }: BudgetsDeps) => {
  const record = (row: BudgetRow, currency: CostRates["currency"]) => {
    const minorDigits = minorDigitsOf(currency);
    return toBudget(row, currency, { minorDigits, minorOf: (money) => toMinor(money, minorDigits) });
  };

  /** Compares a budget with what has been added up, and tells of the thresholds that nobody was told of. Returns those that the month has reached. */
  const look = async (tx: Tx, scope: SystemScope, { row, currency }: Priced, through: string | null): Promise<Reached> => {
    const { budgetId, name, amount } = row;
    const figures = await figuresOf(tx, scope, row.scope, { through, today: dayOf(clock.now()) });
    await saveFigures(tx, scope, budgetId, figures);
    const thresholds = row.thresholds.filter((threshold) => isReached(threshold, amount, figures));
    const reached: Reached = { budgetId, month: figures.month, thresholds };
    const told = await insertNotices(tx, scope, reached);
    const shown = record({ ...row, ...figures, through: null }, currency);
    const { month, spent, expected } = shown;
    await emit(
      tx,
      told.map((threshold) =>
        happened(scope, budgetThreshold, budgetId, { ...threshold, budgetId: shown.budgetId, name, month, amount: shown.amount, spent, expected, currency }),
      ),
    );
    return reached;
  };

  const checkScope = async (tx: Tx, scope: SystemScope, watched: BudgetScope): Promise<void> => {
    if (watched.kind === "fleet") await holdFleets(tx, scope, [watched.fleetId]);
    if (watched.kind !== "devices") return;
    const known = await knownDevices(tx, scope, watched.deviceIds);
    const deviceId = watched.deviceIds.find((each) => !known.has(each));
    if (deviceId !== undefined) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
  };

  const read = async (tx: Tx, scope: SystemScope, budgetId: string): Promise<Priced> => {
    const row = await findBudget(tx, scope, budgetId);
    const currency = row === null ? null : await currencyOf(tx, scope);
    if (row === null || currency === null) throw unknown(budgetId);
    return { row, currency };
  };
  /** A budget that was just made or changed, compared with what has been added up. */
  const settle = async (tx: Tx, scope: SystemScope, budgetId: string) => {
    const reached = await look(tx, scope, await read(tx, scope, budgetId), await ledgerThrough(tx, scope));
    // A threshold that is no longer reached tells again when it is.
    await keepNotices(tx, scope, reached);
    const { row, currency } = await read(tx, scope, budgetId);
    return record(row, currency);
  };

  const handlers: Pick<Handlers<typeof contract.costs>, Names> = {
    listBudgets: async ({ scope }, query) => {
      const { items, ...page } = await pageOfBudgets(db, scope, query);
      const currency = (await currencyOf(db, scope)) ?? "";
      return pageWithActors(db, scope, { ...page, items: items.map((row) => record(row, currency)) });
    },
    getBudget: async ({ scope }, { budgetId }) => {
      const { row, currency } = await db.tx((tx) => read(tx, scope, budgetId));
      return withActor(db, scope, record(row, currency));
    },
    createBudget: ({ scope, fail, commit }, { period: _, amount, ...body }) =>
      commit(async (tx) => {
        const currency = await currencyOf(tx, scope);
        if (currency === null) throw fail("COST_RATES_MISSING");
        await plan.require(tx, scope, "budgets", 1);
        await checkScope(tx, scope, body.scope);
        if ((await countBudgets(tx, scope)) === 0) await addAlertRule(tx, scope);
        const budgetId = newId("bud");
        await insertBudget(tx, scope, { ...body, budgetId, amount: fromMinor(amount, minorDigitsOf(currency)), createdBy: actorOf(scope.principal) });
        return settle(tx, scope, budgetId);
      }),
    updateBudget: ({ scope, fail, commit }, { budgetId, version, amount, ...change }) =>
      commit(async (tx) => {
        const { row, currency } = await read(tx, scope, budgetId);
        if (change.scope !== undefined) await checkScope(tx, scope, change.scope);
        const money = amount === undefined ? undefined : fromMinor(amount, minorDigitsOf(currency));
        if (!(await updateBudget(tx, scope, { budgetId, version, ...change, amount: money }))) throw fail("VERSION_CONFLICT", { currentVersion: row.version });
        return settle(tx, scope, budgetId);
      }),
    removeBudget: ({ scope, commit }, { budgetId }) =>
      commit(async (tx) => {
        if (!(await deleteBudget(tx, scope, budgetId))) throw unknown(budgetId);
        return null;
      }),
  };

  return {
    handlers,
    lookAtBudgets: async (tx: Tx, scope: SystemScope, through: string): Promise<void> => {
      const currency = await currencyOf(tx, scope);
      if (currency === null) return;
      for (const row of await allBudgets(tx, scope, MAX_BUDGETS)) await look(tx, scope, { row, currency }, through);
    },
  };
};
