// Counts spans on this node: received over OTLP, rejected of these, and our own that were dropped.
import type { FeatureGauge } from "../../platform/telemetry/metrics.ts";

export interface SpanMeters {
  received(count: number): void;
  rejected(count: number): void;
  dropped(count: number): void;
  readonly gauges: readonly FeatureGauge[];
}

/** `lost`: our own spans that found no place in memory. */
export const createSpanMeters = (lost: () => number): SpanMeters => {
  const counts = { received: 0, rejected: 0, dropped: 0 };
  return {
    received: (count) => {
      counts.received += count;
    },
    rejected: (count) => {
      counts.rejected += count;
    },
    dropped: (count) => {
      counts.dropped += count;
    },
    gauges: [
      {
        name: "trace_spans",
        help: "Spans since the start of this process, by what became of them: received over OTLP, rejected of these, or dropped of the gateway's own",
        labels: ["outcome"],
        read: () => [
          [{ outcome: "received" }, counts.received],
          [{ outcome: "rejected" }, counts.rejected],
          [{ outcome: "dropped" }, counts.dropped + lost()],
        ],
      },
    ],
  };
};
