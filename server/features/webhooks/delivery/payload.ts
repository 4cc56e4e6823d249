// The body of a delivery: serialized once, so that every attempt sends and signs the same bytes.
import type { WEBHOOK_FORMATS } from "../../../../protocol/index.ts";

export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

export interface PayloadEvent {
  readonly eventId: string;
  readonly type: string;
  readonly tenantId: string;
  readonly sequence: number;
  readonly subjectId: string;
  readonly createdAt: Date;
  readonly data: Readonly<Record<string, unknown>>;
  readonly requestId: string | null;
  readonly traceparent: string | null;
}

const MAX_BYTES = 20_480;
const MAX_KEPT_TEXT = 128;
export const API_VERSION = "v1";
export const CONTENT_TYPES: Readonly<Record<WebhookFormat, string>> = {
  standard: "application/json",
  cloudevents: "application/cloudevents+json; charset=utf-8",
};

const standard = ({ eventId, type, createdAt, tenantId, sequence, subjectId, requestId, traceparent }: PayloadEvent, data: object): object => ({
  id: eventId,
  type,
  timestamp: createdAt.toISOString(),
  apiVersion: API_VERSION,
  tenantId,
  sequence,
  subjectId,
  data,
  ...(requestId === null ? {} : { requestId }),
  ...(traceparent === null ? {} : { traceparent }),
});

/** Structured mode of CloudEvents 1.0. Names of extensions have lower-case letters and digits only. */
const cloudEvent = ({ eventId, type, createdAt, tenantId, sequence, subjectId, requestId, traceparent }: PayloadEvent, data: object): object => ({
  specversion: "1.0",
  id: eventId,
  source: `/tenants/${tenantId}`,
  type,
  subject: subjectId,
  time: createdAt.toISOString(),
  datacontenttype: "application/json",
  tenantid: tenantId,
  sequence: String(sequence),
  ...(requestId === null ? {} : { requestid: requestId }),
  ...(traceparent === null ? {} : { traceparent }),
  data,
});

const WRITERS = { standard, cloudevents: cloudEvent } as const;

const isShort = (value: unknown): boolean => (typeof value === "string" ? value.length <= MAX_KEPT_TEXT : typeof value !== "object" || value === null);
/** Ids, names and figures of the data, without what makes it long. */
const shortened = (data: PayloadEvent["data"]): object => ({
  ...Object.fromEntries(
    Object.entries(data)
      .filter(([name, value]) => name.length <= MAX_KEPT_TEXT && isShort(value))
      .slice(0, 50),
  ),
  truncated: true,
});

export const bodyOf = (event: PayloadEvent, format: WebhookFormat): string => {
  const body = JSON.stringify(WRITERS[format](event, event.data));
  return Buffer.byteLength(body) <= MAX_BYTES ? body : JSON.stringify(WRITERS[format](event, shortened(event.data)));
};
