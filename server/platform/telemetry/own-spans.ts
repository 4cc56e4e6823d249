// Our own spans for the traces of tenants: kept in memory until a job of the traces feature writes them, bounded, and never waited for.
import { randomBytes } from "node:crypto";
import { isSampled, type OpenSpan, type OwnSpan, type OwnSpans, type SpanAttributes, type Tracing } from "../../core/ports/trace.ts";

const KEPT_SPANS = 5_000;
/** The share that is kept of traces that their caller does not record. */
const KEPT_SHARE = 0.1;
const SHARES = 0x10000;

const nowUs = (): number => Math.round((performance.timeOrigin + performance.now()) * 1_000);
const newSpanId = (): string => randomBytes(8).toString("hex");
/** The same on every node, because the trace's id decides. */
const isDrawn = (traceId: string): boolean => Number.parseInt(traceId.slice(-4), 16) < SHARES * KEPT_SHARE;

const textOf = (attributes: SpanAttributes, name: string): string | null => {
  const value = attributes[name];
  return typeof value === "string" ? value : null;
};

export interface OwnSpansDeps {
  /** Gets every span, too. */
  readonly collector: Tracing | null;
}

export const createOwnSpans = ({ collector }: OwnSpansDeps): { readonly tracing: Tracing; readonly ownSpans: OwnSpans } => {
  let kept: OwnSpan[] = [];
  let dropped = 0;
  /** The traceparents of calls that run and whose traces we keep. */
  const open = new Set<string>();

  const keep = (span: Omit<OwnSpan, "tenantId">): void => {
    const tenantId = textOf(span.attributes, "mooring.tenant_id");
    if (tenantId === null) return;
    if (kept.length >= KEPT_SPANS) dropped += 1;
    else kept.push({ ...span, tenantId });
  };

  const begin = (parent: string | null): OpenSpan | null => {
    const outer = collector?.begin(parent) ?? null;
    // Only traces of callers: a collector would have us write every call.
    if (parent === null) return outer;
    const [, traceId = "", parentSpanId = "", flags = ""] = parent.split("-");
    const spanId = outer?.traceparent.split("-")[2] ?? newSpanId();
    const traceparent = outer?.traceparent ?? `00-${traceId}-${spanId}-${flags}`;
    const isKept = isSampled(parent) || isDrawn(traceId);
    const startUs = nowUs();
    if (isKept) open.add(traceparent);
    return {
      traceparent,
      end: (facts) => {
        outer?.end(facts);
        open.delete(traceparent);
        const { name, failed, attributes } = facts;
        if (isKept || failed) keep({ traceId, spanId, parentSpanId, name, isCall: true, startUs, durationUs: nowUs() - startUs, failed, attributes });
      },
    };
  };

  const record: Tracing["record"] = (past) => {
    collector?.record(past);
    const { name, cause, within, startMs, endMs, failed, attributes } = past;
    // Later steps are read from the command's history. With a collector, traces that nobody brought are the collector's alone.
    if (!within || (collector !== null && !open.has(cause))) return;
    const [, traceId = "", parentSpanId = ""] = cause.split("-");
    const startUs = Math.round(startMs * 1_000);
    const durationUs = Math.max(0, Math.round(endMs * 1_000) - startUs);
    keep({ traceId, spanId: newSpanId(), parentSpanId, name, isCall: false, startUs, durationUs, failed, attributes });
  };

  return {
    tracing: { isForAll: collector?.isForAll ?? false, begin, record },
    ownSpans: {
      take: (limit) => {
        const taken = kept.slice(0, limit);
        kept = kept.slice(limit);
        return taken;
      },
      dropped: () => dropped,
    },
  };
};
