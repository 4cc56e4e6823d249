// Spans as exporters send them, for the tests of traces.
import { randomBytes } from "node:crypto";
import type { Answer, Caller, World } from "../../kit/gateway/world.ts";

export const newTraceId = (): string => randomBytes(16).toString("hex");
export const newSpanId = (): string => randomBytes(8).toString("hex");
export const nanos = (ms = Date.now()): string => `${Math.floor(ms)}000000`;

export interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly [field: string]: unknown;
}
export const span = (more: Readonly<Record<string, unknown>> = {}): SentSpan => ({
  traceId: newTraceId(),
  spanId: newSpanId(),
  name: "work",
  kind: 1,
  startTimeUnixNano: nanos(Date.now() - 5_000),
  endTimeUnixNano: nanos(Date.now() - 4_000),
  ...more,
});
export const text = (key: string, stringValue: string) => ({ key, value: { stringValue } });

export const request = (spans: readonly unknown[], resource: readonly unknown[] = [text("service.name", "shop")]) => ({
  resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope: { name: "test" }, spans }] }],
});

export const send = (world: World, as: Caller, spans: readonly unknown[], resource?: readonly unknown[]): Promise<Answer> =>
  world.call(as, "POST", "/v1/traces", { body: request(spans, resource) });

export const rejectedOf = ({ status, body }: Answer): number => {
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return Number(body.partialSuccess?.rejectedSpans ?? 0);
};

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
export const readTrace = async (world: World, as: Caller, traceId: string): Promise<any> => {
  const { status, body } = await world.call(as, "GET", `/v1/traces/${traceId}`);
  return status === 200 ? body.data : null;
};
