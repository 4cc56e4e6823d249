// W3C Trace Context: the trace to which a call belongs. A command carries it to the agent and into every log line on its way.

// Ignores what a later version adds behind these fields.
const TRACEPARENT = /^(?:00(?=.{53}$)|(?!00|ff)[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

/** The traceparent in the form of version 00; null for an invalid one, which the standard says to ignore. */
export const readTraceparent = (given: string | undefined): string | null => {
  if (given === undefined) return null;
  const [, traceId, parentId, flags] = TRACEPARENT.exec(given.trim()) ?? [];
  return traceId === undefined ? null : `00-${traceId}-${parentId}-${flags}`;
};

/** The id by which every log names the trace. */
export const traceIdOf = (traceparent: string): string | undefined => traceparent.split("-")[1];

/** We do not continue a trace that is not recorded. */
export const isSampled = (traceparent: string): boolean => (Number.parseInt(traceparent.slice(-2), 16) & 1) === 1;

export type SpanAttributes = Readonly<Record<string, string | number | readonly string[] | null>>;

export interface OpenSpan {
  /** Other processes continue the span with this. */
  readonly traceparent: string;
  end(facts: { readonly name: string; readonly failed: boolean; readonly attributes: SpanAttributes }): void;
}

/** A span that has ended; times in Unix milliseconds. */
export interface PastSpan {
  readonly name: string;
  /** The traceparent of its cause. */
  readonly cause: string;
  /** Part of its cause's trace; otherwise a trace of its own with a link, because hours may lie between the two. */
  readonly within: boolean;
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
  readonly attributes: SpanAttributes;
}

/** Spans for a collector, for the tenants' own traces, or for both. */
export interface Tracing {
  /** Whether it begins traces for callers who have none. */
  readonly isForAll: boolean;
  /** Begins the span of a request, with the trace of its caller if there is one. Null: it records none. */
  begin(parent: string | null): OpenSpan | null;
  record(span: PastSpan): void;
}

/** A span of ours, as a tenant's trace keeps it. */
export interface OwnSpan {
  readonly tenantId: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly isCall: boolean;
  readonly startUs: number;
  readonly durationUs: number;
  readonly failed: boolean;
  readonly attributes: SpanAttributes;
}

/** Our spans since the last time somebody took them. */
export interface OwnSpans {
  /** The oldest first; they are gone from here then. */
  take(limit: number): readonly OwnSpan[];
  /** Spans that had no place. */
  dropped(): number;
}
