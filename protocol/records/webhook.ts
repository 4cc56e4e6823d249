// The records of webhooks: the subscription, a delivery with its attempts, an event, and a type of event.
import { z } from "zod";
import { EventId, id, TenantId, WebhookId } from "../kit/ids.ts";

const Timestamp = z.iso.datetime();
export const WEBHOOK_FORMATS = ["standard", "cloudevents"] as const;
export const DELIVERY_STATUSES = ["pending", "retrying", "succeeded", "exhausted", "blocked", "cancelled"] as const;
export const DELIVERY_TRIGGERS = ["scheduled", "manual", "replay", "test"] as const;
export const DELIVERY_ERRORS = ["TIMEOUT", "DNS", "TLS", "CONNECT", "HTTP_STATUS", "BLOCKED", "TOO_LARGE", "PROTOCOL"] as const;
export const DISABLED_REASONS = ["manual", "consecutive_failures", "gone", "plan_limit"] as const;

export const Webhook = z.object({
  webhookId: WebhookId,
  tenantId: TenantId,
  url: z.string(),
  events: z.array(z.string()).describe("Types of events, `group.*` for all of a group, `*` for all."),
  description: z.string(),
  format: z.enum(WEBHOOK_FORMATS).describe("Form of the body: our own, as Standard Webhooks recommends it, or CloudEvents 1.0 in structured mode."),
  status: z
    .enum(["active", "failing", "disabled"])
    .describe("`failing`: the last four attempts or more failed. `disabled`: nothing is sent until somebody enables it again."),
  disabledReason: z.enum(DISABLED_REASONS).nullable(),
  disabledAt: Timestamp.nullable(),
  secretHint: z.string().describe("The last four characters of the secret."),
  headerNames: z.array(z.string()).describe("Headers that every delivery carries besides ours. Their values are never shown."),
  maxPerSecond: z.int(),
  stats: z.object({
    success24h: z.int().describe("Attempts that succeeded in the last 24 hours."),
    failure24h: z.int(),
    lastSuccessAt: Timestamp.nullable(),
    lastFailureAt: Timestamp.nullable(),
    failingSince: Timestamp.nullable().describe("The first failure after the last success."),
  }),
  apiVersion: z.string(),
  createdBy: z.string(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
});
export type Webhook = z.infer<typeof Webhook>;

export const DeliveryAttempt = z.object({
  number: z.int().min(1),
  trigger: z.enum(DELIVERY_TRIGGERS),
  startedAt: Timestamp,
  durationMs: z.int(),
  statusCode: z.int().nullable(),
  error: z.object({ code: z.enum(DELIVERY_ERRORS), message: z.string() }).nullable(),
  responseHeaders: z.record(z.string(), z.string()).describe("Some of the answer's headers."),
  responseBody: z.string().describe("The first 4 KiB."),
  ip: z.string().nullable().describe("The address that was reached."),
});
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

export const WebhookDelivery = z.object({
  deliveryId: id("whd"),
  webhookId: WebhookId,
  eventId: EventId,
  eventType: z.string(),
  subjectId: z.string().describe("Id of the resource that the event concerns. Events of one subject are delivered in order."),
  status: z
    .enum(DELIVERY_STATUSES)
    .describe("`exhausted`: no attempt is left. `blocked`: the address is not public. `cancelled`: the webhook was disabled or deleted first."),
  attemptCount: z.int(),
  nextAttemptAt: Timestamp.nullable(),
  createdAt: Timestamp,
  completedAt: Timestamp.nullable(),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

export const WebhookDeliveryDetail = WebhookDelivery.extend({
  attempts: z.array(DeliveryAttempt).describe("The last twenty, oldest first."),
  request: z.object({
    method: z.literal("POST"),
    url: z.string(),
    headers: z.record(z.string(), z.string()).describe("As the next attempt would send them. Signatures and the values of your own headers are masked."),
    body: z.string().describe("The bytes that every attempt sends."),
  }),
});
export type WebhookDeliveryDetail = z.infer<typeof WebhookDeliveryDetail>;

export const WebhookTest = z.object({
  deliveryId: id("whd"),
  eventId: EventId,
  statusCode: z.int().nullable(),
  durationMs: z.int(),
  error: z.object({ code: z.enum(DELIVERY_ERRORS), message: z.string() }).nullable(),
  response: z.object({ headers: z.record(z.string(), z.string()), body: z.string().describe("The first 4 KiB.") }),
});
export type WebhookTest = z.infer<typeof WebhookTest>;

export const TenantEvent = z.object({
  eventId: EventId,
  tenantId: TenantId,
  sequence: z.int().min(1).describe("Consecutive within the tenant, so a gap shows."),
  type: z.string(),
  subjectId: z.string().describe("Id of the resource that the event concerns."),
  at: Timestamp,
  data: z.record(z.string(), z.unknown()),
  requestId: z.string().nullable().describe("The call that caused it."),
  traceparent: z.string().nullable(),
});
export type TenantEvent = z.infer<typeof TenantEvent>;

export const EventTypeRecord = z.object({
  name: z.string(),
  description: z.string(),
  group: z.string(),
  schema: z.record(z.string(), z.unknown()).describe("JSON Schema of the event's `data`."),
  example: z.record(z.string(), z.unknown()).describe("A delivery's body."),
});
export type EventTypeRecord = z.infer<typeof EventTypeRecord>;

/** The body of a delivery in the format `standard`. */
export const WebhookPayload = z.object({
  id: EventId,
  type: z.string(),
  timestamp: Timestamp.describe("When it happened."),
  apiVersion: z.string(),
  tenantId: TenantId,
  sequence: z.int().describe("Consecutive within the tenant; 0 for a test."),
  subjectId: z.string(),
  data: z.record(z.string(), z.unknown()).describe("`{truncated: true}` in place of data that would make the body larger than 20 KiB."),
  requestId: z.string().optional(),
  traceparent: z.string().optional(),
});
export type WebhookPayload = z.infer<typeof WebhookPayload>;
