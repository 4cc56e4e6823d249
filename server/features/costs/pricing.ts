// What a device costs on one day, and which part of that its apps used. Pure, so that a test compares it with sums made by hand.
import type { DeviceRates } from "../../../protocol/index.ts";
import { dayShare, fromDecimal, fromMinor } from "./money.ts";
import { FREE, type Money, type Parts, totalOf } from "./parts.ts";

const MINUTES_OF_DAY = 1_440;
const SECONDS_OF_DAY = 86_400;
/** One gigabyte. */
const GB = 1_000_000_000n;
const MB = 1_000_000;
/** What an agent reports beyond these is no machine, and its cost would fit no column. */
const MAX_CORES = 10_000;
const MAX_MEMORY_BYTES = 1e14;
const MAX_DISK_BYTES = 1e15;

export interface Hardware {
  readonly cpuCores?: number | null | undefined;
  readonly memoryBytes?: number | null | undefined;
  readonly diskBytes?: number | null | undefined;
}

/** What was measured of a device on a day. */
export interface DeviceUse {
  readonly deviceId: string;
  readonly tags: readonly string[];
  readonly hardware: Hardware | null;
  /** For how long it reported. */
  readonly minutes: number;
  /** The average load of its processor while it did, in percent; null if it told none. */
  readonly cpuPercent: number | null;
}

/** An app that should run on the device on that day. */
export interface AppUse {
  readonly deviceId: string;
  readonly appId: string;
  readonly deploymentId: string | null;
  /** Declared megabytes of memory, and of disk, times the seconds of the day for which it was there. */
  readonly memoryWeight: Money;
  readonly diskWeight: Money;
}

export interface RatesOfDay {
  readonly version: number;
  readonly minorDigits: number;
  readonly sharedMonthly: Money;
  readonly device: DeviceRates;
  readonly byTag: readonly { readonly tag: string; readonly rates: DeviceRates }[];
}

export interface CalendarDay {
  /** Such as 2026-11-21. */
  readonly text: string;
  readonly dayOfMonth: number;
  readonly daysInMonth: number;
}

export const calendarDay = (text: string): CalendarDay => {
  const [year = 0, month = 0, dayOfMonth = 0] = text.split("-").map(Number);
  return { text, dayOfMonth, daysInMonth: new Date(Date.UTC(year, month, 0)).getUTCDate() };
};

const whole = (value: number | null | undefined, max = Number.MAX_SAFE_INTEGER): Money =>
  typeof value === "number" && value > 0 ? BigInt(Math.round(Math.min(value, max))) : 0n;

export const ratesFor = ({ device, byTag }: RatesOfDay, tags: readonly string[]): DeviceRates => byTag.find(({ tag }) => tags.includes(tag))?.rates ?? device;

/** Watts in thousandths, between idle and full load by the load in hundredths of a percent. */
const milliwatts = ({ wattsIdle, wattsMax }: DeviceRates, cpuPercent: number | null): Money => {
  const idle = whole(wattsIdle * 1_000);
  const load = whole(Math.min(cpuPercent ?? 0, 100) * 100);
  return idle + ((whole(wattsMax * 1_000) - idle) * load) / 10_000n;
};

/** What the device costs on that day. Prices per hour count while it reports, those per month on every day. */
export const priceDevice = (all: RatesOfDay, { tags, hardware, minutes: reported, cpuPercent }: DeviceUse, day: CalendarDay): Parts => {
  const rates = ratesFor(all, tags);
  const monthly = (amount: Money): Money => dayShare(amount, day.dayOfMonth, day.daysInMonth);
  const minutes = whole(Math.min(reported, MINUTES_OF_DAY));
  return {
    ...FREE,
    device: monthly(fromMinor(rates.purchase, all.minorDigits) / BigInt(rates.lifetimeMonths)),
    fixed: monthly(fromMinor(rates.fixedMonthly, all.minorDigits)),
    energy: (fromDecimal(rates.kwhPrice) * milliwatts(rates, cpuPercent) * minutes) / (1_000_000n * 60n),
    cpu: (fromDecimal(rates.cpuCoreHour) * whole(hardware?.cpuCores, MAX_CORES) * minutes) / 60n,
    memory: (fromDecimal(rates.memoryGBHour) * whole(hardware?.memoryBytes, MAX_MEMORY_BYTES) * minutes) / (GB * 60n),
    storage: monthly((fromDecimal(rates.storageGBMonth) * whole(hardware?.diskBytes, MAX_DISK_BYTES)) / GB),
  };
};

export const sharedOf = ({ sharedMonthly }: RatesOfDay, { dayOfMonth, daysInMonth }: CalendarDay): Parts => ({
  ...FREE,
  shared: dayShare(sharedMonthly, dayOfMonth, daysInMonth),
});

export interface PricedApp extends AppUse {
  readonly parts: Parts;
  readonly total: Money;
}

/** How much of all this the weight is, of what the device has; the weights together never get more than there is. */
const partOf = (money: Money, weight: Money, capacity: Money): Money => (capacity === 0n ? 0n : (money * weight) / capacity);
const capacityOf = (bytes: number | null | undefined, weights: readonly Money[]): Money => {
  const used = weights.reduce((total, weight) => total + weight, 0n);
  const there = whole((bytes ?? 0) / MB) * BigInt(SECONDS_OF_DAY);
  return there > used ? there : used;
};

/**
 * Shares a device among its apps: its disk by the disk that they declare, all else by memory. Nobody uses a device that never reported. A device of
 * unknown size belongs to its apps as a whole.
 */
export const priceApps = (parts: Parts, { hardware, minutes }: Pick<DeviceUse, "hardware" | "minutes">, apps: readonly AppUse[]): readonly PricedApp[] => {
  if (minutes === 0) return apps.map((app) => ({ ...app, parts: FREE, total: 0n }));
  const memory = capacityOf(
    hardware?.memoryBytes,
    apps.map(({ memoryWeight }) => memoryWeight),
  );
  const disk = capacityOf(
    hardware?.diskBytes,
    apps.map(({ diskWeight }) => diskWeight),
  );
  return apps.map((app) => {
    const byMemory = (money: Money): Money => partOf(money, app.memoryWeight, memory);
    const used: Parts = {
      device: byMemory(parts.device),
      fixed: byMemory(parts.fixed),
      energy: byMemory(parts.energy),
      cpu: byMemory(parts.cpu),
      memory: byMemory(parts.memory),
      storage: partOf(parts.storage, app.diskWeight, disk),
      shared: 0n,
    };
    return { ...app, parts: used, total: totalOf(used) };
  });
};
