// Prometheus metrics with bounded labels: operations, statuses and words, never ids of tenants or devices. The page starts with the metric that must be 0.
import { collectDefaultMetrics, Registry } from "prom-client";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import type { Bus } from "../cluster/bus.ts";
import type { Series } from "./histogram.ts";
import { type BuildFacts, type DatabaseFigures, watchBuild, watchDatabase } from "./metrics-base.ts";
import { createChannelMeters, watchChannel } from "./metrics-channel.ts";
import { createCommandMeters, createQueueGauges, type OpenCommands } from "./metrics-commands.ts";
import { createMakers, type Description, type Makers, type Reading, SHORT_SECONDS } from "./metrics-makers.ts";

export interface Gauges {
  readonly node: string;
  readonly channel: Readonly<ChannelStats>;
  readonly cluster: ClusterFigures;
  readonly commands: () => Promise<OpenCommands>;
  readonly build: BuildFacts;
  readonly database: DatabaseFigures;
  readonly features: readonly FeatureGauge[];
  readonly counters: readonly FeatureCounter[];
}

/** A figure of one feature, read at each scrape. */
export interface FeatureGauge extends Description {
  read(): Reading | Promise<Reading>;
}

/** What one feature has counted, read at each scrape. */
export interface FeatureCounter extends Description {
  read(): Reading;
}

interface ClusterFigures {
  readonly bus: Pick<Bus, "healthy" | "stats">;
  limitsAlone(): number;
  signaturesAlone(): number;
}

const watchCluster = ({ counter, gauge }: Makers, { bus, limitsAlone, signaturesAlone }: ClusterFigures): void => {
  gauge({ name: "pubsub_healthy", help: "1 while pub/sub hints between nodes arrive" }, () => (bus.healthy() ? 1 : 0));
  counter({ name: "pubsub_hints_lost_total", help: "Pub/sub hints that could not be sent" }, () => bus.stats.lost);
  counter(
    { name: "pubsub_probe_misses_total", help: "Probes of this node's pub/sub subscription that did not come back in time" },
    () => bus.stats.probeMisses,
  );
  counter({ name: "pubsub_renewals_total", help: "Pub/sub subscriptions replaced because they had gone deaf" }, () => bus.stats.renewals);
  counter({ name: "ratelimit_degraded_total", help: "Calls counted against this node's share of a limit because Redis was away" }, limitsAlone);
  counter({ name: "replay_degraded_total", help: "Signatures that only this node remembers because Redis was away" }, signaturesAlone);
};

interface CallFigures {
  readonly operation: string;
  readonly transport: string;
  readonly status: number;
  readonly code: string | null;
  readonly durationMs: number;
}

export const createMetrics = () => {
  const registry = new Registry();
  const makers = createMakers(registry);
  const queue = createQueueGauges(makers);
  const commandMeters = createCommandMeters(makers);
  const channelMeters = createChannelMeters(makers);
  const calls = makers.durations(
    { name: "call_duration_seconds", help: "Seconds that calls took, by operation, transport and status", labels: ["operation", "transport", "status"] },
    SHORT_SECONDS,
  );
  const errors = makers.tally({ name: "call_errors_total", help: "Calls that ended with an error, by error code", labels: ["code"] });
  // A linear search is enough: an operation has few outcomes.
  const byOperation = new Map<string, { readonly transport: string; readonly status: number; readonly series: Series }[]>();
  const seriesOf = ({ operation, transport, status }: CallFigures): Series => {
    const known = byOperation.get(operation);
    if (known !== undefined) for (const each of known) if (each.status === status && each.transport === transport) return each.series;
    const series = calls.series({ operation, transport, status: String(status) });
    byOperation.set(operation, [...(known ?? []), { transport, status, series }]);
    return series;
  };
  let look = (): void => undefined;
  return {
    commandMeters,
    channelMeters,
    call: (at: CallFigures) => {
      seriesOf(at).observe(at.durationMs / 1_000);
      if (at.code !== null) errors.inc({ code: at.code });
    },
    /** Read at each scrape. */
    watch: ({ node, channel, commands, cluster, build, database, features, counters }: Gauges): void => {
      queue.watch(commands);
      watchChannel(makers, { node, channel });
      watchCluster(makers, cluster);
      look = watchDatabase(makers, database);
      watchBuild(makers, build);
      for (const { read, ...description } of features) makers.gauge(description, read);
      for (const { read, ...description } of counters) makers.counter(description, read);
      // The default of 10 ms would wake an idle process a hundred times a second.
      collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
    },
    text: () => {
      look();
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
};
export type Metrics = ReturnType<typeof createMetrics>;
