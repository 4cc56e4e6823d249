// Opens the spans of this node: for the tenants' own traces, and for a collector if an endpoint is configured. OpenTelemetry's SDK loads only then: it
// takes a fifth of a second and 15 MB.

import type { Lifecycle } from "../../core/lifecycle/lifecycle.ts";
import type { Tracing } from "../../core/ports/trace.ts";
import { createOwnSpans } from "./own-spans.ts";
import type { TracingDeps } from "./tracing.ts";

export interface TracesDeps extends Omit<TracingDeps, "endpoint"> {
  readonly endpoint: string | undefined;
  readonly life: Lifecycle;
}

const openCollector = async ({ endpoint, life, ...deps }: TracesDeps): Promise<Tracing | null> => {
  if (endpoint === undefined) return null;
  const { openTracing } = await import("./tracing.ts");
  return life.use("traces", await openTracing({ endpoint, ...deps }));
};

export const openTraces = async (deps: TracesDeps) => createOwnSpans({ collector: await openCollector(deps) });
