// Who is allocated what: the sums of the ledger by device, app, deployment, fleet or tag, as rows that add up to their total exactly.
import type { CostAllocationRow } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Tx } from "../../core/database.ts";
import type { SystemScope } from "../../core/scope.ts";
import { groupBy } from "../../core/structures/group-by.ts";
import type { DayWindow, Periods } from "./days.ts";
import { partsInMinor, shareOut, toMinor } from "./money.ts";
import { addParts, combine, FREE, type Money, totalOf } from "./parts.ts";
import { appNames, type CostDevice, deploymentNames, findCostDevices, findCostFleets } from "./store/names.ts";
import { allDays, appDays, type DayTotal, deviceDays, type KeyOfDevice, type Sum, sumAll, sumApps, sumDevices, sumUsed, usedDays } from "./store/reports.ts";

export const IDLE = "__idle__";
export const SHARED = "__shared__";
export const OTHER = "__other__";
/** The device of the ledger that stands for what all share. */
const SHARED_DEVICE = "";

export interface AllocationQuery {
  readonly window: DayWindow;
  readonly periods: Periods;
  readonly aggregate: string;
  readonly includeIdle: boolean;
  readonly withDays: boolean;
  readonly limit: number;
  readonly minorDigits: number;
}

interface Found {
  /** The devices that the caller sees; null: all. */
  readonly deviceIds: readonly string[] | null;
  readonly sums: readonly Sum[];
  readonly nameOf: (keys: readonly string[]) => Promise<ReadonlyMap<string, string | null>>;
  readonly days: (keys: readonly string[]) => Promise<readonly DayTotal[]>;
}

type GroupOf = (device: CostDevice) => string;
interface Grouping {
  readonly groupOf: GroupOf;
  readonly names: ReadonlyMap<string, string | null>;
}

const groupingOf = async (tx: Tx, scope: SystemScope, aggregate: string, devices: readonly CostDevice[]): Promise<Grouping> => {
  if (aggregate === "device") return { groupOf: ({ deviceId }) => deviceId, names: new Map(devices.map(({ deviceId, name }) => [deviceId, name])) };
  if (aggregate === "fleet") {
    const fleets = await findCostFleets(tx, scope);
    const groupOf: GroupOf = (device) => fleets.find(({ has }) => has(device))?.fleetId ?? "__unallocated__";
    return { groupOf, names: new Map(fleets.map(({ fleetId, name }) => [fleetId, name])) };
  }
  const prefix = aggregate.slice("tag:".length);
  return { groupOf: ({ tags }) => tags.find((tag) => tag.startsWith(prefix)) ?? "__untagged__", names: new Map() };
};

const byDevices = async (tx: Tx, scope: SystemScope, { window, periods, aggregate, includeIdle }: AllocationQuery): Promise<Found> => {
  const devices = await findCostDevices(tx, scope);
  const { groupOf, names } = await groupingOf(tx, scope, aggregate, devices);
  const keys = new Map(devices.map((device) => [device.deviceId, groupOf(device)]));
  const shared: KeyOfDevice = new Map(isLimited(scope) ? [] : [[SHARED_DEVICE, SHARED]]);
  const sums = includeIdle
    ? await sumDevices(tx, scope, periods, new Map([...keys, ...shared]))
    : [...(await sumUsed(tx, scope, periods, keys)), ...(await sumDevices(tx, scope, periods, shared))];
  const chosen = (wanted: readonly string[]): KeyOfDevice => {
    const asked = new Set(wanted);
    return new Map([...keys].filter(([, key]) => asked.has(key)));
  };
  return {
    deviceIds: isLimited(scope) ? [...keys.keys()] : null,
    sums,
    nameOf: () => Promise.resolve(names),
    days: async (wanted) => {
      const ofDevices = await (includeIdle ? deviceDays : usedDays)(tx, scope, window, chosen(wanted));
      const ofShared = wanted.includes(SHARED) ? await deviceDays(tx, scope, window, shared) : [];
      return [...ofDevices, ...ofShared];
    },
  };
};

const minus = (all: Sum, used: readonly Sum[]): Sum => {
  const parts = used.reduce((left, { parts: taken }) => combine(left, taken, (a, b) => a - b), { ...all.parts, shared: 0n });
  const total = totalOf(parts);
  return { key: IDLE, parts, total, idle: total, minutes: null };
};

const byApps = async (tx: Tx, scope: SystemScope, { window, periods, aggregate, includeIdle }: AllocationQuery): Promise<Found> => {
  const by = aggregate === "app" ? "app" : "deployment";
  const deviceIds = isLimited(scope) ? (await findCostDevices(tx, scope)).map(({ deviceId }) => deviceId) : null;
  const used = await sumApps(tx, scope, periods, { by, deviceIds });
  const shared: KeyOfDevice = new Map(deviceIds === null ? [[SHARED_DEVICE, SHARED]] : []);
  const sums = [...used, ...(await sumDevices(tx, scope, periods, shared))];
  if (includeIdle) sums.push(minus(await sumAll(tx, scope, window, deviceIds), used));
  return {
    deviceIds,
    sums,
    nameOf: (keys) => (by === "app" ? appNames : deploymentNames)(tx, scope, keys),
    days: async (keys) => {
      const ofApps = await appDays(tx, scope, window, { by, deviceIds, keys });
      const idle = keys.includes(IDLE) ? await allDays(tx, scope, window, deviceIds) : [];
      const ofShared = keys.includes(SHARED) ? await deviceDays(tx, scope, window, shared) : [];
      return [...ofApps, ...ofShared, ...idle.map((day) => ({ ...day, key: IDLE, total: day.idle }))];
    },
  };
};

const together = (rest: readonly Sum[]): Sum => ({
  key: OTHER,
  parts: rest.reduce((sum, { parts }) => addParts(sum, parts), FREE),
  total: rest.reduce((sum, { total }) => sum + total, 0n),
  idle: rest.reduce((sum, { idle }) => sum + idle, 0n),
  minutes: rest.some(({ minutes }) => minutes === null) ? null : rest.reduce((sum, { minutes }) => sum + (minutes ?? 0), 0),
});

const byCost = (a: Sum, b: Sum): number => (a.total === b.total ? (a.key < b.key ? -1 : 1) : a.total > b.total ? -1 : 1);

/** The most expensive, and the rest as one. */
const topOf = (sums: readonly Sum[], limit: number): readonly Sum[] => {
  const sorted = sums.filter(({ total }) => total > 0n).sort(byCost);
  return sorted.length <= limit ? sorted : [...sorted.slice(0, limit), together(sorted.slice(limit))];
};

const efficiencyOf = ({ key, total, idle }: Sum): number | null =>
  total === 0n || key === SHARED ? null : Number(((total - idle) * 10_000n) / total) / 10_000;

/** The days of the rest: what is left of all by those of the other rows. */
const daysOfOther = (all: readonly DayTotal[], shown: readonly DayTotal[], includeIdle: boolean): readonly DayTotal[] => {
  const left = new Map(all.map(({ day, total, idle }) => [day, includeIdle ? total : total - idle]));
  for (const { day, total } of shown) left.set(day, (left.get(day) ?? 0n) - total);
  return [...left].map(([day, total]) => ({ key: OTHER, day, total, idle: 0n }));
};

const readDays = async (
  tx: Tx,
  scope: SystemScope,
  { window, includeIdle, keys }: AllocationQuery & { readonly keys: readonly string[] },
  { days, deviceIds }: Found,
) => {
  const shown = await days(keys);
  return keys.includes(OTHER) ? [...shown, ...daysOfOther(await allDays(tx, scope, window, deviceIds), shown, includeIdle)] : shown;
};

/** A row's days add up to the row. */
const daysInMinor = (days: readonly DayTotal[], total: number): { readonly date: string; readonly totalCost: number }[] => {
  const sorted = [...days].sort((a, b) => (a.day < b.day ? -1 : 1));
  const shares = shareOut(
    total,
    sorted.map((day) => day.total),
  );
  return sorted.map(({ day }, at) => ({ date: day, totalCost: shares[at] ?? 0 }));
};

const costsInMinor = ({ parts, idle }: Sum, total: number, minorDigits: number) => {
  const { device, fixed, energy, cpu, memory, storage, shared } = partsInMinor(parts, total);
  return {
    deviceCost: device,
    fixedCost: fixed,
    energyCost: energy,
    cpuCost: cpu,
    memoryCost: memory,
    storageCost: storage,
    sharedCost: shared,
    totalCost: total,
    idleCost: Math.min(total, toMinor(idle, minorDigits)),
  };
};
/** Parts that add up to the total. */
export const costsOf = (sum: Sum, minorDigits: number) => costsInMinor(sum, toMinor(sum.total, minorDigits), minorDigits);

export const allocate = async (
  tx: Tx,
  scope: SystemScope,
  asked: AllocationQuery,
): Promise<{ readonly totalCost: number; readonly rows: CostAllocationRow[] }> => {
  const { aggregate, limit, minorDigits, withDays } = asked;
  const found = await (aggregate === "app" || aggregate === "deployment" ? byApps : byDevices)(tx, scope, asked);
  const rows = topOf(found.sums, limit);
  const totalCost = toMinor(
    rows.reduce((sum: Money, { total }) => sum + total, 0n),
    minorDigits,
  );
  const totals = shareOut(
    totalCost,
    rows.map(({ total }) => total),
  );
  const keys = rows.map(({ key }) => key);
  const names = await found.nameOf(keys);
  const dated = groupBy(withDays ? await readDays(tx, scope, { ...asked, keys }, found) : [], ({ key }) => key);
  return {
    totalCost,
    rows: rows.map((row, at) => {
      const total = totals[at] ?? 0;
      const own = dated.get(row.key);
      return {
        key: row.key,
        name: names.get(row.key) ?? null,
        ...costsInMinor(row, total, minorDigits),
        minutes: row.key === SHARED ? null : row.minutes,
        efficiency: efficiencyOf(row),
        ...(own === undefined ? {} : { days: daysInMinor(own, total) }),
      };
    }),
  };
};
