// The log of deliveries: lists them, shows one with its attempts, sends one again.
import { type contract, DeliveryAttempt, FIRST, type Page, WebhookDelivery } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import { createLongListing } from "../../../core/rows/listing.ts";
import { given, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import { ownHeaders } from "../delivery/attempt.ts";
import type { WebhookFormat } from "../delivery/payload.ts";
import { MASKED, signatureHeaders } from "../delivery/signing.ts";
import { type DeliveryRow, findWebhook, type WebhookRow } from "../store/endpoints.ts";
import { markDue, redeliver } from "../store/fan-out.ts";

const toDelivery = (row: DeliveryRow): WebhookDelivery => recordOf(WebhookDelivery, row);

// Ids of events sort by time, so a replay does not move a delivery to another place.
const list = createLongListing("webhook-deliveries", { eventId: { kind: "text" } }, { column: "eventId", kind: "text" });
interface Asked {
  readonly webhookId: string;
  readonly status?: string | undefined;
  readonly eventType?: string | undefined;
  readonly cursor?: string | undefined;
}
const page = (db: Clients, scope: SystemScope, query: Asked): Promise<Page<WebhookDelivery>> => {
  const { webhookDelivery } = db.for(scope);
  const { webhookId, status, eventType } = query;
  const where = { webhookId, ...given({ status, eventType }) };
  return list(
    { ...query, cursor: query.cursor ?? FIRST, sort: "-eventId" },
    {
      owner: scope.tenantId,
      walk: (asked) => webhookDelivery.findMany({ ...asked, where: { webhookId, AND: asked.where }, select: { eventId: true } }),
      isWhole: status === undefined && eventType === undefined,
      rows: (asked) => webhookDelivery.findMany({ ...asked, where: { ...where, AND: asked.where } }),
      count: async () => 0,
      record: toDelivery,
    },
  );
};

const requestOf = (row: DeliveryRow, webhook: WebhookRow) => {
  const endpoint = { ...webhook, format: webhook.format as WebhookFormat, keys: [], headers: {} }; // as: the column holds nothing else
  const { deliveryId, eventId, eventType, body, traceparent, attemptCount: attemptsBefore } = row;
  const sending = { deliveryId, eventId, eventType, body, traceparent, attemptsBefore, trigger: "scheduled" as const };
  const signatures = Object.keys(signatureHeaders(sending, [], row.createdAt)).filter((name) => name !== "webhook-id");
  const masked = Object.fromEntries([...signatures, ...webhook.headerNames].map((name) => [name, MASKED]));
  return { method: "POST" as const, url: webhook.url, headers: { "webhook-id": eventId, ...masked, ...ownHeaders(endpoint, sending) }, body };
};

export const createDeliveryLog = ({ db }: Pick<FeatureKit, "db">): Pick<Handlers<typeof contract.webhooks>, "listDeliveries" | "getDelivery" | "redeliver"> => {
  const known = async (clients: Clients, scope: SystemScope, webhookId: string): Promise<WebhookRow> => {
    const webhook = await findWebhook(clients, scope, webhookId);
    if (webhook === null) throw new AppError("WEBHOOK_NOT_FOUND", { details: { webhookId } });
    return webhook;
  };
  const find = async (clients: Clients, scope: SystemScope, named: { readonly webhookId: string; readonly deliveryId: string }) => {
    const row = await clients.for(scope).webhookDelivery.findFirst({ where: named });
    if (row === null) throw new AppError("DELIVERY_NOT_FOUND", { details: { deliveryId: named.deliveryId } });
    return row;
  };
  return {
    listDeliveries: async ({ scope }, query) => {
      await known(db, scope, query.webhookId);
      return page(db, scope, query);
    },

    getDelivery: async ({ scope }, { webhookId, deliveryId }) => {
      const webhook = await known(db, scope, webhookId);
      const row = await find(db, scope, { webhookId, deliveryId });
      return { ...toDelivery(row), attempts: DeliveryAttempt.array().parse(row.attempts), request: requestOf(row, webhook) };
    },

    redeliver: ({ scope, fail, commit }, { webhookId, deliveryId }) =>
      commit(async (tx) => {
        const webhook = await known(tx, scope, webhookId);
        await find(tx, scope, { webhookId, deliveryId });
        if (webhook.status === "disabled") throw fail("WEBHOOK_DISABLED", { webhookId });
        await redeliver(tx, scope.tenantId, deliveryId);
        await markDue(tx, [webhookId]);
        return toDelivery(await find(tx, scope, { webhookId, deliveryId }));
      }),
  };
};
