// Sends the events of a time again: those that failed, those that were never sent, or all.
import type { contract } from "../../../../protocol/index.ts";
import type { Clock } from "../../../core/clock.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { WebhookFormat } from "../delivery/payload.ts";
import { deliveriesOf } from "../fan-out.ts";
import { findWebhook, resetEndpoint, updateWebhook } from "../store/endpoints.ts";
import { findReplayable, insertDeliveries, markDue } from "../store/fan-out.ts";
import { checkEvents } from "./checks.ts";
import { DURABLE_EVENTS, matches } from "./event-patterns.ts";

const MAX_EVENTS = 10_000;

/** The types that both want. */
const typesOf = (events: readonly string[], asked: readonly string[] | undefined): readonly string[] => {
  const [own, wanted] = [new Set(events), new Set(asked ?? ["*"])];
  return [...DURABLE_EVENTS.keys()].filter((type) => matches(own, type) && matches(wanted, type));
};

export const createReplay = ({ clock }: { readonly clock: Clock }): Pick<Handlers<typeof contract.webhooks>, "replay"> => ({
  replay: ({ scope, fail, commit }, { webhookId, since, until, eventTypes, status }) => {
    if (eventTypes !== undefined) checkEvents(eventTypes);
    return commit(async (tx) => {
      const webhook = await findWebhook(tx, scope, webhookId);
      if (webhook === null) throw new AppError("WEBHOOK_NOT_FOUND", { details: { webhookId } });
      const { tenantId } = scope;
      const window = { tenantId, webhookId, since: new Date(since), until: until === undefined ? null : new Date(until), status };
      const events = await findReplayable(tx, { ...window, types: typesOf(webhook.events, eventTypes) }, MAX_EVENTS + 1);
      if (events.length > MAX_EVENTS) throw fail("REPLAY_TOO_LARGE", { limit: MAX_EVENTS });
      const target = { webhookId, patterns: new Set(webhook.events), format: webhook.format as WebhookFormat }; // as: the column holds nothing else
      const deliveries = events.flatMap((event) => deliveriesOf(event, [target], "replay"));
      await insertDeliveries(tx, deliveries);
      if (webhook.status === "disabled") {
        await updateWebhook(tx, scope, { webhookId }, { status: "active", disabledReason: null, disabledAt: null });
        await resetEndpoint(tx, scope, webhookId, clock.now());
      }
      await markDue(tx, [webhookId]);
      return { webhookId: webhook.webhookId as `wh_${string}`, events: deliveries.length };
    });
  },
});
