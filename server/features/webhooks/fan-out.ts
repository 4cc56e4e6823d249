// Hands events to the webhooks that want them: in the relay's transaction, so that an event is never dispatched without its deliveries.
import type { DispatchedEvent, SqlTx } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { bodyOf, type WebhookFormat } from "./delivery/payload.ts";
import { isFor } from "./operations/event-patterns.ts";
import { findSubscriptions, insertDeliveries, markDue, type NewDelivery, type Subscription } from "./store/fan-out.ts";

export interface Target {
  readonly webhookId: string;
  readonly patterns: ReadonlySet<string>;
  readonly format: WebhookFormat;
}

const toTarget = ({ webhook_id, events, format }: Subscription): Target => ({
  webhookId: webhook_id,
  patterns: new Set(events),
  format: format as WebhookFormat, // as: the column holds nothing else
});

/** An event's deliveries; webhooks of one format share the text of the body. */
export const deliveriesOf = (event: DispatchedEvent, targets: readonly Target[], trigger: NewDelivery["trigger"] = "scheduled"): NewDelivery[] => {
  const bodies = new Map<WebhookFormat, string>();
  const { eventId, tenantId, type, subjectId, position, traceparent } = event;
  return targets
    .filter(({ webhookId, patterns }) => isFor(webhookId, patterns, event))
    .map(({ webhookId, format }) => {
      const body = bodies.get(format) ?? bodyOf(event, format);
      bodies.set(format, body);
      return { deliveryId: newId("whd"), tenantId, webhookId, eventId, eventType: type, subjectId, position, body, traceparent, trigger };
    });
};

/** `added` hears of the tenants with new deliveries, before the commit. */
export const createFanOut =
  (added: (tenantId: string) => void) =>
  async (tx: SqlTx, events: readonly DispatchedEvent[]): Promise<void> => {
    const subscriptions = await findSubscriptions(tx, [...new Set(events.map(({ tenantId }) => tenantId))]);
    if (subscriptions.length === 0) return;
    const targets = new Map<string, Target[]>();
    for (const each of subscriptions) targets.set(each.tenant_id, [...(targets.get(each.tenant_id) ?? []), toTarget(each)]);
    const deliveries = events.flatMap((event) => deliveriesOf(event, targets.get(event.tenantId) ?? []));
    if (deliveries.length === 0) return;
    await insertDeliveries(tx, deliveries);
    await markDue(tx, [...new Set(deliveries.map(({ webhookId }) => webhookId))]);
    for (const { tenantId } of deliveries) added(tenantId);
  };
