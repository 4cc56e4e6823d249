// The provider of an installation without a payment provider: a checkout is complete at once, nobody pays, and a job renews the periods.
import type { Plan } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import { CURRENCY, priceOf } from "./prices.ts";
import type { BillingProvider, InvoiceState, Order, Quote } from "./provider.ts";
import { periodEnd, type StoredSubscription, type SubscriptionState } from "./rules.ts";

const MONTH_MS = 30 * 86_400_000;

/** For the rest of the period that is paid, at most a whole period. */
const creditOf = (current: StoredSubscription | null, now: Date): number => {
  if (current === null || current.provider !== "local" || current.status !== "active") return 0;
  const left = (current.currentPeriodEnd.getTime() - now.getTime()) / (current.interval === "annual" ? 12 * MONTH_MS : MONTH_MS);
  return Math.floor(priceOf(current.plan, current.interval) * Math.min(1, Math.max(0, left)));
};

const quote = ({ plan, interval, current }: Pick<Order, "plan" | "interval" | "current">, now: Date): Quote => {
  const nextAmount = priceOf(plan, interval);
  const credit = Math.min(nextAmount, creditOf(current, now));
  return { currency: CURRENCY, amountDue: nextAmount - credit, credit, nextAmount };
};

export const localInvoice = (period: { readonly start: Date; readonly end: Date }, amount: number): InvoiceState => ({
  invoiceId: newId("bin"),
  number: null,
  status: "paid",
  currency: CURRENCY,
  amountDue: amount,
  amountPaid: amount,
  periodStart: period.start,
  periodEnd: period.end,
  url: null,
  issuedAt: period.start,
});

const localState = ({ tenantId, plan, interval }: Pick<Order, "tenantId" | "interval"> & { readonly plan: Plan }, now: Date): SubscriptionState => ({
  subscriptionId: `local_${tenantId}`,
  provider: "local",
  plan,
  interval,
  status: "active",
  customerId: null,
  currentPeriodEnd: periodEnd(now, interval),
  cancelAtPeriodEnd: false,
});

export const createLocalProvider = (clock: Clock): BillingProvider => ({
  name: "local",
  checkout: async (order) => {
    const now = clock.now();
    const subscription = localState(order, now);
    const invoice = localInvoice({ start: now, end: subscription.currentPeriodEnd }, quote(order, now).amountDue);
    return { checkoutUrl: order.successUrl, sessionId: newId("bcs"), expiresAt: now, done: { subscription, invoice } };
  },
  portal: async ({ returnUrl }) => returnUrl,
  cancel: async (subscription, atPeriodEnd) => (atPeriodEnd ? { ...subscription, cancelAtPeriodEnd: true } : { ...subscription, status: "canceled" }),
  resume: async (subscription) => ({ ...subscription, cancelAtPeriodEnd: false }),
  preview: async (order) => quote(order, clock.now()),
});
