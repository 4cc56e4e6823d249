// The rules of subscriptions, without database or clock: which one counts, what plan follows, and which provider event is newer.
import { type BillingInterval, type BillingStatus, PLANS, type Plan } from "../../../protocol/index.ts";

export interface SubscriptionState {
  readonly subscriptionId: string;
  readonly provider: "trial" | "local" | "stripe";
  readonly plan: Plan;
  readonly interval: BillingInterval;
  readonly status: Exclude<BillingStatus, "none">;
  readonly customerId: string | null;
  readonly currentPeriodEnd: Date;
  readonly cancelAtPeriodEnd: boolean;
}

export interface StoredSubscription extends SubscriptionState {
  readonly pastDueSince: Date | null;
  readonly suspendedAt: Date | null;
  readonly trialToldAt: Date | null;
  readonly providerOrder: string;
  readonly updatedAt: Date;
}

const LIVE: ReadonlySet<BillingStatus> = new Set(["trialing", "active", "past_due", "unpaid"]);
export const isLive = ({ status }: Pick<SubscriptionState, "status">): boolean => LIVE.has(status);

export interface Standing {
  readonly status: BillingStatus;
  /** Null: billing has no say, and the tenant keeps its plan. */
  readonly plan: Plan | null;
  /** The live one that counts. */
  readonly subscription: StoredSubscription | null;
}

const rank = ({ provider, plan }: SubscriptionState): number => (provider === "trial" ? 0 : 1 + PLANS.indexOf(plan));

/** A paid subscription counts before a trial, the higher plan before the lower. Without a live one the plan is free. */
export const standingOf = (all: readonly StoredSubscription[]): Standing => {
  const [best] = all.filter(isLive).sort((a, b) => rank(b) - rank(a) || (a.subscriptionId < b.subscriptionId ? -1 : 1));
  if (best !== undefined) return { status: best.status, plan: best.plan, subscription: best };
  for (const status of ["paused", "canceled"] as const) if (all.some((each) => each.status === status)) return { status, plan: "free", subscription: null };
  return { status: all.length > 0 ? "incomplete" : "none", plan: null, subscription: null };
};

/** Something can be canceled or resumed only if somebody pays for it. */
export const paidOf = ({ subscription }: Standing): StoredSubscription | null => (subscription?.provider === "trial" ? null : subscription);

/** How far an event tells of a later point of a subscription's life than another of the same second. */
export type EventRank = 0 | 1 | 2 | 3;

/** Sorts like the events that it names: by time, then by rank, then by id, so that every order of arrival ends alike. */
export const providerOrderOf = (at: Date, eventRank: EventRank, eventId: string): string => `${String(at.getTime()).padStart(15, "0")}|${eventRank}|${eventId}`;

/** Whether the grace for a payment is over. */
export const isGraceOver = (pastDueSince: Date | null, graceMs: number, now: Date): boolean =>
  pastDueSince !== null && pastDueSince.getTime() + graceMs <= now.getTime();

/** The end of the period that begins at `from`. The day is cut to the month's last. */
export const periodEnd = (from: Date, interval: BillingInterval): Date => {
  const end = new Date(from);
  end.setUTCDate(1);
  end.setUTCMonth(end.getUTCMonth() + (interval === "annual" ? 12 : 1));
  const last = new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth() + 1, 0)).getUTCDate();
  end.setUTCDate(Math.min(from.getUTCDate(), last));
  return end;
};
