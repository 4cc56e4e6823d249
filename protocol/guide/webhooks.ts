// Guide to webhooks and the event log.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, shownWithActors } from "./records.ts";

const { tenantId, deviceId, requestId, userId } = IDS;
const webhookId = "wh_01J9ZQD1F3H5K7M9P1R3T5W7Y9";
const deliveryId = "whd_01J9ZQD2G4J6M8P0R2T4W6Y8A0";
const eventId = "evt_01J9ZQD3H5K7N9Q1S3V5X7Z9B1";

const webhook = {
  webhookId,
  tenantId,
  url: "https://hooks.example.com/mooring",
  events: ["command.*", "device.offline"],
  description: "pager",
  format: "standard",
  status: "active",
  disabledReason: null,
  disabledAt: null,
  secretHint: "x7Qd",
  headerNames: ["authorization"],
  maxPerSecond: 10,
  stats: { success24h: 412, failure24h: 3, lastSuccessAt: LATER, lastFailureAt: AT, failingSince: null },
  apiVersion: "v1",
  createdBy: `user:${userId}`,
  createdAt: AT,
  updatedAt: AT,
  version: 1,
};
const delivery = {
  deliveryId,
  webhookId,
  eventId,
  eventType: "device.offline",
  subjectId: deviceId,
  status: "succeeded",
  attemptCount: 1,
  nextAttemptAt: null,
  createdAt: AT,
  completedAt: LATER,
};
const body = `{"id":"${eventId}","type":"device.offline","timestamp":"${AT}","apiVersion":"v1","tenantId":"${tenantId}","sequence":1842,"subjectId":"${deviceId}","data":{"deviceId":"${deviceId}"}}`;
const attempt = {
  number: 1,
  trigger: "scheduled",
  startedAt: AT,
  durationMs: 84,
  statusCode: 200,
  error: null,
  responseHeaders: { "content-type": "text/plain" },
  responseBody: "ok",
  ip: "203.0.113.7",
};
const event = {
  eventId,
  tenantId,
  sequence: 1_842,
  type: "device.offline",
  subjectId: deviceId,
  at: AT,
  data: { deviceId },
  requestId,
  traceparent: null,
};

export const webhooks: Guide<"webhooks"> = {
  list: {
    description: "Lists the tenant's webhooks, without their secrets.",
    input: { page: 1, pageSize: 20 },
    output: { items: [shownWithActors(webhook)], total: 1 },
  },
  eventTypes: {
    description: "Lists every type of event that a webhook can receive, with the JSON Schema of its `data` and an example of a body.",
    output: {
      items: [{ name: "device.offline", description: "A device went offline", group: "device", schema: { type: "object" }, example: JSON.parse(body) }],
    },
  },
  get: { description: "Returns the webhook and how its receiver fares.", input: { webhookId }, output: shownWithActors(webhook) },
  create: {
    description:
      "The gateway sends the events to the URL by POST, signed with the secret by two schemes, until the receiver answers with a status of 200 to 299: ten attempts in about three days. Events of one subject arrive in order; a failed one holds back the later ones of its subject for an hour at most. An event can arrive twice, so drop what you have seen by its `webhook-id`. Without `secret` the gateway makes one and shows it in this response only. The URL must be public.",
    input: { url: webhook.url, events: webhook.events, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
    output: { ...webhook, warnings: [] },
  },
  update: {
    description: "`status: active` enables a disabled webhook and forgets its failures. `headers` replaces all of them.",
    input: { webhookId, events: webhook.events },
    output: webhook,
  },
  remove: { description: "Ends the webhook. What it has not delivered is cancelled.", input: { webhookId } },
  rotateSecret: {
    description: "Both secrets sign for `graceSeconds`: the headers then carry two signatures, separated by a space.",
    input: { webhookId, graceSeconds: 86_400 },
    output: { ...webhook, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", warnings: [] },
  },
  test: {
    description: "Sends `webhook.test` to this webhook alone, waits for the answer and returns it. It is tried once, also while the webhook is disabled.",
    input: { webhookId },
    output: { deliveryId, eventId, statusCode: 200, durationMs: 84, error: null, response: { headers: {}, body: "ok" } },
  },
  listDeliveries: {
    description: "Lists deliveries in the order of their events. They are kept for 30 days or as long as the plan keeps events.",
    input: { webhookId },
    output: { items: [delivery] },
  },
  getDelivery: {
    description: "Returns the request and what the receiver answered to each attempt.",
    input: { webhookId, deliveryId },
    output: {
      ...delivery,
      attempts: [attempt],
      request: { method: "POST", url: webhook.url, headers: { "webhook-id": eventId, "webhook-signature": "***" }, body },
    },
  },
  redeliver: {
    description: "Tries the delivery now. If it had ended, it is tried once.",
    input: { webhookId, deliveryId },
    output: { ...delivery, status: "pending", completedAt: null, nextAttemptAt: LATER },
  },
  replay: {
    description:
      "Sends events of a time again, at most 10,000. `missing` are those that this webhook was never sent, such as those while it was disabled. A disabled webhook becomes active.",
    input: { webhookId, since: AT, status: "missing" },
    output: { webhookId, events: 17 },
  },
  listEvents: {
    description:
      "Newest first; or with `after` the events after one that you know, oldest first, to catch up. `sequence` grows by one with each event of the tenant. A caller who is limited to some devices gets events about these.",
    input: { after: eventId },
    output: { items: [event] },
  },
  getEvent: { description: "Returns an event as webhooks get it.", input: { eventId }, output: event },
};
