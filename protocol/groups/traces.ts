// Traces: spans that agents and programs send over OTLP, joined with the gateway's own, from a portal's call through the queue to the agent's ack.
import { z } from "zod";
import { Moment } from "../kit/bounds.ts";
import { ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { cursorQuery, paged } from "../kit/page.ts";

export const TRACE_LIMITS = {
  /** The size of a body after decompression. */
  bodyBytes: 4_194_304,
  spansPerCall: 2_000,
  spansPerTrace: 5_000,
  windowHours: 24,
} as const;

const TraceId = z.string().regex(/^[0-9a-f]{32}$/);
const SpanId = z.string().regex(/^[0-9a-f]{16}$/);
const DurationMs = z.number().min(0).describe("In milliseconds, to the microsecond.");
const Attributes = z.record(z.string(), z.unknown());

export const TraceSummary = z.object({
  traceId: TraceId,
  rootService: z.string().describe("Of the span that no other caused; of the earliest one while that has not come."),
  rootOperation: z.string(),
  startTime: z.iso.datetime(),
  durationMs: DurationMs,
  spanCount: z.int().min(0),
  errorCount: z.int().min(0),
  services: z.array(z.string()).describe("At most 50."),
});
export type TraceSummary = z.infer<typeof TraceSummary>;

export const TraceSpan = z.object({
  spanId: SpanId,
  parentSpanId: SpanId.nullable().describe("A parent that nobody has sent may be missing in `spans`."),
  service: z.string(),
  operation: z.string(),
  kind: z.enum(["unspecified", "internal", "server", "client", "producer", "consumer"]),
  startTime: z.iso.datetime(),
  durationMs: DurationMs,
  status: z.enum(["unset", "ok", "error"]),
  statusMessage: z.string().nullable(),
  source: z
    .enum(["sent", "gateway", "command"])
    .describe("`sent`: over OTLP. `gateway`: a call that the gateway answered. `command`: a step of a command, from its history."),
  deviceId: z.string().nullable(),
  commandId: z.string().nullable(),
  attributes: Attributes,
  resource: Attributes.describe("Attributes of what sent the span; `svc.tenant.id` and `svc.device.id` come from the credential."),
  events: z.array(z.object({ name: z.string(), time: z.iso.datetime(), attributes: Attributes })),
  links: z.array(z.object({ traceId: TraceId, spanId: SpanId })),
});
export type TraceSpan = z.infer<typeof TraceSpan>;

export const Trace = z.object({
  ...TraceSummary.shape,
  truncated: z.boolean().describe(`The trace has more spans than the ${TRACE_LIMITS.spansPerTrace} that the answer holds.`),
  spans: z.array(TraceSpan).describe("Earliest first; `parentSpanId` makes them a tree."),
});
export type Trace = z.infer<typeof Trace>;

/** OpenTelemetry's ExportTraceServiceResponse. */
export const SpansTaken = z.object({
  partialSuccess: z
    .object({ rejectedSpans: z.string().describe("A 64-bit number, in JSON as text."), errorMessage: z.string() })
    .optional()
    .describe("Absent if every span was accepted."),
});

const lastSeenAt = z.iso.datetime().describe("To the hour.");
export const TraceService = z.object({ service: z.string(), lastSeenAt });
export const TraceOperation = z.object({ service: z.string(), operation: z.string(), lastSeenAt });

const Name = z.string().min(1).max(256);
const Milliseconds = z.int().min(0).max(2_147_483_647).optional();

const reading = { auth: ["user", "apiKey"], permission: "trace:read" } as const;

export const traces = group({
  tag: "Traces",
  operations: {
    ingest: mutation({
      auth: ["apiKey", "agent"],
      permission: "trace:write",
      summary: "Send spans over OTLP",
      rest: ["POST /traces"],
      limit: "traces",
      // A span has an id, so sending it again changes nothing.
      idempotency: "none",
      maxBodyBytes: TRACE_LIMITS.bodyBytes,
      otlp: true,
      input: z.object({
        resourceSpans: z
          .array(z.unknown())
          .max(TRACE_LIMITS.spansPerCall)
          .optional()
          .describe("OpenTelemetry's ResourceSpans (opentelemetry.proto.trace.v1). The gateway ignores fields that it does not know."),
      }),
      output: SpansTaken,
      errors: ["PAYLOAD_TOO_LARGE", "MALFORMED_JSON"],
    }),
    list: query({
      ...reading,
      summary: "List traces, newest first",
      rest: ["GET /traces"],
      list: "cursor",
      input: cursorQuery({
        service: Name.optional().describe("Some span is of this service."),
        operation: Name.optional().describe("Some span has this operation."),
        deviceId: ref("dev").optional().describe("Some span is of this device."),
        appId: ref("app").optional().describe("Some span has this app as `svc.app.id` of its resource."),
        status: z.enum(["ok", "error"]).optional().describe("`error`: some span failed."),
        minDurationMs: Milliseconds.describe("Took at least so long."),
        maxDurationMs: Milliseconds.describe("Took at most so long."),
        from: Moment.optional().describe(`Started then or later. Default: an hour before \`to\`; at most ${TRACE_LIMITS.windowHours} hours before it.`),
        to: Moment.optional().describe("Started before this time. Default: now."),
        requestId: z.string().min(1).max(64).optional().describe("The trace of this request."),
      }),
      output: paged(TraceSummary),
      errors: ["TRACE_RANGE_TOO_LARGE"],
    }),
    services: query({
      ...reading,
      summary: "List the services that send spans",
      rest: ["GET /traces/services"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(TraceService) }),
    }),
    operations: query({
      ...reading,
      summary: "List the operations of a service",
      rest: ["GET /traces/operations"],
      list: "plain",
      input: z.strictObject({ service: Name.optional().describe("Without it, those of all services.") }),
      output: z.object({ items: z.array(TraceOperation) }),
    }),
    get: query({
      ...reading,
      summary: "Get a trace with its spans",
      rest: ["GET /traces/{traceId}"],
      input: z.strictObject({
        traceId: z
          .string()
          .min(1)
          .max(128)
          .meta({ description: "Id of the trace.", examples: ["4bf92f3577b34da6a3ce929d0e0e4736"] }),
      }),
      output: Trace,
      errors: ["TRACE_NOT_FOUND"],
    }),
  },
  records: { SpansTaken, Trace, TraceOperation, TraceService, TraceSpan, TraceSummary },
});
