// Background work of billing: ends trials and canceled periods, renews what the gateway sold itself, suspends who has not paid, announces ends of trials.
// Each batch is bounded; each tenant has a transaction of its own, which looks again under the lock, so two nodes do no more than one.
import { contract } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import { localInvoice } from "./local-provider.ts";
import { priceOf } from "./prices.ts";
import { isGraceOver, periodEnd, providerOrderOf, type StoredSubscription } from "./rules.ts";
import { writeInvoice } from "./store/invoices.ts";
import { deleteProviderEvents } from "./store/provider-events.ts";
import { type DueSubscription, findDueSubscriptions, findSubscription, graceOver, periodsOver, trialsEnding, writeTrialTold } from "./store/subscriptions.ts";
import type { Subscriptions } from "./subscriptions.ts";

export interface BillingJobsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly subscriptions: Subscriptions;
  readonly forget: (tenantId: string) => void;
  readonly graceMs: number;
}

const BATCH = 100;
const MINUTE_MS = 60_000;
const TELL_BEFORE_SECONDS = 3 * DAY_SECONDS;
// Stripe repeats an event for three days, and people by hand for thirty.
const KEEP_EVENTS_SECONDS = 60 * DAY_SECONDS;

export const createBillingJobs = ({ db, clock, emit, subscriptions, forget, graceMs }: BillingJobsDeps): readonly Job[] => {
  type Due = Parameters<typeof findDueSubscriptions>[1];
  type Act = (tx: Tx, scope: DueSubscription, subscription: StoredSubscription, now: Date) => Promise<void>;
  /** True when there may be more. One tenant that fails does not keep the others waiting: the job reports it at the end. */
  const each = async (due: Due, act: Act): Promise<boolean> => {
    const found = await findDueSubscriptions(db, due, BATCH);
    const failures: unknown[] = [];
    for (const scope of found) {
      const work = db.tx(async (tx) => {
        await subscriptions.lock(tx, scope);
        const subscription = await findSubscription(tx, scope, scope.subscriptionId);
        if (subscription !== null) await act(tx, scope, subscription, clock.now());
      });
      await work.catch((error: unknown) => failures.push(error));
      forget(scope.tenantId);
    }
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} of ${found.length} subscriptions failed`);
    return found.length === BATCH;
  };

  const endPeriod: Act = async (tx, scope, subscription, now) => {
    const { provider, plan, interval, currentPeriodEnd: start, cancelAtPeriodEnd } = subscription;
    if (provider === "stripe" || subscription.status === "canceled" || start > now) return;
    const order = { text: providerOrderOf(now, 2, ""), at: now };
    if (provider === "trial" || cancelAtPeriodEnd) return subscriptions.write(tx, scope, { ...subscription, status: "canceled" }, order);
    const end = periodEnd(start, interval);
    await subscriptions.write(tx, scope, { ...subscription, currentPeriodEnd: end }, order);
    await writeInvoice(tx, scope, localInvoice({ start, end }, priceOf(plan, interval)), order.text);
  };

  const endGrace: Act = async (tx, scope, subscription, now) => {
    if (subscription.status === "past_due" && isGraceOver(subscription.pastDueSince, graceMs, now)) await subscriptions.write(tx, scope, subscription, null);
  };

  const tellTrial: Act = async (tx, scope, { subscriptionId, plan, currentPeriodEnd }, now) => {
    const { tenantId } = scope;
    if (!(await writeTrialTold(tx, scope, subscriptionId, now))) return;
    await emit(tx, [happened(scope, contract.billing.events.trialEnding, tenantId, { tenantId, plan, endsAt: currentPeriodEnd.toISOString() })]);
  };

  return [
    { name: "billing.end-periods", everyMs: MINUTE_MS, run: () => each(periodsOver(clock.now()), endPeriod) },
    { name: "billing.end-grace", everyMs: MINUTE_MS, run: () => each(graceOver(new Date(clock.now().getTime() - graceMs)), endGrace) },
    {
      name: "billing.announce-trials",
      everyMs: 10 * MINUTE_MS,
      run: () => each(trialsEnding(clock.now(), secondsFromNow(TELL_BEFORE_SECONDS, clock.now())), tellTrial),
    },
    {
      name: "billing.forget-events",
      everyMs: 60 * MINUTE_MS,
      run: () => deleteProviderEvents(db, secondsFromNow(-KEEP_EVENTS_SECONDS, clock.now()), 1_000),
    },
  ];
};
