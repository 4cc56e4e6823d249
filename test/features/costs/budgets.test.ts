// Budgets: each threshold tells once a month, as an event and as an alert, and again after the amount was raised.
import { afterAll, beforeAll, expect, test } from "vitest";
import { addDays, firstOf, monthOf } from "../../../server/features/costs/days.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { addUp, type Costs, openCosts, reopen, TODAY, YESTERDAY } from "./kit.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_ANONYMOUS: "off" }, { inProcess: true });
});
afterAll(() => world.close());

/** The month of the last day that is over: on the first of a month that is the one before. */
const MONTH = monthOf(YESTERDAY);
const DAYS_SO_FAR = Number(YESTERDAY.slice(-2));
/** The whole month, and enough days for a forecast. */
const SINCE = Math.max(DAYS_SO_FAR, 14);

/** A machine that costs 1.00 a day, whatever the month. */
const openSpending = async (): Promise<Costs & { readonly deviceId: string }> => {
  const costs = await openCosts(world);
  const deviceId = await costs.machine({ tags: ["lab"] });
  for (let back = 0; back < SINCE; back += 1) await costs.measured(deviceId, addDays(YESTERDAY, -back), 600, null);
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
  await costs.measured(costs.deviceId, YESTERDAY, 1_440, null);
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
