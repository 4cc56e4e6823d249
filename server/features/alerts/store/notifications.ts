// Messages to channels: which alerts are due, orders, leases and outcomes.
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { statement } from "../../../core/statements.ts";
import type { AlertMessage } from "../model.ts";

export interface DueAlert {
  readonly alert_id: string;
  readonly tenant_id: string;
  readonly rule_id: string;
  readonly rule_name: string;
  readonly type: string;
  readonly severity: string;
  readonly value: number;
  readonly started_at: Date;
  readonly at: Date;
  readonly count: number;
  readonly names: readonly string[];
  readonly has_devices: boolean;
}
const SHOWN_NAMES = 10;
const FACTS = `a.alert_id, a.tenant_id, a.rule_id, a.rule_name, a.type, a.severity, a.value, a.started_at`;
const NAMES = `array(select coalesce(t.name, t.target_id) from alert_targets t where t.tenant_id = a.tenant_id and t.alert_id = a.alert_id`;

const TAKE_DUE = statement<DueAlert>(
  "alerts.takeDue",
  `with due as (select d.alert_id from alerts d where d.notify_at <= now() and d.status = 'open' and not d.silenced and not d.flapping
       and (d.snoozed_until is null or d.snoozed_until <= now()) order by d.notify_at limit $1 for no key update skip locked),
   told as (update alerts a set notify_at = null, notified_at = now() from due where a.alert_id = due.alert_id returning ${FACTS})
   select ${FACTS}, now() as at, (select count(*) from alert_targets t where t.tenant_id = a.tenant_id and t.alert_id = a.alert_id and t.active and not t.silenced) as count,
     ${NAMES} and t.active and not t.silenced order by t.started_at, t.target_id limit ${SHOWN_NAMES}) as names,
     exists (select from alert_targets t where t.tenant_id = a.tenant_id and t.alert_id = a.alert_id and t.device_id is not null) as has_devices from told a`,
);
/** The alerts whose channels are to be told now; they count as told. */
export const takeDue = (tx: SqlTx, limit: number): Promise<readonly DueAlert[]> => tx.query(TAKE_DUE, [limit]);

const DESCRIBE = statement<DueAlert>(
  "alerts.describe",
  `select ${FACTS}, now() as at, (select count(*) from alert_targets t where t.tenant_id = a.tenant_id and t.alert_id = a.alert_id) as count,
     ${NAMES} order by t.started_at, t.target_id limit ${SHOWN_NAMES}) as names,
     exists (select from alert_targets t where t.tenant_id = a.tenant_id and t.alert_id = a.alert_id and t.device_id is not null) as has_devices
     from alerts a where a.alert_id = any($1::text[])`,
);
/** All of their targets, as they are when the alerts are over. */
export const describeAlerts = async (tx: SqlTx, alertIds: readonly string[]): Promise<readonly DueAlert[]> =>
  alertIds.length === 0 ? [] : tx.query(DESCRIBE, [alertIds]);

export interface ChannelRoute {
  readonly alert_id: string;
  readonly channel_id: string;
  readonly send_resolved: boolean;
}
const FIND_ROUTES = statement<ChannelRoute>(
  "alerts.findRoutes",
  `select a.alert_id, c.channel_id, c.send_resolved from alerts a left join alert_rules r on r.tenant_id = a.tenant_id and r.rule_id = a.rule_id
     join alert_channels c on c.tenant_id = a.tenant_id and c.enabled
       and case when cardinality(coalesce(r.channel_ids, '{}')) = 0 then c.is_default else c.channel_id = any(r.channel_ids) end
    where a.alert_id = any($1::text[])`,
);
export const findRoutes = async (tx: SqlTx, alertIds: readonly string[]): Promise<readonly ChannelRoute[]> =>
  alertIds.length === 0 ? [] : tx.query(FIND_ROUTES, [alertIds]);

export interface NewNotification {
  readonly notificationId: string;
  readonly tenantId: string;
  readonly channelId: string;
  readonly alertId: string;
  readonly message: AlertMessage;
}
export const insertNotifications = async (db: Clients, notifications: readonly NewNotification[]): Promise<void> => {
  if (notifications.length > 0)
    await db.system.alertNotification.createMany({ data: notifications.map((each) => ({ ...each, message: { ...each.message } })) });
};

export interface LeasedNotification {
  readonly notification_id: string;
  readonly tenant_id: string;
  readonly channel_id: string;
  readonly message: unknown;
  /** This one included. It also fences the lease: whoever leases it next counts one more. */
  readonly attempts: number;
}
/** Messages that a channel gets within an hour; more wait. */
export const CHANNEL_PER_HOUR = 60;
// One of each channel at a time, so that a channel that hangs holds up no other, and its messages arrive in order.
const LEASE = statement<LeasedNotification>(
  "alerts.leaseNotifications",
  `with next as (select distinct on (n.tenant_id, n.channel_id) n.notification_id from alert_notifications n
      where n.status = 'queued' and n.next_attempt_at <= now() and n.channel_id <> all($3::text[])
        and (select count(*) from alert_notifications sent where sent.tenant_id = n.tenant_id and sent.channel_id = n.channel_id and sent.sent_at > now() - interval '1 hour') < ${CHANNEL_PER_HOUR}
      order by n.tenant_id, n.channel_id, n.notification_id),
   mine as (select n.notification_id from alert_notifications n where n.notification_id in (select notification_id from next) and n.status = 'queued' and n.next_attempt_at <= now()
      order by n.next_attempt_at limit $2 for update skip locked)
   update alert_notifications n set attempts = n.attempts + 1, next_attempt_at = now() + make_interval(secs => $1) from mine where n.notification_id = mine.notification_id
   returning n.notification_id, n.tenant_id, n.channel_id, n.message, n.attempts`,
);
export const leaseNotifications = (
  sql: SqlTx,
  asked: { readonly leaseSeconds: number; readonly limit: number; readonly busy: readonly string[] },
): Promise<readonly LeasedNotification[]> => sql.query(LEASE, [asked.leaseSeconds, asked.limit, asked.busy]);

/** The rest is for the holder of the lease alone. */
const held = ({ notification_id: notificationId, attempts }: LeasedNotification) => ({ notificationId, attempts, status: "queued" });
export const markTold = async (db: Clients, leased: LeasedNotification, sentAt: Date): Promise<void> => {
  await db.system.alertNotification.updateMany({ where: held(leased), data: { status: "sent", sentAt, lastError: null } });
};
export const markGivenUp = async (db: Clients, leased: LeasedNotification, lastError: string): Promise<void> => {
  await db.system.alertNotification.updateMany({ where: held(leased), data: { status: "failed", lastError } });
};
export const postponeNotification = async (db: Clients, leased: LeasedNotification, lastError: string, nextAttemptAt: Date): Promise<void> => {
  await db.system.alertNotification.updateMany({ where: held(leased), data: { lastError, nextAttemptAt } });
};

/** By status. */
export const countNotifications = async (db: Clients): Promise<ReadonlyMap<string, number>> => {
  const groups = await db.system.alertNotification.groupBy({ by: ["status"], _count: { notificationId: true } });
  return new Map(groups.map(({ status, _count }) => [status, _count.notificationId]));
};

/** Given up, or waiting since before then; oldest first. */
export const findUnsent = (db: Clients, queuedBefore: Date, limit: number) =>
  db.system.alertNotification.findMany({
    where: { OR: [{ status: "failed" }, { status: "queued", createdAt: { lt: queuedBefore } }] },
    orderBy: { createdAt: "asc" },
    take: limit,
    select: { notificationId: true, tenantId: true, channelId: true, status: true, attempts: true, lastError: true, createdAt: true },
  });

const SWEEP_ROWS = 1_000;
/** Also gives up notifications that wait for longer than an end can take. True when there may be more. */
export const deleteOldNotifications = async (
  db: Clients,
  { queuedBefore, before }: { readonly queuedBefore: Date; readonly before: Date },
): Promise<boolean> => {
  await db.system.alertNotification.updateMany({
    where: { status: "queued", createdAt: { lt: queuedBefore } },
    data: { status: "failed", lastError: "the channel takes too few messages" },
  });
  const where = { createdAt: { lt: before }, status: { not: "queued" } };
  return (await db.system.alertNotification.deleteMany({ where, limit: SWEEP_ROWS })).count === SWEEP_ROWS;
};
