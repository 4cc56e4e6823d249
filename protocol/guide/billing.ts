// Guide to billing.
import type { Guide } from "./guide.ts";
import { AT, IDS } from "./records.ts";

const { tenantId } = IDS;
const NEXT_MONTH = "2026-12-21T09:30:00.000Z";
const limits = { hosts: 25, deployments: 75, apps: 100, storageGB: 250, customDomains: 15 };
const plan = {
  tier: "pro",
  name: "Pro",
  limits,
  features: ["Up to 25 hosts", "Hourly backups, kept for 90 days", "10 members with 3 custom roles"],
  monthlyPrice: 2_900,
  annualPrice: 2_400,
};
const usage = { deploymentCount: 4, hostCount: 12, appCount: 9, storageGB: 31, customDomainCount: 2, lastUpdated: AT };
const active = {
  billing: {
    plan: "pro",
    status: "active",
    entitlements: limits,
    updatedAt: AT,
    cancelAtPeriodEnd: false,
    interval: "monthly",
    currentPeriodEnd: NEXT_MONTH,
  },
  planDetails: plan,
  usage,
};
const canceled = { ...active, billing: { ...active.billing, cancelAtPeriodEnd: true, cancellationEffectiveDate: NEXT_MONTH } };

export const billing: Guide<"billing"> = {
  plans: {
    description: "Lists the plans with their prices and limits. A new tenant begins with a trial of `defaultPlan`; when it ends, the plan is `free`.",
    output: { plans: [plan], defaultPlan: "starter", trialDays: 14 },
  },
  get: { description: "Returns the plan, the state of the subscription, the limits that hold now, and what the tenant uses.", output: active },
  usage: {
    description: "Counts the tenant's resources now and compares them with its limits.",
    output: {
      ...usage,
      used: { hosts: 12, deployments: 4, apps: 9, storageGB: 31, customDomains: 2 },
      limits,
      percent: { hosts: 48, deployments: 5.3, apps: 9, storageGB: 12.4, customDomains: 13.3 },
    },
  },
  checkout: {
    description:
      "Send the user to `checkoutUrl`. The plan changes when the provider confirms the payment; without a payment provider it changes at once. A downgrade is refused while the tenant has more hosts or members than the plan allows. Of other resources the surplus stays, and none can be added.",
    input: { plan: "pro", interval: "monthly", email: "billing@acme.example" },
    output: { checkoutUrl: "https://checkout.stripe.com/c/pay/cs_live_a1b2c3", sessionId: "cs_live_a1b2c3", expiresAt: NEXT_MONTH },
  },
  portal: {
    description: "Returns a short-lived address where the customer changes the payment method and reads invoices.",
    input: {},
    output: { url: "https://billing.stripe.com/p/session/live_a1b2c3" },
  },
  cancel: {
    description: "By default the plan stays until the end of the period that is paid. Then the plan is `free`. Canceling again changes nothing.",
    input: { atPeriodEnd: true },
    output: canceled,
  },
  resume: { description: "Works until the end of the period. Resuming a subscription that is not canceled changes nothing.", output: active },
  preview: {
    description: "Says what a change of plan costs now and at each renewal, and of which resources the tenant would have too many. Changes nothing.",
    input: { plan: "team", interval: "monthly" },
    output: { plan: "team", interval: "monthly", currency: "usd", amountDue: 6_450, credit: 1_450, nextAmount: 7_900, over: [], blocked: false },
  },
  invoices: {
    description: "Lists invoices, newest first.",
    input: { page: 1, pageSize: 20 },
    output: {
      items: [
        {
          invoiceId: "in_1QZ4tK2eZvKYlo2C",
          tenantId,
          number: "ACME-0007",
          status: "paid",
          currency: "usd",
          amountDue: 2_900,
          amountPaid: 2_900,
          periodStart: AT,
          periodEnd: NEXT_MONTH,
          url: "https://invoice.stripe.com/i/acct_1/live_a1b2c3",
          issuedAt: AT,
        },
      ],
      total: 1,
    },
  },
  providerEvents: {
    description:
      "For Stripe: register this address there for `customer.subscription.*` and `invoice.*`, and set `STRIPE_WEBHOOK_SECRET`. Events may come twice and in any order. Over tRPC the body is the text in `payload`.",
    input: { payload: '{"id":"evt_1QZ4tK2eZvKYlo2C","type":"invoice.paid"}', signature: "t=1795339770,v1=2fddd1f7" },
    output: { received: true, duplicate: false },
  },
};
