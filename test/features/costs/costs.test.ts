// Costs: what is allocated adds up to the summary, past days stay, each caller sees what the caller may, and each threshold of a budget tells once a month.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addDays, addMonths, firstOf, monthOf } from "../../../server/features/costs/days.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { addUp, type Costs, openCosts, reopen, TODAY, YESTERDAY } from "./kit.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_ANONYMOUS: "off" }, { inProcess: true });
});
afterAll(() => world.close());

const MINI_PC = { purchase: 24_000, wattsIdle: 6, wattsMax: 25, kwhPrice: "0.32", memoryGBHour: "0.001", storageGBMonth: "0.02" };
const AGGREGATES = ["device", "app", "deployment", "fleet", "tag:site:", "tag:"];
const DAYS = Array.from({ length: 10 }, (_, at) => addDays(YESTERDAY, -at));
const WEEK_AGO = addDays(YESTERDAY, -9);

const PARTS = ["deviceCost", "fixedCost", "energyCost", "cpuCost", "memoryCost", "storageCost", "sharedCost"] as const;
// biome-ignore lint/suspicious/noExplicitAny: answers as they are
const partsOf = (costs: any): number => PARTS.reduce((total, part) => total + costs[part], 0);

/** Three machines, of which two run apps, with rates since ten days ago. */
const openFleet = async (): Promise<Costs & { readonly ids: readonly string[] }> => {
  const costs = await openCosts(world);
  const ids = [await costs.machine({ tags: ["site:porto", "arm"] }), await costs.machine({ tags: ["site:lisbon"] }), await costs.machine()];
  for (const [at, id] of ids.entries()) await costs.measured(id, DAYS, 1_440 - at * 300, 10 + at * 7);
  await costs.app(ids[0] ?? "");
  await costs.app(ids[1] ?? "");
  await costs.app(ids[1] ?? "");
  await costs.rates({ sharedMonthly: 900, validFrom: WEEK_AGO, device: MINI_PC, byTag: [{ tag: "arm", rates: { fixedMonthly: 777 } }] });
  await addUp(world);
  return { ...costs, ids };
};

/** For tests that only read. */
let fleet: Awaited<ReturnType<typeof openFleet>>;
beforeAll(async () => {
  fleet = await openFleet();
});

describe("an allocation", () => {
  test("adds up to the summary for every aggregate, each row to its parts and its days", async () => {
    const { get } = fleet;
    const summary = await get("/costs/summary?window=10d");
    expect(summary).toMatchObject({ currency: "EUR", minorDigits: 2, devices: 3, window: { from: WEEK_AGO, to: YESTERDAY, through: YESTERDAY } });
    expect(partsOf(summary)).toBe(summary.totalCost);
    expect(summary.totalCost).toBeGreaterThan(500);
    for (const aggregate of AGGREGATES) {
      const { rows, totalCost } = await get(`/costs/allocation?window=10d&step=1d&limit=2&aggregate=${aggregate}`);
      expect(totalCost, aggregate).toBe(summary.totalCost);
      expect(
        rows.reduce((total: number, row: { totalCost: number }) => total + row.totalCost, 0),
        aggregate,
      ).toBe(totalCost);
      for (const row of rows) {
        expect(partsOf(row), `${aggregate} ${row.key}`).toBe(row.totalCost);
        expect(row.days, `${aggregate} ${row.key}`).toHaveLength(10);
        expect(
          row.days.reduce((total: number, day: { totalCost: number }) => total + day.totalCost, 0),
          `${aggregate} ${row.key}`,
        ).toBe(row.totalCost);
      }
    }
  });

  test("has rows for what is idle, shared, untagged, unallocated and beyond the limit", async () => {
    const { get, ids } = fleet;
    const keys = async (query: string): Promise<string[]> =>
      (await get(`/costs/allocation?window=10d&${query}`)).rows.map(({ key }: { key: string }) => key).sort();
    expect(await keys("aggregate=device")).toEqual(["__shared__", ...ids].sort());
    expect(await keys("aggregate=tag:site:")).toEqual(["__shared__", "__untagged__", "site:lisbon", "site:porto"]);
    expect(await keys("aggregate=tag:")).toEqual(["__shared__", "__untagged__", "site:lisbon", "site:porto"]);
    expect(await keys("aggregate=fleet")).toEqual(["__shared__", "__unallocated__"]);
    expect(await keys("aggregate=deployment")).toEqual(["__idle__", "__shared__", "__unallocated__"]);
    expect(await keys("aggregate=deployment&includeIdle=false")).toEqual(["__shared__", "__unallocated__"]);
    expect(await keys("aggregate=device&limit=1")).toHaveLength(2);
    expect(await keys("aggregate=device&limit=1")).toContain("__other__");
  });

  test("without what is idle is the summary less what is idle", async () => {
    const { get } = fleet;
    const { totalCost, idleCost } = await get("/costs/summary?window=10d");
    for (const aggregate of AGGREGATES) {
      const used = await get(`/costs/allocation?window=10d&includeIdle=false&aggregate=${aggregate}`);
      // Each of the two figures is rounded once.
      expect(Math.abs(used.totalCost - (totalCost - idleCost)), aggregate).toBeLessThanOrEqual(1);
    }
  });

  test("groups by the first fleet, static or dynamic, and names it", async () => {
    const { get, call, ids } = await openFleet();
    const oldest = (await call("POST", "/fleets", { name: "lisbon", selector: { tags: ["site:lisbon"] } })).body.data;
    const later = (await call("POST", "/fleets", { name: "picked", deviceIds: ids.slice(1) })).body.data;
    const { rows } = await get("/costs/allocation?window=10d&aggregate=fleet");
    expect(rows.map(({ key, name }: { key: string; name: string }) => [key, name]).sort()).toEqual(
      [
        ["__shared__", null],
        ["__unallocated__", null],
        [oldest.fleetId, "lisbon"],
        [later.fleetId, "picked"],
      ].sort(),
    );
  });

  test("keeps what removed devices have cost", async () => {
    const { get, call, ids } = await openFleet();
    const before = await get("/costs/summary?window=10d");
    expect((await call("DELETE", `/devices/${ids[0]}`)).status).toBeLessThan(300);
    expect((await get("/costs/summary?window=10d")).totalCost).toBe(before.totalCost);
    expect((await get("/costs/allocation?window=10d&aggregate=tag:site:")).totalCost).toBe(before.totalCost);
  });

  test("adds up for random machines, rates and apps", async () => {
    const machine = fc.record({
      tags: fc.subarray(["site:a", "site:b", "arm"]),
      memoryGB: fc.integer({ min: 1, max: 64 }),
      minutes: fc.integer({ min: 0, max: 1_440 }),
      cpu: fc.option(fc.integer({ min: 0, max: 100 })),
      apps: fc.integer({ min: 0, max: 3 }),
    });
    const rates = fc.record({
      purchase: fc.integer({ min: 0, max: 99_999 }),
      fixedMonthly: fc.integer({ min: 0, max: 9_999 }),
      kwhPrice: fc.constantFrom("0", "0.333333", "12.5"),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(machine, { minLength: 1, maxLength: 5 }),
        rates,
        fc.integer({ min: 0, max: 5_000 }),
        async (machines, device, sharedMonthly) => {
          const costs = await openCosts(world);
          for (const { minutes, cpu, apps, ...spec } of machines) {
            const id = await costs.machine(spec);
            await costs.measured(id, DAYS.slice(0, 3), minutes, cpu);
            for (let count = 0; count < apps; count += 1) await costs.app(id);
          }
          await costs.rates({ sharedMonthly, validFrom: addDays(YESTERDAY, -2), device: { ...device, wattsIdle: 5, wattsMax: 40 } });
          await addUp(world);
          const { totalCost } = await costs.get("/costs/summary?window=3d");
          for (const aggregate of AGGREGATES) {
            const { rows } = await costs.get(`/costs/allocation?window=3d&limit=2&aggregate=${aggregate}`);
            expect(
              rows.reduce((total: number, row: { totalCost: number }) => total + row.totalCost, 0),
              aggregate,
            ).toBe(totalCost);
          }
        },
      ),
      { numRuns: 4 },
    );
  });
});

describe("the ledger", () => {
  const rowsOf = async (tenantId: string) => ({
    devices: (await world.sql.query("select * from cost_days where tenant_id = $1 order by day, device_id", [tenantId])).rows,
    apps: (await world.sql.query("select * from cost_app_days where tenant_id = $1 order by day, device_id, app_id", [tenantId])).rows,
  });

  test("is the same when it is added up twice", async () => {
    const { tenantId } = await openFleet();
    const before = await rowsOf(tenantId);
    expect(before.devices).toHaveLength(40);
    await reopen(world, tenantId);
    await addUp(world);
    expect(await rowsOf(tenantId)).toEqual(before);
  });

  test("takes in what was measured late for two more days, and nothing after that", async () => {
    const { tenantId, ids, measured, get } = await openFleet();
    const before = await get("/costs/summary?window=10d");
    await measured(ids[2] ?? "", DAYS, 1_440, 100);
    await reopen(world, tenantId);
    await addUp(world);
    const { days } = await get("/costs/summary?window=10d");
    const changed = days.filter(({ totalCost }: { totalCost: number }, at: number) => totalCost !== before.days[at].totalCost);
    expect(changed.map(({ date }: { date: string }) => date)).toEqual(DAYS.slice(0, 3).reverse());
  });

  test("keeps the apps of a day that was added up again, though one has been stopped since", async () => {
    const { tenantId } = await openFleet();
    const before = await rowsOf(tenantId);
    await world.sql.query("update apps set desired_state = 'stopped' where tenant_id = $1", [tenantId]);
    await reopen(world, tenantId);
    await addUp(world);
    const after = await rowsOf(tenantId);
    const ofDays = (rows: readonly { readonly day: Date }[], from: number) => rows.filter(({ day }) => day.getTime() < from);
    const last = Math.max(...before.apps.map(({ day }: { day: Date }) => day.getTime()));
    expect(ofDays(after.apps, last)).toEqual(ofDays(before.apps, last));
    expect(after.apps.length).toBe(before.apps.length - 3);
  });

  test("leaves past days as they were when the rates change today", async () => {
    const { get, rates } = await openFleet();
    const before = await get("/costs/summary?window=10d");
    const { version, validFrom } = await rates({ sharedMonthly: 90_000, device: { fixedMonthly: 99_999 } });
    expect([version, validFrom]).toEqual([2, TODAY]);
    await addUp(world);
    expect(await get("/costs/summary?window=10d")).toEqual(before);
  });

  test("is carried on by another node when the one that has it is gone", async () => {
    const { tenantId, get } = await openFleet();
    await world.sql.query("update cost_ledgers set through = through - 3, lease_until = now() + interval '10 minutes' where tenant_id = $1", [tenantId]);
    for (const table of ["cost_days", "cost_totals"])
      await world.sql.query(`delete from ${table} where tenant_id = $1 and day > $2::date`, [tenantId, addDays(YESTERDAY, -3)]);
    const { days } = await get("/costs/summary?window=10d");
    expect(days).toHaveLength(7);
    await world.sql.query("update cost_ledgers set lease_until = now() where tenant_id = $1", [tenantId]);
    await addUp(world);
    expect((await get("/costs/summary?window=10d")).days).toHaveLength(10);
  });

  test("leaves out devices that nobody has connected, and those that came or went on other days", async () => {
    const { tenantId, ids } = await openFleet();
    await world.sql.query("update devices set status = 'provisioning' where device_id = $1", [ids[0]]);
    await world.sql.query("update devices set deleted_at = $2::date - interval '1 second' where device_id = $1", [ids[1], YESTERDAY]);
    await world.sql.query("update devices set created_at = $2::date + interval '1 day' where device_id = $1", [ids[2], YESTERDAY]);
    await world.sql.query("delete from cost_days where tenant_id = $1 and day = $2::date", [tenantId, YESTERDAY]);
    await reopen(world, tenantId);
    await addUp(world);
    const { rows } = await world.sql.query("select device_id from cost_days where tenant_id = $1 and day = $2::date", [tenantId, YESTERDAY]);
    expect(rows).toEqual([{ device_id: "" }]);
  });
});

test("a window with whole months is read from their sums, and has what its days have", async () => {
  const costs = await openCosts(world);
  const since = addDays(YESTERDAY, -69);
  const id = await costs.machine({ tags: ["site:porto"] });
  await costs.measured(
    id,
    Array.from({ length: 70 }, (_, back) => addDays(YESTERDAY, -back)),
  );
  await costs.app(id);
  await costs.rates({ sharedMonthly: 901, validFrom: since, device: MINI_PC });
  await addUp(world);
  const sum = async (table: string): Promise<bigint> =>
    BigInt((await world.sql.query(`select sum(total)::text as sum from ${table} where tenant_id = $1`, [costs.tenantId])).rows[0].sum);
  expect(await sum("cost_months")).toBeGreaterThan(0n);
  expect(await sum("cost_totals")).toBe(await sum("cost_days"));
  const days = Number((await sum("cost_days")) + 5_000n) / 10_000;
  for (const aggregate of AGGREGATES)
    expect((await costs.get(`/costs/allocation?window=70d&aggregate=${aggregate}`)).totalCost, aggregate).toBe(Math.floor(days));
  expect(await costs.get("/costs/summary?window=70d")).toMatchObject({ totalCost: Math.floor(days), devices: 1 });
  expect((await costs.call("GET", "/costs/allocation?window=93d&step=1d")).body.code).toBe("COST_WINDOW_INVALID");
});

describe("rates", () => {
  test("begin with this month unless they say otherwise, and later ones today", async () => {
    const { rates, get } = await openCosts(world);
    expect((await rates({ device: {} })).validFrom).toBe(firstOf(monthOf(TODAY)));
    expect((await rates({ device: { fixedMonthly: 1 } })).validFrom).toBe(TODAY);
    expect((await rates({ device: { fixedMonthly: 2 } })).validFrom).toBe(TODAY);
    const ahead = await rates({ device: { fixedMonthly: 3 }, validFrom: addDays(TODAY, 30) });
    const { current, versions } = await get("/costs/rates");
    expect(current).toMatchObject({ version: 3, device: { fixedMonthly: 2 } });
    expect(versions.map(({ version }: { version: number }) => version)).toEqual([ahead.version, 3, 1]);
  });

  test.each([
    [{ device: {}, validFrom: addDays(TODAY, -1) }, 422, "COST_RATES_INVALID"],
    [{ device: {}, validFrom: addDays(TODAY, 401) }, 422, "COST_RATES_INVALID"],
    [{ device: {}, validFrom: "2026-02-30" }, 422, "COST_RATES_INVALID"],
    [{ device: {}, validFrom: "0000-00-00" }, 422, "COST_RATES_INVALID"],
    [{ device: {}, currency: "XXQ" }, 422, "COST_RATES_INVALID"],
    [{ device: {}, currency: "USD" }, 409, "CURRENCY_MISMATCH"],
    [{ device: {}, byTag: ["a", "a"].map((tag) => ({ tag, rates: {} })) }, 422, "COST_RATES_INVALID"],
    [{ device: {}, version: 7 }, 409, "VERSION_CONFLICT"],
    [{ device: { wattsIdle: 9, wattsMax: 8 } }, 400, "VALIDATION_FAILED"],
    [{ device: { purchase: -1 } }, 400, "VALIDATION_FAILED"],
    [{ device: { purchase: 1e30 } }, 400, "VALIDATION_FAILED"],
    [{ device: { kwhPrice: "0.1234567" } }, 400, "VALIDATION_FAILED"],
    [{ device: { kwhPrice: "-1" } }, 400, "VALIDATION_FAILED"],
    [{ device: { kwhPrice: "NaN" } }, 400, "VALIDATION_FAILED"],
    [{ device: {}, sharedMonthly: 0.5 }, 400, "VALIDATION_FAILED"],
  ])("%j is refused with %i %s, and the rates stay", async (body, status, code) => {
    const { call, get } = fleet;
    const before = await get("/costs/rates");
    const refused = await call("PUT", "/costs/rates", { currency: "EUR", ...body });
    expect([refused.status, refused.body.code]).toEqual([status, code]);
    expect(await get("/costs/rates")).toEqual(before);
  });

  test("the first may begin 92 days ago and no earlier", async () => {
    const { call } = await openCosts(world);
    const set = (days: number) => call("PUT", "/costs/rates", { currency: "EUR", device: {}, validFrom: addDays(TODAY, -days) });
    expect([(await set(93)).body.code, (await set(92)).status]).toEqual(["COST_RATES_INVALID", 200]);
  });
});

test("a forecast tells how little it is made from", async () => {
  const { get } = fleet;
  const { confidence, basisDays, byMonth } = await get("/costs/forecast?months=2");
  expect([confidence, basisDays]).toEqual(["normal", 10]);
  expect(byMonth.map(({ month }: { month: string }) => month)).toEqual([monthOf(TODAY), addMonths(monthOf(TODAY), 1)]);
  for (const { low, expected, high } of byMonth) expect(low <= expected && expected <= high).toBe(true);
  const young = await openCosts(world);
  await young.machine();
  await young.rates({ device: { fixedMonthly: 100 }, validFrom: YESTERDAY });
  await addUp(world);
  expect(await young.get("/costs/forecast?months=1")).toMatchObject({ confidence: "low", basisDays: 1 });
});

test("a caller who is limited to some devices sees what these cost, nothing shared, no rates and no budgets", async () => {
  const { tenantId, ids, get, call, tenant } = await openFleet();
  const viewer = await tenant.user("viewer");
  await world.sql.query("update memberships set selector = $3 where tenant_id = $1 and user_id = $2", [
    tenantId,
    tenant.userId("viewer"),
    JSON.stringify({ deviceIds: [ids[1]], tags: [], fleetIds: [] }),
  ]);
  const own = (await get("/costs/allocation?window=10d&aggregate=device")).rows.find(({ key }: { key: string }) => key === ids[1]);
  const { totalCost, sharedCost, devices } = await get("/costs/summary?window=10d", viewer);
  expect({ totalCost, sharedCost, devices }).toEqual({ totalCost: own.totalCost, sharedCost: 0, devices: 1 });
  for (const aggregate of AGGREGATES) {
    const { rows, totalCost: sum } = await get(`/costs/allocation?window=10d&aggregate=${aggregate}`, viewer);
    expect(sum, aggregate).toBe(own.totalCost);
    expect(rows.map(({ key }: { key: string }) => key)).not.toContain("__shared__");
  }
  for (const path of ["/costs/rates", "/costs/budgets"])
    expect((await call("GET", path, undefined, viewer)).body.details).toMatchObject({ reason: "limited_access" });
});

/** The month of the last day that is over: on the first of a month that is the one before. */
const MONTH = monthOf(YESTERDAY);
const DAYS_SO_FAR = Number(YESTERDAY.slice(-2));
/** The whole month, and enough days for a forecast. */
const SINCE = Math.max(DAYS_SO_FAR, 14);

/** A machine that costs 1.00 a day, whatever the month. */
const openSpending = async (): Promise<Costs & { readonly deviceId: string }> => {
  const costs = await openCosts(world);
  const deviceId = await costs.machine({ tags: ["lab"] });
  await costs.measured(
    deviceId,
    Array.from({ length: SINCE }, (_, back) => addDays(YESTERDAY, -back)),
    600,
    null,
  );
  await costs.rates({ validFrom: addDays(YESTERDAY, 1 - SINCE), device: { cpuCoreHour: "0.025" } });
  await addUp(world);
  return { ...costs, deviceId };
};
const SPENT = DAYS_SO_FAR * 100;
const actual = (percent: number) => ({ percent, basis: "actual" });

const budget = async ({ call }: Costs, body: object) => {
  const { status, body: answer } = await call("POST", "/costs/budgets", { name: "All machines", ...body });
  if (status !== 201) throw new Error(`the budget was refused: ${JSON.stringify(answer)}`);
  return answer.data;
};
const events = async ({ tenantId }: Costs): Promise<readonly { readonly percent: number; readonly basis: string }[]> =>
  (await world.sql.query("select data from outbox_events where tenant_id = $1 and type = 'cost.budget_threshold' order by position", [tenantId])).rows.map(
    ({ data }) => data,
  );

test("a new budget tells at once of what it has reached, and never again in the month", async () => {
  const costs = await openSpending();
  const made = await budget(costs, { amount: SPENT * 2, thresholds: [actual(50), actual(51)] });
  expect(made).toMatchObject({ spent: SPENT, month: MONTH, through: YESTERDAY, currency: "EUR" });
  expect(made.thresholds.map(({ reachedAt }: { reachedAt: string | null }) => reachedAt !== null)).toEqual([true, false]);
  expect(await events(costs)).toMatchObject([{ percent: 50, basis: "actual", spent: SPENT, amount: SPENT * 2, month: MONTH }]);
  await reopen(world, costs.tenantId);
  await addUp(world);
  expect(await events(costs)).toHaveLength(1);
});

test("the day that reaches a threshold tells of it, once however often it is added up", async () => {
  const costs = await openSpending();
  const { budgetId } = await budget(costs, { amount: SPENT + 50, thresholds: [actual(100)] });
  expect(await events(costs)).toEqual([]);
  await costs.measured(costs.deviceId, [YESTERDAY], 1_440, null);
  for (let times = 0; times < 2; times += 1) {
    await reopen(world, costs.tenantId);
    await addUp(world);
  }
  expect(await events(costs)).toMatchObject([{ budgetId, percent: 100 }]);
  expect(await costs.get(`/costs/budgets/${budgetId}`)).toMatchObject({ spent: SPENT + 140, version: 1 });
});

test("a raised amount lets what is no longer reached tell again, and a changed name does not", async () => {
  const costs = await openSpending();
  const { budgetId, version } = await budget(costs, { amount: SPENT, thresholds: [actual(100)] });
  const change = async (body: object) => (await costs.call("PATCH", `/costs/budgets/${budgetId}`, body)).body;
  expect((await change({ name: "Renamed" })).data.thresholds[0].reachedAt).not.toBeNull();
  expect((await change({ amount: SPENT * 2 })).data.thresholds[0].reachedAt).toBeNull();
  expect((await change({ amount: SPENT, version: version + 2 })).data.thresholds[0].reachedAt).not.toBeNull();
  expect(await events(costs)).toHaveLength(2);
  expect((await change({ amount: 5, version })).code).toBe("VERSION_CONFLICT");
});

test("a forecast tells before the money is spent, and only from enough days", async () => {
  const costs = await openSpending();
  const whole = new Date(Date.UTC(Number(MONTH.slice(0, 4)), Number(MONTH.slice(5)), 0)).getUTCDate();
  const made = await budget(costs, { amount: whole * 100, thresholds: [{ percent: 100, basis: "forecast" }] });
  expect(made.expected).toBe(whole * 100);
  expect(await events(costs)).toMatchObject([{ percent: 100, basis: "forecast", expected: whole * 100 }]);
  const young = await openCosts(world);
  await young.machine();
  await young.rates({ validFrom: addDays(YESTERDAY, -2), device: { fixedMonthly: 100_000 } });
  await addUp(world);
  expect((await budget(young, { amount: 1, thresholds: [{ percent: 100, basis: "forecast" }] })).expected).toBeNull();
  expect(await events(young)).toEqual([]);
});

test("its scope decides what it sees: all with what is shared, a tag, a fleet, or single devices", async () => {
  const costs = await openSpending();
  await world.sql.query("update tenants set plan = 'business' where tenant_id = $1", [costs.tenantId]);
  const { fleetId } = (await costs.call("POST", "/fleets", { name: "lab", selector: { tags: ["lab"] } })).body.data;
  const spent = async (scope: object) => (await budget(costs, { amount: 1_000, scope })).spent;
  expect(await spent({ kind: "all" })).toBe(SPENT);
  expect(await spent({ kind: "tag", tag: "lab" })).toBe(SPENT);
  expect(await spent({ kind: "tag", tag: "attic" })).toBe(0);
  expect(await spent({ kind: "fleet", fleetId })).toBe(SPENT);
  expect(await spent({ kind: "devices", deviceIds: [costs.deviceId] })).toBe(SPENT);
  const other = await openCosts(world);
  const foreign = await other.machine();
  const refused = (scope: object) => costs.call("POST", "/costs/budgets", { name: "x", amount: 1, scope });
  expect((await refused({ kind: "devices", deviceIds: [foreign] })).body.code).toBe("DEVICE_NOT_FOUND");
  expect((await refused({ kind: "fleet", fleetId: "flt_unknown" })).body.code).toBe("FLEET_NOT_FOUND");
});

test("the first budget brings a rule, through which each threshold is an alert of its own that ends with the month", async () => {
  const costs = await openSpending();
  await budget(costs, { name: "Machines", amount: SPENT, thresholds: [actual(50), actual(100)] });
  await budget(costs, { name: "More", amount: SPENT * 10, thresholds: [] }).catch(() => null);
  const rules = (await costs.get("/alert-rules?metric=cost.budget")) as { readonly name: string }[];
  expect(rules.map(({ name }) => name)).toEqual(["Budget threshold reached"]);
  const targets = async (): Promise<readonly string[]> =>
    (await world.sql.query("select name from alert_targets where tenant_id = $1 and active order by name", [costs.tenantId])).rows.map(({ name }) => name);
  await eventually(async () => {
    await runJob(world, "alerts.evaluate");
    expect(await targets()).toEqual([`Machines: 100 % spent in ${MONTH}`, `Machines: 50 % spent in ${MONTH}`]);
  });
  await world.sql.query("update cost_budget_notices set month = '2020-01', reached_at = reached_at - interval '40 days' where tenant_id = $1", [
    costs.tenantId,
  ]);
  await eventually(async () => {
    await runJob(world, "alerts.evaluate");
    expect(await targets()).toEqual([]);
  });
});

test("the plan bounds budgets, and without rates there is none", async () => {
  const costs = await openCosts(world);
  const make = async () => (await costs.call("POST", "/costs/budgets", { name: "x", amount: 100 })).body.code;
  expect(await make()).toBe("COST_RATES_MISSING");
  await world.sql.query("update tenants set plan = 'free', limit_overrides = '{}' where tenant_id = $1", [costs.tenantId]);
  await costs.rates({ device: {} });
  expect(await make()).toBeUndefined();
  expect(await make()).toBe("PLAN_LIMIT_EXCEEDED");
  expect(firstOf(monthOf(TODAY)) <= TODAY).toBe(true);
});
