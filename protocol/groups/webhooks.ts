// Webhooks: events of the tenant, sent to URLs that it names, signed, in order and until they arrive; and the log of events.
import { z } from "zod";
import { Moment, Version } from "../kit/bounds.ts";
import { event } from "../kit/event.ts";
import { EventId, id, ref, WebhookId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { cursorQuery, listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import {
  DELIVERY_STATUSES,
  DISABLED_REASONS,
  EventTypeRecord,
  TenantEvent,
  WEBHOOK_FORMATS,
  Webhook,
  WebhookDelivery,
  WebhookDeliveryDetail,
  WebhookTest,
} from "../records/webhook.ts";

const Url = z.url({ protocol: /^https?$/ }).max(2_048);
const EventName = z.string().regex(/^[\x21-\x7e]{1,100}$/);
const Events = z.array(EventName).min(1).max(100).describe("Types of events, such as `device.offline`; `device.*` for all of a group, `*` for all.");
export const WebhookSecret = z
  .string()
  .regex(/^[\x21-\x7e]{8,256}$/)
  .describe("8 to 256 printable ASCII characters. `whsec_` and the Base64 of 24 to 64 bytes stands for these bytes; any other text is the key itself.");
// Ours, and those of the connection.
const RESERVED = /^(?:webhook-|x-svc-|content-|proxy-)|^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|user-agent|traceparent)$/i;
const Headers = z
  .record(
    z
      .string()
      .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/)
      .refine((name) => !RESERVED.test(name), "is reserved"),
    z
      .string()
      .max(1_024)
      .regex(/^[\x20-\x7e]*$/),
  )
  .refine((given) => Object.keys(given).length <= 10, "must have at most 10 headers")
  .refine((given) => new Set(Object.keys(given).map((name) => name.toLowerCase())).size === Object.keys(given).length, "names a header twice")
  .describe("Headers that every delivery carries besides ours, such as `Authorization`. Their values are never shown again.");
const fields = {
  description: z.string().trim().max(500),
  format: z.enum(WEBHOOK_FORMATS),
  headers: Headers,
  maxPerSecond: z.int().min(1).max(50),
};

const one = z.strictObject({ webhookId: ref("wh") });
const oneDelivery = one.extend({ deliveryId: ref("whd") });
const WebhookEvent = z.object({ webhookId: WebhookId, url: z.string() });
const write = { auth: ["user", "apiKey"], permission: "webhook:write" } as const;
const send = { auth: ["user", "apiKey"], permission: "webhook:deliver" } as const;
const Subject = z.string().min(1).max(128);

export const webhooks = group({
  tag: "Webhooks",
  records: { Webhook, WebhookDelivery, WebhookDeliveryDetail, WebhookTest, TenantEvent, EventTypeRecord },
  operations: {
    list: query({
      summary: "List webhooks",
      rest: ["GET /webhooks"],
      auth: ["user", "apiKey"],
      permission: "webhook:read",
      list: "page",
      input: listQuery({ sort: ["createdAt", "url"], by: "-createdAt" }),
      output: paged(named(Webhook)),
    }),
    eventTypes: query({
      summary: "List the types of events",
      rest: ["GET /webhooks/event-types"],
      auth: ["user", "apiKey"],
      permission: "webhook:read",
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(EventTypeRecord) }),
    }),
    get: query({
      summary: "Get a webhook",
      rest: ["GET /webhooks/{webhookId}"],
      auth: ["user", "apiKey"],
      permission: "webhook:read",
      input: one,
      output: named(Webhook),
      errors: ["WEBHOOK_NOT_FOUND"],
    }),
    create: mutation({
      ...write,
      summary: "Create a webhook",
      rest: ["POST /webhooks"],
      status: 201,
      location: "/webhooks/{webhookId}",
      input: z.strictObject({
        url: Url,
        events: Events,
        secret: WebhookSecret.optional(),
        description: fields.description.default(""),
        format: fields.format.default("standard"),
        headers: fields.headers.default({}),
        maxPerSecond: fields.maxPerSecond.default(10),
      }),
      output: Webhook.extend({
        secret: z.string().optional().describe("Only if you sent none: the one that the server made. It is shown only in this response."),
        warnings: z.array(z.enum(["WEAK_SECRET"])).describe("`WEAK_SECRET`: the secret has fewer than 24 characters."),
      }),
      errors: ["WEBHOOK_URL_NOT_ALLOWED", "EVENT_TYPE_UNKNOWN", "WEBHOOK_ALREADY_EXISTS", "PLAN_LIMIT_EXCEEDED"],
    }),
    update: mutation({
      ...write,
      summary: "Change, enable or disable a webhook",
      rest: ["PATCH /webhooks/{webhookId}"],
      input: one.extend({
        url: Url.optional(),
        events: Events.optional(),
        description: fields.description.optional(),
        format: fields.format.optional(),
        headers: fields.headers.optional(),
        maxPerSecond: fields.maxPerSecond.optional(),
        status: z.enum(["active", "disabled"]).optional(),
        version: Version.optional(),
      }),
      output: Webhook,
      errors: ["WEBHOOK_NOT_FOUND", "WEBHOOK_URL_NOT_ALLOWED", "EVENT_TYPE_UNKNOWN", "WEBHOOK_ALREADY_EXISTS", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      ...write,
      summary: "Delete a webhook",
      rest: ["DELETE /webhooks/{webhookId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["WEBHOOK_NOT_FOUND"],
    }),
    rotateSecret: mutation({
      ...write,
      summary: "Rotate a webhook's secret",
      rest: ["POST /webhooks/{webhookId}/rotate-secret"],
      input: one.extend({ secret: WebhookSecret.optional(), graceSeconds: z.int().min(0).max(604_800).default(86_400) }),
      output: Webhook.extend({ secret: z.string().optional(), warnings: z.array(z.enum(["WEAK_SECRET"])) }),
      errors: ["WEBHOOK_NOT_FOUND"],
    }),
    test: mutation({
      ...send,
      summary: "Send a test event",
      rest: ["POST /webhooks/{webhookId}/test"],
      limit: "webhook.test",
      input: one.extend({ eventType: EventName.optional().describe("The test contains an example of this type.") }),
      output: WebhookTest,
      errors: ["WEBHOOK_NOT_FOUND", "EVENT_TYPE_UNKNOWN"],
    }),
    listDeliveries: query({
      ...send,
      summary: "List a webhook's deliveries, newest first",
      rest: ["GET /webhooks/{webhookId}/deliveries"],
      list: "cursor",
      input: cursorQuery({
        webhookId: ref("wh"),
        status: z.enum(DELIVERY_STATUSES).optional().describe("Only deliveries in this state."),
        eventType: EventName.optional().describe("Only deliveries of events of this type."),
      }),
      output: paged(WebhookDelivery),
      errors: ["WEBHOOK_NOT_FOUND"],
    }),
    getDelivery: query({
      ...send,
      summary: "Get a delivery with its attempts",
      rest: ["GET /webhooks/{webhookId}/deliveries/{deliveryId}"],
      input: oneDelivery,
      output: WebhookDeliveryDetail,
      errors: ["WEBHOOK_NOT_FOUND", "DELIVERY_NOT_FOUND"],
    }),
    redeliver: mutation({
      ...send,
      summary: "Deliver an event again",
      rest: ["POST /webhooks/{webhookId}/deliveries/{deliveryId}/redeliver"],
      status: 201,
      input: oneDelivery,
      output: WebhookDelivery,
      errors: ["WEBHOOK_NOT_FOUND", "DELIVERY_NOT_FOUND", "WEBHOOK_DISABLED"],
    }),
    replay: mutation({
      ...write,
      summary: "Deliver the events of a time again",
      rest: ["POST /webhooks/{webhookId}/replay"],
      status: 201,
      input: one.extend({
        since: Moment,
        until: Moment.optional().describe("Default: now."),
        eventTypes: Events.optional().describe("Default: those of the webhook. Others than those are never sent."),
        status: z
          .enum(["failed", "all", "missing"])
          .describe("`failed`: events whose delivery failed. `missing`: events that were never sent, such as those while it was disabled."),
      }),
      output: z.object({ webhookId: WebhookId, events: z.int().describe("How many events are delivered again.") }),
      errors: ["WEBHOOK_NOT_FOUND", "EVENT_TYPE_UNKNOWN", "REPLAY_TOO_LARGE"],
    }),
    listEvents: query({
      summary: "List the tenant's events",
      rest: ["GET /events"],
      auth: ["user", "apiKey"],
      permission: "event:read",
      list: "cursor",
      input: cursorQuery({
        after: ref("evt").optional().describe("Only events after this one, oldest first. Default: all, newest first."),
        types: z.array(EventName).min(1).max(50).optional().describe("Types of events, or `group.*`."),
        subjectId: Subject.optional().describe("Only events about this resource."),
        since: Moment.optional().describe("At this time or later."),
        until: Moment.optional().describe("Before this time."),
      }),
      output: paged(TenantEvent),
      errors: ["EVENT_NOT_FOUND"],
    }),
    getEvent: query({
      summary: "Get an event",
      rest: ["GET /events/{eventId}"],
      auth: ["user", "apiKey"],
      permission: "event:read",
      input: z.strictObject({ eventId: ref("evt") }),
      output: TenantEvent,
      errors: ["EVENT_NOT_FOUND"],
    }),
  },
  events: {
    tested: event(
      "webhook.test",
      WebhookEvent.extend({ example: z.object({ type: z.string(), data: z.record(z.string(), z.unknown()) }).optional() }),
      "Somebody sent a test to a webhook. Only this webhook receives it",
    ),
    disabled: event(
      "webhook.disabled",
      WebhookEvent.extend({ reason: z.enum(DISABLED_REASONS) }),
      "A webhook was disabled, by a person or because its deliveries failed for five days. The tenant's other webhooks receive it",
    ),
    recovered: event("webhook.recovered", WebhookEvent, "A delivery succeeded after four or more that failed. The tenant's other webhooks receive it"),
    exhausted: event(
      "webhook.delivery_exhausted",
      WebhookEvent.extend({ deliveryId: id("whd"), eventId: EventId, eventType: z.string() }),
      "No attempt to deliver an event is left. The tenant's other webhooks receive it",
    ),
  },
});
