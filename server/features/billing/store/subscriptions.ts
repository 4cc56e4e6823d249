// Rows of subscriptions. Write them under the lock of the tenant's plan.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { Plan, TenantId } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { StoredSubscription, SubscriptionState } from "../rules.ts";

type Row = Prisma.SubscriptionGetPayload<object>;
// as: only this feature writes these columns, by these types
const toSubscription = ({ tenantId: _, createdAt: __, ...row }: Row): StoredSubscription => row as StoredSubscription;

export const listSubscriptions = async (db: Clients, scope: SystemScope): Promise<StoredSubscription[]> =>
  (await db.for(scope).subscription.findMany({ orderBy: [{ createdAt: "asc" }, { subscriptionId: "asc" }] })).map(toSubscription);

export const findSubscription = async (db: Clients, scope: SystemScope, subscriptionId: string): Promise<StoredSubscription | null> => {
  const row = await db.for(scope).subscription.findFirst({ where: { subscriptionId } });
  return row === null ? null : toSubscription(row);
};

export type SubscriptionColumns = SubscriptionState & Pick<StoredSubscription, "pastDueSince" | "providerOrder">;

export const upsertSubscription = async (tx: Clients, scope: SystemScope, { subscriptionId, ...columns }: SubscriptionColumns): Promise<void> => {
  await tx.for(scope).subscription.upsert({
    where: { tenantId_subscriptionId: { subscriptionId } },
    create: { subscriptionId, ...columns },
    update: columns,
  });
};

/** A paid subscription replaces the trial and what the gateway sold itself. */
export const endReplaced = async (tx: Clients, scope: SystemScope, by: string): Promise<void> => {
  await tx.for(scope).subscription.updateMany({
    where: { provider: { in: ["trial", "local"] }, subscriptionId: { not: by }, status: { not: "canceled" } },
    data: { status: "canceled" },
  });
};

export const writeSuspended = async (tx: Clients, scope: SystemScope, subscriptionId: string, at: Date): Promise<void> => {
  await tx.for(scope).subscription.updateMany({ where: { subscriptionId }, data: { suspendedAt: at } });
};

/** False when billing has not suspended this tenant. */
export const clearSuspended = async (tx: Clients, scope: SystemScope): Promise<boolean> =>
  (await tx.for(scope).subscription.updateMany({ where: { suspendedAt: { not: null } }, data: { suspendedAt: null } })).count > 0;

export const insertTrial = async (tx: Clients, scope: SystemScope, trial: { readonly plan: Plan; readonly endsAt: Date }): Promise<void> => {
  const { plan, endsAt } = trial;
  const data = { subscriptionId: `trial_${scope.tenantId}`, provider: "trial", plan, interval: "monthly", status: "trialing", currentPeriodEnd: endsAt };
  await tx.for(scope).subscription.createMany({ data: [data], skipDuplicates: true });
};

export const deleteTrial = async (tx: Clients, scope: SystemScope): Promise<void> => {
  await tx.for(scope).subscription.deleteMany({ where: { provider: "trial" } });
};

export interface DueSubscription {
  readonly tenantId: TenantId;
  readonly subscriptionId: string;
  readonly currentPeriodEnd: Date;
}

export const findDueSubscriptions = async (db: Clients, where: Prisma.SubscriptionWhereInput, limit: number): Promise<readonly DueSubscription[]> =>
  (await db.system.subscription.findMany({
    where,
    orderBy: { currentPeriodEnd: "asc" },
    take: limit,
    select: { tenantId: true, subscriptionId: true, currentPeriodEnd: true },
  })) as readonly DueSubscription[]; // as: ids of tenants

/** Stripe ends and renews its own. */
const OWN = { in: ["trial", "local"] };
export const periodsOver = (now: Date): Prisma.SubscriptionWhereInput => ({
  provider: OWN,
  status: { in: ["trialing", "active"] },
  currentPeriodEnd: { lte: now },
});
export const graceOver = (since: Date): Prisma.SubscriptionWhereInput => ({ status: "past_due", pastDueSince: { lte: since } });
export const trialsEnding = (now: Date, before: Date): Prisma.SubscriptionWhereInput => ({
  status: "trialing",
  currentPeriodEnd: { gt: now, lte: before },
  trialToldAt: null,
});

/** What Stripe still charges for tenants that have been deleted for a while. */
export const findUncanceled = async (
  db: Clients,
  before: Date,
  limit: number,
): Promise<readonly { readonly tenantId: string; readonly subscriptionId: string; readonly since: Date }[]> => {
  const rows = await db.system.subscription.findMany({
    where: { provider: "stripe", status: { not: "canceled" }, tenant: { status: "deleted", statusSince: { lt: before } } },
    orderBy: { tenant: { statusSince: "asc" } },
    take: limit,
    select: { tenantId: true, subscriptionId: true, tenant: { select: { statusSince: true } } },
  });
  return rows.map(({ tenant, ...row }) => ({ ...row, since: tenant.statusSince }));
};

/** False when another node was faster. */
export const writeTrialTold = async (tx: Clients, scope: SystemScope, subscriptionId: string, at: Date): Promise<boolean> =>
  (await tx.for(scope).subscription.updateMany({ where: { subscriptionId, trialToldAt: null }, data: { trialToldAt: at } })).count === 1;
