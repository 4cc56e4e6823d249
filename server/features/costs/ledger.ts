// The ledger: a job writes what each device, and each of its apps, cost on each day that is over. Any node takes any tenant; a day that was begun is
// begun again. The two days before the last are added up again with it, because what devices measured may come late; after that a day stays.
import type { TenantId } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import type { SystemScope } from "../../core/scope.ts";
import { groupBy } from "../../core/structures/group-by.ts";
import type { Job } from "../../platform/jobs.ts";
import type { FeatureKit } from "../kit.ts";
import { addDays, dayOf, firstOf, MAX_WINDOW_DAYS, monthClosedBy } from "./days.ts";
import { type Money, totalOf } from "./parts.ts";
import { type AppUse, type CalendarDay, calendarDay, type DeviceUse, priceApps, priceDevice, type RatesOfDay, sharedOf } from "./pricing.ts";
import {
  type AppSpan,
  claimLedger,
  closeMonth,
  completeDay,
  completeLedger,
  findAppsOf,
  findDevicesOf,
  findWeightsOf,
  forgetDaysBefore,
  type PricedDevice,
  saveApps,
  saveDevices,
  saveTotals,
} from "./store/ledger.ts";
import { ratesOfDay, ratesOn } from "./store/rates.ts";

export const LEDGER_JOB = "costs.ledger";
const EVERY_MS = 60_000;
const BATCH = 1_000;
const LEASE_SECONDS = 600;
/** How many days are added up again with a new one. */
const AGAIN_DAYS = 2;
const RETENTION_MS = 3_600_000;
const KEEP_DAYS = MAX_WINDOW_DAYS + 31;
const FORGET_ROWS = 10_000;

/** What an app declares that it needs; null: nothing is known of the type. */
export type RequirementsOf = (appType: string) => { readonly memoryMB: number; readonly diskGB: number } | null;

export interface LedgerDeps extends Pick<FeatureKit, "db" | "clock"> {
  readonly requirementsOf: RequirementsOf;
  /** Compares budgets with the days up to this one, in the transaction that completes it. */
  readonly lookAtBudgets: (tx: Tx, scope: SystemScope, through: string) => Promise<void>;
}

const MB_OF_GB = 1_000;
const weigh = (requirementsOf: RequirementsOf, { device_id, app_id, deployment_id, app_type, seconds }: AppSpan): AppUse => {
  const { memoryMB, diskGB } = requirementsOf(app_type) ?? { memoryMB: 0, diskGB: 0 };
  const span = BigInt(Math.max(0, seconds));
  return {
    deviceId: device_id,
    appId: app_id,
    deploymentId: deployment_id,
    memoryWeight: BigInt(Math.round(memoryMB)) * span,
    diskWeight: BigInt(Math.round(diskGB * MB_OF_GB)) * span,
  };
};

/** All that a batch of devices and their apps cost. Pure. */
export const priceBatch = (rates: RatesOfDay, day: CalendarDay, devices: readonly DeviceUse[], apps: readonly AppUse[]) => {
  const ofDevice = groupBy(apps, ({ deviceId }) => deviceId);
  const priced = devices.map((device) => {
    const parts = priceDevice(rates, device, day);
    const used = priceApps(parts, device, ofDevice.get(device.deviceId) ?? []);
    const total = totalOf(parts);
    const idle = used.reduce((left: Money, app) => left - app.total, total);
    const row: PricedDevice = { deviceId: device.deviceId, minutes: Math.min(device.minutes, 1_440), parts, total, idle };
    return { row, used };
  });
  return { devices: priced.map(({ row }) => row), apps: priced.flatMap(({ used }) => used) };
};

export const createLedger = ({ db, clock, requirementsOf, lookAtBudgets }: LedgerDeps) => {
  const addUp = async (scope: SystemScope, day: string, isFirst: boolean, signal: AbortSignal): Promise<void> => {
    const found = await ratesOn(db, scope, day);
    if (found === null) return;
    const rates = ratesOfDay(found);
    const calendar = calendarDay(day);
    const entry = { day, ratesVersion: rates.version };
    for (let after: string | undefined = ""; after !== undefined; ) {
      signal.throwIfAborted();
      const from: string = after;
      after = await db.sqlTx(async (tx) => {
        const devices = await findDevicesOf(tx, scope, { day, after: from, limit: BATCH });
        const deviceIds = devices.map(({ deviceId }) => deviceId);
        if (deviceIds.length === 0) return undefined;
        const apps = isFirst
          ? (await findAppsOf(tx, scope, day, deviceIds)).map((span) => weigh(requirementsOf, span))
          : await findWeightsOf(tx, scope, day, deviceIds);
        const priced = priceBatch(rates, calendar, devices, apps);
        await saveDevices(tx, scope, entry, priced.devices);
        await saveApps(tx, scope, { day, deviceIds }, priced.apps);
        return deviceIds.length === BATCH ? deviceIds.at(-1) : undefined;
      });
    }
    const parts = sharedOf(rates, calendar);
    if (parts.shared > 0n) await db.sqlTx((tx) => saveDevices(tx, scope, entry, [{ deviceId: "", minutes: 0, parts, total: parts.shared, idle: 0n }]));
  };

  /** The next day of the tenant that is furthest behind. False: all are complete. */
  const addUpNext = async (signal: AbortSignal): Promise<boolean> => {
    const upTo = await completeDay(db);
    const claimed = upTo === null ? null : await claimLedger(db, { upTo, leaseSeconds: LEASE_SECONDS });
    if (claimed === null) return false;
    const scope: SystemScope = { tenantId: claimed.tenantId as TenantId }; // as: the column holds nothing else
    const day = addDays(claimed.through, 1);
    if (day === upTo) for (let back = AGAIN_DAYS; back > 0; back -= 1) await addUp(scope, addDays(day, -back), false, signal);
    await addUp(scope, day, true, signal);
    const month = monthClosedBy(day);
    await db.tx(async (tx) => {
      await saveTotals(tx, scope, addDays(day, -AGAIN_DAYS), day);
      if (month !== null) await closeMonth(tx, scope, firstOf(month));
      await lookAtBudgets(tx, scope, day);
      await completeLedger(tx, scope, day);
    });
    return true;
  };

  const jobs: readonly Job[] = [
    { name: LEDGER_JOB, everyMs: EVERY_MS, run: addUpNext },
    { name: "costs.retention", everyMs: RETENTION_MS, run: () => forgetDaysBefore(db, addDays(dayOf(clock.now()), -KEEP_DAYS), FORGET_ROWS) },
  ];
  return { jobs };
};
