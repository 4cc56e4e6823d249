// Billing through a running gateway: the provider's events byte for byte, and two nodes that agree on what a tenant may.
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { anonymous, asBearer, startWorld, type World } from "../../kit/gateway/world.ts";
import { signedEvent } from "../../kit/net/stripe.ts";
import { subscriptionEvent } from "./kit.ts";

const ENV = { STRIPE_PRICES: JSON.stringify({ pro: { monthly: "price_pro_m" } }), RATE_LIMIT_STANDARD: "off", BILLING_GRACE_DAYS: "0" };

let one: World;
let two: World;
beforeAll(async () => {
  one = await startWorld(ENV);
  two = await startWorld(ENV, { beside: one });
});
afterAll(async () => {
  await two.close();
  await one.close();
});

/** Made through the API, so it has a trial and limits. */
const newTenant = async () => {
  const userId = newId("usr");
  const outside = asBearer((await one.app.mint({ userId, ttlSeconds: 600 })).token);
  const body = { name: "Trial", slug: `t-${userId.slice(-20).toLowerCase()}`, userId };
  const { tenantId } = (await one.call(outside, "POST", "/v1/tenants", { body })).body.data;
  return { tenantId: tenantId as string, owner: asBearer((await one.app.mint({ userId, tenantId, role: "owner", ttlSeconds: 600 })).token) };
};
const post = (world: World, event: object, changeBody = (text: string) => text) => {
  const { payload, signature } = signedEvent(event);
  return world.call(anonymous, "POST", "/v1/billing/provider-events", { rawBody: changeBody(payload), headers: { "stripe-signature": signature } });
};
const createKey = (world: World, owner: Awaited<ReturnType<typeof newTenant>>["owner"]) =>
  world.call(owner, "POST", "/v1/api-keys", { body: { name: "k" } }).then(({ status, body }) => [status, body.code ?? null]);

test("an event counts only as the bytes that were signed", async () => {
  const { tenantId, owner } = await newTenant();
  const event = subscriptionEvent({ tenantId, at: new Date(), status: "active" });
  const altered = [
    (text: string) => `${text}\n`,
    (text: string) => JSON.stringify(JSON.parse(text), null, 1),
    (text: string) => text.replace("price_pro_m", "price_pro_n"),
    () => "",
    () => "\u0000",
  ];
  for (const change of altered) expect([400, 401]).toContain((await post(one, event, change)).status);
  expect((await one.call(owner, "GET", "/v1/billing")).body.data.billing).toMatchObject({ plan: "starter", status: "trialing" });
  expect((await post(one, event)).body.data).toEqual({ received: true, duplicate: false });
  expect((await post(two, event)).body.data).toEqual({ received: true, duplicate: true });
  expect((await one.call(owner, "GET", "/v1/billing")).body.data.billing).toMatchObject({ plan: "pro", status: "active" });
});

test("a change of plan holds on the other node at once", async () => {
  const { owner } = await newTenant();
  for (let count = 0; count < 5; count += 1) expect(await createKey(two, owner)).toEqual([201, null]);
  expect(await createKey(two, owner)).toEqual([403, "PLAN_LIMIT_EXCEEDED"]);
  expect((await one.call(owner, "POST", "/v1/billing/checkout", { body: { plan: "pro" } })).status).toBe(201);
  expect(await createKey(two, owner)).toEqual([201, null]);
});

test("a tenant that does not pay is refused on both nodes, and may still pay", async () => {
  const { tenantId, owner } = await newTenant();
  const rename = (world: World) =>
    world.call(owner, "PATCH", `/v1/tenants/${tenantId}`, { body: { name: "n" } }).then(({ status, body }) => [status, body.code ?? null]);
  for (const world of [one, two]) expect(await rename(world)).toEqual([200, null]);
  const at = new Date(Date.now() - 60_000);
  expect((await post(one, subscriptionEvent({ tenantId, at, status: "past_due" }))).status).toBe(200);
  expect(await rename(one)).toEqual([403, "TENANT_SUSPENDED"]);
  await eventually(async () => expect(await rename(two)).toEqual([403, "TENANT_SUSPENDED"]));
  expect((await one.call(owner, "GET", "/v1/billing")).body.data.billing).toMatchObject({ plan: "pro", status: "unpaid" });
  expect((await one.call(owner, "POST", "/v1/billing/portal", { body: {} })).status).toBe(200);
  expect((await post(one, subscriptionEvent({ tenantId, at: new Date(), status: "active" }))).status).toBe(200);
  expect(await rename(one)).toEqual([200, null]);
});
