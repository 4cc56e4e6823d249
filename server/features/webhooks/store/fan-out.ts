// Rows that the relay writes: one delivery per event and webhook, and the endpoints that are due.

import type { DispatchedEvent, SqlTx } from "../../../core/events.ts";
import { DISPATCHED, EVENT_COLUMNS, type EventRow, toEvent } from "../../../core/rows/event-rows.ts";
import { statement } from "../../../core/statements.ts";

export interface Subscription {
  readonly webhook_id: string;
  readonly tenant_id: string;
  readonly events: readonly string[];
  readonly format: string;
}

const SUBSCRIPTIONS = statement<Subscription>(
  "webhooks.subscriptions",
  "select webhook_id, tenant_id, events, format from webhooks where tenant_id = any($1::text[]) and status = 'active' and deleted_at is null",
);
export const findSubscriptions = (tx: SqlTx, tenantIds: readonly string[]): Promise<readonly Subscription[]> => tx.query(SUBSCRIPTIONS, [tenantIds]);

export interface NewDelivery {
  readonly deliveryId: string;
  readonly tenantId: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly subjectId: string;
  readonly position: number;
  readonly body: string;
  readonly traceparent: string | null;
  readonly trigger: "scheduled" | "replay";
}

/** For this long an event that cannot be delivered holds back later ones of its subject. */
const HOLD = "interval '1 hour'";

// An event that the relay hands on again is there already; a replay begins again with what has ended.
const INSERT = statement(
  "webhooks.insertDeliveries",
  `insert into webhook_deliveries as o
     (delivery_id, tenant_id, webhook_id, event_id, event_type, subject_id, position, body, traceparent, trigger, holds_until)
   select d.*, now() + ${HOLD}
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[]) as d
   on conflict (tenant_id, webhook_id, event_id) do update
     set status = 'pending', trigger = 'replay', tries = 0, next_attempt_at = now(), holds_until = now() + ${HOLD}, completed_at = null
     where excluded.trigger = 'replay' and o.status not in ('pending', 'retrying')`,
);

const CHUNK = 1_000;
export const insertDeliveries = async (tx: SqlTx, deliveries: readonly NewDelivery[]): Promise<void> => {
  for (let at = 0; at < deliveries.length; at += CHUNK) {
    const some = deliveries.slice(at, at + CHUNK);
    const column = <K extends keyof NewDelivery>(name: K) => some.map((delivery) => delivery[name]);
    await tx.query(INSERT, [
      column("deliveryId"),
      column("tenantId"),
      column("webhookId"),
      column("eventId"),
      column("eventType"),
      column("subjectId"),
      column("position"),
      column("body"),
      column("traceparent"),
      column("trigger"),
    ]);
  }
};

// Always in one order, so that two writers never wait for each other in a circle.
const MARK_DUE = statement(
  "webhooks.markDue",
  `with locked as (select webhook_id from webhook_endpoints where webhook_id = any($1::text[]) order by webhook_id for no key update)
   update webhook_endpoints e set epoch = e.epoch + 1, next_due_at = case when e.next_due_at <= now() then e.next_due_at else now() end
     from locked where e.webhook_id = locked.webhook_id`,
);
/** Call it in the transaction that gives the endpoints something to do. */
export const markDue = async (tx: SqlTx, webhookIds: readonly string[]): Promise<void> => {
  await tx.query(MARK_DUE, [webhookIds]);
};

// One that still has attempts before it is tried now and keeps them; any other is tried once.
const REDELIVER = statement(
  "webhooks.redeliver",
  `update webhook_deliveries set next_attempt_at = now(), completed_at = null,
          trigger = case when status in ('pending', 'retrying') then trigger else 'manual' end,
          status = case when status = 'retrying' then status else 'pending' end
    where tenant_id = $1 and delivery_id = $2`,
);
export const redeliver = async (tx: SqlTx, tenantId: string, deliveryId: string): Promise<void> => {
  await tx.query(REDELIVER, [tenantId, deliveryId]);
};

const REPLAYABLE = statement<EventRow>(
  "webhooks.replayable",
  `select ${EVENT_COLUMNS} from ${DISPATCHED} left join webhook_deliveries w on w.tenant_id = e.tenant_id and w.webhook_id = $2 and w.event_id = e.event_id
    where d.tenant_id = $1 and e.created_at >= $3 and e.created_at < coalesce($4, now()) and e.type = any($5::text[])
      and case $6 when 'failed' then w.status in ('exhausted', 'blocked') when 'missing' then w.delivery_id is null or w.status = 'cancelled' else true end
    order by d.last_sequence, o.nth limit $7`,
);
export interface ReplayWindow {
  readonly tenantId: string;
  readonly webhookId: string;
  readonly since: Date;
  /** Null: now. */
  readonly until: Date | null;
  readonly types: readonly string[];
  readonly status: "failed" | "all" | "missing";
}
export const findReplayable = async (
  tx: SqlTx,
  { tenantId, webhookId, since, until, types, status }: ReplayWindow,
  limit: number,
): Promise<readonly DispatchedEvent[]> => (await tx.query(REPLAYABLE, [tenantId, webhookId, since, until, types, status, limit])).map(toEvent);
