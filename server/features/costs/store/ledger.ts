// Statements that write the ledger: three for each thousand devices of a day.
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";
import { COST_PARTS, type CostPart, type Money, type Parts } from "../parts.ts";
import type { AppUse, DeviceUse, Hardware, PricedApp } from "../pricing.ts";

export interface ClaimedLedger {
  readonly tenantId: string;
  /** The last day that is complete. */
  readonly through: string;
}

// A day is over for the ledger once its metrics have been added up.
const COMPLETE_DAY = statement<{ readonly day: string }>(
  "costs.completeDay",
  `select to_char(case when after_device is null then at else at - interval '1 day' end at time zone 'utc', 'YYYY-MM-DD') as day from metric_progress where step_seconds = 86400`,
);
/** The last day whose metrics are complete; null while there is none. */
export const completeDay = async (db: SqlTx): Promise<string | null> => (await db.query(COMPLETE_DAY))[0]?.day ?? null;

const CLAIM = statement<{ readonly tenant_id: string; readonly day: string }>(
  "costs.claimLedger",
  `update cost_ledgers l set lease_until = now() + make_interval(secs => $2)
    where l.tenant_id = (select o.tenant_id from cost_ledgers o join tenants t on t.tenant_id = o.tenant_id and t.status <> 'deleted'
      where o.through < $1::date and o.lease_until <= now() order by o.through, o.tenant_id limit 1 for update of o skip locked)
   returning l.tenant_id, to_char(l.through, 'YYYY-MM-DD') as day`,
);
/** The tenant that is furthest behind, for this node alone until the lease ends; null when all are complete. */
export const claimLedger = async (
  db: SqlTx,
  { upTo, leaseSeconds }: { readonly upTo: string; readonly leaseSeconds: number },
): Promise<ClaimedLedger | null> => {
  const [row] = await db.query(CLAIM, [upTo, leaseSeconds]);
  return row === undefined ? null : { tenantId: row.tenant_id, through: row.day };
};

const COMPLETE = statement("costs.completeLedger", "update cost_ledgers set through = greatest(through, $2::date), lease_until = now() where tenant_id = $1");
export const completeLedger = async (tx: SqlTx, { tenantId }: SystemScope, day: string): Promise<void> => {
  await tx.query(COMPLETE, [tenantId, day]);
};

interface DeviceRow {
  readonly device_id: string;
  readonly tags: readonly string[];
  readonly hardware: Hardware | null;
  readonly minutes: number;
  readonly cpu: number | null;
}
const FIND_DEVICES = statement<DeviceRow>(
  "costs.findDevices",
  `select d.device_id, d.tags, d.hardware, coalesce(m.samples, 0) as minutes, m.cpu_avg::float8 as cpu from devices d
     left join device_metrics m on m.tenant_id = d.tenant_id and m.device_id = d.device_id and m.step_seconds = 86400 and m.at = $2::date::timestamp at time zone 'utc'
    where d.tenant_id = $1 and d.device_id > $3 and d.created_at < ($2::date + 1)::timestamp at time zone 'utc'
      and (d.deleted_at is null or d.deleted_at >= $2::date::timestamp at time zone 'utc') and d.status <> 'provisioning'
    order by d.device_id limit $4`,
);
/** The next devices that were there on that day, with what was measured of them. */
export const findDevicesOf = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { day, after, limit }: { readonly day: string; readonly after: string; readonly limit: number },
): Promise<readonly DeviceUse[]> =>
  (await tx.query(FIND_DEVICES, [tenantId, day, after, limit])).map(({ device_id, tags, hardware, minutes, cpu }) => ({
    deviceId: device_id,
    tags,
    hardware,
    minutes,
    cpuPercent: cpu,
  }));

export interface AppSpan {
  readonly device_id: string;
  readonly app_id: string;
  readonly deployment_id: string | null;
  readonly app_type: string;
  /** For how much of the day it was there. */
  readonly seconds: number;
}
const FIND_APPS = statement<AppSpan>(
  "costs.findApps",
  `select a.device_id, a.app_id, a.deployment_id, a.app_type,
     floor(extract(epoch from least(coalesce(a.removed_at, 'infinity'), b.until) - greatest(a.created_at, b.since)))::int as seconds
   from apps a, (select $2::date::timestamp at time zone 'utc' as since, ($2::date + 1)::timestamp at time zone 'utc' as until) b
    where a.tenant_id = $1 and a.device_id = any($3::text[]) and a.created_at < b.until and coalesce(a.removed_at, 'infinity') > b.since
      and (a.desired_state = 'running' or a.removed_at is not null) order by a.device_id, a.app_id`,
);
/** The apps that should run on these devices, by what is known now. */
export const findAppsOf = (tx: SqlTx, { tenantId }: SystemScope, day: string, deviceIds: readonly string[]): Promise<readonly AppSpan[]> =>
  tx.query(FIND_APPS, [tenantId, day, deviceIds]);

interface WeightRow {
  readonly device_id: string;
  readonly app_id: string;
  readonly deployment_id: string | null;
  readonly memory_weight: string;
  readonly disk_weight: string;
}
const FIND_WEIGHTS = statement<WeightRow>(
  "costs.findWeights",
  `select device_id, app_id, deployment_id, memory_weight::text, disk_weight::text from cost_app_days
    where tenant_id = $1 and day = $2::date and device_id = any($3::text[]) order by device_id, app_id`,
);
/** The apps that the day was first added up with: what has been stopped since ran then. */
export const findWeightsOf = async (tx: SqlTx, { tenantId }: SystemScope, day: string, deviceIds: readonly string[]): Promise<readonly AppUse[]> =>
  (await tx.query(FIND_WEIGHTS, [tenantId, day, deviceIds])).map(({ device_id, app_id, deployment_id, memory_weight, disk_weight }) => ({
    deviceId: device_id,
    appId: app_id,
    deploymentId: deployment_id,
    memoryWeight: BigInt(memory_weight),
    diskWeight: BigInt(disk_weight),
  }));

export interface PricedDevice {
  readonly deviceId: string;
  readonly minutes: number;
  readonly parts: Parts;
  readonly total: Money;
  readonly idle: Money;
}

const listed = (names: readonly string[]): string => names.join(", ");
const parameters = (from: number, count: number): string => Array.from({ length: count }, (_, at) => `$${from + at}::bigint[]`).join(", ");
const replaced = (names: readonly string[]): string => names.map((name) => `${name} = excluded.${name}`).join(", ");
const differs = (table: string, names: readonly string[]): string =>
  `(${names.map((name) => `${table}.${name}`).join(", ")}) is distinct from (${names.map((name) => `excluded.${name}`).join(", ")})`;

const DEVICE_MONEY = [...COST_PARTS, "idle", "total"] as const;
const DEVICE_COLUMNS = ["rates_version", "minutes", ...DEVICE_MONEY];
const SAVE_DEVICES = statement(
  "costs.saveDevices",
  `insert into cost_days (tenant_id, day, device_id, ${listed(DEVICE_COLUMNS)})
   select $1, $2::date, n.device_id, $3::int, n.minutes, ${listed(DEVICE_MONEY.map((name) => `n.${name}`))}
     from unnest($4::text[], $5::int[], ${parameters(6, DEVICE_MONEY.length)}) as n(device_id, minutes, ${listed(DEVICE_MONEY)})
   on conflict (tenant_id, day, device_id) do update set ${replaced(DEVICE_COLUMNS)} where ${differs("cost_days", DEVICE_COLUMNS)}`,
);
const texts = <T>(rows: readonly T[], moneyOf: (row: T) => Money): readonly string[] => rows.map((row) => String(moneyOf(row)));

export interface LedgerDay {
  readonly day: string;
  readonly ratesVersion: number;
}
export const saveDevices = async (tx: SqlTx, { tenantId }: SystemScope, { day, ratesVersion }: LedgerDay, rows: readonly PricedDevice[]): Promise<void> => {
  await tx.query(SAVE_DEVICES, [
    tenantId,
    day,
    ratesVersion,
    rows.map(({ deviceId }) => deviceId),
    rows.map(({ minutes }) => minutes),
    ...COST_PARTS.map((part) => texts(rows, ({ parts }) => parts[part])),
    texts(rows, ({ idle }) => idle),
    texts(rows, ({ total }) => total),
  ]);
};

const APP_PARTS: readonly CostPart[] = COST_PARTS.filter((part) => part !== "shared");
const APP_MONEY = ["memory_weight", "disk_weight", ...APP_PARTS, "total"];
const APP_COLUMNS = ["deployment_id", ...APP_MONEY];
const SAVE_APPS = statement(
  "costs.saveApps",
  `with gone as (delete from cost_app_days where tenant_id = $1 and day = $2::date and device_id = any($3::text[]) and not app_id = any($5::text[]))
   insert into cost_app_days (tenant_id, day, device_id, app_id, ${listed(APP_COLUMNS)})
   select $1, $2::date, n.device_id, n.app_id, ${listed(APP_COLUMNS.map((name) => `n.${name}`))}
     from unnest($4::text[], $5::text[], $6::text[], ${parameters(7, APP_MONEY.length)}) as n(device_id, app_id, ${listed(APP_COLUMNS)})
   on conflict (tenant_id, day, device_id, app_id) do update set ${replaced(APP_COLUMNS)} where ${differs("cost_app_days", APP_COLUMNS)}`,
);
/** These are all apps of these devices on that day. */
export const saveApps = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { day, deviceIds }: { readonly day: string; readonly deviceIds: readonly string[] },
  rows: readonly PricedApp[],
): Promise<void> => {
  await tx.query(SAVE_APPS, [
    tenantId,
    day,
    deviceIds,
    rows.map(({ deviceId }) => deviceId),
    rows.map(({ appId }) => appId),
    rows.map(({ deploymentId }) => deploymentId),
    texts(rows, ({ memoryWeight }) => memoryWeight),
    texts(rows, ({ diskWeight }) => diskWeight),
    ...APP_PARTS.map((part) => texts(rows, ({ parts }) => parts[part])),
    texts(rows, ({ total }) => total),
  ]);
};

const SUMS = [...COST_PARTS, "idle", "total"] as const;
const added = (names: readonly string[]): string => names.map((name) => `sum(c.${name})::bigint`).join(", ");
const TOTAL_COLUMNS = ["minutes", ...SUMS];
const SAVE_TOTALS = statement(
  "costs.saveTotals",
  `insert into cost_totals (tenant_id, day, ${listed(TOTAL_COLUMNS)})
   select $1, c.day, ${added(TOTAL_COLUMNS)} from cost_days c where c.tenant_id = $1 and c.day between $2::date and $3::date group by c.day
   on conflict (tenant_id, day) do update set ${replaced(TOTAL_COLUMNS)} where ${differs("cost_totals", TOTAL_COLUMNS)}`,
);
/** Adds up what all devices cost on each of these days. */
export const saveTotals = async (tx: SqlTx, { tenantId }: SystemScope, from: string, to: string): Promise<void> => {
  await tx.query(SAVE_TOTALS, [tenantId, from, to]);
};

const IN_MONTH = "c.tenant_id = $1 and c.day >= $2::date and c.day < ($2::date + interval '1 month')::date";
const CLOSE_DEVICES = statement(
  "costs.closeDevices",
  `insert into cost_months (tenant_id, month, device_id, minutes, ${listed(SUMS)})
   select $1, $2::date, c.device_id, sum(c.minutes)::int, ${added(SUMS)} from cost_days c where ${IN_MONTH} group by c.device_id on conflict do nothing`,
);
const APP_SUMS = [...APP_PARTS, "total"];
const CLOSE_APPS = statement(
  "costs.closeApps",
  `insert into cost_app_months (tenant_id, month, device_id, app_id, deployment_id, ${listed(APP_SUMS)})
   select $1, $2::date, c.device_id, c.app_id, max(c.deployment_id), ${added(APP_SUMS)} from cost_app_days c where ${IN_MONTH} group by c.device_id, c.app_id
   on conflict do nothing`,
);
/** Adds up a month whose days do not change any more. */
export const closeMonth = async (tx: SqlTx, { tenantId }: SystemScope, firstDay: string): Promise<void> => {
  for (const text of [CLOSE_DEVICES, CLOSE_APPS]) await tx.query(text, [tenantId, firstDay]);
};

const forget = (table: string, column = "day"): string =>
  `delete from ${table} where ctid = any(array(select ctid from ${table} where ${column} < $1::date limit $2)) returning 1 as one`;
const FORGET_DEVICES = statement<{ readonly one: number }>("costs.forgetDevices", forget("cost_days"));
const FORGET_APPS = statement<{ readonly one: number }>("costs.forgetApps", forget("cost_app_days"));
const FORGET_MONTHS = statement<{ readonly one: number }>("costs.forgetMonths", forget("cost_months", "month"));
const FORGET_APP_MONTHS = statement<{ readonly one: number }>("costs.forgetAppMonths", forget("cost_app_months", "month"));
const FORGET_TOTALS = statement<{ readonly one: number }>("costs.forgetTotals", forget("cost_totals"));
const FORGET = [FORGET_DEVICES, FORGET_APPS, FORGET_MONTHS, FORGET_APP_MONTHS, FORGET_TOTALS];
/** True when there may be more. */
export const forgetDaysBefore = async (db: SqlTx, day: string, limit: number): Promise<boolean> => {
  const counts = [];
  for (const text of FORGET) counts.push((await db.query(text, [day, limit])).length);
  return counts.includes(limit);
};
