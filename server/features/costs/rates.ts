// The rates: each version holds from a day on, and never for the past, whose days keep what they have cost.
import type { CostRates, contract } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { withActors } from "../../core/people/actors.ts";
import { actorOf } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { addDays, dayOf, firstOf, isDay, monthOf } from "./days.ts";
import { LEDGER_JOB } from "./ledger.ts";
import { isCurrency } from "./money.ts";
import { beginLedger, insertRates, latestRates, lockRates } from "./store/rates.ts";

const SHOWN = 100;
/** How far back the first rates may begin: for so long the use of devices is kept by the day anyway. */
const FIRST_BACK_DAYS = 92;
const AHEAD_DAYS = 400;

export interface RatesDeps extends Pick<FeatureKit, "db" | "clock"> {
  readonly wakeJob: (name: string) => void;
}

const invalid = (field: string, problem: string): AppError => new AppError("COST_RATES_INVALID", { details: { field, problem } });

/** The version that holds today. */
const currentOf = <R extends CostRates>(all: readonly R[], today: string): R | null => all.find(({ validFrom }) => validFrom <= today) ?? null;

const beginOf = (validFrom: string | undefined, { isFirst, today }: { readonly isFirst: boolean; readonly today: string }): string => {
  const from = validFrom ?? (isFirst ? firstOf(monthOf(today)) : today);
  if (!isDay(from)) throw invalid("validFrom", "no calendar has that day");
  if (from > addDays(today, AHEAD_DAYS)) throw invalid("validFrom", `they begin more than ${AHEAD_DAYS} days ahead`);
  if (!isFirst && from < today) throw invalid("validFrom", "they would change what past days have cost");
  if (from < addDays(today, -FIRST_BACK_DAYS)) throw invalid("validFrom", `they begin more than ${FIRST_BACK_DAYS} days ago`);
  return from;
};

const checkTags = (byTag: CostRates["byTag"]): void => {
  const tags = byTag.map(({ tag }) => tag);
  const twice = tags.find((tag, at) => tags.indexOf(tag) !== at);
  if (twice !== undefined) throw invalid("byTag", `the tag ${twice} has two rates`);
};

export const createRatesHandlers = ({ db, clock, wakeJob }: RatesDeps): Pick<Handlers<typeof contract.costs>, "getRates" | "setRates"> => ({
  getRates: async ({ scope }) => {
    const versions = await withActors(db, scope, await latestRates(db, scope, SHOWN));
    return { current: currentOf(versions, dayOf(clock.now())), versions };
  },
  setRates: ({ scope, fail, commit }, { validFrom, version: read, ...rates }) => {
    if (!isCurrency(rates.currency)) throw fail("COST_RATES_INVALID", { field: "currency", problem: `there is no currency ${rates.currency}` });
    checkTags(rates.byTag);
    return commit(async (tx: Tx, afterwards) => {
      await lockRates(tx, scope);
      const before = await latestRates(tx, scope, AHEAD_DAYS + 1);
      const newest = before.reduce((highest, { version }) => Math.max(highest, version), 0);
      if (read !== undefined && read !== newest) throw fail("VERSION_CONFLICT", { currentVersion: newest });
      const currency = before[0]?.currency ?? rates.currency;
      if (currency !== rates.currency) throw fail("CURRENCY_MISMATCH", { currency });
      const today = dayOf(clock.now());
      const from = beginOf(validFrom, { isFirst: before.length === 0, today });
      const set = await insertRates(tx, scope, { ...rates, validFrom: from, version: newest + 1, createdBy: actorOf(scope.principal) });
      await beginLedger(tx, scope, addDays(from, -1));
      afterwards(() => wakeJob(LEDGER_JOB));
      return set;
    });
  },
});
