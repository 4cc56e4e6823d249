// What the people who run the installation see of billing, and what they may decide: a tenant's plan, unless somebody pays for another.
import { contract, type Plan as Tier } from "../../../protocol/index.ts";
import { type Clock, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { FindStuck, Stuck } from "../../core/people/stuck.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Plan, TenantStanding } from "../tenants/index.ts";
import { findStuckEnds } from "./ending.ts";
import { paidOf, standingOf } from "./rules.ts";
import { deleteTrial, findDueSubscriptions, listSubscriptions, periodsOver } from "./store/subscriptions.ts";

/** Throws PLAN_CHANGE_REQUIRES_BILLING when the tenant pays for its plan. Ends a trial, which would change the plan later. */
export type GrantPlan = (tx: Tx, scope: SystemScope, to: Tier) => Promise<void>;

export const createGrantPlan =
  ({ plan, tenants, emit }: { readonly plan: Pick<Plan, "lock">; readonly tenants: TenantStanding; readonly emit: Emit }): GrantPlan =>
  async (tx, scope, to) => {
    await plan.lock(tx, scope);
    const from = (await tenants.facts(tx, scope))?.plan;
    if (from === undefined || from === to) return;
    if (paidOf(standingOf(await listSubscriptions(tx, scope))) !== null) throw new AppError("PLAN_CHANGE_REQUIRES_BILLING", { details: { plan: from } });
    await deleteTrial(tx, scope);
    await tenants.setPlan(tx, scope, to);
    await emit(tx, [happened(scope, contract.billing.events.planChanged, scope.tenantId, { tenantId: scope.tenantId, from, to })]);
  };

// The job runs every minute.
const OVERDUE_SECONDS = 3_600;

export const createStuckBilling =
  ({ db, clock }: { readonly db: Db; readonly clock: Clock }): FindStuck =>
  async (limit) => {
    const now = clock.now();
    const [overdue, ends] = await Promise.all([
      findDueSubscriptions(db, periodsOver(secondsFromNow(-OVERDUE_SECONDS, now)), limit),
      findStuckEnds(db, now, limit),
    ]);
    return [
      ...ends,
      ...overdue.map(
        ({ tenantId, subscriptionId, currentPeriodEnd }): Stuck => ({
          kind: "subscription_overdue",
          tenantId,
          id: subscriptionId,
          since: currentPeriodEnd,
          reason: "its period is over, and billing has neither renewed nor ended it",
          whatToDo: "Look at the jobs of billing and run them.",
        }),
      ),
    ];
  };
