// Rows of rates, and how far they have been applied.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { type CostRates, DeviceRates } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { LOCK, statement } from "../../../core/statements.ts";
import { dayOf } from "../days.ts";
import { fromMinor, minorDigitsOf, toMinor } from "../money.ts";
import type { RatesOfDay } from "../pricing.ts";

type Stored = Prisma.Result<Prisma.CostRatesDelegate, Record<never, never>, "findFirstOrThrow">;

/** Until the transaction ends, nobody else sets the tenant's rates. */
export const lockRates = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`cost rates of ${tenantId}`]);
};

// A row may be older than a field of the rates, whose default counts then.
const byTagOf = ({ byTag }: Pick<Stored, "byTag">): CostRates["byTag"] =>
  (byTag as { tag: string; rates: unknown }[]).map(({ tag, rates }) => ({ tag, rates: DeviceRates.parse(rates) })); // as: `insertRates` wrote them

const toRates = (row: Stored): CostRates => ({
  tenantId: row.tenantId as CostRates["tenantId"], // as: the column holds nothing else
  version: row.version,
  validFrom: dayOf(row.validFrom),
  currency: row.currency,
  sharedMonthly: toMinor(row.sharedMonthly, minorDigitsOf(row.currency)),
  device: DeviceRates.parse(row.device),
  byTag: byTagOf(row),
  createdBy: row.createdBy,
  createdAt: row.createdAt.toISOString(),
});

/** The latest first. */
export const latestRates = async (db: Clients, scope: SystemScope, limit: number): Promise<readonly CostRates[]> =>
  (await db.for(scope).costRates.findMany({ orderBy: { validFrom: "desc" }, take: limit })).map(toRates);

/** All versions have one; null: there is no version. */
export const currencyOf = async (db: Clients, scope: SystemScope): Promise<string | null> => (await latestRates(db, scope, 1))[0]?.currency ?? null;

/** The rates by which that day costs; null before the first. */
export const ratesOn = async (db: Clients, scope: SystemScope, day: string): Promise<CostRates | null> => {
  const row = await db.for(scope).costRates.findFirst({ where: { validFrom: { lte: new Date(day) } }, orderBy: { validFrom: "desc" } });
  return row === null ? null : toRates(row);
};

export const ratesOfDay = ({ version, currency, sharedMonthly, device, byTag }: CostRates): RatesOfDay => {
  const minorDigits = minorDigitsOf(currency);
  return { version, minorDigits, sharedMonthly: fromMinor(sharedMonthly, minorDigits), device, byTag };
};

export type NewRates = Omit<CostRates, "tenantId" | "createdAt">;
/** Replaces those that would have begun on the same day. */
export const insertRates = async (tx: Clients, scope: SystemScope, { validFrom, sharedMonthly, ...rates }: NewRates): Promise<CostRates> => {
  const from = new Date(validFrom);
  await tx.for(scope).costRates.deleteMany({ where: { validFrom: from } });
  const row = { ...rates, validFrom: from, sharedMonthly: fromMinor(sharedMonthly, minorDigitsOf(rates.currency)) };
  return toRates(await tx.for(scope).costRates.create({ data: row }));
};

const BEGIN_LEDGER = statement("costs.beginLedger", "insert into cost_ledgers (tenant_id, through) values ($1, $2::date) on conflict (tenant_id) do nothing");
/** The ledger begins on the day after this one. */
export const beginLedger = async (tx: SqlTx, { tenantId }: SystemScope, through: string): Promise<void> => {
  await tx.query(BEGIN_LEDGER, [tenantId, through]);
};

const THROUGH = statement<{ readonly day: string }>(
  "costs.through",
  "select to_char(l.through, 'YYYY-MM-DD') as day from cost_ledgers l where l.tenant_id = $1 and exists (select from cost_days c where c.tenant_id = $1)",
);
/** The last day that has been added up; null: none yet. */
export const ledgerThrough = async (db: SqlTx, { tenantId }: SystemScope): Promise<string | null> => (await db.query(THROUGH, [tenantId]))[0]?.day ?? null;
