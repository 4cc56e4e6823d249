// Keeps the log of deliveries within its retention, and tells the people who run the installation how deliveries fare.
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { FindStuck } from "../../core/people/stuck.ts";
import type { Job } from "../../platform/jobs.ts";
import type { FeatureGauge } from "../../platform/telemetry/metrics.ts";
import type { FeatureKit } from "../kit.ts";
import { FAILING_AFTER } from "./delivery/retry-schedule.ts";
import { countFailing, countWaiting, deleteOldDeliveries, findLate, oldestDueSeconds } from "./store/maintenance.ts";

export interface MaintenanceDeps extends Pick<FeatureKit, "db" | "plan" | "clock"> {
  /** The retention of events, in the whole installation. */
  readonly keepDays: number;
}

const MAX_DAYS = 30;
const EVERY_MS = 600_000;
const ROWS = 1_000;
const WEBHOOKS = 100;
/** The statistics show the last 24 hours. */
const HOURS_KEPT = 26;
/** Workers look every second. */
const LATE_SECONDS = 60;

/** Deliveries of the webhooks that no longer exist, then their rows. */
const createForgetDeleted =
  ({ db }: MaintenanceDeps) =>
  async (): Promise<boolean> => {
    const gone = await db.system.webhook.findMany({ where: { deletedAt: { not: null } }, take: WEBHOOKS, select: { tenantId: true, webhookId: true } });
    let more = gone.length === WEBHOOKS;
    for (const { tenantId, webhookId } of gone) {
      const { count } = await db.system.webhookDelivery.deleteMany({ where: { tenantId, webhookId }, limit: ROWS });
      if (count === ROWS) more = true;
      else await db.system.webhook.deleteMany({ where: { webhookId } });
    }
    return more;
  };

const createForgetOld = ({ db, plan, clock, keepDays }: MaintenanceDeps) => {
  let after = "";
  /** A part of the webhooks in each run; true when there may be more to do. */
  return async (): Promise<boolean> => {
    const select = { tenantId: true, webhookId: true, tenant: { select: { plan: true, limitOverrides: true } } } as const;
    const some = await db.system.webhook.findMany({ where: { webhookId: { gt: after } }, orderBy: { webhookId: "asc" }, take: WEBHOOKS, select });
    let more = some.length === WEBHOOKS;
    for (const { tenantId, webhookId, tenant } of some) {
      const own = plan.limitsOf({ plan: tenant.plan, limitOverrides: tenant.limitOverrides as Record<string, number | null> })["eventRetentionDays"]; // as: checked when it was set
      const before = secondsFromNow(-Math.min(MAX_DAYS, keepDays, own ?? MAX_DAYS) * DAY_SECONDS, clock.now());
      const old = { tenantId, webhookId, before, limit: ROWS };
      for (let place = await deleteOldDeliveries(db, old); place !== null; place = await deleteOldDeliveries(db, { ...old, after: place })) more = true;
    }
    after = some.length === WEBHOOKS ? (some.at(-1)?.webhookId ?? "") : "";
    return more;
  };
};

export const createMaintenance = (
  deps: MaintenanceDeps,
): { readonly jobs: readonly Job[]; readonly gauges: readonly FeatureGauge[]; readonly stuck: FindStuck } => {
  const { db, clock } = deps;
  return {
    jobs: [
      { name: "webhooks.forgetDeleted", everyMs: EVERY_MS, run: createForgetDeleted(deps) },
      { name: "webhooks.forgetOld", everyMs: EVERY_MS, run: createForgetOld(deps) },
      {
        name: "webhooks.forgetHours",
        everyMs: EVERY_MS,
        run: async () => void (await db.system.webhookHour.deleteMany({ where: { hour: { lt: secondsFromNow(-HOURS_KEPT * 3_600, clock.now()) } } })),
      },
    ],
    gauges: [
      {
        name: "webhook_deliveries_waiting",
        help: "Deliveries that wait for an attempt, by status: pending or retrying; counted up to 10,000",
        labels: ["status"],
        read: async () => {
          const counts = await countWaiting(db);
          return ["pending", "retrying"].map((status) => [{ status }, counts.get(status) ?? 0] as const);
        },
      },
      { name: "webhook_oldest_due_seconds", help: "For how long the oldest endpoint has had something due", read: () => oldestDueSeconds(db) },
      { name: "webhooks_failing", help: "Webhooks whose last attempts failed", read: () => countFailing(db, FAILING_AFTER) },
    ],
    stuck: async (limit) =>
      (await findLate(db, LATE_SECONDS, limit)).map(({ webhook_id, tenant_id, next_due_at }) => ({
        kind: "webhook_delivery_late",
        tenantId: tenant_id,
        id: webhook_id,
        since: next_due_at,
        reason: "deliveries are due, and no node works on them",
        whatToDo: "Look at the job webhooks.deliver on each node.",
      })),
  };
};
