// Reads the spans of an OTLP export request in its JSON form. A span that cannot be kept is rejected alone, with a reason.
import { TRACE_LIMITS } from "../../../protocol/index.ts";
import { asList, asObject, cleanText, EVENT_BOUNDS, type OtlpFields, RESOURCE_BOUNDS, readAttributes, SPAN_BOUNDS } from "./attributes.ts";
import { type Attributes, isoOfUs, KINDS, STATUSES, type StoredSpan } from "./span.ts";

const MAX_NAME = 256;
const MAX_EVENTS = 16;
const MAX_LINKS = 16;
const OLDEST_US = 7 * 86_400 * 1_000_000;
const YOUNGEST_US = 3_600 * 1_000_000;
/** The end of what a Date can hold. */
const LAST_US = 253_402_300_799_000_000;

/** Whose spans they are, by the credential; what the client says of it is overwritten. */
export interface Sender {
  readonly tenantId: string;
  readonly deviceId: string | null;
}

export type Rejections = Map<string, number>;
export const reject = (rejected: Rejections, reason: string, count = 1): void => {
  if (count > 0) rejected.set(reason, (rejected.get(reason) ?? 0) + count);
};

const idOf = (value: unknown, digits: number): string | null => {
  if (typeof value !== "string" || value.length !== digits || !/^[0-9a-f]+$/i.test(value) || /^0+$/.test(value)) return null;
  return value.toLowerCase();
};

/** Null for what is no time. */
const microseconds = (nano: unknown): number | null => {
  if (typeof nano === "number") return Number.isFinite(nano) && nano >= 0 ? Math.min(Math.floor(nano / 1_000), LAST_US) : null;
  return typeof nano === "string" && /^\d{1,20}$/.test(nano) ? Math.min(Number(BigInt(nano) / 1_000n), LAST_US) : null;
};

const indexOf = (value: unknown, names: readonly string[]): number => (typeof value === "number" && names[value] !== undefined ? value : 0);

const eventOf = (given: unknown): StoredSpan["events"][number] => {
  const event = asObject(given);
  return {
    name: cleanText(event["name"], MAX_NAME),
    time: isoOfUs(microseconds(event["timeUnixNano"]) ?? 0),
    attributes: readAttributes(event["attributes"], EVENT_BOUNDS),
  };
};

const linksOf = (given: unknown): StoredSpan["links"] =>
  asList(given)
    .slice(0, MAX_LINKS)
    .flatMap((each) => {
      const [traceId, spanId] = [idOf(asObject(each)["traceId"], 32), idOf(asObject(each)["spanId"], 16)];
      return traceId === null || spanId === null ? [] : [{ traceId, spanId }];
    });

const resourceOf = (given: unknown, { tenantId, deviceId }: Sender): Attributes => {
  const { "svc.tenant.id": _tenant, "svc.device.id": _device, ...attributes } = readAttributes(asObject(given)["attributes"], RESOURCE_BOUNDS);
  return { ...attributes, "svc.tenant.id": tenantId, ...(deviceId === null ? {} : { "svc.device.id": deviceId }) };
};

const textOf = (attributes: Attributes, name: string): string | null => cleanText(attributes[name], MAX_NAME) || null;

/** The text says why it is rejected. */
const timesOf = (span: OtlpFields, nowUs: number): { readonly startUs: number; readonly durationUs: number } | string => {
  const start = microseconds(span["startTimeUnixNano"]);
  const end = microseconds(span["endTimeUnixNano"] ?? 0);
  if (start === null || end === null) return "have no valid time";
  if (start < nowUs - OLDEST_US) return "are older than 7 days";
  if (Math.max(start, end) > nowUs + YOUNGEST_US) return "are more than an hour in the future";
  return { startUs: start, durationUs: Math.max(0, end - start) };
};

const spanOf = (given: unknown, resource: Attributes, { deviceId }: Sender, nowUs: number): StoredSpan | string => {
  if (typeof given !== "object" || given === null) return "are malformed";
  const span = asObject(given);
  const [traceId, spanId] = [idOf(span["traceId"], 32), idOf(span["spanId"], 16)];
  if (traceId === null || spanId === null) return "have no valid id";
  const parent = span["parentSpanId"] ?? "";
  const parentSpanId = parent === "" || parent === "0000000000000000" ? null : idOf(parent, 16);
  if (parentSpanId === null && parent !== "" && parent !== "0000000000000000") return "have no valid id";
  const times = timesOf(span, nowUs);
  if (typeof times === "string") return times;
  const status = asObject(span["status"]);
  return {
    traceId,
    spanId,
    parentSpanId,
    ...times,
    resource,
    deviceId,
    source: "sent",
    service: textOf(resource, "service.name") ?? "unknown_service",
    name: cleanText(span["name"], MAX_NAME) || "unnamed",
    kind: indexOf(span["kind"], KINDS),
    status: indexOf(status["code"], STATUSES),
    statusMessage: cleanText(status["message"]) || null,
    commandId: null,
    appId: textOf(resource, "svc.app.id"),
    requestId: null,
    attributes: readAttributes(span["attributes"], SPAN_BOUNDS),
    events: asList(span["events"]).slice(0, MAX_EVENTS).map(eventOf),
    links: linksOf(span["links"]),
  };
};

/** Without duplicates. */
export const readSpans = (resourceSpans: readonly unknown[], sender: Sender, nowUs: number): { spans: StoredSpan[]; rejected: Rejections } => {
  const spans = new Map<string, StoredSpan>();
  const rejected: Rejections = new Map();
  let seen = 0;
  for (const each of resourceSpans) {
    const resource = resourceOf(asObject(each)["resource"], sender);
    for (const scope of asList(asObject(each)["scopeSpans"]))
      for (const given of asList(asObject(scope)["spans"])) {
        seen += 1;
        if (seen > TRACE_LIMITS.spansPerCall) continue;
        const span = spanOf(given, resource, sender, nowUs);
        if (typeof span === "string") reject(rejected, span);
        else spans.set(`${span.traceId}${span.spanId}`, span);
      }
  }
  reject(rejected, `are beyond the ${TRACE_LIMITS.spansPerCall} of one call`, seen - Math.min(seen, TRACE_LIMITS.spansPerCall));
  return { spans: [...spans.values()], rejected };
};
