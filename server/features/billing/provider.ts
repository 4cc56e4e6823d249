// What billing asks of a payment provider, and what a provider tells by its events. Stripe implements it, and so does the gateway itself.
import type { BillingInterval, Invoice, PaidPlan, Plan, TenantId } from "../../../protocol/index.ts";
import type { EventRank, StoredSubscription, SubscriptionState } from "./rules.ts";

export interface Order {
  readonly tenantId: TenantId;
  readonly plan: PaidPlan;
  readonly interval: BillingInterval;
  readonly email: string | null;
  readonly successUrl: string;
  readonly cancelUrl: string;
  /** The provider charges once for one key. */
  readonly key: string | null;
  /** The paid subscription that the order changes. */
  readonly current: StoredSubscription | null;
  readonly customerId: string | null;
}

export interface Checkout {
  readonly checkoutUrl: string;
  readonly sessionId: string;
  readonly expiresAt: Date;
  /** Set if the checkout is complete already. */
  readonly done: { readonly subscription: SubscriptionState; readonly invoice: InvoiceState | null } | null;
}

export interface Quote {
  readonly currency: string;
  readonly amountDue: number;
  readonly credit: number;
  readonly nextAmount: number;
}

export interface InvoiceState extends Omit<Invoice, "tenantId" | "periodStart" | "periodEnd" | "issuedAt"> {
  readonly periodStart: Date | null;
  readonly periodEnd: Date | null;
  readonly issuedAt: Date;
}

/** Network calls: make them before the transaction. A provider that is away is SERVICE_UNAVAILABLE. */
export interface BillingProvider {
  readonly name: "local" | "stripe";
  checkout(order: Order): Promise<Checkout>;
  /** The address of the customer portal. */
  portal(customer: { readonly customerId: string | null; readonly returnUrl: string }): Promise<string>;
  cancel(subscription: StoredSubscription, atPeriodEnd: boolean): Promise<SubscriptionState>;
  resume(subscription: StoredSubscription): Promise<SubscriptionState>;
  preview(order: Pick<Order, "plan" | "interval" | "current">): Promise<Quote>;
}

export interface ProviderEvent {
  readonly eventId: string;
  readonly type: string;
  readonly at: Date;
  readonly rank: EventRank;
  /** Null: of no interest here. */
  readonly change:
    | { readonly kind: "subscription"; readonly tenantId: TenantId; readonly subscription: SubscriptionState }
    | { readonly kind: "invoice"; readonly tenantId: TenantId; readonly invoice: InvoiceState; readonly failed: boolean }
    | null;
}

/** Throws INVALID_SIGNATURE for a body that the provider did not sign, and VALIDATION_FAILED for one that nobody can read. */
export type ReadProviderEvent = (payload: string, signature: string) => Promise<ProviderEvent>;

export type PlanOfPrice = (priceId: string) => { readonly plan: Plan; readonly interval: BillingInterval } | null;
