// W3C Trace Context: what a caller says its call belongs to. It travels with a command to the agent and into every line of the log on its way.

// What a later version adds behind these fields is not for us.
const TRACEPARENT = /^(?:00(?=.{53}$)|(?!00|ff)[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

/** In the form of version 00; null for what is none, which is ignored as the standard asks. */
export const readTraceparent = (given: string | undefined): string | null => {
  if (given === undefined) return null;
  const [, traceId, parentId, flags] = TRACEPARENT.exec(given.trim()) ?? [];
  return traceId === undefined ? null : `00-${traceId}-${parentId}-${flags}`;
};

/** What one searches for in every log that a trace passes. */
export const traceIdOf = (traceparent: string): string | undefined => traceparent.split("-")[1];

/** A trace that nobody records need not be continued. */
export const isSampled = (traceparent: string): boolean => (Number.parseInt(traceparent.slice(-2), 16) & 1) === 1;

export type SpanAttributes = Readonly<Record<string, string | number | readonly string[] | null>>;

export interface OpenSpan {
  /** By which others continue it. */
  readonly traceparent: string;
  end(facts: { readonly name: string; readonly failed: boolean; readonly attributes: SpanAttributes }): void;
}

/** Something that is over, in milliseconds of the epoch. */
export interface PastSpan {
  readonly name: string;
  /** What led to it. */
  readonly cause: string;
  /** A part of its cause; otherwise a trace of its own that links to it, since hours may lie between the two. */
  readonly within: boolean;
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
  readonly attributes: SpanAttributes;
}

/** Spans for a collector; null where none is configured. */
export interface Tracing {
  /** Answers a request that came with, or without, a trace of its caller's. */
  begin(parent: string | null): OpenSpan;
  record(span: PastSpan): void;
}
