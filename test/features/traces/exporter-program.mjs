// A small program with a stock OpenTelemetry exporter, which the environment configures: sends a span with a child, as a child of TRACEPARENT if that is set.
import { ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { detectResources, envDetector } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";

const { OTLPTraceExporter } = await import(process.argv[2]);
const failures = [];
const exporter = new OTLPTraceExporter();
const reporting = {
  export: (spans, done) =>
    exporter.export(spans, (result) => {
      if (result.code !== 0) failures.push(String(result.error));
      done(result);
    }),
  shutdown: () => exporter.shutdown(),
};
const provider = new BasicTracerProvider({ resource: detectResources({ detectors: [envDetector] }), spanProcessors: [new BatchSpanProcessor(reporting)] });
const tracer = provider.getTracer("program");
const [, traceId, spanId] = process.env.TRACEPARENT?.split("-") ?? [];
const context = traceId === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1, isRemote: true });
const outer = tracer.startSpan("program run", { attributes: { files: 3, ratio: 0.5, names: ["a", "b"] } }, context);
const inner = tracer.startSpan("program step", {}, trace.setSpan(context, outer));
inner.recordException(new Error("step failed"));
inner.setStatus({ code: 2, message: "step failed" });
inner.end();
outer.end();
await provider.shutdown().catch((error) => failures.push(String(error)));
process.stdout.write(JSON.stringify({ traceId: outer.spanContext().traceId, failures }));
