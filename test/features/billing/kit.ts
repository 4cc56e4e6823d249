// Billing with tenants and API keys on one database, with a clock that the test moves and Stripe as the test wants it.

import { randomBytes, randomUUID } from "node:crypto";
import { contract, type TenantId } from "../../../protocol/index.ts";
import { createTestClock, systemClock } from "../../../server/core/clock.ts";
import type { Emit, Happened } from "../../../server/core/events.ts";
import { unwatched } from "../../../server/core/ports/security.ts";
import { createApiKeys } from "../../../server/features/api-keys/index.ts";
import { createAuditTrail } from "../../../server/features/audit/index.ts";
import { createBeginTrial, createBilling, createTellCrossing } from "../../../server/features/billing/index.ts";
import { deploymentGroups } from "../../../server/features/deployments/index.ts";
import { createToLimit } from "../../../server/features/fleets/device-limits.ts";
import { type Counters, createPlan, createTenants } from "../../../server/features/tenants/index.ts";
import { openDb } from "../../../server/platform/database/db.ts";
import { deleteRowsOf } from "../../../server/platform/database/delete-tenant.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { createOutboundFetch } from "../../../server/platform/outbound/fetch.ts";
import { createTrustedOutbound } from "../../../server/platform/outbound/outbound.ts";
import { insertEvents } from "../../../server/platform/outbox/outbox-rows.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { callable, inside, userOf } from "../../kit/gateway/call.ts";
import { signedEvent, WEBHOOK_SECRET } from "../../kit/net/stripe.ts";
import { createTestDatabase, namedStatements } from "../../kit/stores/database.ts";

export const PORTAL = "https://portal.example";
export const PRICES = { starter: { monthly: "price_starter_m" }, pro: { monthly: "price_pro_m", annual: "price_pro_a" }, team: { monthly: "price_team_m" } };
export const DAY_MS = 86_400_000;

export const openBilling = async (stripe: { readonly secretKey?: string; readonly apiUrl?: string } = {}) => {
  const db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 8, log: silentLog, namedStatements });
  const clock = createTestClock(new Date());
  const emitted: Happened[] = [];
  const emit: Emit = async (tx, events) => {
    await insertEvents(tx, events);
    // No relay runs here, and a tenant that goes waits for its events.
    await tx.query("delete from outbox_pending");
    emitted.push(...events);
  };
  const counters: Counters = { ...deploymentGroups.counters };
  const plan = createPlan({ counters, crossed: createTellCrossing(emit) });
  const secretBox = createSecretBox(randomBytes(32));
  const audit = createAuditTrail({ secretBox });
  const tenants = createTenants({
    db,
    clock,
    emit,
    audit,
    deployments: deploymentGroups,
    counters,
    ownedTenantsPerUser: 3,
    beginTrial: createBeginTrial(clock),
    deleteRows: (scope, limit) => deleteRowsOf(db, scope, limit),
    endBilling: (scope) => billing.end(scope),
    countBackups: async () => 0,
    appStates: async () => new Map(),
    deviceStates: async () => ({ online: 0, offline: 0, provisioning: 0 }),
    deviceIds: async () => [],
    recentEvents: async () => [],
    toLimit: createToLimit(db),
    nodeId: "test",
    flags: () => ({ isOn: async () => true, on: async () => [] }),
    loadCalls: () => ({ operationOf: () => null, get: async () => ({ status: 200, code: null }) }),
    onError: () => undefined,
  });
  const apiKeys = createApiKeys({
    watch: unwatched,
    checkSelector: async () => undefined,
    toLimit: createToLimit(db),
    db,
    clock,
    emit,
    audit,
    memberships: tenants.memberships,
    plan,
    secretBox,
  });
  const billing = createBilling({
    db,
    clock,
    emit,
    plan,
    counters,
    tenants: tenants.standing,
    settings: {
      graceDays: 14,
      stripe: {
        secretKey: stripe.secretKey,
        webhookSecret: WEBHOOK_SECRET,
        prices: PRICES,
        apiUrl: stripe.apiUrl,
        fetch: createOutboundFetch({ outbound: createTrustedOutbound(systemClock), owner: "stripe", timeoutMs: 10_000, maxBodyBytes: 4_194_304 }),
      },
      portalUrl: () => PORTAL,
      isReturnAllowed: (url) => new URL(url).origin === PORTAL,
    },
  });
  Object.assign(counters, tenants.counters, apiKeys.counters);
  const call = { ...callable(contract.billing, billing.handlers, db), createKey: callable(contract.apiKeys, apiKeys.handlers, db).create };
  const newTenant = async () => {
    const userId = `u-${randomUUID()}`;
    const caller = { ...inside("ten_none" as TenantId, userOf(userId, `${userId}@users.example`, "owner")), tenantId: null, tenant: null };
    const create = callable(contract.tenants, tenants.handlers, db).create;
    const { tenantId } = await create(caller, { name: "Test", slug: `t-${randomUUID().slice(0, 13)}`, userId });
    return { tenantId: tenantId as TenantId, userId, scope: inside(tenantId as TenantId, userOf(userId, `${userId}@users.example`, "owner")) };
  };
  const jobs = [...(billing.jobs ?? []), ...tenants.jobs];
  return {
    db,
    clock,
    emitted,
    runJob: async (name: string) => jobs.find((job) => job.name === name)?.run(new AbortController().signal),
    isAnswering: billing.isAnswering,
    stuck: async () => billing.stuck?.(100),
    plan,
    tenants,
    call,
    newTenant,
    eventsOf: (tenantId: string) => emitted.filter(({ subjectId, event }) => subjectId === tenantId && event.type.startsWith("billing.")),
    rowOf: async (tenantId: string) =>
      (await db.query<{ plan: string; status: string }>("select plan, status from tenants where tenant_id = $1", [tenantId]))[0] ?? { plan: "", status: "" },
    runJobs: async () => {
      for (const job of billing.jobs ?? []) while ((await job.run(new AbortController().signal)) === true);
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
