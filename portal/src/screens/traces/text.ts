// The sentences of the traces.
import type { TraceSpan } from "@mooring/client";
import { counted } from "../../ui/count.ts";
import { duration } from "../../ui/time.tsx";

const SOURCES: Readonly<Record<TraceSpan["source"], string>> = {
  sent: "sent over OTLP",
  gateway: "a call that Mooring answered",
  command: "a step of a command",
};

export const text = {
  title: "Traces",
  one: "Trace",
  filters: "Filters",
  none: "No trace began in this time. Programs send spans over OTLP to /v1/traces, with an API key.",
  noMatch: "No trace matches these filters.",
  service: "Service",
  operation: "Operation",
  device: "Device",
  deviceHint: "dev_…",
  status: "Outcome",
  anyStatus: "any",
  statuses: { ok: "without errors", error: "with errors" },
  any: "all",
  min: "At least",
  minHint: "ms",
  window: "Window",
  windows: { "15m": "last 15 minutes", "1h": "last hour", "6h": "last 6 hours", "24h": "last 24 hours" },
  errors: (count: number) => counted(count, "error"),
  truncated: (shown: number) => `The trace is longer: this shows its first ${counted(shown, "span")}.`,
  waterfall: "Spans",
  close: "Close the span",
  sources: SOURCES,
  attributes: "Attributes",
  resource: "Sent by",
  events: "Events",
  links: "Links",
  noAttributes: "The span has no attributes.",
} as const;

/** Spans last microseconds, too. */
export const took = (ms: number): string => (ms > 0 && ms < 10 ? `${Number(ms.toFixed(2))} ms` : duration(ms));
