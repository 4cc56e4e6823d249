// The arithmetic of costs: the example of docs/cost.md by hand, and random machines against exact fractions.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DeviceRates } from "../../../protocol/index.ts";
import { addDays, addMonths, lastOf, periodsOf, windowBefore, windowOf } from "../../../server/features/costs/days.ts";
import { type BasisDay, forecastMonth } from "../../../server/features/costs/forecast-rules.ts";
import { priceBatch } from "../../../server/features/costs/ledger.ts";
import { dayShare, fromDecimal, isCurrency, minorDigitsOf, shareOut, toMinor } from "../../../server/features/costs/money.ts";
import { COST_PARTS, totalOf } from "../../../server/features/costs/parts.ts";
import { type AppUse, calendarDay, type DeviceUse, priceApps, priceDevice, type RatesOfDay, sharedOf } from "../../../server/features/costs/pricing.ts";

const ratesOf = (device: object, more: Partial<RatesOfDay> = {}): RatesOfDay => ({
  version: 1,
  minorDigits: 2,
  sharedMonthly: 0n,
  device: DeviceRates.parse(device),
  byTag: [],
  ...more,
});
const MINI_PC = { purchase: 24_000, lifetimeMonths: 60, wattsIdle: 6, wattsMax: 25, kwhPrice: "0.32" };
const used = (more: Partial<DeviceUse> = {}): DeviceUse => ({
  deviceId: "dev_a",
  tags: [],
  hardware: { cpuCores: 4, memoryBytes: 8e9, diskBytes: 1e11 },
  minutes: 1_440,
  cpuPercent: 10,
  ...more,
});
const keyValue = (more: Partial<AppUse> = {}): AppUse => ({
  deviceId: "dev_a",
  appId: "app_a",
  deploymentId: null,
  memoryWeight: 96n * 86_400n,
  diskWeight: 100n * 86_400n,
  ...more,
});

describe("the example of docs/cost.md", () => {
  const rates = ratesOf(MINI_PC, { sharedMonthly: fromDecimal("9") });
  const november = Array.from({ length: 30 }, (_, at) => calendarDay(addDays("2026-11-01", at)));

  test("costs 4.00 of purchase and 1.82 of energy in November, and the app 0.07 of that", () => {
    const days = november.map((day) => priceDevice(rates, used(), day));
    const sum = (of: (day: (typeof days)[number]) => bigint): number =>
      toMinor(
        days.reduce((total, day) => total + of(day), 0n),
        2,
      );
    expect([sum(({ device }) => device), sum(({ energy }) => energy), sum(totalOf)]).toEqual([400, 182, 582]);
    const apps = days.flatMap((parts) => priceApps(parts, used(), [keyValue()]));
    expect(
      toMinor(
        apps.reduce((total, app) => total + app.total, 0n),
        2,
      ),
    ).toBe(7);
    expect(november.reduce((total, day) => total + sharedOf(rates, day).shared, 0n)).toBe(9_000_000n);
  });

  test("costs 0.060672 of energy on a day, by hand: 7.9 watts for 24 hours at 0.32", () => {
    expect(priceDevice(rates, used(), calendarDay("2026-11-20")).energy).toBe(60_672n);
  });
});

describe("a device", () => {
  test("costs what its first tag in the order of the rates says, or else the default", () => {
    const byTag = [
      { tag: "rented", rates: DeviceRates.parse({ fixedMonthly: 3_000 }) },
      { tag: "lab", rates: DeviceRates.parse({ fixedMonthly: 100 }) },
    ];
    const on = (tags: readonly string[]) => priceDevice(ratesOf({}, { byTag }), used({ tags }), calendarDay("2026-11-20")).fixed;
    expect([on(["lab", "rented"]), on(["lab"]), on([])]).toEqual([1_000_000n, 33_333n, 0n]);
  });

  test("costs prices per hour only while it reports, and prices per month always", () => {
    const rates = ratesOf({
      fixedMonthly: 3_000,
      cpuCoreHour: "0.01",
      memoryGBHour: "0.001",
      storageGBMonth: "0.3",
      kwhPrice: "1",
      wattsIdle: 10,
      wattsMax: 10,
    });
    const off = priceDevice(rates, used({ minutes: 0, cpuPercent: null }), calendarDay("2026-11-20"));
    expect(off).toMatchObject({ energy: 0n, cpu: 0n, memory: 0n, fixed: 1_000_000n, storage: 1_000_000n });
    const halfDay = priceDevice(rates, used({ minutes: 720, cpuPercent: null }), calendarDay("2026-11-20"));
    expect(halfDay).toMatchObject({ energy: 120_000n, cpu: 480_000n, memory: 96_000n });
  });

  test("of unknown size is used by its apps as a whole, one that never reported by none", () => {
    const parts = priceDevice(ratesOf({ fixedMonthly: 3_000 }), used(), calendarDay("2026-11-20"));
    const total = (device: Partial<DeviceUse>, apps: readonly AppUse[]) => priceApps(parts, used(device), apps).map((app) => app.total);
    expect(total({ hardware: null }, [keyValue(), keyValue({ appId: "app_b", memoryWeight: 3n * 96n * 86_400n })])).toEqual([250_000n, 750_000n]);
    expect(total({ minutes: 0 }, [keyValue()])).toEqual([0n]);
    expect(total({ hardware: null }, [keyValue({ memoryWeight: 0n, diskWeight: 0n })])).toEqual([0n]);
  });
});

const MAX = "999999.999999";
const price = fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 999_999 })).map(([a, b]) => `${a}.${String(b).padStart(6, "0")}`);
const anyRates = fc
  .record({
    purchase: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    lifetimeMonths: fc.integer({ min: 1, max: 240 }),
    fixedMonthly: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    wattsIdle: fc.integer({ min: 0, max: 500 }),
    more: fc.integer({ min: 0, max: 500 }),
    kwhPrice: price,
    cpuCoreHour: price,
    memoryGBHour: price,
    storageGBMonth: price,
  })
  .map(({ more, ...rates }) => ({ ...rates, wattsMax: rates.wattsIdle + more }));
const anyDevice = fc.record({
  minutes: fc.integer({ min: 0, max: 1_440 }),
  cpuPercent: fc.option(fc.integer({ min: 0, max: 100 })),
  hardware: fc.option(
    fc.record({
      cpuCores: fc.option(fc.integer({ min: 1, max: 512 })),
      memoryBytes: fc.option(fc.integer({ min: 1, max: 2 ** 41 })),
      diskBytes: fc.option(fc.integer({ min: 1, max: 2 ** 48 })),
    }),
  ),
});
const anyApps = fc.array(fc.record({ memoryWeight: fc.bigInt({ min: 0n, max: 10n ** 10n }), diskWeight: fc.bigInt({ min: 0n, max: 10n ** 12n }) }), {
  maxLength: 6,
});
const anyDay = fc.integer({ min: 0, max: 1_500 }).map((days) => addDays("2026-01-01", days));

describe("for any rates and machines", () => {
  test("a month costs what exact fractions give, but for the millionths that each day rounds off", () => {
    fc.assert(
      fc.property(anyRates, anyDevice, fc.integer({ min: 0, max: 40 }), (given, { minutes, cpuPercent, hardware }, months) => {
        const last = lastOf(addMonths("2026-01", months));
        const days = Array.from({ length: Number(last.slice(-2)) }, (_, at) => calendarDay(`${last.slice(0, 8)}${String(at + 1).padStart(2, "0")}`));
        const rates = ratesOf(given);
        const priced = days.map((day) => priceDevice(rates, used({ minutes, cpuPercent, hardware }), day));
        const sum = (part: (typeof COST_PARTS)[number]): number => Number(priced.reduce((total, day) => total + day[part], 0n)) / 1e6;
        const hours = (minutes * days.length) / 60;
        const watts = given.wattsIdle + ((given.wattsMax - given.wattsIdle) * (cpuPercent ?? 0)) / 100;
        const naive = {
          device: given.purchase / 100 / given.lifetimeMonths,
          fixed: given.fixedMonthly / 100,
          energy: (watts / 1_000) * hours * Number(given.kwhPrice),
          cpu: (hardware?.cpuCores ?? 0) * hours * Number(given.cpuCoreHour),
          memory: ((hardware?.memoryBytes ?? 0) / 1e9) * hours * Number(given.memoryGBHour),
          storage: ((hardware?.diskBytes ?? 0) / 1e9) * Number(given.storageGBMonth),
          shared: 0,
        };
        for (const part of COST_PARTS) expect(Math.abs(sum(part) - naive[part]), part).toBeLessThan(1e-4 + naive[part] * 1e-9);
      }),
    );
  });

  test("what apps use and what is idle add up to the device, and nothing is negative", () => {
    fc.assert(
      fc.property(anyRates, anyDevice, anyApps, anyDay, (given, device, weights, day) => {
        const apps = weights.map((weight, at) => keyValue({ ...weight, appId: `app_${at}` }));
        const priced = priceBatch(ratesOf(given), calendarDay(day), [used(device)], apps);
        const [row] = priced.devices;
        if (row === undefined) throw new Error("no device");
        expect(priced.apps.reduce((total, app) => total + app.total, row.idle)).toBe(row.total);
        expect(totalOf(row.parts)).toBe(row.total);
        expect([row.idle, ...priced.apps.flatMap(({ parts }) => COST_PARTS.map((part) => parts[part]))].every((money) => money >= 0n)).toBe(true);
      }),
    );
  });

  test("no machine that an agent may report costs more than its columns hold", () => {
    const dearest = ratesOf({
      purchase: 2 ** 31 - 1,
      lifetimeMonths: 1,
      fixedMonthly: 2 ** 31 - 1,
      wattsMax: 100_000,
      kwhPrice: MAX,
      cpuCoreHour: MAX,
      memoryGBHour: MAX,
      storageGBMonth: MAX,
    });
    const hugest = { cpuCores: Number.MAX_VALUE, memoryBytes: Number.POSITIVE_INFINITY, diskBytes: 2 ** 53 };
    const parts = priceDevice(dearest, used({ hardware: hugest, cpuPercent: 100, minutes: 2 ** 31 }), calendarDay("2026-02-10"));
    expect(totalOf(parts)).toBeLessThan(2n ** 63n);
    expect(toMinor(totalOf(parts) * 10n ** 9n, 2)).toBe(Number.MAX_SAFE_INTEGER);
    expect(priceDevice(dearest, used({ hardware: { cpuCores: Number.NaN, memoryBytes: -1 }, minutes: 60 }), calendarDay("2026-02-10"))).toMatchObject({
      cpu: 0n,
      memory: 0n,
    });
  });

  test("the days of a month have the monthly amount exactly", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 18n }), anyDay, (amount, day) => {
        const { daysInMonth } = calendarDay(day);
        const shares = Array.from({ length: daysInMonth }, (_, at) => dayShare(amount, at + 1, daysInMonth));
        expect(shares.reduce((total, share) => total + share, 0n)).toBe(amount);
      }),
    );
  });

  test("shares add up to the whole, and none is off by a whole unit", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e12 }), fc.array(fc.bigInt({ min: 0n, max: 10n ** 18n }), { minLength: 1, maxLength: 30 }), (whole, weights) => {
        const sum = weights.reduce((total, weight) => total + weight, 0n);
        const shares = shareOut(whole, weights);
        expect(shares.reduce((total, share) => total + share, 0)).toBe(sum === 0n ? 0 : whole);
        for (const [at, weight] of weights.entries()) {
          const exact = sum === 0n ? 0n : (BigInt(whole) * weight) / sum;
          expect(BigInt(shares[at] ?? 0) - exact).toBeLessThanOrEqual(1n);
        }
      }),
    );
  });
});

describe("a forecast", () => {
  const basis = (days: readonly BasisDay[]) => ({ days, through: "2026-11-20", today: "2026-11-21", actual: 20_000_000n });
  const flat = Array.from({ length: 14 }, (_, at): BasisDay => ({ day: addDays("2026-11-07", at), variable: 500_000n, monthly: 500_000n }));

  test("adds the mean of the days to what the month has cost", () => {
    expect(forecastMonth(basis(flat), "2026-11")).toEqual({
      month: "2026-11",
      actual: 20_000_000n,
      expected: 30_000_000n,
      low: 30_000_000n,
      high: 30_000_000n,
    });
  });
  test("spreads what is paid by the month over the days of the other month", () => {
    expect(forecastMonth(basis(flat), "2026-12").expected).toBe(31n * (500_000n + (500_000n * 30n) / 31n));
  });
  test("has the 10th and the 90th percentile as its band", () => {
    const steps = flat.map((day, at) => ({ ...day, variable: BigInt(at) * 100_000n }));
    const { low, high } = forecastMonth(basis(steps), "2026-11");
    expect([low, high]).toEqual([20_000_000n + 10n * 600_000n, 20_000_000n + 10n * 1_700_000n]);
  });
  test("without days expects nothing more", () => {
    expect(forecastMonth(basis([]), "2026-11")).toMatchObject({ expected: 20_000_000n, low: 20_000_000n, high: 20_000_000n });
  });
});

describe("the periods of a window", () => {
  const july = { first: "2026-07-01", last: "2026-07-01" };
  test.each([
    [
      "2026-06-10",
      "2026-08-20",
      "2026-08-20",
      [
        ["2026-06-10", "2026-06-30"],
        ["2026-08-01", "2026-08-20"],
      ],
      july,
    ],
    ["2026-07-01", "2026-07-31", "2026-08-03", [], july],
    ["2026-07-01", "2026-07-31", "2026-08-02", [["2026-07-01", "2026-07-31"]], null],
    ["2026-07-02", "2026-07-31", "2026-09-01", [["2026-07-02", "2026-07-31"]], null],
    ["2026-07-01", "2026-08-31", "2026-09-02", [["2026-08-01", "2026-08-31"]], july],
    ["2026-07-01", "2026-07-31", null, [["2026-07-01", "2026-07-31"]], null],
    [
      "2025-12-31",
      "2026-02-01",
      "2026-03-01",
      [
        ["2025-12-31", "2025-12-31"],
        ["2026-02-01", "2026-02-01"],
      ],
      { first: "2026-01-01", last: "2026-01-01" },
    ],
  ] as const)("%s to %s, added up through %s", (from, to, through, days, months) => {
    const periods = periodsOf({ from, to }, through);
    expect(periods).toEqual({ days: days.map(([first, last]) => ({ from: first, to: last })), months });
  });
});

describe("a window", () => {
  const read = (window: string) => windowOf(window, "2026-11-01");
  test.each([
    ["7d", "2026-10-25", "2026-10-31"],
    ["400d", "2025-09-27", "2026-10-31"],
    ["month", "2026-11-01", "2026-11-01"],
    ["last-month", "2026-10-01", "2026-10-31"],
    ["2028-02-28,2028-03-01", "2028-02-28", "2028-03-01"],
  ])("%s", (window, from, to) => {
    expect(read(window)).toEqual({ from, to });
  });
  test.each([
    "13mo",
    "0d",
    "401d",
    "d",
    "2026-02-30,2026-03-01",
    "2026-03-02,2026-03-01",
    "2026-01-01",
    "2024-01-01,2026-01-01",
    "0000-01-01,0000-01-02",
    "9999-12-31,9999-12-31",
    "a,b,c",
    "\0",
  ])("%s is refused", (window) => {
    expect(() => read(window)).toThrow("cannot be read");
  });
  test("stands after the one before it", () => {
    expect(windowBefore(read("7d"))).toEqual({ from: "2026-10-18", to: "2026-10-24" });
  });
});

test("currencies have their own minor units", () => {
  expect(["EUR", "JPY", "KWD"].map(minorDigitsOf)).toEqual([2, 0, 3]);
  expect(["EUR", "ZZZ", "eur"].map(isCurrency)).toEqual([true, false, false]);
});
