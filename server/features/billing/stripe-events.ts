// Events of Stripe: proves the signature with Stripe's own library and reads of an event what billing needs, whatever API version wrote it.
import { z } from "zod";
import type { TenantId } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { InvoiceState, PlanOfPrice, ProviderEvent, ReadProviderEvent } from "./provider.ts";
import type { EventRank, SubscriptionState } from "./rules.ts";

// Nothing longer, and no control characters: the texts become keys of rows.
const Text = z.string().regex(/^[\x20-\x7e]{1,255}$/);
const Seconds = z.number().min(0).max(253_402_300_799);
const Metadata = z.looseObject({ tenantId: z.string().optional() }).nullish();
const Customer = z.union([Text, z.looseObject({ id: Text })]).nullish();

const Event = z.looseObject({
  id: Text,
  type: Text,
  created: Seconds,
  data: z.looseObject({ object: z.unknown() }),
});

export const StripeSubscription = z.looseObject({
  id: Text,
  status: Text,
  customer: Customer,
  metadata: Metadata,
  cancel_at_period_end: z.boolean().optional(),
  cancel_at: Seconds.nullish(),
  current_period_end: Seconds.optional(),
  items: z.looseObject({ data: z.array(z.looseObject({ id: Text, price: z.looseObject({ id: Text }), current_period_end: Seconds.optional() })).min(1) }),
});
type StripeSubscription = z.infer<typeof StripeSubscription>;

const Cents = z.number().max(Number.MAX_SAFE_INTEGER).min(Number.MIN_SAFE_INTEGER);
const StripeInvoice = z.looseObject({
  id: Text,
  number: Text.nullish(),
  status: z.enum(["draft", "open", "paid", "uncollectible", "void"]),
  currency: Text,
  amount_due: Cents,
  amount_paid: Cents,
  created: Seconds,
  period_start: Seconds.nullish(),
  period_end: Seconds.nullish(),
  hosted_invoice_url: z.string().max(2_048).nullish(),
  parent: z.looseObject({ subscription_details: z.looseObject({ metadata: Metadata }).nullish() }).nullish(),
  subscription_details: z.looseObject({ metadata: Metadata }).nullish(),
});

const STATUSES: ReadonlyMap<string, SubscriptionState["status"]> = new Map([
  ["trialing", "trialing"],
  ["active", "active"],
  ["past_due", "past_due"],
  ["unpaid", "unpaid"],
  ["paused", "paused"],
  ["canceled", "canceled"],
  ["incomplete", "incomplete"],
  // The first payment never came, so the subscription never was.
  ["incomplete_expired", "incomplete"],
]);

const dateOf = (seconds: number): Date => new Date(seconds * 1_000);
const orNull = (seconds: number | null | undefined): Date | null => (seconds == null ? null : dateOf(seconds));
const idOf = (customer: z.infer<typeof Customer>): string | null => (typeof customer === "string" ? customer : (customer?.id ?? null));
const isTenantId = (text: string | undefined): text is TenantId => text !== undefined && /^ten_[0-9A-Za-z]{20,32}$/.test(text);

/** Null for a status or a price that is not ours. */
export const stateOf = (subscription: StripeSubscription, planOfPrice: PlanOfPrice): SubscriptionState | null => {
  const [item] = subscription.items.data;
  const sold = item === undefined ? null : planOfPrice(item.price.id);
  const status = STATUSES.get(subscription.status);
  const endsAt = item?.current_period_end ?? subscription.current_period_end ?? subscription.cancel_at;
  if (sold === null || status === undefined || endsAt == null) return null;
  return {
    subscriptionId: subscription.id,
    provider: "stripe",
    ...sold,
    status,
    customerId: idOf(subscription.customer),
    currentPeriodEnd: dateOf(endsAt),
    // A cancellation in the customer portal sets a date instead of the flag.
    cancelAtPeriodEnd: subscription.cancel_at_period_end === true || subscription.cancel_at != null,
  };
};

const invoiceOf = (invoice: z.infer<typeof StripeInvoice>): InvoiceState => ({
  invoiceId: invoice.id,
  number: invoice.number ?? null,
  status: invoice.status,
  currency: invoice.currency,
  amountDue: Math.round(invoice.amount_due),
  amountPaid: Math.round(invoice.amount_paid),
  periodStart: orNull(invoice.period_start),
  periodEnd: orNull(invoice.period_end),
  url: invoice.hosted_invoice_url ?? null,
  issuedAt: dateOf(invoice.created),
});

const read = <S extends z.ZodType>(schema: S, value: unknown): z.output<S> => {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, 10).map(({ path, code, message }) => ({ path: `payload.${path.join(".")}`, code, message }));
  throw new AppError("VALIDATION_FAILED", { details: { issues } });
};

const INVOICE_EVENTS: ReadonlySet<string> = new Set(
  ["created", "finalized", "updated", "paid", "payment_succeeded", "payment_failed", "marked_uncollectible", "voided"].map((name) => `invoice.${name}`),
);

/** Within one second a subscription is created, then changed, then deleted; what is paid stays paid. */
const rankOf = (type: string, status: string): EventRank => {
  if (type === "customer.subscription.deleted" || status === "void") return 3;
  if (type === "customer.subscription.created" || status === "draft") return 0;
  return status === "incomplete" || status === "open" ? 1 : 2;
};

/** Part of an event whose signature is proven. */
const changeOf = (type: string, object: unknown, planOfPrice: PlanOfPrice): Pick<ProviderEvent, "change" | "rank"> => {
  if (type.startsWith("customer.subscription.")) {
    const sent = read(StripeSubscription, object);
    const tenantId = sent.metadata?.tenantId;
    const subscription = stateOf(sent, planOfPrice);
    const change = isTenantId(tenantId) && subscription !== null ? ({ kind: "subscription", tenantId, subscription } as const) : null;
    return { change, rank: rankOf(type, sent.status) };
  }
  if (!INVOICE_EVENTS.has(type)) return { change: null, rank: 0 };
  const sent = read(StripeInvoice, object);
  const tenantId = (sent.parent?.subscription_details ?? sent.subscription_details)?.metadata?.tenantId;
  const failed = type === "invoice.payment_failed";
  return { change: isTenantId(tenantId) ? { kind: "invoice", tenantId, invoice: invoiceOf(sent), failed } : null, rank: rankOf(type, sent.status) };
};

/** The library takes 20 MB and a tenth of a second, so only an installation that uses it loads it. */
export const loadStripe = async () => (await import("stripe")).default;

export interface StripeEventsDeps {
  /** Undefined: nobody can sign. */
  readonly webhookSecret: string | undefined;
  readonly planOfPrice: PlanOfPrice;
}

export const createReadStripeEvent = ({ webhookSecret, planOfPrice }: StripeEventsDeps): ReadProviderEvent => {
  return async (payload, signature) => {
    if (webhookSecret === undefined) throw new AppError("INVALID_SIGNATURE", { details: { reason: "signature_mismatch" } });
    const Stripe = await loadStripe();
    let event: unknown;
    try {
      // The key is for calls of the API; none is made here.
      event = new Stripe("sk_unused").webhooks.constructEvent(payload, signature, webhookSecret);
    } catch (cause) {
      throw new AppError("INVALID_SIGNATURE", { details: { reason: "signature_mismatch" }, cause });
    }
    const { id, type, created, data } = read(Event, event);
    return { eventId: id, type, at: dateOf(created), ...changeOf(type, data.object, planOfPrice) };
  };
};
