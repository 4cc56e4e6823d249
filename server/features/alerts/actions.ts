// The handlers of alerts themselves: people read, acknowledge, snooze and resolve them.
import { type Alert, contract } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { pageWithActors, withActor } from "../../core/people/actors.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { queueMessages } from "./notify.ts";
import { type AlertChange, countAlerts, findAlert, lockAlert, pageOfAlerts, pageOfTargets, seesAll, updateAlert, wasTold } from "./store/alerts.ts";

export interface ActionsDeps extends Pick<FeatureKit, "db" | "emit" | "clock"> {
  readonly portalUrl: () => string;
}

const MAX_SNOOZE_SECONDS = 30 * 86_400;
const notFound = (alertId: string): AppError => new AppError("ALERT_NOT_FOUND", { details: { alertId } });

const eventDataOf = ({ alertId, ruleId, type, severity, title, occurrences, targetCount, target }: Alert) => ({
  alertId,
  ruleId,
  type,
  severity,
  title,
  occurrences,
  ...(targetCount === 1 && target?.kind === "device" ? { deviceId: target.id as `dev_${string}` } : {}), // as: its kind says so
});

type Names = "list" | "summary" | "get" | "listTargets" | "acknowledge" | "resolve" | "snooze";

export const createAlertHandlers = ({ db, emit, clock, portalUrl }: ActionsDeps): Pick<Handlers<typeof contract.alerts>, Names> => {
  const { acknowledged, resolved } = contract.alerts.events;
  const find = async (tx: Parameters<typeof findAlert>[0], scope: TenantScope, alertId: string): Promise<Alert> => {
    const alert = await findAlert(tx, scope, alertId);
    if (alert === null) throw notFound(alertId);
    return alert;
  };
  /** The alert, which nobody else changes until the transaction ends. */
  const hold = async (tx: Tx, scope: TenantScope, alertId: string): Promise<Alert> => {
    await lockAlert(tx, scope, alertId);
    const alert = await find(tx, scope, alertId);
    if (!(await seesAll(tx, scope, alert))) throw new AppError("FORBIDDEN", { details: { reason: "limited_access", alertId } });
    if (alert.status === "resolved") throw new AppError("ALERT_ALREADY_RESOLVED", { details: { alertId } });
    return alert;
  };
  const change = async (tx: Tx, scope: TenantScope, alertId: string, to: AlertChange): Promise<Alert> => {
    await updateAlert(tx, scope, alertId, to);
    return find(tx, scope, alertId);
  };
  return {
    list: async ({ scope }, query) => pageWithActors(db, scope, await pageOfAlerts(db, scope, query)),
    summary: ({ scope }) => countAlerts(db, scope),
    get: async ({ scope }, { alertId }) => withActor(db, scope, await find(db, scope, alertId)),
    listTargets: async ({ scope }, query) => {
      await find(db, scope, query.alertId);
      return pageOfTargets(db, scope, query);
    },
    acknowledge: ({ scope, commit }, { alertId, note }) =>
      commit(async (tx) => {
        const { status } = await hold(tx, scope, alertId);
        const actor = actorOf(scope.principal);
        if (status === "acknowledged") return change(tx, scope, alertId, { note });
        const alert = await change(tx, scope, alertId, { status: "acknowledged", acknowledgedAt: clock.now(), acknowledgedBy: actor, notifyAt: null, note });
        await emit(tx, [happened(scope, acknowledged, alertId, { ...eventDataOf(alert), actor })]);
        return alert;
      }),
    resolve: ({ scope, commit }, { alertId, note }) =>
      commit(async (tx) => {
        await hold(tx, scope, alertId);
        const actor = actorOf(scope.principal);
        const isTold = await wasTold(tx, scope, alertId);
        const alert = await change(tx, scope, alertId, {
          status: "resolved",
          resolvedAt: clock.now(),
          resolvedBy: actor,
          notifyAt: null,
          flapping: false,
          note,
        });
        await emit(tx, [happened(scope, resolved, alertId, { ...eventDataOf(alert), actor })]);
        if (isTold) await queueMessages(tx, "resolved", [alertId], portalUrl());
        return alert;
      }),
    snooze: ({ scope, commit }, { alertId, until }) => {
      const snoozedUntil = new Date(until);
      const now = clock.now();
      const isOver = snoozedUntil <= now;
      if (snoozedUntil > secondsFromNow(MAX_SNOOZE_SECONDS, now)) {
        const issues = [{ path: "until", code: "custom", message: "must lie at most 30 days ahead" }];
        throw new AppError("VALIDATION_FAILED", { details: { issues } });
      }
      return commit(async (tx) => {
        const { status } = await hold(tx, scope, alertId);
        return change(tx, scope, alertId, {
          snoozedUntil: isOver ? null : snoozedUntil,
          ...(status === "open" ? { notifyAt: isOver ? now : snoozedUntil } : {}),
        });
      });
    },
  };
};
