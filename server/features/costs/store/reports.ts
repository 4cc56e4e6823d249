// Statements that read the ledger: sums of many days and devices at once. Sums of bigint columns are numeric, so they come as text.
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { addDays, type DayWindow, type Periods } from "../days.ts";
import { BASIS_DAYS, type BasisDay } from "../forecast-rules.ts";
import { COST_PARTS, type CostPart, type Money, type Parts } from "../parts.ts";

export interface Sum {
  readonly key: string;
  readonly parts: Parts;
  readonly total: Money;
  readonly idle: Money;
  /** Null for apps, which share the minutes of their device. */
  readonly minutes: number | null;
}
export interface DayTotal {
  readonly key: string;
  readonly day: string;
  readonly total: Money;
  readonly idle: Money;
}

type TextSum = Readonly<Record<CostPart | "total" | "idle", string>> & { readonly key: string; readonly minutes: number | null };
const toSum = (row: TextSum): Sum => ({
  key: row.key,
  parts: Object.fromEntries(COST_PARTS.map((part) => [part, BigInt(row[part])])) as Record<CostPart, Money>, // as: one for each
  total: BigInt(row.total),
  idle: BigInt(row.idle),
  minutes: row.minutes,
});

const sum = (column: string): string => `coalesce(sum(c.${column}), 0)::text as ${column}`;
const PARTS_OF_APPS = COST_PARTS.filter((part) => part !== "shared");
const DEVICE_SUMS = `${[...COST_PARTS, "total", "idle"].map(sum).join(", ")}, coalesce(sum(c.minutes), 0)::float8 as minutes`;
const APP_SUMS = `${[...PARTS_OF_APPS, "total"].map(sum).join(", ")}, '0' as shared, '0' as idle, null::float8 as minutes`;
const WINDOW = "c.tenant_id = $1 and c.day between $2::date and $3::date";
const DAYS_KEYS = "unnest($4::text[], $5::text[]) as k(device_id, key)";
const KEYS = "unnest($6::text[], $7::text[]) as k(device_id, key)";
/** The ledger in these days, and the sums of these months: their rows mean the same. */
const ledger = (kind: "days" | "app_days", columns: readonly string[]): string => {
  const names = columns.map((name) => `l.${name}`).join(", ");
  return `(select ${names} from unnest($2::date[], $3::date[]) as r(since, until) join cost_${kind} l on l.tenant_id = $1 and l.day between r.since and r.until
     union all select ${names} from cost_${kind.replace("days", "months")} l where l.tenant_id = $1 and l.month between $4::date and $5::date) c`;
};
const DEVICE_LEDGER = ledger("days", ["device_id", "minutes", ...COST_PARTS, "total", "idle"]);
const APP_LEDGER = ledger("app_days", ["device_id", "app_id", "deployment_id", ...PARTS_OF_APPS, "total"]);

const SUM_DEVICES = statement<TextSum>(
  "costs.sumDevices",
  `select k.key, ${DEVICE_SUMS} from ${DEVICE_LEDGER} join ${KEYS} on k.device_id = c.device_id group by k.key`,
);
const SUM_USED = statement<TextSum>("costs.sumUsed", `select k.key, ${APP_SUMS} from ${APP_LEDGER} join ${KEYS} on k.device_id = c.device_id group by k.key`);
const byApp = (key: string): string =>
  `select ${key} as key, ${APP_SUMS} from ${APP_LEDGER} where $6::text[] is null or c.device_id = any($6::text[]) group by 1`;
const SUM_APPS = statement<TextSum>("costs.sumApps", byApp("c.app_id"));
const SUM_DEPLOYMENTS = statement<TextSum>("costs.sumDeployments", byApp("coalesce(c.deployment_id, '__unallocated__')"));
const SUM_ALL = statement<TextSum>("costs.sumAll", `select '' as key, ${DEVICE_SUMS} from cost_totals c where ${WINDOW}`);
const SUM_SOME = statement<TextSum>("costs.sumSome", `select '' as key, ${DEVICE_SUMS} from ${DEVICE_LEDGER} where c.device_id = any($6::text[])`);
const COUNT_DEVICES = statement<{ readonly devices: number }>(
  "costs.countCostingDevices",
  `select count(distinct nullif(c.device_id, ''))::int as devices from ${DEVICE_LEDGER} where $6::text[] is null or c.device_id = any($6::text[])`,
);

/** Which key each device counts under. The device '' is what all share. */
export type KeyOfDevice = ReadonlyMap<string, string>;
const keyed = (keys: KeyOfDevice): readonly unknown[] => [[...keys.keys()], [...keys.values()]];
const bounds = ({ tenantId }: SystemScope, { from, to }: DayWindow): readonly unknown[] => [tenantId, from, to];
const inPeriods = ({ tenantId }: SystemScope, { days, months }: Periods): readonly unknown[] => [
  tenantId,
  days.map(({ from }) => from),
  days.map(({ to }) => to),
  // No month is between these two.
  months?.first ?? "2000-01-02",
  months?.last ?? "2000-01-01",
];

export const sumDevices = async (db: SqlTx, scope: SystemScope, periods: Periods, keys: KeyOfDevice): Promise<readonly Sum[]> =>
  (await db.query(SUM_DEVICES, [...inPeriods(scope, periods), ...keyed(keys)])).map(toSum);
/** Only what apps used. */
export const sumUsed = async (db: SqlTx, scope: SystemScope, periods: Periods, keys: KeyOfDevice): Promise<readonly Sum[]> =>
  (await db.query(SUM_USED, [...inPeriods(scope, periods), ...keyed(keys)])).map(toSum);
/** `deviceIds`: on these alone; null: on all. */
export const sumApps = async (
  db: SqlTx,
  scope: SystemScope,
  periods: Periods,
  { by, deviceIds }: { readonly by: "app" | "deployment"; readonly deviceIds: readonly string[] | null },
): Promise<readonly Sum[]> => (await db.query(by === "app" ? SUM_APPS : SUM_DEPLOYMENTS, [...inPeriods(scope, periods), deviceIds])).map(toSum);

/** `deviceIds`: of these alone; null: of all, with what they share. */
export const sumAll = async (db: SqlTx, scope: SystemScope, window: DayWindow, deviceIds: readonly string[] | null): Promise<Sum> => {
  const [row] =
    deviceIds === null
      ? await db.query(SUM_ALL, bounds(scope, window))
      : await db.query(SUM_SOME, [...inPeriods(scope, { days: [window], months: null }), deviceIds]);
  if (row === undefined) throw new Error("a sum without GROUP BY has one row");
  return toSum(row);
};

/** How many devices cost something. */
export const countCostingDevices = async (db: SqlTx, scope: SystemScope, periods: Periods, deviceIds: readonly string[] | null): Promise<number> =>
  (await db.query(COUNT_DEVICES, [...inPeriods(scope, periods), deviceIds]))[0]?.devices ?? 0;

interface TextDay {
  readonly key: string;
  readonly day: string;
  readonly total: string;
  readonly idle: string;
}
const toDay = ({ key, day, total, idle }: TextDay): DayTotal => ({ key, day, total: BigInt(total), idle: BigInt(idle) });
const DAY = "to_char(c.day, 'YYYY-MM-DD') as day";
const DEVICE_DAYS = statement<TextDay>(
  "costs.deviceDays",
  `select k.key, ${DAY}, ${sum("total")}, ${sum("idle")} from cost_days c join ${DAYS_KEYS} on k.device_id = c.device_id where ${WINDOW} group by k.key, c.day`,
);
const USED_DAYS = statement<TextDay>(
  "costs.usedDays",
  `select k.key, ${DAY}, ${sum("total")}, '0' as idle from cost_app_days c join ${DAYS_KEYS} on k.device_id = c.device_id where ${WINDOW} group by k.key, c.day`,
);
const daysByApp = (key: string): string =>
  `select ${key} as key, ${DAY}, ${sum("total")}, '0' as idle from cost_app_days c
    where ${WINDOW} and ($4::text[] is null or c.device_id = any($4::text[])) and ${key} = any($5::text[]) group by 1, c.day`;
const APP_DAYS = statement<TextDay>("costs.appDays", daysByApp("c.app_id"));
const DEPLOYMENT_DAYS = statement<TextDay>("costs.deploymentDays", daysByApp("coalesce(c.deployment_id, '__unallocated__')"));
const ALL_DAYS = statement<TextDay>(
  "costs.allDays",
  `select '' as key, ${DAY}, ${sum("total")}, ${sum("idle")} from cost_totals c where ${WINDOW} group by c.day order by c.day`,
);
const SOME_DAYS = statement<TextDay>(
  "costs.someDays",
  `select '' as key, ${DAY}, ${sum("total")}, ${sum("idle")} from cost_days c where ${WINDOW} and c.device_id = any($4::text[]) group by c.day order by c.day`,
);

export const deviceDays = async (db: SqlTx, scope: SystemScope, window: DayWindow, keys: KeyOfDevice): Promise<readonly DayTotal[]> =>
  (await db.query(DEVICE_DAYS, [...bounds(scope, window), ...keyed(keys)])).map(toDay);
export const usedDays = async (db: SqlTx, scope: SystemScope, window: DayWindow, keys: KeyOfDevice): Promise<readonly DayTotal[]> =>
  (await db.query(USED_DAYS, [...bounds(scope, window), ...keyed(keys)])).map(toDay);
export const appDays = async (
  db: SqlTx,
  scope: SystemScope,
  window: DayWindow,
  { by, deviceIds, keys }: { readonly by: "app" | "deployment"; readonly deviceIds: readonly string[] | null; readonly keys: readonly string[] },
): Promise<readonly DayTotal[]> => (await db.query(by === "app" ? APP_DAYS : DEPLOYMENT_DAYS, [...bounds(scope, window), deviceIds, keys])).map(toDay);
export const allDays = async (db: SqlTx, scope: SystemScope, window: DayWindow, deviceIds: readonly string[] | null): Promise<readonly DayTotal[]> => {
  const values = bounds(scope, window);
  return (await (deviceIds === null ? db.query(ALL_DAYS, values) : db.query(SOME_DAYS, [...values, deviceIds]))).map(toDay);
};

const BASIS = statement<{ readonly day: string; readonly variable: string; readonly monthly: string }>(
  "costs.basisDays",
  `select ${DAY}, coalesce(sum(c.energy + c.cpu + c.memory), 0)::text as variable, coalesce(sum(c.device + c.fixed + c.storage + c.shared), 0)::text as monthly
     from cost_days c left join devices d on d.tenant_id = c.tenant_id and d.device_id = c.device_id
    where ${WINDOW} and d.deleted_at is null and ($4::text[] is null or c.device_id = any($4::text[])) group by c.day order by c.day`,
);
/** The last days up to this one, without the devices that have been removed since. */
export const basisDays = async (db: SqlTx, scope: SystemScope, through: string, deviceIds: readonly string[] | null): Promise<readonly BasisDay[]> =>
  (await db.query(BASIS, [...bounds(scope, { from: addDays(through, 1 - BASIS_DAYS), to: through }), deviceIds])).map(({ day, variable, monthly }) => ({
    day,
    variable: BigInt(variable),
    monthly: BigInt(monthly),
  }));
