// The end of a tenant's billing: what Stripe would go on charging is canceled before the tenant's rows go.
import { secondsFromNow } from "../../core/clock.ts";
import type { Stuck } from "../../core/people/stuck.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { BillingProvider } from "./provider.ts";
import type { StoredSubscription } from "./rules.ts";
import { findUncanceled, listSubscriptions } from "./store/subscriptions.ts";
import type { Subscriptions } from "./subscriptions.ts";

export interface EndingDeps {
  readonly db: Db;
  readonly subscriptions: Subscriptions;
  readonly providerOf: (subscription: StoredSubscription) => BillingProvider;
}

/** Cancels at once what Stripe charges the tenant for. Throws while Stripe refuses; whatever is canceled by then stays so. */
export type EndBilling = (scope: SystemScope) => Promise<void>;

export const createEndBilling =
  ({ db, subscriptions, providerOf }: EndingDeps): EndBilling =>
  async (scope) => {
    const charged = (await listSubscriptions(db, scope)).filter(({ provider, status }) => provider === "stripe" && status !== "canceled");
    for (const subscription of charged) {
      const state = await providerOf(subscription).cancel(subscription, false);
      await db.tx(async (tx) => {
        await subscriptions.lock(tx, scope);
        await subscriptions.write(tx, scope, { ...state, status: "canceled" }, null);
      });
    }
  };

// The purge tries every ten minutes.
const UNCANCELED_SECONDS = 900;

export const findStuckEnds = async (db: Db, now: Date, limit: number): Promise<readonly Stuck[]> =>
  (await findUncanceled(db, secondsFromNow(-UNCANCELED_SECONDS, now), limit)).map(({ tenantId, subscriptionId, since }) => ({
    kind: "subscription_uncanceled",
    tenantId,
    id: subscriptionId,
    since,
    reason: "its tenant is deleted, and Stripe has not canceled it",
    whatToDo: "See the log of the job tenants.purge for Stripe's answer. The job tries again until Stripe knows the subscription as canceled.",
  }));
