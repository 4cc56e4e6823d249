// The `webhooks` of the OpenAPI document: what the gateway sends for each durable event.
import { type Contract, contract, type EventType, type Group, WebhookPayload } from "../../../protocol/index.ts";
import type { Json, Schemas } from "./schemas.ts";

const HEADERS: Readonly<Record<string, string>> = {
  "webhook-id": "Id of the event, the same in every attempt.",
  "webhook-timestamp": "When this attempt was made, in Unix seconds.",
  "webhook-signature": "`v1,` and the Base64 of HMAC-SHA256 over `id.timestamp.body`; two, separated by a space, while a secret is rotated.",
  "x-svc-timestamp": "When this attempt was made, in ISO 8601.",
  "x-svc-signature": "HMAC-SHA256 over the body and `x-svc-timestamp`, in hexadecimal; two, separated by a space, while a secret is rotated.",
  "x-svc-event": "Type of the event.",
  "x-svc-delivery-id": "Id of the delivery.",
  "x-svc-attempt": "Number of the attempt, from 1.",
  "x-svc-webhook-id": "Id of the webhook.",
  "x-svc-tenant-id": "Id of the tenant.",
};
const parameters = Object.entries(HEADERS).map(([name, description]) => ({ name, in: "header", required: true, description, schema: { type: "string" } }));

const durableEvents = (groups: Contract): readonly EventType[] =>
  Object.values<Group>(groups)
    .flatMap(({ events }) => Object.values(events))
    .filter(({ durable }) => durable);

const operationOf = (schemas: Schemas, { type, summary, schema }: EventType): Json => {
  const payload = WebhookPayload.extend({ data: schema });
  return {
    operationId: `webhook.${type}`,
    summary,
    tags: ["Webhooks"],
    security: [],
    parameters,
    requestBody: { required: true, content: { "application/json": { schema: schemas.of(payload, "output") } } },
    responses: { "2XX": { description: "The event has arrived. Any other answer is a failure, and the gateway tries again later." } },
  };
};

export const webhooksOf = (schemas: Schemas): Json =>
  Object.fromEntries(durableEvents(contract).map((event) => [event.type, { post: operationOf(schemas, event) }]));
