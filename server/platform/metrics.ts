// Prometheus metrics with bounded labels: operations, statuses and words, never ids of tenants or devices. The page begins with the figure that must be 0.
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Bus } from "./bus.ts";
import { type ChannelFigures, createChannelMeters, watchChannel } from "./metrics-channel.ts";
import { createCommandMeters, createQueueGauges, type OpenCommands } from "./metrics-commands.ts";
import { createMakers, type Makers, SHORT_SECONDS } from "./metrics-makers.ts";

export interface Gauges {
  readonly node: string;
  readonly channel: ChannelFigures;
  readonly mesh: MeshFigures;
  readonly commands: () => Promise<OpenCommands>;
}

interface MeshFigures {
  readonly bus: Pick<Bus, "healthy" | "stats">;
  limitsAlone(): number;
  signaturesAlone(): number;
}

const watchMesh = ({ counter, gauge }: Makers, { bus, limitsAlone, signaturesAlone }: MeshFigures): void => {
  gauge({ name: "bus_healthy", help: "1 while hints between nodes arrive" }, () => (bus.healthy() ? 1 : 0));
  counter({ name: "bus_hints_lost_total", help: "Hints that could not be handed over" }, () => bus.stats.lost);
  counter({ name: "pubsub_probe_misses_total", help: "Probes of the own subscription that did not come back in time" }, () => bus.stats.probeMisses);
  counter({ name: "pubsub_renewals_total", help: "Subscriptions made anew because they were deaf" }, () => bus.stats.renewals);
  counter({ name: "ratelimit_degraded_total", help: "Calls judged against this node's share of a limit, because Redis was away" }, limitsAlone);
  counter({ name: "replay_degraded_total", help: "Signatures remembered by this node alone, because Redis was away" }, signaturesAlone);
};

export const createMetrics = () => {
  const registry = new Registry();
  const makers = createMakers(registry);
  const queue = createQueueGauges(makers);
  const commandMeters = createCommandMeters(makers);
  const channelMeters = createChannelMeters(makers);
  const calls = makers.histogram(
    { name: "call_duration_seconds", help: "Seconds that calls took, by operation, door and status", labels: ["operation", "door", "status"] },
    SHORT_SECONDS,
  );
  return {
    commandMeters,
    channelMeters,
    call: (at: { operation: string; door: string; status: number; durationMs: number }) =>
      calls.observe({ operation: at.operation, door: at.door, status: String(at.status) }, at.durationMs / 1_000),
    /** Read at each scrape. */
    watch: ({ node, channel, commands, mesh }: Gauges): void => {
      queue.watch(commands);
      watchChannel(makers, { node, channel });
      watchMesh(makers, mesh);
      // By default it would wake the process a hundred times a second.
      collectDefaultMetrics({ register: registry, prefix: "mooring_", eventLoopMonitoringPrecision: 100 });
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
};
export type Metrics = ReturnType<typeof createMetrics>;
