// Billing on a node that does not listen, with a clock that the test moves and Stripe as the test wants it.
import { randomUUID } from "node:crypto";
import { contract, type TenantId } from "../../../protocol/index.ts";
import { createTestClock } from "../../../server/core/clock.ts";
import { callable, inside, userOf } from "../../kit/gateway/call.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { createQuietNode } from "../../kit/gateway/world.ts";
import { signedEvent } from "../../kit/net/stripe.ts";
import { readEvents } from "../../kit/stores/events.ts";

export const PORTAL = "https://portal.example";
const PRICES = { starter: { monthly: "price_starter_m" }, pro: { monthly: "price_pro_m", annual: "price_pro_a" }, team: { monthly: "price_team_m" } };
export const DAY_MS = 86_400_000;

export const openBilling = async (stripe: Readonly<Record<string, string>> = {}) => {
  const clock = createTestClock(new Date());
  const env = { PORTAL_URL: PORTAL, STRIPE_PRICES: JSON.stringify(PRICES), ...stripe };
  const { app, close } = await createQuietNode(env, { clock, settings: { clockEveryMs: null } });
  const { db, features } = app;
  const { billing, tenants, apiKeys } = features;
  const call = { ...callable(contract.billing, billing.handlers, db), createKey: callable(contract.apiKeys, apiKeys.handlers, db).create };
  const newTenant = async () => {
    const userId = `u-${randomUUID()}`;
    const caller = { ...inside("ten_none" as TenantId, userOf(userId, `${userId}@users.example`, "owner")), tenantId: null, tenant: null };
    const create = callable(contract.tenants, tenants.handlers, db).create;
    const { tenantId } = await create(caller, { name: "Test", slug: `t-${randomUUID().slice(0, 13)}`, userId });
    return { tenantId: tenantId as TenantId, userId, scope: inside(tenantId as TenantId, userOf(userId, `${userId}@users.example`, "owner")) };
  };
  return {
    ...features,
    db,
    clock,
    close,
    call,
    newTenant,
    runJob: (name: string) => runJob({ app }, name),
    eventsOf: async (tenantId: string) => (await readEvents(db, tenantId)).filter(({ type }) => type.startsWith("billing.")),
    rowOf: async (tenantId: string) =>
      (await db.query<{ plan: string; status: string }>("select plan, status from tenants where tenant_id = $1", [tenantId]))[0] ?? { plan: "", status: "" },
    runJobs: async () => {
      for (const { name } of billing.jobs ?? []) await runJob({ app }, name);
    },
    receive: (event: object, secret?: string) => call.providerEvents(inside("ten_none" as TenantId, userOf("nobody")), signedEvent(event, secret)),
  };
};
export type Billing = Awaited<ReturnType<typeof openBilling>>;

let events = 0;
interface SubscriptionEvent {
  readonly tenantId: string;
  readonly at: Date;
  readonly status: string;
  readonly price?: string;
  readonly id?: string;
  readonly type?: "created" | "updated" | "deleted";
  readonly cancelAtPeriodEnd?: boolean;
}

/** As Stripe sends it, with the fields that matter and some that do not. */
export const subscriptionEvent = ({ tenantId, at, status, price = "price_pro_m", id = `sub_${tenantId}`, type = "updated", ...more }: SubscriptionEvent) => {
  events += 1;
  const created = Math.floor(at.getTime() / 1_000);
  return {
    id: `evt_${String(events).padStart(8, "0")}`,
    object: "event",
    api_version: "2026-10-28.endive",
    type: `customer.subscription.${type}`,
    created,
    data: {
      object: {
        id,
        object: "subscription",
        status,
        customer: `cus_${tenantId}`,
        metadata: { tenantId },
        cancel_at_period_end: more.cancelAtPeriodEnd ?? false,
        items: { object: "list", data: [{ id: "si_1", price: { id: price, currency: "usd" }, current_period_end: created + 30 * 86_400 }] },
      },
    },
  };
};

export const invoiceEvent = (tenantId: string, at: Date, type: string, invoice: { readonly id: string; readonly status: string; readonly paid?: number }) => {
  events += 1;
  const created = Math.floor(at.getTime() / 1_000);
  const { id, status, paid = 0 } = invoice;
  const parent = { type: "subscription_details", subscription_details: { subscription: `sub_${tenantId}`, metadata: { tenantId } } };
  const object = { id, object: "invoice", number: "A-1", status, currency: "usd", amount_due: 2_900, amount_paid: paid, created, parent };
  return { id: `evt_${String(events).padStart(8, "0")}`, object: "event", type: `invoice.${type}`, created, data: { object } };
};
