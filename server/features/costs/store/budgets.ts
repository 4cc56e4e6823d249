// Rows of budgets, and of the thresholds of which people have been told.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { BudgetScope, BudgetThreshold, type CostBudget, type Page } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { given } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { dayOf } from "../days.ts";
import type { Money } from "../parts.ts";

type Stored = Prisma.Result<Prisma.CostBudgetDelegate, { include: { notices: true } }, "findFirstOrThrow">;
type Notice = Stored["notices"][number];

export interface BudgetRow extends Omit<Stored, "scope" | "thresholds" | "notices" | "tenantId"> {
  readonly tenantId: CostBudget["tenantId"];
  readonly scope: BudgetScope;
  readonly thresholds: readonly BudgetThreshold[];
  readonly notices: readonly Notice[];
}

const toRow = (row: Stored): BudgetRow => ({
  ...row,
  tenantId: row.tenantId as CostBudget["tenantId"], // as: the column holds nothing else
  scope: BudgetScope.parse(row.scope),
  thresholds: BudgetThreshold.array().parse(row.thresholds),
});

/** `minorOf` writes money in the minor units of the currency. */
export const toBudget = (
  { amount, spent, expected, through, notices, thresholds, createdAt, updatedAt, ...row }: BudgetRow,
  currency: string,
  { minorDigits, minorOf }: { readonly minorDigits: number; readonly minorOf: (money: Money) => number },
): CostBudget => {
  const toldOf = ({ percent, basis }: BudgetThreshold): string | null =>
    notices.find((notice) => notice.month === row.month && notice.percent === percent && notice.basis === basis)?.reachedAt.toISOString() ?? null;
  return {
    ...row,
    budgetId: row.budgetId as CostBudget["budgetId"], // as: the column holds nothing else
    currency,
    minorDigits,
    period: "month",
    amount: minorOf(amount),
    spent: minorOf(spent),
    expected: expected === null ? null : minorOf(expected),
    through: through === null ? null : dayOf(through),
    thresholds: thresholds.map((threshold) => ({ ...threshold, reachedAt: toldOf(threshold) })),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
};

const WITH_NOTICES = { include: { notices: { orderBy: { reachedAt: "desc" }, take: 50 } } } as const;

const list = createListing(
  "costBudgets",
  { createdAt: { kind: "time" }, name: { kind: "text" }, amount: { kind: "number" } },
  { column: "budgetId", kind: "text" },
);
export const pageOfBudgets = (db: Clients, scope: SystemScope, query: Parameters<typeof list>[0]): Promise<Page<BudgetRow>> => {
  const { costBudget } = db.for(scope);
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => costBudget.findMany({ ...asked, ...WITH_NOTICES }),
    count: () => costBudget.count(),
    record: toRow,
  });
};

/** For the plan. */
export const countBudgets = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).costBudget.count();

/** All that the plan allows at most. */
export const allBudgets = async (db: Clients, scope: SystemScope, limit: number): Promise<readonly BudgetRow[]> =>
  (await db.for(scope).costBudget.findMany({ ...WITH_NOTICES, orderBy: { budgetId: "asc" }, take: limit })).map(toRow);

export const findBudget = async (db: Clients, scope: SystemScope, budgetId: string): Promise<BudgetRow | null> => {
  const row = await db.for(scope).costBudget.findFirst({ ...WITH_NOTICES, where: { budgetId } });
  return row === null ? null : toRow(row);
};

export interface NewBudget {
  readonly budgetId: string;
  readonly name: string;
  readonly amount: Money;
  readonly scope: BudgetScope;
  readonly thresholds: BudgetThreshold[];
  readonly createdBy: string;
}
export const insertBudget = async (tx: Clients, scope: SystemScope, data: NewBudget): Promise<void> => {
  await tx.for(scope).costBudget.create({ data });
};

export type BudgetChange = { readonly [K in keyof Omit<NewBudget, "budgetId" | "createdBy">]?: NewBudget[K] | undefined };
/** False when it has another version or is gone. */
export const updateBudget = async (
  tx: Clients,
  scope: SystemScope,
  { budgetId, version, ...change }: BudgetChange & { readonly budgetId: string; readonly version?: number | undefined },
): Promise<boolean> => {
  const data = { ...given(change), version: { increment: 1 } };
  return (await tx.for(scope).costBudget.updateMany({ where: { budgetId, ...given({ version }) }, data })).count === 1;
};

/** False when it is gone. */
export const deleteBudget = async (tx: Clients, scope: SystemScope, budgetId: string): Promise<boolean> =>
  (await tx.for(scope).costBudget.deleteMany({ where: { budgetId } })).count === 1;

export interface BudgetFigures {
  readonly month: string;
  readonly spent: Money;
  readonly expected: Money | null;
  readonly through: string | null;
}
const MAX_COLUMN = 2n ** 63n - 1n;
const columnOf = (money: Money): string => String(money > MAX_COLUMN ? MAX_COLUMN : money);
const SAVE_FIGURES = statement(
  "costs.saveFigures",
  "update cost_budgets set month = $3, spent = $4::bigint, expected = $5::bigint, through = $6::date where tenant_id = $1 and budget_id = $2",
);
/** Not a change of the budget: its version stays. */
export const saveFigures = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  budgetId: string,
  { month, spent, expected, through }: BudgetFigures,
): Promise<void> => {
  await tx.query(SAVE_FIGURES, [tenantId, budgetId, month, columnOf(spent), expected === null ? null : columnOf(expected), through]);
};

const threshold = "unnest($4::int[], $5::text[]) as n(percent, basis)";
const FORGET_NOTICES = statement(
  "costs.forgetNotices",
  `delete from cost_budget_notices c where c.tenant_id = $1 and c.budget_id = $2 and c.month = $3
     and not exists (select from ${threshold} where n.percent = c.percent and n.basis = c.basis)`,
);
const INSERT_NOTICES = statement<{ readonly percent: number; readonly basis: BudgetThreshold["basis"] }>(
  "costs.insertNotices",
  `insert into cost_budget_notices (tenant_id, budget_id, month, percent, basis) select $1, $2, $3, n.percent, n.basis from ${threshold}
   on conflict do nothing returning percent, basis`,
);
export interface Reached {
  readonly budgetId: string;
  readonly month: string;
  readonly thresholds: readonly BudgetThreshold[];
}
const reachedValues = ({ tenantId }: SystemScope, { budgetId, month, thresholds }: Reached): readonly unknown[] => [
  tenantId,
  budgetId,
  month,
  thresholds.map(({ percent }) => percent),
  thresholds.map(({ basis }) => basis),
];
/** Keeps only these, so that the others tell again when they are reached. */
export const keepNotices = (tx: SqlTx, scope: SystemScope, reached: Reached): Promise<unknown> => tx.query(FORGET_NOTICES, reachedValues(scope, reached));
/** Returns the ones of which nobody has been told yet. */
export const insertNotices = (tx: SqlTx, scope: SystemScope, reached: Reached): Promise<readonly BudgetThreshold[]> =>
  tx.query(INSERT_NOTICES, reachedValues(scope, reached));
