// Stripe as payment provider: hosted checkout, customer portal, cancellation and previews. What a customer does there comes back as events.
import type Stripe from "stripe";
import type { BillingInterval, PaidPlan } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { BillingProvider, Checkout, Order, PlanOfPrice } from "./provider.ts";
import type { StoredSubscription, SubscriptionState } from "./rules.ts";
import { loadStripe, StripeSubscription, stateOf } from "./stripe-events.ts";

/** Ids of prices in Stripe. */
export type StripePrices = Readonly<Partial<Record<PaidPlan, Readonly<Partial<Record<BillingInterval, string>>>>>>;

export const planOfPriceIn =
  (prices: StripePrices): PlanOfPrice =>
  (priceId) => {
    for (const [plan, byInterval] of Object.entries(prices))
      for (const [interval, id] of Object.entries(byInterval)) if (id === priceId) return { plan: plan as PaidPlan, interval: interval as BillingInterval }; // as: entries lose their keys
    return null;
  };

export interface StripeDeps {
  readonly secretKey: string;
  readonly prices: StripePrices;
  /** For a proxy or a stand-in. */
  readonly apiUrl: string | undefined;
  readonly clock: Clock;
  readonly fetch: typeof fetch;
}

export interface StripeProvider extends BillingProvider {
  /** False for some minutes after a call that Stripe did not serve. */
  isAnswering(): boolean;
}

const TIMEOUT_MS = 10_000;
// Stripe ends an unused session of the portal after some minutes.
const PORTAL_SESSION_MS = 300_000;

const open = async ({ secretKey, apiUrl, fetch }: StripeDeps): Promise<Stripe> => {
  const Library = await loadStripe();
  const at = apiUrl === undefined ? null : new URL(apiUrl);
  const host = at === null ? {} : { host: at.hostname, protocol: at.protocol === "http:" ? ("http" as const) : ("https" as const), port: at.port };
  return new Library(secretKey, { timeout: TIMEOUT_MS, maxNetworkRetries: 1, telemetry: false, httpClient: Library.createFetchHttpClient(fetch), ...host });
};

// Nobody may call again for hours, and then nobody knows.
const RECENT_MS = 300_000;
const OVER: ReadonlySet<string> = new Set(["canceled", "incomplete_expired"]);

/** Stripe refuses to cancel what is canceled. */
const cancelNow = async (subscriptions: Stripe["subscriptions"], subscriptionId: string): Promise<Stripe.Subscription> => {
  try {
    return await subscriptions.cancel(subscriptionId);
  } catch (error) {
    const found = await subscriptions.retrieve(subscriptionId);
    if (!OVER.has(found.status)) throw error;
    return found;
  }
};

export const createStripeProvider = (deps: StripeDeps): StripeProvider => {
  const planOfPrice = planOfPriceIn(deps.prices);
  let opened: Promise<Stripe> | null = null;
  let failedAtMs = Number.NEGATIVE_INFINITY;

  /** Every failure of Stripe, a refused key included, is ours and not the caller's. */
  const ask = async <T>(work: (stripe: Stripe) => Promise<T>): Promise<T> => {
    opened ??= open(deps);
    const stripe = await opened;
    try {
      const done = await work(stripe);
      failedAtMs = Number.NEGATIVE_INFINITY;
      return done;
    } catch (cause) {
      if (!(cause instanceof stripe.errors.StripeInvalidRequestError)) failedAtMs = deps.clock.elapsed();
      throw new AppError("SERVICE_UNAVAILABLE", { details: { reason: "billing_provider" }, retryAfter: 5, cause });
    }
  };

  const priceFor = ({ plan, interval }: Pick<Order, "plan" | "interval">): string => {
    const price = deps.prices[plan]?.[interval];
    if (price === undefined) throw new AppError("BILLING_NOT_CONFIGURED", { details: { plan, interval } });
    return price;
  };

  const stateFrom = (subscription: Stripe.Subscription, before: StoredSubscription): SubscriptionState => {
    const state = stateOf(StripeSubscription.parse(subscription), planOfPrice);
    return state ?? before;
  };

  const itemOf = async (stripe: Stripe, { subscriptionId }: StoredSubscription): Promise<string> => {
    const [item] = (await stripe.subscriptions.retrieve(subscriptionId)).items.data;
    if (item === undefined) throw new Error(`subscription ${subscriptionId} has no item`);
    return item.id;
  };

  const isOurs = (subscription: StoredSubscription | null): subscription is StoredSubscription & { readonly customerId: string } =>
    subscription?.provider === "stripe" && subscription.customerId !== null;

  const subscribe = ({ tenantId, customerId, email, successUrl, cancelUrl, key }: Order, price: string): Promise<Checkout> =>
    ask(async (stripe) => {
      const metadata = { tenantId };
      const customer = customerId === null ? (email === null ? {} : { customer_email: email }) : { customer: customerId };
      const session = await stripe.checkout.sessions.create(
        {
          mode: "subscription",
          line_items: [{ price, quantity: 1 }],
          client_reference_id: tenantId,
          metadata,
          subscription_data: { metadata },
          success_url: successUrl,
          cancel_url: cancelUrl,
          ...customer,
        },
        key === null ? {} : { idempotencyKey: key },
      );
      if (session.url === null) throw new Error(`session ${session.id} has no address`);
      return { checkoutUrl: session.url, sessionId: session.id, expiresAt: new Date(session.expires_at * 1_000), done: null };
    });

  /** The customer confirms the change, and what it costs, on a page of the portal. */
  const change = (current: StoredSubscription & { readonly customerId: string }, { successUrl }: Order, price: string): Promise<Checkout> =>
    ask(async (stripe) => {
      const items = [{ id: await itemOf(stripe, current), price, quantity: 1 }];
      const session = await stripe.billingPortal.sessions.create({
        customer: current.customerId,
        return_url: successUrl,
        flow_data: {
          type: "subscription_update_confirm",
          subscription_update_confirm: { subscription: current.subscriptionId, items },
          after_completion: { type: "redirect", redirect: { return_url: successUrl } },
        },
      });
      return { checkoutUrl: session.url, sessionId: session.id, expiresAt: new Date(session.created * 1_000 + PORTAL_SESSION_MS), done: null };
    });

  return {
    name: "stripe",
    isAnswering: () => deps.clock.elapsed() - failedAtMs > RECENT_MS,
    checkout: (order) => {
      const price = priceFor(order);
      return isOurs(order.current) ? change(order.current, order, price) : subscribe(order, price);
    },
    portal: ({ customerId, returnUrl }) => {
      if (customerId === null) throw new AppError("NO_ACTIVE_SUBSCRIPTION");
      return ask(async (stripe) => (await stripe.billingPortal.sessions.create({ customer: customerId, return_url: returnUrl })).url);
    },
    cancel: (subscription, atPeriodEnd) =>
      ask(async (stripe) => {
        const { subscriptionId } = subscription;
        const { subscriptions } = stripe;
        return stateFrom(
          await (atPeriodEnd ? subscriptions.update(subscriptionId, { cancel_at_period_end: true }) : cancelNow(subscriptions, subscriptionId)),
          subscription,
        );
      }),
    resume: (subscription) =>
      ask(async ({ subscriptions }) => stateFrom(await subscriptions.update(subscription.subscriptionId, { cancel_at_period_end: false }), subscription)),
    preview: ({ current, ...wanted }) => {
      const priceId = priceFor(wanted);
      return ask(async (stripe) => {
        const { currency, unit_amount } = await stripe.prices.retrieve(priceId);
        const nextAmount = unit_amount ?? 0;
        if (!isOurs(current)) return { currency, amountDue: nextAmount, credit: 0, nextAmount };
        const items = [{ id: await itemOf(stripe, current), price: priceId, quantity: 1 }];
        const invoice = await stripe.invoices.createPreview({
          customer: current.customerId,
          subscription: current.subscriptionId,
          subscription_details: { items },
        });
        const credit = invoice.lines.data.reduce((sum, { amount }) => sum - Math.min(0, amount), 0);
        return { currency, amountDue: invoice.amount_due, credit, nextAmount };
      });
    },
  };
};
