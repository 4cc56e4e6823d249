// Guide to traces.
import type { Guide } from "./guide.ts";
import { AT, IDS } from "./records.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const summary = {
  traceId,
  rootService: "backup-agent",
  rootOperation: "backup photos",
  startTime: AT,
  durationMs: 1_532.25,
  spanCount: 1,
  errorCount: 0,
  services: ["backup-agent"],
};
const span = {
  spanId,
  parentSpanId: null,
  service: "backup-agent",
  operation: "backup photos",
  kind: "internal",
  startTime: AT,
  durationMs: 1_532.25,
  status: "unset",
  statusMessage: null,
  source: "sent",
  deviceId: IDS.deviceId,
  commandId: null,
  attributes: { files: 120 },
  resource: { "service.name": "backup-agent", "svc.tenant.id": IDS.tenantId, "svc.device.id": IDS.deviceId },
  events: [],
  links: [],
};
const nano = (milliseconds: number): string => `${Date.parse(AT) + milliseconds}000000`;

export const traces: Guide<"traces"> = {
  ingest: {
    description:
      "Takes an ExportTraceServiceRequest of OTLP/HTTP in JSON or protobuf (`application/x-protobuf`), plain or with `Content-Encoding: gzip`, so any OpenTelemetry exporter can send here: set `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` to this URL and `OTEL_EXPORTER_OTLP_HEADERS` to `x-api-key=...,x-svc-tenant-id=...`. Agents sign the body as sent. Answers in the request's encoding, without an envelope; errors of protobuf requests are `google.rpc.Status`. Spans that are malformed, older than 7 days, more than an hour in the future, or beyond the plan's `spansPerDay` are counted in `partialSuccess`; the others are stored. A call takes up to 2,000 spans. The attributes `svc.tenant.id` and `svc.device.id` come from the credential.",
    input: {
      resourceSpans: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "backup-agent" } }] },
          scopeSpans: [
            {
              spans: [
                {
                  traceId,
                  spanId,
                  name: "backup photos",
                  kind: 1,
                  startTimeUnixNano: nano(0),
                  endTimeUnixNano: nano(1_532),
                  attributes: [{ key: "files", value: { intValue: "120" } }],
                },
              ],
            },
          ],
        },
      ],
    },
    output: {},
  },
  list: {
    description:
      "Traces that started within the window, by default the last hour. Callers who are limited to some devices see only spans of these devices, and figures of these spans.",
    input: { service: "backup-agent", status: "ok", minDurationMs: 100 },
    output: { items: [summary] },
  },
  services: { description: "Services of the last days, by name.", output: { items: [{ service: "backup-agent", lastSeenAt: AT }] } },
  operations: {
    description: "Operations of the last days, by name; at most 1,000 of a tenant are remembered.",
    input: { service: "backup-agent" },
    output: { items: [{ service: "backup-agent", operation: "backup photos", lastSeenAt: AT }] },
  },
  get: {
    description:
      "Returns the spans as a flat list. If a command belongs to the trace, its way through the queue, its deliveries and its ack are spans too; what the device did for it stands below the delivery.",
    input: { traceId },
    output: { ...summary, truncated: false, spans: [span] },
  },
};
