// Billing without a payment provider: trials, checkouts that are complete at once, limits that follow the plan, and the jobs that end periods.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract } from "../../../protocol/index.ts";
import { periodEnd } from "../../../server/features/billing/rules.ts";
import { lockPlan } from "../../../server/features/tenants/store/tenants.ts";
import { failureOf } from "../../kit/gateway/call.ts";
import { type Billing, DAY_MS, openBilling, PORTAL } from "./kit.ts";

const { planChanged, trialEnding, subscriptionCanceled, limitReached, limitWarning } = contract.billing.events;

let world: Billing;
beforeAll(async () => {
  world = await openBilling();
});
afterAll(() => world.close());

const typesOf = async (tenantId: string): Promise<readonly string[]> => (await world.eventsOf(tenantId)).map(({ type }) => type);

describe("a trial", () => {
  test("a new tenant has fourteen days of the default plan and then the free one", async () => {
    const { tenantId, scope } = await world.newTenant();
    const { billing } = await world.call.get(scope, {});
    expect(billing).toMatchObject({ plan: "starter", status: "trialing", cancelAtPeriodEnd: false });
    expect(Date.parse(billing.trialEndsAt ?? "") - world.clock.now().getTime()).toBe(14 * DAY_MS);
    world.clock.advance(14 * DAY_MS);
    // Two nodes whose timers fall together.
    await Promise.all([world.runJobs(), world.runJobs()]);
    expect((await world.call.get(scope, {})).billing).toMatchObject({ plan: "free", status: "canceled" });
    expect(await world.rowOf(tenantId)).toEqual({ plan: "free", status: "active" });
    expect(await typesOf(tenantId)).toEqual([planChanged.type]);
  });

  test("its end is announced three days ahead, once", async () => {
    const { tenantId } = await world.newTenant();
    world.clock.advance(10 * DAY_MS);
    await world.runJobs();
    expect(await typesOf(tenantId)).toEqual([]);
    world.clock.advance(2 * DAY_MS);
    await Promise.all([world.runJobs(), world.runJobs()]);
    expect(await typesOf(tenantId)).toEqual([trialEnding.type]);
  });

  test("a tenant that the operator made has no trial and keeps its plan", async () => {
    const { tenantId } = await world.tenants.ensureTenant({ name: "Own", slug: "own-house", userId: "operator", unlimited: true });
    world.clock.advance(100 * DAY_MS);
    await world.runJobs();
    expect(await world.rowOf(tenantId)).toEqual({ plan: "starter", status: "active" });
  });
});

describe("checkout", () => {
  test("the plan changes with the answer, for limits, records and the lookup of this node", async () => {
    const { tenantId, scope } = await world.newTenant();
    expect((await world.tenants.lookup.find(tenantId))?.plan).toBe("starter");
    const session = await world.call.checkout(scope, { plan: "pro", successUrl: `${PORTAL}/done` });
    expect(session.checkoutUrl).toBe(`${PORTAL}/done`);
    expect((await world.tenants.lookup.find(tenantId))?.plan).toBe("pro");
    const { billing, planDetails, usage } = await world.call.get(scope, {});
    expect(billing).toMatchObject({ plan: "pro", status: "active", interval: "monthly", entitlements: { hosts: 25, apiKeys: 20 } });
    expect(planDetails).toMatchObject({ tier: "pro", name: "Pro", monthlyPrice: 2_900, annualPrice: 2_400 });
    expect(usage).toMatchObject({ deploymentCount: 1, hostCount: 0, appCount: 0, storageGB: 0, customDomainCount: 0 });
    expect((await world.eventsOf(tenantId)).map(({ data }) => data)).toEqual([{ tenantId, from: "starter", to: "pro" }]);
    expect((await world.call.invoices(scope, {})).items).toMatchObject([{ tenantId, status: "paid", amountPaid: 2_900, currency: "usd" }]);
  });

  test("a plan that the tenant has is refused, and the same plan by the year is not", async () => {
    const { scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "pro" });
    expect(await failureOf(world.call.checkout(scope, { plan: "pro" }))).toMatchObject({ code: "PLAN_UNCHANGED", status: 409 });
    await world.call.checkout(scope, { plan: "pro", interval: "annual" });
    expect((await world.call.get(scope, {})).billing).toMatchObject({ plan: "pro", interval: "annual" });
  });

  test("the order of a trial's own plan makes it paid", async () => {
    const { scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "starter" });
    world.clock.advance(20 * DAY_MS);
    await world.runJobs();
    expect((await world.call.get(scope, {})).billing).toMatchObject({ plan: "starter", status: "active" });
  });

  test("only addresses of the portal may follow a checkout", async () => {
    const { scope } = await world.newTenant();
    for (const url of ["https://elsewhere.example/", "http://portal.example/"]) {
      expect(await failureOf(world.call.checkout(scope, { plan: "pro", successUrl: url }))).toMatchObject({ code: "RETURN_URL_NOT_ALLOWED", status: 422 });
      expect(await failureOf(world.call.checkout(scope, { plan: "pro", cancelUrl: url }))).toMatchObject({ code: "RETURN_URL_NOT_ALLOWED" });
      expect(await failureOf(world.call.portal(scope, { returnUrl: url }))).toMatchObject({ code: "RETURN_URL_NOT_ALLOWED" });
    }
  });

  test("of 64 equal orders at once one is made", async () => {
    const { tenantId, scope } = await world.newTenant();
    const orders = await Promise.allSettled(Array.from({ length: 64 }, () => world.call.checkout(scope, { plan: "team" })));
    expect(orders.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await world.call.invoices(scope, {})).total).toBe(1);
    expect(await typesOf(tenantId)).toEqual([planChanged.type]);
  });

  test("a preview credits the unused rest and changes nothing", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "pro" });
    world.clock.advance(15 * DAY_MS);
    const quote = await world.call.preview(scope, { plan: "team" });
    expect(quote).toMatchObject({ plan: "team", interval: "monthly", currency: "usd", nextAmount: 7_900, over: [], blocked: false });
    expect(quote.amountDue).toBe(7_900 - quote.credit);
    expect(quote.credit).toBeGreaterThanOrEqual(1_350);
    expect(quote.credit).toBeLessThanOrEqual(1_550);
    expect((await world.rowOf(tenantId)).plan).toBe("pro");
  });
});

describe("the end of a subscription", () => {
  test("a canceled plan stays until the end of its period, and then it is free", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "pro" });
    const { billing } = await world.call.cancel(scope, {});
    expect(billing).toMatchObject({ plan: "pro", status: "active", cancelAtPeriodEnd: true, cancellationEffectiveDate: billing.currentPeriodEnd });
    expect((await world.call.cancel(scope, {})).billing).toEqual(billing);
    await world.runJobs();
    expect((await world.rowOf(tenantId)).plan).toBe("pro");
    world.clock.advance(31 * DAY_MS);
    await Promise.all([world.runJobs(), world.runJobs()]);
    expect((await world.call.get(scope, {})).billing).toMatchObject({ plan: "free", status: "canceled", cancelAtPeriodEnd: false });
    expect(await typesOf(tenantId)).toEqual([planChanged.type, subscriptionCanceled.type, planChanged.type]);
    expect(await failureOf(world.call.resume(scope, {}))).toMatchObject({ code: "NO_ACTIVE_SUBSCRIPTION", status: 409 });
  });

  test("a resumed subscription is renewed with one invoice a period", async () => {
    const { scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "pro" });
    await world.call.cancel(scope, {});
    const { billing } = await world.call.resume(scope, {});
    expect(billing.cancelAtPeriodEnd).toBe(false);
    expect(billing).not.toHaveProperty("cancellationEffectiveDate");
    world.clock.advance(31 * DAY_MS);
    await Promise.all([world.runJobs(), world.runJobs()]);
    expect((await world.call.get(scope, {})).billing).toMatchObject({ plan: "pro", status: "active" });
    expect((await world.call.invoices(scope, {})).total).toBe(2);
  });

  test("a cancellation at once makes the plan free at once", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "pro" });
    expect((await world.call.cancel(scope, { atPeriodEnd: false })).billing).toMatchObject({ plan: "free", status: "canceled" });
    expect((await world.tenants.lookup.find(tenantId))?.plan).toBe("free");
  });

  test("a trial cannot be canceled or resumed", async () => {
    const { scope } = await world.newTenant();
    for (const attempt of [() => world.call.cancel(scope, {}), () => world.call.resume(scope, {})])
      expect(await failureOf(attempt())).toMatchObject({ code: "NO_ACTIVE_SUBSCRIPTION" });
  });

  test("a period ends on the same day of the next month or year, or on its last", () => {
    expect(periodEnd(new Date("2027-01-31T10:00:00.000Z"), "monthly").toISOString()).toBe("2027-02-28T10:00:00.000Z");
    expect(periodEnd(new Date("2028-02-29T10:00:00.000Z"), "annual").toISOString()).toBe("2029-02-28T10:00:00.000Z");
    expect(periodEnd(new Date("2026-12-15T10:00:00.000Z"), "monthly").toISOString()).toBe("2027-01-15T10:00:00.000Z");
    fc.assert(
      fc.property(fc.date({ min: new Date("2000-01-01"), max: new Date("2100-01-01"), noInvalidDate: true }), (from) => {
        const days = (periodEnd(from, "monthly").getTime() - from.getTime()) / DAY_MS;
        expect(days).toBeGreaterThanOrEqual(28);
        expect(days).toBeLessThanOrEqual(31);
      }),
    );
  });
});

describe("limits", () => {
  const keys = (scope: Parameters<Billing["call"]["get"]>[0], count: number) =>
    Promise.allSettled(Array.from({ length: count }, () => world.call.createKey(scope, { name: "k" })));
  const made = (results: readonly PromiseSettledResult<unknown>[]): number => results.filter(({ status }) => status === "fulfilled").length;

  test("64 creations at once stop at the limit, after a downgrade too", async () => {
    const { scope } = await world.newTenant();
    expect(made(await keys(scope, 64))).toBe(5);
    await world.call.checkout(scope, { plan: "pro" });
    expect(made(await keys(scope, 64))).toBe(15);
    const other = await world.newTenant();
    await world.call.checkout(other.scope, { plan: "pro" });
    await world.call.checkout(other.scope, { plan: "starter" });
    expect(made(await keys(other.scope, 64))).toBe(5);
  });

  test("after a downgrade amid 64 creations nothing more is created, and what exists stays", async () => {
    const { scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "pro" });
    const [results] = await Promise.all([keys(scope, 64), world.call.checkout(scope, { plan: "starter" })]);
    expect(made(results)).toBeGreaterThanOrEqual(5);
    expect(made(results)).toBeLessThanOrEqual(20);
    const refused = await failureOf(world.call.createKey(scope, { name: "k" }));
    expect(refused).toMatchObject({ code: "PLAN_LIMIT_EXCEEDED", details: { limit: 5, used: made(results), plan: "starter" } });
    expect((await world.call.usage(scope, {})).used).toMatchObject({ apiKeys: made(results) });
  });

  test("a creation that waits for a downgrade obeys the new plan", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "pro" });
    await keys(scope, 5);
    const late: Promise<unknown>[] = [];
    await world.db.tx(async (tx) => {
      await lockPlan(tx, { tenantId });
      await world.tenants.standing.setPlan(tx, { tenantId }, "starter");
      late.push(failureOf(world.call.createKey(scope, { name: "late" })));
      // Until the creation waits for the lock.
      for (let waiting = 0; waiting === 0; ) {
        const [row] = await tx.query<{ n: number }>("select count(*) as n from pg_locks where locktype = 'advisory' and not granted");
        waiting = Number(row?.n ?? 0);
      }
    });
    expect(await late[0]).toMatchObject({ code: "PLAN_LIMIT_EXCEEDED", details: { limit: 5 } });
  });

  test("a downgrade is blocked by too many members, and the answer names them", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.call.checkout(scope, { plan: "pro" });
    for (const n of [1, 2, 3]) await world.tenants.ensureMember({ tenantId, userId: `m-${n}-${tenantId}`, role: "viewer" });
    const over = [{ resource: "members", limit: 3, used: 4 }];
    expect(await world.call.preview(scope, { plan: "starter" })).toMatchObject({ over, blocked: true });
    expect(await failureOf(world.call.checkout(scope, { plan: "starter" }))).toEqual({ code: "PLAN_DOWNGRADE_BLOCKED", status: 409, details: { over } });
    expect((await world.rowOf(tenantId)).plan).toBe("pro");
  });

  test("an operator's override holds whatever the plan", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.db.query(`update tenants set limit_overrides = '{"apiKeys": 7, "members": null}' where tenant_id = $1`, [tenantId]);
    await world.call.checkout(scope, { plan: "team" });
    expect((await world.call.get(scope, {})).billing.entitlements).toMatchObject({ apiKeys: 7, members: null, hosts: 100 });
    expect(made(await keys(scope, 20))).toBe(7);
  });

  test("80 % of a limit and the limit itself are told once each, in the transaction of the addition", async () => {
    const { tenantId, scope } = await world.newTenant();
    for (let count = 0; count < 6; count += 1) await world.call.createKey(scope, { name: "k" }).catch(() => undefined);
    expect((await world.eventsOf(tenantId)).map(({ type, data }) => [type, data["used"], data["limit"]])).toEqual([
      [limitWarning.type, 4, 5],
      [limitReached.type, 5, 5],
    ]);
  });

  test("usage shows each counted resource with its share of the limit", async () => {
    const { scope } = await world.newTenant();
    await keys(scope, 2);
    expect(await world.call.usage(scope, {})).toMatchObject({
      deploymentCount: 1,
      used: { deployments: 1, members: 1, apiKeys: 2 },
      limits: { deployments: 15, apiKeys: 5, hosts: 5 },
      percent: { deployments: 6.7, members: 33.3, apiKeys: 40 },
    });
  });
});

test("every plan has its price, its limits and a name", async () => {
  const { plans, ...rest } = await world.call.plans((await world.newTenant()).scope, {});
  expect(rest).toEqual({ defaultPlan: "starter", trialDays: 14 });
  expect(plans.map(({ tier, name, monthlyPrice, annualPrice, limits }) => [tier, name, monthlyPrice, annualPrice, limits["hosts"]])).toEqual([
    ["free", "Free", 0, 0, 2],
    ["starter", "Starter", 900, 750, 5],
    ["pro", "Pro", 2_900, 2_400, 25],
    ["team", "Team", 7_900, 6_600, 100],
    ["business", "Business", 24_900, 20_800, 500],
  ]);
});
