// Billing: what a tenant may have, what it uses and what it pays. The provider takes the money; the tenant's plan follows from its subscriptions.
import { createHash } from "node:crypto";
import { type BillingInterval, contract, type PaidPlan, type TenantBilling } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import { implement } from "../../core/feature.ts";
import type { SystemScope, TenantScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Feature } from "../kit.ts";
import type { Counters, LimitCrossing, Plan, TenantStanding } from "../tenants/index.ts";
import { createEndBilling, type EndBilling } from "./ending.ts";
import { createBillingJobs } from "./jobs.ts";
import { createLocalProvider } from "./local-provider.ts";
import { createGrantPlan, createStuckBilling, type GrantPlan } from "./operators.ts";
import { allPlans, planDetails, TRIAL_DAYS } from "./prices.ts";
import type { BillingProvider, Order } from "./provider.ts";
import { createReceiveEvent } from "./provider-events.ts";
import { paidOf, providerOrderOf, type Standing, type StoredSubscription, standingOf } from "./rules.ts";
import { pageOfInvoices, writeInvoice } from "./store/invoices.ts";
import { insertTrial, listSubscriptions } from "./store/subscriptions.ts";
import { createReadStripeEvent } from "./stripe-events.ts";
import { createStripeProvider, planOfPriceIn, type StripePrices } from "./stripe-provider.ts";
import { createSubscriptions } from "./subscriptions.ts";
import { blocksDowngrade, createUsage } from "./usage.ts";

/** The plan of a trial, and the one that a new tenant has. */
const TRIAL_PLAN = "starter";

export type { GrantPlan } from "./operators.ts";

export interface BillingSettings {
  readonly graceDays: number;
  readonly stripe: {
    /** Undefined: the gateway is its own provider. */
    readonly secretKey: string | undefined;
    readonly webhookSecret: string | undefined;
    readonly prices: StripePrices;
    readonly apiUrl: string | undefined;
    readonly fetch: typeof fetch;
  };
  readonly portalUrl: () => string;
  readonly isReturnAllowed: (url: string) => boolean;
}

export interface BillingDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly plan: Plan;
  readonly counters: Counters;
  readonly tenants: TenantStanding;
  readonly settings: BillingSettings;
}

/** Begins the trial of a new tenant in the transaction that creates it. */
export const createBeginTrial =
  (clock: Clock) =>
  (tx: Tx, scope: SystemScope): Promise<void> =>
    insertTrial(tx, scope, { plan: TRIAL_PLAN, endsAt: secondsFromNow(TRIAL_DAYS * DAY_SECONDS, clock.now()) });

/** Tells that an addition has brought a tenant to a limit of its plan, or near it. */
export const createTellCrossing =
  (emit: Emit) =>
  (tx: Tx, scope: SystemScope, { kind, ...crossing }: LimitCrossing): Promise<void> => {
    const { limitReached, limitWarning } = contract.billing.events;
    return emit(tx, [happened(scope, kind === "reached" ? limitReached : limitWarning, scope.tenantId, { tenantId: scope.tenantId, ...crossing })]);
  };

export interface BillingFeature extends Feature<typeof contract.billing> {
  readonly grantPlan: GrantPlan;
  readonly end: EndBilling;
  /** The state of a provider outside; null without one. */
  readonly isAnswering: (() => boolean) | null;
}

export const createBilling = (deps: BillingDeps): BillingFeature => {
  const { db, clock, emit, tenants, settings } = deps;
  const graceMs = settings.graceDays * DAY_SECONDS * 1_000;
  const subscriptions = createSubscriptions({ ...deps, graceMs });
  const providers = createProviders(clock, settings.stripe);
  const { webhookSecret, prices } = settings.stripe;
  const read = createReadStripeEvent({ webhookSecret, planOfPrice: planOfPriceIn(prices) });
  return {
    handlers: createHandlers({ ...deps, providers, subscriptions, receive: createReceiveEvent({ db, emit, tenants, subscriptions, read }) }),
    grantPlan: createGrantPlan(deps),
    isAnswering: providers.isAnswering,
    end: createEndBilling({ db, subscriptions, providerOf: providers.of }),
    stuck: createStuckBilling({ db, clock }),
    jobs: createBillingJobs({ db, clock, emit, subscriptions, forget: tenants.forget, graceMs }),
  };
};

interface HandlersDeps extends BillingDeps {
  readonly providers: ReturnType<typeof createProviders>;
  readonly subscriptions: ReturnType<typeof createSubscriptions>;
  readonly receive: ReturnType<typeof createReceiveEvent>;
}

/** The provider of new subscriptions, and the one of a subscription that exists. */
const createProviders = (clock: Clock, { secretKey, prices, apiUrl, fetch }: BillingSettings["stripe"]) => {
  const local = createLocalProvider(clock);
  const stripe = secretKey === undefined ? null : createStripeProvider({ secretKey, prices, apiUrl, fetch, clock });
  return {
    own: stripe ?? local,
    isAnswering: stripe === null ? null : stripe.isAnswering,
    of: ({ provider }: StoredSubscription): BillingProvider => {
      if (provider !== "stripe") return local;
      if (stripe === null) throw new AppError("BILLING_NOT_CONFIGURED");
      return stripe;
    },
  };
};

const isoOf = (at: Date): string => at.toISOString();

const shownOf = ({ status, subscription }: Standing): Omit<TenantBilling["billing"], "plan" | "entitlements"> => {
  if (subscription === null) return { status, cancelAtPeriodEnd: false };
  const { provider, interval, updatedAt, currentPeriodEnd } = subscription;
  if (provider === "trial") return { status, cancelAtPeriodEnd: false, updatedAt: isoOf(updatedAt), trialEndsAt: isoOf(currentPeriodEnd) };
  const { cancelAtPeriodEnd } = subscription;
  const ending = cancelAtPeriodEnd ? { cancellationEffectiveDate: isoOf(currentPeriodEnd) } : {};
  return { status, cancelAtPeriodEnd, ...ending, interval, updatedAt: isoOf(updatedAt), currentPeriodEnd: isoOf(currentPeriodEnd) };
};

const createHandlers = ({ db, clock, plan, counters, tenants, settings, providers, subscriptions, receive }: HandlersDeps) => {
  const usage = createUsage({ clock, counters, plan });

  const standing = async (tx: Tx, scope: SystemScope): Promise<Standing> => standingOf(await listSubscriptions(tx, scope));

  const shown = async (tx: Tx, { tenantId }: SystemScope): Promise<TenantBilling> => {
    const facts = await tenants.facts(tx, { tenantId });
    if (facts === null) throw new AppError("TENANT_NOT_FOUND", { details: { tenantId } });
    const tier = plan.tierOf(facts);
    const billing = { plan: tier, ...shownOf(await standing(tx, { tenantId })), entitlements: plan.limitsOf(facts) };
    return { billing, planDetails: planDetails(tier, plan.table[tier]), usage: await usage.usage(tx, { tenantId }) };
  };

  const returnUrl = (given: string | undefined): string => {
    if (given !== undefined && !settings.isReturnAllowed(given)) throw new AppError("RETURN_URL_NOT_ALLOWED");
    return given ?? settings.portalUrl();
  };

  /** Rejects what the tenant cannot order. Under the lock it holds until the commit. */
  const checkOrder = async (tx: Tx, scope: TenantScope, { plan: tier, interval }: { readonly plan: PaidPlan; readonly interval: BillingInterval }) => {
    const all = await listSubscriptions(tx, scope);
    const current = paidOf(standingOf(all));
    if (current?.plan === tier && current.interval === interval && !current.cancelAtPeriodEnd) throw new AppError("PLAN_UNCHANGED");
    const { limitOverrides = scope.tenant.limitOverrides } = (await tenants.facts(tx, scope)) ?? {};
    const over = await usage.over(tx, scope, { tier, limitOverrides });
    if (over.some(blocksDowngrade)) throw new AppError("PLAN_DOWNGRADE_BLOCKED", { details: { over: over.filter(blocksDowngrade) } });
    const customerId = all.find((each) => each.customerId !== null)?.customerId ?? null;
    return { current, customerId };
  };

  /** The key has the length that Stripe takes, whatever the caller's is. */
  const orderKey = ({ tenantId }: TenantScope, key: string | null): string | null =>
    key === null ? null : createHash("sha256").update(`${tenantId}:${key}`).digest("hex");

  const changed = async (scope: TenantScope): Promise<StoredSubscription> => {
    const current = paidOf(await standing(db, scope));
    if (current === null) throw new AppError("NO_ACTIVE_SUBSCRIPTION");
    return current;
  };

  return implement(contract.billing, {
    plans: async () => ({ plans: allPlans(plan.table), defaultPlan: TRIAL_PLAN, trialDays: TRIAL_DAYS }),
    get: ({ scope }) => shown(db, scope),
    usage: async ({ scope }) => usage.compared(db, { tenantId: scope.tenantId, tenant: (await tenants.facts(db, scope)) ?? scope.tenant }),

    checkout: async ({ scope, commit, idempotencyKey }, { email, successUrl, cancelUrl, ...wanted }) => {
      const urls = { successUrl: returnUrl(successUrl), cancelUrl: returnUrl(cancelUrl) };
      const found = await checkOrder(db, scope, wanted);
      const { tenantId, principal } = scope;
      const ownEmail = principal.kind === "user" ? principal.email : null;
      const order: Order = { tenantId, ...wanted, ...urls, ...found, email: email ?? ownEmail, key: orderKey(scope, idempotencyKey) };
      const { done, expiresAt, ...session } = await providers.own.checkout(order);
      return commit(async (tx, afterwards) => {
        if (done !== null) {
          await subscriptions.lock(tx, scope);
          await checkOrder(tx, scope, wanted);
          const now = clock.now();
          const at = { text: providerOrderOf(now, 2, session.sessionId), at: now };
          await subscriptions.write(tx, scope, done.subscription, at);
          if (done.invoice !== null) await writeInvoice(tx, scope, done.invoice, at.text);
          afterwards(() => tenants.forget(tenantId));
        }
        return { ...session, expiresAt: isoOf(expiresAt) };
      });
    },

    portal: async ({ scope, commit }, input) => {
      const url = returnUrl(input.returnUrl);
      const customerId = (await listSubscriptions(db, scope)).find((each) => each.customerId !== null)?.customerId ?? null;
      const answer = { url: await providers.own.portal({ customerId, returnUrl: url }) };
      return commit(async () => answer);
    },

    cancel: async ({ scope, commit }, { atPeriodEnd }) => {
      const current = await changed(scope);
      const state = atPeriodEnd && current.cancelAtPeriodEnd ? null : await providers.of(current).cancel(current, atPeriodEnd);
      return commit(async (tx, afterwards) => {
        await subscriptions.lock(tx, scope);
        if (state !== null) await subscriptions.write(tx, scope, state, null);
        afterwards(() => tenants.forget(scope.tenantId));
        return shown(tx, scope);
      });
    },

    resume: async ({ scope, commit }) => {
      const current = await changed(scope);
      const state = current.cancelAtPeriodEnd ? await providers.of(current).resume(current) : null;
      return commit(async (tx) => {
        await subscriptions.lock(tx, scope);
        if (state !== null) await subscriptions.write(tx, scope, state, null);
        return shown(tx, scope);
      });
    },

    preview: async ({ scope }, wanted) => {
      const current = paidOf(await standing(db, scope));
      const { limitOverrides } = (await tenants.facts(db, scope)) ?? scope.tenant;
      const over = await usage.over(db, scope, { tier: wanted.plan, limitOverrides });
      return { ...wanted, ...(await providers.own.preview({ ...wanted, current })), over, blocked: over.some(blocksDowngrade) };
    },

    invoices: ({ scope }, query) => pageOfInvoices(db, scope, query),
    providerEvents: (_call, { payload, signature }) => receive(payload, signature),
  });
};
