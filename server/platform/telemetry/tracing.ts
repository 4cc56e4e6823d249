// Sends spans to an OpenTelemetry collector through the official SDK, which loads only when an endpoint is configured.
// The SDK reads its own standard variables: OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_*.
import type { Attributes, Context, Span } from "@opentelemetry/api";
import type { SpanExporter } from "@opentelemetry/sdk-trace-base";
import { isSampled, type SpanAttributes, type Tracing } from "../../core/ports/trace.ts";
import type { IsOwn } from "../outbound/address.ts";
import { createOwnRefusingAgent } from "../outbound/own-refusing-agent.ts";
import type { Log } from "./log.ts";

export interface TracingDeps {
  /** URL of the collector, without the path of a signal. */
  readonly endpoint: string;
  readonly service: { readonly version: string; readonly nodeId: string };
  readonly log: Pick<Log, "info" | "warn">;
  /** Whether this installation itself listens there: each export would be a call that makes a span, which is exported in turn. */
  readonly isOwn: IsOwn;
}

/** How long a stop waits for the spans in the queue. */
const FLUSH_MS = 3_000;
const SUCCESS = 0;

/** Logs once that the collector is away and once that it is back; the SDK would log every batch. */
const reporting = (exporter: SpanExporter, log: TracingDeps["log"]): SpanExporter => {
  let isAway = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== SUCCESS;
        if (failed && !isAway) log.warn({ error: result.error }, "the trace collector does not accept spans; the gateway drops them until it does");
        if (!failed && isAway) log.info({}, "the trace collector accepts spans again");
        isAway = failed;
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
};

const known = (attributes: SpanAttributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).flatMap(([name, value]) => (value === null ? [] : [[name, typeof value === "object" ? [...value] : value]])));

const load = async () => {
  const [api, sdk, { OTLPTraceExporter }, resources] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace-base"),
    import("@opentelemetry/exporter-trace-otlp-proto"),
    import("@opentelemetry/resources"),
  ]);
  return { api, sdk, OTLPTraceExporter, resources };
};

export const openTracing = async ({ endpoint, service, log, isOwn }: TracingDeps): Promise<Tracing & { close(): Promise<void> }> => {
  const { api, sdk, OTLPTraceExporter, resources } = await load();
  const { resourceFromAttributes, detectResources, envDetector } = resources;
  const own = { "service.name": "mooring", "service.version": service.version, "service.instance.id": service.nodeId };
  const resource = resourceFromAttributes(own).merge(detectResources({ detectors: [envDetector] }));
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
    httpAgentOptions: (protocol) => createOwnRefusingAgent(protocol, isOwn),
  });
  const processor = new sdk.BatchSpanProcessor(reporting(exporter, log));
  const provider = { resource, spanProcessors: [processor] };
  const requests = new sdk.BasicTracerProvider(provider).getTracer("mooring", service.version);
  // Record everything that follows from a recorded trace: a sampler that decides again for each linked trace would break the chain.
  const consequences = new sdk.BasicTracerProvider({ ...provider, sampler: new sdk.AlwaysOnSampler() }).getTracer("mooring", service.version);

  const spanContextOf = (traceparent: string) => {
    const [, traceId = "", spanId = "", flags = "00"] = traceparent.split("-");
    return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  };
  const under = (traceparent: string | null): Context =>
    traceparent === null ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, spanContextOf(traceparent));
  const finish = (span: Span, failed: boolean, endMs?: number): void => {
    if (failed) span.setStatus({ code: api.SpanStatusCode.ERROR });
    span.end(endMs);
  };

  return {
    isForAll: true,
    begin: (parent) => {
      const span = requests.startSpan("request", { kind: api.SpanKind.SERVER }, under(parent));
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`,
        end: ({ name, failed, attributes }) => {
          span.updateName(name).setAttributes(known(attributes));
          finish(span, failed);
        },
      };
    },
    record: ({ name, cause, within, startMs, endMs, failed, attributes }) => {
      if (!isSampled(cause)) return;
      const links = within ? [] : [{ context: spanContextOf(cause) }];
      const options = { startTime: startMs, links, attributes: known(attributes) };
      finish(consequences.startSpan(name, options, within ? under(cause) : api.ROOT_CONTEXT), failed, Math.max(startMs, endMs));
    },
    close: async () => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, FLUSH_MS);
      });
      await Promise.race([processor.shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
};
