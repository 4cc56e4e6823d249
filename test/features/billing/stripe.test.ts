// Billing with Stripe: events that Stripe's own library signs, in any order and number, and calls to a stand-in of Stripe's API on loopback.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import Stripe from "stripe";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract } from "../../../protocol/index.ts";
import { failureOf, inside, userOf } from "../../kit/gateway/call.ts";
import { signedEvent, WEBHOOK_SECRET } from "../../kit/net/stripe.ts";
import { readEvents } from "../../kit/stores/events.ts";
import { type Billing, DAY_MS, invoiceEvent, openBilling, PORTAL, subscriptionEvent } from "./kit.ts";

const { planChanged, paymentFailed, subscriptionCanceled } = contract.billing.events;

interface Asked {
  readonly route: string;
  readonly form: URLSearchParams;
  readonly key: string | undefined;
}

let world: Billing;
let server: Server;
const asked: Asked[] = [];
const lastOf = (route: string): Asked | undefined => asked.findLast((each) => each.route === route);
/** What the stand-in answers, by method and path. */
const answers = new Map<string, (form: URLSearchParams) => object>();
/** While this is true, it breaks every connection. */
let away = false;

beforeAll(async () => {
  server = createServer((request, response) => {
    if (away) return void request.socket.destroy();
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const route = `${request.method} ${request.url?.split("?")[0]}`;
      const form = new URLSearchParams(body);
      asked.push({ route, form, key: request.headers["idempotency-key"] as string | undefined });
      const answer = answers.get(route);
      response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(answer?.(form) ?? { error: { type: "invalid_request_error", message: "no such thing" } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  world = await openBilling({ STRIPE_SECRET_KEY: "sk_test_x", STRIPE_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
afterAll(async () => {
  await world.close();
  await new Promise((resolve) => server.close(resolve));
});

const at = (seconds: number): Date => new Date(world.clock.now().getTime() + seconds * 1_000);
const receiveAll = async (events: readonly object[]): Promise<void> => {
  for (const event of events) await world.receive(event);
};
const stateOf = async (tenantId: string, scope: Parameters<Billing["call"]["get"]>[0]) => {
  const { plan, status, interval, cancelAtPeriodEnd, currentPeriodEnd } = (await world.call.get(scope, {})).billing;
  return { plan, status, interval, cancelAtPeriodEnd, currentPeriodEnd, tenant: await world.rowOf(tenantId) };
};

describe("events", () => {
  test("a subscription of Stripe sets the plan, and an event that comes again changes nothing", async () => {
    const { tenantId, scope } = await world.newTenant();
    const event = subscriptionEvent({ tenantId, at: at(0), status: "active", price: "price_pro_a", type: "created" });
    expect(await world.receive(event)).toEqual({ received: true, duplicate: false });
    expect(await world.receive(event)).toEqual({ received: true, duplicate: true });
    expect((await world.call.get(scope, {})).billing).toMatchObject({ plan: "pro", status: "active", interval: "annual" });
    expect((await world.tenants.lookup.find(tenantId))?.plan).toBe("pro");
    expect((await world.eventsOf(tenantId)).map(({ type }) => type)).toEqual([planChanged.type]);
  });

  test("64 deliveries of one event at once have one effect", async () => {
    const { tenantId } = await world.newTenant();
    const event = invoiceEvent(tenantId, at(0), "payment_failed", { id: `in_${tenantId}`, status: "open" });
    const received = await Promise.all(Array.from({ length: 64 }, () => world.receive(event)));
    expect(received.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(await world.eventsOf(tenantId)).toHaveLength(1);
    expect((await world.eventsOf(tenantId))[0]).toMatchObject({ type: paymentFailed.type, data: { invoiceId: `in_${tenantId}`, amountDue: 2_900 } });
  });

  test("events end in the same state in whatever order and number they come", async () => {
    // Two subscriptions whose lives overlap, with steps in the same second.
    const lifeOf = (tenantId: string) => [
      subscriptionEvent({ tenantId, id: "sub_a", at: at(0), status: "incomplete", type: "created" }),
      subscriptionEvent({ tenantId, id: "sub_a", at: at(0), status: "active" }),
      subscriptionEvent({ tenantId, id: "sub_a", at: at(60), status: "active", cancelAtPeriodEnd: true }),
      subscriptionEvent({ tenantId, id: "sub_b", at: at(90), status: "active", price: "price_team_m", type: "created" }),
      subscriptionEvent({ tenantId, id: "sub_a", at: at(120), status: "canceled", type: "deleted" }),
      subscriptionEvent({ tenantId, id: "sub_b", at: at(150), status: "active", price: "price_starter_m" }),
      invoiceEvent(tenantId, at(0), "finalized", { id: "in_1", status: "open" }),
      invoiceEvent(tenantId, at(0), "paid", { id: "in_1", status: "paid", paid: 2_900 }),
    ];
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 8 }), fc.array(fc.nat(7), { maxLength: 4 }), async (order, again) => {
        const { tenantId, scope } = await world.newTenant();
        const life = lifeOf(tenantId);
        await receiveAll([...order, ...again].map((index) => life[index] ?? {}));
        expect(await stateOf(tenantId, scope)).toMatchObject({
          plan: "starter",
          status: "active",
          cancelAtPeriodEnd: false,
          tenant: { plan: "starter", status: "active" },
        });
        expect((await world.call.invoices(scope, {})).items).toMatchObject([{ invoiceId: "in_1", status: "paid", amountPaid: 2_900 }]);
      }),
      { numRuns: 15 },
    );
  });

  test("a deleted subscription stays deleted when an older event comes late", async () => {
    const { tenantId, scope } = await world.newTenant();
    await receiveAll([
      subscriptionEvent({ tenantId, at: at(0), status: "active" }),
      subscriptionEvent({ tenantId, at: at(60), status: "canceled", type: "deleted" }),
      subscriptionEvent({ tenantId, at: at(30), status: "active", price: "price_team_m" }),
    ]);
    expect(await stateOf(tenantId, scope)).toMatchObject({ plan: "free", status: "canceled" });
    expect((await world.eventsOf(tenantId)).map(({ type }) => type)).toEqual([planChanged.type, subscriptionCanceled.type, planChanged.type]);
  });

  test("a subscription whose first payment never comes changes nothing", async () => {
    const { tenantId, scope } = await world.newTenant();
    await receiveAll([
      subscriptionEvent({ tenantId, at: at(0), status: "incomplete", type: "created" }),
      subscriptionEvent({ tenantId, at: at(60), status: "incomplete_expired" }),
    ]);
    expect(await stateOf(tenantId, scope)).toMatchObject({ plan: "starter", status: "trialing" });
  });
});

describe("signatures", () => {
  const event = () => subscriptionEvent({ tenantId: "ten_01J9ZQ1B3D5F7H9K0M2P4R6T8W", at: new Date(), status: "active" });
  const nobody = inside("ten_01J9ZQ1B3D5F7H9K0M2P4R6T8W", userOf("nobody"));
  const send = (input: { readonly payload: string; readonly signature: string }) => failureOf(world.call.providerEvents(nobody, input));

  test("a body that Stripe did not sign, or signed long ago, is refused", async () => {
    const refused = { code: "INVALID_SIGNATURE", status: 401 };
    const good = signedEvent(event());
    expect(await send(signedEvent(event(), "whsec_of_somebody_else"))).toMatchObject(refused);
    expect(await send({ ...good, payload: good.payload.replace("active", "unpaid") })).toMatchObject(refused);
    expect(await send({ ...good, payload: `${good.payload} ` })).toMatchObject(refused);
    expect(await send({ ...good, signature: "t=1,v1=" })).toMatchObject(refused);
    expect(await send({ ...good, signature: "nonsense" })).toMatchObject(refused);
    const timestamp = Math.floor(Date.now() / 1_000) - 3_600;
    const old = new Stripe("sk_test").webhooks.generateTestHeaderString({ payload: good.payload, secret: WEBHOOK_SECRET, timestamp });
    expect(await send({ ...good, signature: old })).toMatchObject(refused);
  });

  test("a signed body that is no event is refused as such, so Stripe shows it as failed", async () => {
    const { data } = event();
    const wrong: readonly object[] = [
      {},
      { ...event(), created: "soon" },
      { ...event(), id: "evt_\u0000" },
      { ...event(), data: { object: { id: "sub_1", items: [] } } },
      { ...event(), created: 1e300 },
      { ...event(), data: { object: { ...data.object, items: { data: [] } } } },
    ];
    for (const each of wrong) expect(await send(signedEvent(each))).toMatchObject({ code: "VALIDATION_FAILED", status: 400 });
  });

  test("events of other installations, prices and kinds are taken and change nothing", async () => {
    const { tenantId, scope } = await world.newTenant();
    const before = await stateOf(tenantId, scope);
    for (const each of [
      subscriptionEvent({ tenantId: "ten_01J9ZQ1B3D5F7H9K0M2P4R6T8W", at: at(0), status: "active" }),
      subscriptionEvent({ tenantId: "__proto__", at: at(0), status: "active" }),
      subscriptionEvent({ tenantId, at: at(0), status: "active", price: "price_of_something_else" }),
      subscriptionEvent({ tenantId, at: at(0), status: "a status of tomorrow" }),
      { id: `evt_${tenantId}`, type: "customer.created", created: 1, data: { object: { metadata: { tenantId } } } },
    ])
      expect(await world.receive(each)).toEqual({ received: true, duplicate: false });
    expect(await stateOf(tenantId, scope)).toEqual(before);
  });
});

describe("late payments", () => {
  test("a tenant that has not paid is suspended after the grace and active again when it pays", async () => {
    const { tenantId, scope } = await world.newTenant();
    await receiveAll([subscriptionEvent({ tenantId, at: at(0), status: "active" }), subscriptionEvent({ tenantId, at: at(10), status: "past_due" })]);
    world.clock.advance(13 * DAY_MS);
    // Stripe tries again and says the same.
    await world.receive(subscriptionEvent({ tenantId, at: at(0), status: "past_due" }));
    await world.runJobs();
    expect(await stateOf(tenantId, scope)).toMatchObject({ plan: "pro", status: "past_due", tenant: { status: "active" } });
    world.clock.advance(2 * DAY_MS);
    await Promise.all([world.runJobs(), world.runJobs()]);
    expect(await stateOf(tenantId, scope)).toMatchObject({ plan: "pro", status: "unpaid", tenant: { status: "suspended" } });
    expect((await world.tenants.lookup.find(tenantId))?.status).toBe("suspended");
    await world.receive(subscriptionEvent({ tenantId, at: at(1), status: "past_due" }));
    expect(await stateOf(tenantId, scope)).toMatchObject({ status: "unpaid" });
    await world.receive(subscriptionEvent({ tenantId, at: at(2), status: "active" }));
    expect(await stateOf(tenantId, scope)).toMatchObject({ plan: "pro", status: "active", tenant: { status: "active" } });
    const told = (await readEvents(world.db, tenantId)).filter(({ type }) => /^tenant\.(suspended|reactivated)$/.test(type));
    expect(told.map(({ type, data }) => [type, data["reason"]])).toEqual([
      ["tenant.suspended", "the subscription is not paid"],
      ["tenant.reactivated", undefined],
    ]);
  });

  test("a payment does not lift a suspension that an operator ordered while billing's was lifted", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.receive(subscriptionEvent({ tenantId, at: at(0), status: "unpaid" }));
    expect(await world.rowOf(tenantId)).toMatchObject({ status: "suspended" });
    await world.db.query("update tenants set status_reason = 'abuse' where tenant_id = $1", [tenantId]);
    await world.receive(subscriptionEvent({ tenantId, at: at(10), status: "active" }));
    expect(await stateOf(tenantId, scope)).toMatchObject({ plan: "pro", status: "active", tenant: { status: "suspended" } });
  });

  test("a payment does not lift the suspension that an operator ordered", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.db.query("update tenants set status = 'suspended' where tenant_id = $1", [tenantId]);
    await receiveAll([subscriptionEvent({ tenantId, at: at(0), status: "unpaid" }), subscriptionEvent({ tenantId, at: at(10), status: "active" })]);
    expect(await stateOf(tenantId, scope)).toMatchObject({ plan: "pro", status: "active", tenant: { status: "suspended" } });
  });

  test("one tenant that fails does not keep the others waiting", async () => {
    const tenants = [await world.newTenant(), await world.newTenant(), await world.newTenant()];
    for (const { tenantId } of tenants) await world.receive(subscriptionEvent({ tenantId, at: at(0), status: "past_due" }));
    const [broken] = tenants;
    await world.db.query(`create function refuse_one() returns trigger language plpgsql as $$ begin
        if new.tenant_id = '${broken?.tenantId}' then raise exception 'refused'; end if; return new; end $$`);
    await world.db.query("create trigger refuse_one before update on tenants for each row execute function refuse_one()");
    world.clock.advance(15 * DAY_MS);
    await expect(world.runJobs()).rejects.toThrow("1 of 3 subscriptions failed");
    await world.db.query("drop trigger refuse_one on tenants");
    const statuses = await Promise.all(tenants.map(async ({ tenantId }) => (await world.rowOf(tenantId)).status));
    expect(statuses).toEqual(["active", "suspended", "suspended"]);
    await world.runJobs();
    expect((await world.rowOf(broken?.tenantId ?? "")).status).toBe("suspended");
  });
});

describe("calls", () => {
  const session = { id: "cs_test_1", object: "checkout.session", url: "https://checkout.stripe.com/c/pay/cs_test_1", expires_at: 1_795_426_170 };
  const portalSession = { id: "bps_1", object: "billing_portal.session", url: "https://billing.stripe.com/p/session/bps_1", created: 1_795_339_770 };

  test("a checkout opens a session of Stripe, and the plan waits for the event", async () => {
    answers.set("POST /v1/checkout/sessions", () => session);
    const { tenantId, scope, userId } = await world.newTenant();
    const input = { plan: "pro", interval: "annual", successUrl: `${PORTAL}/done` } as const;
    expect(await world.call.checkout(scope, input)).toEqual({ checkoutUrl: session.url, sessionId: session.id, expiresAt: "2026-11-23T09:29:30.000Z" });
    const { form } = lastOf("POST /v1/checkout/sessions") ?? { form: new URLSearchParams() };
    expect(Object.fromEntries(form)).toMatchObject({
      mode: "subscription",
      "line_items[0][price]": "price_pro_a",
      client_reference_id: tenantId,
      "subscription_data[metadata][tenantId]": tenantId,
      customer_email: `${userId}@users.example`,
      success_url: `${PORTAL}/done`,
      cancel_url: PORTAL,
    });
    expect((await world.rowOf(tenantId)).plan).toBe("starter");
  });

  test("a plan without a price is not sold, and a customer who never paid has no portal", async () => {
    const { scope } = await world.newTenant();
    for (const attempt of [() => world.call.checkout(scope, { plan: "business" }), () => world.call.preview(scope, { plan: "team", interval: "annual" })])
      expect(await failureOf(attempt())).toMatchObject({ code: "BILLING_NOT_CONFIGURED", status: 409 });
    expect(await failureOf(world.call.portal(scope, {}))).toMatchObject({ code: "NO_ACTIVE_SUBSCRIPTION" });
  });

  test("a customer confirms a change of plan in the portal", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.receive(subscriptionEvent({ tenantId, at: at(0), status: "active" }));
    answers.set(`GET /v1/subscriptions/sub_${tenantId}`, () => subscriptionEvent({ tenantId, at: at(0), status: "active" }).data.object);
    answers.set("POST /v1/billing_portal/sessions", () => portalSession);
    expect((await world.call.checkout(scope, { plan: "team" })).checkoutUrl).toBe(portalSession.url);
    expect(Object.fromEntries(lastOf("POST /v1/billing_portal/sessions")?.form ?? [])).toMatchObject({
      customer: `cus_${tenantId}`,
      "flow_data[type]": "subscription_update_confirm",
      "flow_data[subscription_update_confirm][subscription]": `sub_${tenantId}`,
      "flow_data[subscription_update_confirm][items][0][price]": "price_team_m",
    });
    expect(await world.call.portal(scope, {})).toEqual({ url: portalSession.url });
  });

  test("a cancellation shows at once, and the event that confirms it wins over the answer", async () => {
    const { tenantId, scope } = await world.newTenant();
    await world.receive(subscriptionEvent({ tenantId, at: at(0), status: "active" }));
    answers.set(`POST /v1/subscriptions/sub_${tenantId}`, (form) => {
      const cancelAtPeriodEnd = form.get("cancel_at_period_end") === "true";
      return subscriptionEvent({ tenantId, at: at(0), status: "active", cancelAtPeriodEnd }).data.object;
    });
    expect((await world.call.cancel(scope, {})).billing).toMatchObject({ plan: "pro", status: "active", cancelAtPeriodEnd: true });
    expect((await world.call.resume(scope, {})).billing).toMatchObject({ cancelAtPeriodEnd: false });
    await world.receive(subscriptionEvent({ tenantId, at: at(1), status: "active", cancelAtPeriodEnd: true }));
    expect((await world.call.get(scope, {})).billing).toMatchObject({ cancelAtPeriodEnd: true });
  });

  test("a preview shows what Stripe would charge", async () => {
    const { tenantId, scope } = await world.newTenant();
    answers.set("GET /v1/prices/price_team_m", () => ({ id: "price_team_m", object: "price", currency: "eur", unit_amount: 7_500 }));
    expect(await world.call.preview(scope, { plan: "team" })).toMatchObject({ currency: "eur", amountDue: 7_500, credit: 0, nextAmount: 7_500 });
    await world.receive(subscriptionEvent({ tenantId, at: at(0), status: "active" }));
    answers.set(`GET /v1/subscriptions/sub_${tenantId}`, () => subscriptionEvent({ tenantId, at: at(0), status: "active" }).data.object);
    answers.set("POST /v1/invoices/create_preview", () => ({
      object: "invoice",
      amount_due: 6_100,
      currency: "eur",
      lines: { object: "list", data: [{ amount: -1_400 }, { amount: 7_500 }] },
    }));
    expect(await world.call.preview(scope, { plan: "team" })).toMatchObject({ amountDue: 6_100, credit: 1_400, nextAmount: 7_500 });
  });

  test("a Stripe that refuses or is away is 503, and nothing has changed", async () => {
    answers.delete("POST /v1/checkout/sessions");
    const { tenantId, scope } = await world.newTenant();
    const refused = { code: "SERVICE_UNAVAILABLE", status: 503, details: { reason: "billing_provider" } };
    for (away of [true, false]) expect(await failureOf(world.call.checkout(scope, { plan: "pro" }))).toEqual(refused);
    expect(await world.rowOf(tenantId)).toEqual({ plan: "starter", status: "active" });
  });
});

test("Stripe counts as away for five minutes after a call that it did not serve, and a refusal is an answer", async () => {
  answers.delete("POST /v1/checkout/sessions");
  const { scope } = await world.newTenant();
  const afterCheckout = async (): Promise<boolean | undefined> => {
    expect((await failureOf(world.call.checkout(scope, { plan: "pro" }))).code).toBe("SERVICE_UNAVAILABLE");
    return world.billing.isAnswering?.();
  };
  // The tests before may have had it away.
  world.clock.advance(300_001);
  expect(await afterCheckout()).toBe(true);
  away = true;
  expect(await afterCheckout()).toBe(false);
  away = false;
  world.clock.advance(300_001);
  expect(world.billing.isAnswering?.()).toBe(true);
});

describe("the end of a tenant", () => {
  const purge = async (): Promise<void> => {
    await world.runJob("tenants.purge");
    // A tenant that goes waits until its last events are told.
    await world.runJob("outbox.relay");
    await world.runJob("tenants.purge");
  };
  const isDue = (tenantId: string) => world.db.query("update tenants set delete_after = $2 where tenant_id = $1", [tenantId, at(-1)]);
  const subscribed = async () => {
    const { tenantId } = await world.newTenant();
    const subscription = (status: string) => subscriptionEvent({ tenantId, at: at(0), status });
    await world.receive(subscription("active"));
    await world.db.query("update tenants set status = 'pending_deletion' where tenant_id = $1", [tenantId]);
    await isDue(tenantId);
    return { tenantId, route: `/v1/subscriptions/sub_${tenantId}`, object: (status: string) => subscription(status).data.object };
  };
  const rowsOf = async (tenantId: string) => [...(await world.db.query<{ status: string }>("select status from tenants where tenant_id = $1", [tenantId]))];

  test("cancels its subscription at once, and the tenant stays until Stripe has done so, without delaying others", async () => {
    const canceled: string[] = [];
    world.outbox.subscribe((told) => canceled.push(...told.filter(({ type }) => type === subscriptionCanceled.type).map((each) => each.tenantId)));
    const { tenantId, route, object } = await subscribed();
    answers.set(`GET ${route}`, () => object("active"));
    const other = await subscribed();
    answers.set(`DELETE ${other.route}`, () => other.object("canceled"));
    await expect(purge()).rejects.toThrow("could not be ended");
    await purge();
    expect([await rowsOf(tenantId), await rowsOf(other.tenantId)]).toEqual([[{ status: "deleted" }], []]);
    await world.db.query("update tenants set status_since = $2 where tenant_id = $1", [tenantId, at(-3_600)]);
    expect(await world.billing.stuck?.(100)).toMatchObject([{ kind: "subscription_uncanceled", tenantId, id: `sub_${tenantId}` }]);
    answers.set(`DELETE ${route}`, () => object("canceled"));
    await isDue(tenantId);
    await purge();
    expect([await rowsOf(tenantId), await world.billing.stuck?.(100)]).toEqual([[], []]);
    expect(canceled).toEqual(expect.arrayContaining([tenantId, other.tenantId]));
  });

  test("does not wait for a subscription that is canceled at Stripe already", async () => {
    const { tenantId, route, object } = await subscribed();
    answers.set(`GET ${route}`, () => object("canceled"));
    await purge();
    expect([lastOf(`DELETE ${route}`)?.route, await rowsOf(tenantId)]).toEqual([`DELETE ${route}`, []]);
  });
});
