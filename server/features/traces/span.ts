// One span as its table keeps it, from whatever source.
import type { SpanAttributes } from "../../core/ports/trace.ts";

export interface TraceFilter {
  readonly service?: string | undefined;
  readonly operation?: string | undefined;
  readonly deviceId?: string | undefined;
  readonly appId?: string | undefined;
  readonly status?: "ok" | "error" | undefined;
  readonly minDurationMs?: number | undefined;
  readonly maxDurationMs?: number | undefined;
  readonly requestId?: string | undefined;
}
export interface TraceWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

export const STATUSES = ["unset", "ok", "error"] as const;
export const KINDS = ["unspecified", "internal", "server", "client", "producer", "consumer"] as const;
export type SpanSource = "sent" | "gateway" | "command";

export type AttributeValue = string | number | boolean | readonly unknown[] | null;
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface StoredSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly source: SpanSource;
  readonly service: string;
  readonly name: string;
  /** Index into KINDS. */
  readonly kind: number;
  readonly startUs: number;
  readonly durationUs: number;
  /** Index into STATUSES. */
  readonly status: number;
  readonly statusMessage: string | null;
  readonly deviceId: string | null;
  readonly commandId: string | null;
  readonly appId: string | null;
  readonly requestId: string | null;
  readonly attributes: Attributes | SpanAttributes;
  readonly resource: Attributes;
  readonly events: readonly { readonly name: string; readonly time: string; readonly attributes: Attributes }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
}

/** ISO 8601 to the microsecond. */
export const isoOfUs = (us: number): string => {
  const rest = String(Math.floor(us) % 1_000).padStart(3, "0");
  return new Date(Math.floor(us / 1_000)).toISOString().replace("Z", rest === "000" ? "Z" : `${rest}Z`);
};
