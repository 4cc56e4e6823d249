// One attempt of a delivery: the request, and what the log keeps of the answer.
import { DELIVERY_ERRORS, type DeliveryAttempt } from "../../../../protocol/index.ts";
import type { Clock } from "../../../core/clock.ts";
import { type Outbound, type OutboundAnswer, OutboundError } from "../../../core/ports/outbound.ts";
import { CONTENT_TYPES, type WebhookFormat } from "./payload.ts";
import { signatureHeaders } from "./signing.ts";

export interface Endpoint {
  readonly webhookId: string;
  readonly tenantId: string;
  readonly url: string;
  readonly format: WebhookFormat;
  /** The current one first. */
  readonly keys: readonly Buffer[];
  readonly headers: Readonly<Record<string, string>>;
}

export interface Sending {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly body: string;
  readonly traceparent: string | null;
  readonly attemptsBefore: number;
  readonly trigger: DeliveryAttempt["trigger"];
}

export interface AttemptOutcome {
  readonly attempt: DeliveryAttempt;
  readonly retryAfter: string | null;
}

const MAX_READ = 65_536;
const MAX_KEPT = 4_096;
const MAX_HEADER = 200;
const MAX_MESSAGE = 300;
const KEPT_HEADERS = ["content-type", "date", "retry-after", "server", "x-request-id"] as const;
const DOCS = "https://www.standardwebhooks.com";

/** Without the signatures, which each attempt makes anew. */
export const ownHeaders = ({ webhookId, tenantId, format }: Endpoint, sending: Omit<Sending, "body">): Record<string, string> => ({
  "content-type": CONTENT_TYPES[format],
  "user-agent": `svc-webhooks/1 (+${DOCS})`,
  "x-svc-event": sending.eventType,
  "x-svc-delivery-id": sending.deliveryId,
  "x-svc-attempt": String(sending.attemptsBefore + 1),
  "x-svc-webhook-id": webhookId,
  "x-svc-tenant-id": tenantId,
  ...(sending.traceparent === null ? {} : { traceparent: sending.traceparent }),
});

/** What PostgreSQL can store, in one piece. */
const storable = (text: string, max: number): string => text.replaceAll("\u0000", "\u{fffd}").slice(0, max).toWellFormed();
const isKnown = (code: string): code is (typeof DELIVERY_ERRORS)[number] => (DELIVERY_ERRORS as readonly string[]).includes(code);

const kept = (headers: OutboundAnswer["headers"]): Record<string, string> => {
  const some: Record<string, string> = {};
  for (const name of KEPT_HEADERS) if (headers[name] !== undefined) some[name] = storable(headers[name], MAX_HEADER);
  return some;
};

const answered = ({ statusCode, headers, body, address }: OutboundAnswer) => ({
  statusCode,
  error: statusCode >= 200 && statusCode < 300 ? null : { code: "HTTP_STATUS" as const, message: `the receiver answered ${statusCode}` },
  responseHeaders: kept(headers),
  responseBody: storable(body.subarray(0, MAX_KEPT).toString("utf8"), MAX_KEPT),
  ip: address,
});

const failed = ({ code, message, address }: OutboundError) => ({
  statusCode: null,
  error: { code: isKnown(code) ? code : ("CONNECT" as const), message: storable(message, MAX_MESSAGE) },
  responseHeaders: {},
  responseBody: "",
  ip: address,
});

/** Null when `signal` ended it: then nobody knows whether it arrived. */
export const createAttempt =
  ({ outbound, clock, timeoutMs }: { readonly outbound: Pick<Outbound, "send">; readonly clock: Clock; readonly timeoutMs: number }) =>
  async (endpoint: Endpoint, sending: Sending, signal: AbortSignal): Promise<AttemptOutcome | null> => {
    const startedAt = clock.now();
    const begun = clock.elapsed();
    const note = (result: ReturnType<typeof answered> | ReturnType<typeof failed>): DeliveryAttempt => ({
      number: sending.attemptsBefore + 1,
      trigger: sending.trigger,
      startedAt: startedAt.toISOString(),
      durationMs: Math.max(0, Math.round(clock.elapsed() - begun)),
      ...result,
    });
    const headers = { ...endpoint.headers, ...ownHeaders(endpoint, sending), ...signatureHeaders(sending, endpoint.keys, startedAt) };
    const { url, tenantId: owner } = endpoint;
    try {
      const answer = await outbound.send({ url, method: "POST", headers, body: sending.body, timeoutMs, maxBodyBytes: MAX_READ, signal, owner });
      return { attempt: note(answered(answer)), retryAfter: answer.headers["retry-after"] ?? null };
    } catch (error) {
      if (signal.aborted) return null;
      const known = error instanceof OutboundError ? error : new OutboundError("PROTOCOL", "the call failed", { cause: error });
      return { attempt: note(failed(known)), retryAfter: null };
    }
  };
export type Attempt = ReturnType<typeof createAttempt>;
