// Notifications, at least once: a row in the transaction of its cause, a lease by one node, retries with backoff, and an end that people can see.
import type { TenantId } from "../../../protocol/index.ts";
import { type Clock, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { newId } from "../../core/ids.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import { alertMessageOf } from "./messages.ts";
import type { AlertMessage } from "./model.ts";
import type { Send, SendOutcome } from "./send.ts";
import { findSealed, noteOutcome } from "./store/channels.ts";
import {
  type DueAlert,
  describeAlerts,
  findRoutes,
  insertNotifications,
  type LeasedNotification,
  leaseNotifications,
  markGivenUp,
  markTold,
  postponeNotification,
  takeDue,
} from "./store/notifications.ts";

const queue = async (
  tx: Tx,
  kind: "opened" | "resolved",
  { alerts, portalUrl }: { readonly alerts: readonly DueAlert[]; readonly portalUrl: string },
): Promise<void> => {
  const byId = new Map(alerts.map((alert) => [alert.alert_id, alert]));
  const routes = (await findRoutes(tx, [...byId.keys()])).filter(({ send_resolved }) => kind === "opened" || send_resolved);
  await insertNotifications(
    tx,
    routes.flatMap(({ alert_id: alertId, channel_id: channelId }) => {
      const alert = byId.get(alertId);
      if (alert === undefined) return [];
      return [{ notificationId: newId("anf"), tenantId: alert.tenant_id, channelId, alertId, message: alertMessageOf(kind, alert, portalUrl) }];
    }),
  );
};

/** Tells the channels of these alerts. */
export const queueMessages = async (tx: Tx, kind: "opened" | "resolved", alertIds: readonly string[], portalUrl: string): Promise<void> => {
  if (alertIds.length > 0) await queue(tx, kind, { alerts: await describeAlerts(tx, alertIds), portalUrl });
};

const DUE = 500;
/** Orders the messages that are due, one per alert and channel. True when there may be more. */
export const queueDue = async (tx: Tx, portalUrl: string): Promise<boolean> => {
  const alerts = await takeDue(tx, DUE);
  if (alerts.length > 0) await queue(tx, "opened", { alerts, portalUrl });
  return alerts.length === DUE;
};

/** About 90 minutes. */
export const MAX_SENDS = 10;
const FIRST_DELAY_SECONDS = 10;
const MAX_DELAY_SECONDS = 1_800;
// Longer than an attempt can take.
const LEASE_SECONDS = 60;
const AT_ONCE = 50;
const LOOK_MS = 2_000;
const WAIT_MS = 1_000;

/** Doubles from ten seconds to half an hour, ±20 %. */
export const resendSeconds = (attempts: number, random: () => number = Math.random): number =>
  Math.round(Math.min(FIRST_DELAY_SECONDS * 2 ** (attempts - 1), MAX_DELAY_SECONDS) * (0.8 + random() * 0.4));

export interface NotifierDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly send: Send;
  readonly onError: (error: unknown) => void;
}

export const createNotifier = ({ db, clock, send, onError }: NotifierDeps): Job => {
  const settle = async (leased: LeasedNotification, { delivered, error, isFinal }: SendOutcome): Promise<void> => {
    const reason = error ?? "unknown";
    if (delivered) await markTold(db, leased, clock.now());
    else if (isFinal || leased.attempts >= MAX_SENDS) await markGivenUp(db, leased, reason);
    else await postponeNotification(db, leased, reason, secondsFromNow(resendSeconds(leased.attempts), clock.now()));
    await noteOutcome(db, { tenantId: leased.tenant_id as TenantId }, leased.channel_id, { at: clock.now(), error: delivered ? null : reason });
  };
  const deliver = async (leased: LeasedNotification, signal: AbortSignal): Promise<void> => {
    const channel = await findSealed(db, { tenantId: leased.tenant_id as TenantId }, leased.channel_id); // as: a column is plain text
    if (channel === null) return;
    const outcome = await send({ id: leased.notification_id, channel, message: leased.message as AlertMessage, signal }); // as: `queue` wrote one
    // Its lease runs out, and another node sends it.
    if (!signal.aborted || outcome.delivered) await settle(leased, outcome);
  };
  const busy = new Map<string, Promise<void>>();
  const begin = (leased: LeasedNotification, signal: AbortSignal): Promise<void> => {
    const sending = deliver(leased, signal)
      .catch(onError)
      .finally(() => busy.delete(leased.channel_id));
    busy.set(leased.channel_id, sending);
    return sending;
  };
  return {
    name: "alerts.notify",
    everyMs: LOOK_MS,
    run: async (signal) => {
      const limit = AT_ONCE - busy.size;
      const leased = limit === 0 ? [] : await leaseNotifications(db, { leaseSeconds: LEASE_SECONDS, limit, busy: [...busy.keys()] });
      for (const each of leased) void begin(each, signal);
      // A channel that hangs keeps the others waiting for no longer than this.
      await Promise.race([Promise.all(busy.values()), new Promise((resolve) => setTimeout(resolve, WAIT_MS).unref())]);
      if (signal.aborted) await Promise.all(busy.values());
      return leased.length > 0;
    },
  };
};
