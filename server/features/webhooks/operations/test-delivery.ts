// Sends a test at once, past the queue, and logs it like any other delivery.
import { contract } from "../../../../protocol/index.ts";
import { exampleOf } from "../../../../protocol/kit/example.ts";
import { AppError } from "../../../core/errors.ts";
import { happened } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import { newId } from "../../../core/ids.ts";
import type { TenantScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import type { Attempt, AttemptOutcome } from "../delivery/attempt.ts";
import { openSealed } from "../delivery/endpoint-state.ts";
import { bodyOf, type WebhookFormat } from "../delivery/payload.ts";
import { findWebhook, type WebhookRow } from "../store/endpoints.ts";
import { DURABLE_EVENTS } from "./event-patterns.ts";

export interface TestDeps extends Pick<FeatureKit, "db" | "emit" | "clock" | "secretBox"> {
  readonly attempt: Attempt;
}
const { tested } = contract.webhooks.events;

const exampleFor = (eventType: string | undefined) => {
  if (eventType === undefined) return {};
  const event = DURABLE_EVENTS.get(eventType);
  if (event === undefined) throw new AppError("EVENT_TYPE_UNKNOWN", { details: { unknown: [eventType] } });
  return { example: { type: eventType, data: { ...exampleOf(event.schema) } } };
};

export const createTestDelivery = ({ db, emit, clock, secretBox, attempt }: TestDeps): Pick<Handlers<typeof contract.webhooks>, "test"> => {
  const endpointOf = (row: WebhookRow) => {
    const { tenantId, webhookId, url, secret, previousSecret, previousSecretUntil, headers } = row;
    const previous = previousSecretUntil !== null && previousSecretUntil > clock.now() ? previousSecret : null;
    return { tenantId, webhookId, url, format: row.format as WebhookFormat, ...openSealed(secretBox, tenantId, webhookId, { secret, previous, headers }) }; // as: the column holds nothing else
  };

  const send = async (scope: TenantScope, row: WebhookRow, data: object) => {
    const event = { eventId: newId("evt"), type: tested.type, tenantId: scope.tenantId, sequence: 0, subjectId: row.webhookId, createdAt: clock.now() };
    const { requestId, traceparent } = scope;
    const body = bodyOf({ ...event, data: { ...data }, requestId, traceparent }, row.format as WebhookFormat); // as above
    const sent = { deliveryId: newId("whd"), eventId: event.eventId, eventType: tested.type, body, traceparent };
    // Nobody ends it but its own time limit: a caller who leaves must not leave a delivery that nobody knows of.
    const outcome = await attempt(endpointOf(row), { ...sent, attemptsBefore: 0, trigger: "test" }, new AbortController().signal);
    if (outcome === null) throw new AppError("SERVICE_UNAVAILABLE");
    return { sent, outcome };
  };

  const logged = (
    { sent, outcome: { attempt: done } }: { readonly sent: { readonly deliveryId: string }; readonly outcome: AttemptOutcome },
    row: WebhookRow,
  ) => ({
    ...sent,
    webhookId: row.webhookId,
    subjectId: row.webhookId,
    position: 0n,
    status: done.error === null ? "succeeded" : done.error.code === "BLOCKED" ? "blocked" : "exhausted",
    trigger: "test",
    attemptCount: 1,
    attempts: [done],
    nextAttemptAt: null,
    completedAt: clock.now(),
  });

  return {
    test: async ({ scope, commit }, { webhookId, eventType }) => {
      const example = exampleFor(eventType);
      const row = await findWebhook(db, scope, webhookId);
      if (row === null) throw new AppError("WEBHOOK_NOT_FOUND", { details: { webhookId } });
      const about = { webhookId: row.webhookId as `wh_${string}`, url: row.url };
      const done = await send(scope, row, { ...about, ...example });
      const { sent, outcome } = done;
      const { statusCode, durationMs, error, responseHeaders, responseBody } = outcome.attempt;
      return commit(async (tx) => {
        await emit(tx, [{ ...happened(scope, tested, row.webhookId, { ...about, ...example }), eventId: sent.eventId }]);
        await tx.for(scope).webhookDelivery.create({ data: { ...logged(done, row), ...sent } });
        const ids = { deliveryId: sent.deliveryId, eventId: sent.eventId };
        return { ...ids, statusCode, durationMs, error, response: { headers: responseHeaders, body: responseBody } };
      });
    },
  };
};
