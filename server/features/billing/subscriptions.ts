// Changes of subscriptions, and what follows for the tenant: its plan, and whether it is suspended. Every change runs under the lock of the tenant's plan.
import { contract } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Plan, TenantStanding } from "../tenants/index.ts";
import { isGraceOver, isLive, type StoredSubscription, type SubscriptionState, standingOf } from "./rules.ts";
import { clearSuspended, endReplaced, findSubscription, listSubscriptions, upsertSubscription, writeSuspended } from "./store/subscriptions.ts";

/** The reason that the tenant's members see. */
const UNPAID = "the subscription is not paid";

const { planChanged, subscriptionCanceled } = contract.billing.events;

export interface SubscriptionsDeps {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly plan: Pick<Plan, "lock">;
  readonly tenants: TenantStanding;
  /** How long a payment may be late. */
  readonly graceMs: number;
}

export interface Subscriptions {
  /** Locks the tenant's plan until the transaction ends. Call it before anything is read that decides about a change. */
  lock(tx: Tx, scope: SystemScope): Promise<void>;
  /** Writes what a provider says. `order` comes from an event; the answer of a call has none, and any later event wins over it. */
  write(tx: Tx, scope: SystemScope, state: SubscriptionState, order: { readonly text: string; readonly at: Date } | null): Promise<void>;
}

export const createSubscriptions = ({ clock, emit, plan, tenants, graceMs }: SubscriptionsDeps): Subscriptions => {
  const suspendOrReactivate = async (tx: Tx, scope: SystemScope, subscription: StoredSubscription | null): Promise<void> => {
    if (subscription?.status !== "unpaid") {
      if (await clearSuspended(tx, scope)) await tenants.reactivate(tx, scope, UNPAID);
    } else if (subscription.suspendedAt === null && (await tenants.suspend(tx, scope, UNPAID))) {
      await writeSuspended(tx, scope, subscription.subscriptionId, clock.now());
    }
  };

  const settle = async (tx: Tx, scope: SystemScope): Promise<void> => {
    const facts = await tenants.facts(tx, scope);
    if (facts === null) return;
    const { plan: wanted, subscription } = standingOf(await listSubscriptions(tx, scope));
    const { tenantId, plan: from } = facts;
    if (wanted !== null && wanted !== from) {
      await tenants.setPlan(tx, scope, wanted);
      await emit(tx, [happened(scope, planChanged, tenantId, { tenantId, from, to: wanted })]);
    }
    await suspendOrReactivate(tx, scope, subscription);
  };

  /** A payment that is late for too long counts as unpaid, whatever the provider calls it. */
  const lateness = (state: SubscriptionState, before: StoredSubscription | null, at: Date): Pick<StoredSubscription, "status" | "pastDueSince"> => {
    if (state.status !== "past_due") return { status: state.status, pastDueSince: null };
    const pastDueSince = before?.pastDueSince ?? at;
    return { status: isGraceOver(pastDueSince, graceMs, clock.now()) ? "unpaid" : "past_due", pastDueSince };
  };

  return {
    lock: plan.lock,
    write: async (tx, scope, state, order) => {
      const before = await findSubscription(tx, scope, state.subscriptionId);
      if (before !== null && order !== null && before.providerOrder >= order.text) return;
      const { subscriptionId, provider, interval, customerId, currentPeriodEnd, cancelAtPeriodEnd } = state;
      const late = lateness(state, before, order?.at ?? clock.now());
      const providerOrder = order?.text ?? before?.providerOrder ?? "";
      const columns = { subscriptionId, provider, plan: state.plan, interval, customerId, currentPeriodEnd, cancelAtPeriodEnd, providerOrder };
      await upsertSubscription(tx, scope, { ...columns, ...late });
      if (isLive(state) && provider !== "trial") await endReplaced(tx, scope, subscriptionId);
      const { tenantId } = scope;
      if (before !== null && isLive(before) && state.status === "canceled" && provider !== "trial")
        await emit(tx, [happened(scope, subscriptionCanceled, tenantId, { tenantId, plan: state.plan })]);
      await settle(tx, scope);
    },
  };
};
