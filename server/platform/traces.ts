// Opens OpenTelemetry only if an endpoint is configured: the SDK takes a fifth of a second and 15 MB.
import type { Lifecycle } from "../core/lifecycle.ts";
import type { Tracing } from "../core/trace.ts";
import type { TracingDeps } from "./tracing.ts";

export interface TracesDeps extends Omit<TracingDeps, "endpoint"> {
  readonly endpoint: string | undefined;
  readonly life: Lifecycle;
}

export const openTraces = async ({ endpoint, life, ...deps }: TracesDeps): Promise<Tracing | null> => {
  if (endpoint === undefined) return null;
  const { openTracing } = await import("./tracing.ts");
  return life.use("traces", await openTracing({ endpoint, ...deps }));
};
