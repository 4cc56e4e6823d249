// The sentences of usage and billing.
import { capitalized, inWords } from "../../../../protocol/kit/words.ts";
import { numbers } from "../../ui/count.ts";

const moneyOf = (cents: number, currency: string): string =>
  new Intl.NumberFormat(undefined, { style: "currency", currency: currency.toUpperCase(), minimumFractionDigits: cents % 100 === 0 ? 0 : 2 }).format(
    cents / 100,
  );

export const money = moneyOf;
/** A later gateway may count what this console does not know. */
export const resourceName = (resource: string): string => capitalized(inWords(resource));

export const text = {
  title: "Usage and billing",
  usageTitle: "Usage and limits",
  plan: "Plan",
  usage: "Usage",
  plans: "Plans",
  invoices: "Invoices",
  noInvoices: "Invoices appear here after the first payment.",
  statuses: {
    none: "no subscription",
    trialing: "trial",
    active: "active",
    past_due: "payment is late",
    unpaid: "not paid",
    paused: "paused",
    canceled: "canceled",
    incomplete: "payment not completed",
  },
  intervals: { monthly: "by the month", annual: "by the year" },
  pastDue: "The last payment failed. Change the payment method before the tenant is suspended.",
  unpaid: "The subscription is not paid, so the tenant is suspended: you can read, but not change anything. Pay to go on.",
  suspended: "The tenant is suspended: you can read, but not change anything.",
  ending: (day: string) => `The subscription is canceled. The plan stays until ${day}, then it is Free.`,
  trial: (day: string) => `The trial ends on ${day}. Then the plan is Free, unless you choose one.`,
  current: "your plan",
  choose: "Choose",
  perMonth: "a month",
  free: "free",
  chooseTitle: (name: string) => `Change to ${name}`,
  now: "To pay now",
  credit: "Credit for what is paid already",
  next: "At each renewal",
  over: (resource: string, used: number, limit: number) =>
    `${resourceName(resource)}: you have ${numbers.format(used)}, the plan allows ${numbers.format(limit)}.`,
  overNote: "What exists stays; none can be added.",
  blocked: "Remove devices or members first: this plan allows fewer than you have.",
  confirm: (name: string) => `Change to ${name}`,
  portal: "Payment method and receipts",
  cancel: "Cancel the subscription",
  cancelTitle: "Cancel the subscription?",
  cancelEnd: (day: string) => `at the end of what is paid, on ${day}`,
  cancelNow: "at once, without a refund",
  cancelWhen: "It ends",
  cancelNote: "Then the plan is Free. What exists beyond its limits stays, and none can be added.",
  resume: "Keep the subscription",
  forOwners: "Only owners change the plan.",
} as const;
