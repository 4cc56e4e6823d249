// The spans of a trace as a tree, in the order in which it is read from top to bottom.
import type { TraceSpan } from "@mooring/client";

export interface Node {
  readonly span: TraceSpan;
  readonly depth: number;
}

const startOf = ({ startTime }: TraceSpan): number => Date.parse(startTime);

/** A span whose parent nobody has sent begins a tree of its own, and so does one whose ancestors name each other in a circle. */
export const treeOf = (spans: readonly TraceSpan[]): readonly Node[] => {
  const known = new Set(spans.map(({ spanId }) => spanId));
  const children = new Map<string | null, TraceSpan[]>();
  for (const span of spans) {
    const { parentSpanId, spanId } = span;
    const parent = parentSpanId === null || parentSpanId === spanId || !known.has(parentSpanId) ? null : parentSpanId;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [span]);
    else siblings.push(span);
  }
  const seen = new Set<TraceSpan>();
  const nodes: Node[] = [];
  const add = (roots: readonly TraceSpan[]): void => {
    const waiting: Node[] = roots.map((span) => ({ span, depth: 0 })).reverse();
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      const { span, depth } = node;
      if (seen.has(span)) continue;
      seen.add(span);
      nodes.push(node);
      for (const child of (children.get(span.spanId) ?? []).toReversed()) waiting.push({ span: child, depth: depth + 1 });
    }
  };
  add(children.get(null) ?? []);
  for (const span of spans) if (!seen.has(span)) add([span]);
  return nodes;
};

/** From the first beginning to the last end. */
export const extentOf = (spans: readonly TraceSpan[]): { readonly start: number; readonly ms: number } => {
  let [start, end] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const span of spans) {
    start = Math.min(start, startOf(span));
    end = Math.max(end, startOf(span) + span.durationMs);
  }
  return Number.isFinite(start) ? { start, ms: Math.max(end - start, 0.001) } : { start: 0, ms: 1 };
};

/** Where the bar of a span begins and how long it is, in percent of the axis. */
export const placeOf = (span: TraceSpan, { start, ms }: { readonly start: number; readonly ms: number }) => ({
  left: `${Math.min(99.5, (100 * (startOf(span) - start)) / ms)}%`,
  width: `${Math.min(100, (100 * span.durationMs) / ms)}%`,
});
