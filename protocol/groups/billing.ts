// Billing: plans and prices, what a tenant has and uses, checkout, cancellation, invoices, and the events that the payment provider sends.
import { z } from "zod";
import { event } from "../kit/event.ts";
import { TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { Plan } from "./access/tenants.ts";

const Timestamp = z.iso.datetime();
const Cents = z.int().describe("Cents.");
/** By resource; null is unlimited. */
const Limits = z.record(z.string(), z.number().nullable());

export const BillingInterval = z.enum(["monthly", "annual"]);
export type BillingInterval = z.infer<typeof BillingInterval>;
/** `none`: the tenant never had a subscription. The others are Stripe's words. */
export const BILLING_STATUSES = ["none", "trialing", "active", "past_due", "unpaid", "paused", "canceled", "incomplete"] as const;
export type BillingStatus = (typeof BILLING_STATUSES)[number];

export const BillingPlan = z.object({
  tier: Plan,
  name: z.string(),
  limits: Limits.describe("What the plan allows, by resource; `null` is unlimited."),
  features: z.array(z.string()),
  monthlyPrice: Cents.describe("Cents a month."),
  annualPrice: Cents.describe("Cents a month if paid by the year."),
});
export type BillingPlan = z.infer<typeof BillingPlan>;
const BillingPlansResponse = z.object({ plans: z.array(BillingPlan), defaultPlan: Plan, trialDays: z.int() });

const BillingUsage = z.object({
  deploymentCount: z.int(),
  hostCount: z.int(),
  appCount: z.int(),
  storageGB: z.number(),
  customDomainCount: z.int(),
  lastUpdated: Timestamp.optional(),
});
export type BillingUsage = z.infer<typeof BillingUsage>;

const BillingState = z.object({
  plan: Plan,
  status: z.enum(BILLING_STATUSES),
  entitlements: Limits.optional().describe("The limits that hold for this tenant now, by resource; `null` is unlimited."),
  updatedAt: Timestamp.optional(),
  cancelAtPeriodEnd: z.boolean().optional(),
  cancellationEffectiveDate: Timestamp.optional(),
  interval: BillingInterval.optional(),
  currentPeriodEnd: Timestamp.optional(),
  trialEndsAt: Timestamp.optional(),
});
export const TenantBilling = z.object({ billing: BillingState, planDetails: BillingPlan.optional(), usage: BillingUsage.nullish() });
export type TenantBilling = z.infer<typeof TenantBilling>;

const OverLimit = z.object({ resource: z.string(), limit: z.number(), used: z.number() });
export type OverLimit = z.infer<typeof OverLimit>;

export const Invoice = z.object({
  invoiceId: z.string(),
  tenantId: TenantId,
  number: z.string().nullable(),
  status: z.enum(["draft", "open", "paid", "uncollectible", "void"]),
  currency: z.string(),
  amountDue: Cents,
  amountPaid: Cents,
  periodStart: Timestamp.nullable(),
  periodEnd: Timestamp.nullable(),
  url: z.string().nullable().describe("The provider's page of the invoice."),
  issuedAt: Timestamp,
});
export type Invoice = z.infer<typeof Invoice>;

const UsageReport = BillingUsage.extend({
  used: z.record(z.string(), z.number()).describe("Every resource that the gateway counts."),
  limits: Limits,
  percent: Limits.describe("How much of each limit is used; `null` if the resource is unlimited."),
});
const CheckoutSession = z.object({ checkoutUrl: z.url(), sessionId: z.string(), expiresAt: Timestamp });
const CustomerPortal = z.object({ url: z.url() });
const PlanPreview = z.object({
  plan: Plan,
  interval: BillingInterval,
  currency: z.string(),
  amountDue: Cents.describe("Cents due now."),
  credit: Cents.describe("Cents credited for the unused rest of the current period, already deducted from `amountDue`."),
  nextAmount: Cents.describe("Cents at each renewal."),
  over: z.array(OverLimit).describe("Resources of which the tenant has more than the plan allows. What exists stays; none can be added."),
  blocked: z.boolean().describe("True if hosts or members are over the limit; checkout then answers `PLAN_DOWNGRADE_BLOCKED`."),
});
const EventReceipt = z.object({ received: z.literal(true), duplicate: z.boolean() });

const PaidPlan = z.enum(["starter", "pro", "team", "business"]).describe("To return to `free`, cancel the subscription.");
export type PaidPlan = z.infer<typeof PaidPlan>;
const ReturnUrl = z.url({ protocol: /^https?$/ }).max(2_048);
const order = { plan: PaidPlan, interval: BillingInterval.default("monthly") };
const mayPay = { auth: ["user"], permission: "billing:write", whileSuspended: true } as const;

export const billing = group({
  tag: "Billing",
  records: { BillingPlan, BillingPlansResponse, TenantBilling, BillingUsage, UsageReport, CheckoutSession, CustomerPortal, PlanPreview, EventReceipt, Invoice },
  operations: {
    plans: query({
      summary: "List the plans",
      rest: ["GET /billing/plans"],
      auth: ["public"],
      permission: "public",
      tenancy: "none",
      limit: "anonymous",
      input: z.strictObject({}),
      output: BillingPlansResponse,
    }),
    get: query({
      summary: "Get the tenant's billing",
      rest: ["GET /billing"],
      auth: ["user", "apiKey"],
      permission: "billing:read",
      input: z.strictObject({}),
      output: TenantBilling,
    }),
    usage: query({
      summary: "Get the tenant's usage beside its limits",
      rest: ["GET /billing/usage"],
      auth: ["user", "apiKey"],
      permission: "billing:read",
      input: z.strictObject({}),
      output: UsageReport,
    }),
    checkout: mutation({
      ...mayPay,
      summary: "Subscribe to a plan or change it",
      rest: ["POST /billing/checkout"],
      status: 201,
      input: z.strictObject({ ...order, email: z.email().max(254).optional(), successUrl: ReturnUrl.optional(), cancelUrl: ReturnUrl.optional() }),
      output: CheckoutSession,
      errors: ["BILLING_NOT_CONFIGURED", "PLAN_UNCHANGED", "PLAN_DOWNGRADE_BLOCKED", "RETURN_URL_NOT_ALLOWED", "SERVICE_UNAVAILABLE"],
    }),
    portal: mutation({
      ...mayPay,
      summary: "Open the provider's customer portal",
      rest: ["POST /billing/portal"],
      input: z.strictObject({ returnUrl: ReturnUrl.optional() }),
      output: CustomerPortal,
      errors: ["BILLING_NOT_CONFIGURED", "NO_ACTIVE_SUBSCRIPTION", "RETURN_URL_NOT_ALLOWED", "SERVICE_UNAVAILABLE"],
    }),
    cancel: mutation({
      ...mayPay,
      summary: "Cancel the subscription",
      rest: ["POST /billing/cancel"],
      input: z.strictObject({ atPeriodEnd: z.boolean().default(true).describe("False ends the subscription at once, without a refund.") }),
      output: TenantBilling,
      errors: ["NO_ACTIVE_SUBSCRIPTION", "BILLING_NOT_CONFIGURED", "SERVICE_UNAVAILABLE"],
    }),
    resume: mutation({
      ...mayPay,
      summary: "Take back a cancellation",
      rest: ["POST /billing/resume"],
      input: z.strictObject({}),
      output: TenantBilling,
      errors: ["NO_ACTIVE_SUBSCRIPTION", "BILLING_NOT_CONFIGURED", "SERVICE_UNAVAILABLE"],
    }),
    preview: query({
      ...mayPay,
      summary: "Preview a change of plan",
      rest: ["POST /billing/preview"],
      input: z.strictObject(order),
      output: PlanPreview,
      errors: ["BILLING_NOT_CONFIGURED", "SERVICE_UNAVAILABLE"],
    }),
    invoices: query({
      summary: "List invoices",
      rest: ["GET /billing/invoices"],
      auth: ["user", "apiKey"],
      permission: "billing:read",
      list: "page",
      input: listQuery({ sort: ["issuedAt"], by: "-issuedAt" }),
      output: paged(Invoice),
    }),
    providerEvents: mutation({
      summary: "Receive an event of the payment provider",
      rest: ["POST /billing/provider-events"],
      auth: ["public"],
      permission: "public",
      tenancy: "none",
      // A provider sends bursts from few addresses; nothing is read before the signature is checked.
      limit: "none",
      idempotency: "none",
      headers: { signature: "stripe-signature" },
      rawBody: "payload",
      maxBodyBytes: 262_144,
      input: z.strictObject({
        payload: z.string().max(262_144).describe("The event, byte for byte as it was signed."),
        signature: z.string().min(1).max(2_048).describe("Stripe's signature of the body."),
      }),
      output: EventReceipt,
      errors: ["INVALID_SIGNATURE", "VALIDATION_FAILED"],
    }),
  },
  events: {
    planChanged: event("billing.plan_changed", z.object({ tenantId: TenantId, from: z.string(), to: Plan }), "A tenant's plan changed"),
    trialEnding: event("billing.trial_ending", z.object({ tenantId: TenantId, plan: Plan, endsAt: Timestamp }), "A trial ends within three days"),
    paymentFailed: event(
      "billing.payment_failed",
      z.object({ tenantId: TenantId, invoiceId: z.string(), amountDue: z.int(), currency: z.string() }),
      "A payment failed",
    ),
    subscriptionCanceled: event("billing.subscription_canceled", z.object({ tenantId: TenantId, plan: Plan }), "A subscription ended"),
    limitWarning: event(
      "billing.limit_warning",
      z.object({ tenantId: TenantId, resource: z.string(), limit: z.number(), used: z.number() }),
      "A tenant uses 80 % of a plan limit",
    ),
    limitReached: event(
      "billing.limit_reached",
      z.object({ tenantId: TenantId, resource: z.string(), limit: z.number(), used: z.number() }),
      "A tenant has reached a plan limit",
    ),
  },
});
