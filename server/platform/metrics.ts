// Prometheus metrics with bounded labels: operations, statuses and words, never ids.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Bus } from "./bus.ts";

export interface Gauges {
  readonly channel: {
    readonly connections: number;
    readonly ready: number;
    readonly pushed: number;
    readonly heartbeats: number;
    readonly frameGaps: number;
    readonly frameRepeats: number;
    readonly resendsAsked: number;
    readonly connects: ReadonlyMap<string, number>;
    readonly closes: ReadonlyMap<number, number>;
  };
  readonly mesh: { readonly bus: Pick<Bus, "healthy" | "stats">; limitsAlone(): number; signaturesAlone(): number };
  readonly commands: () => Promise<{ readonly open: Readonly<Record<string, number>>; readonly pastDeadline: number }>;
}

const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const watchMesh = (registers: Registry[], { bus, limitsAlone, signaturesAlone }: Gauges["mesh"]): void => {
  const total = (name: string, help: string, read: () => number): void => {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  };
  new Gauge({
    name: "bus_healthy",
    help: "1 while hints between nodes arrive",
    registers,
    collect() {
      this.set(bus.healthy() ? 1 : 0);
    },
  });
  total("bus_hints_lost_total", "Hints that could not be handed over", () => bus.stats.lost);
  total("pubsub_probe_misses_total", "Probes of the own subscription that did not come back in time", () => bus.stats.probeMisses);
  total("pubsub_renewals_total", "Subscriptions made anew because they were deaf", () => bus.stats.renewals);
  total("ratelimit_degraded_total", "Calls judged against this node's share of a limit, because Redis was away", limitsAlone);
  total("replay_degraded_total", "Signatures remembered by this node alone, because Redis was away", signaturesAlone);
};

export const createMetrics = () => {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: "mooring_" });
  const calls = new Histogram({
    name: "call_duration_seconds",
    help: "Calls by operation, door and status",
    labelNames: ["operation", "door", "status"],
    buckets: SECONDS,
    registers,
  });
  return {
    call: (at: { operation: string; door: string; status: number; durationMs: number }) =>
      calls.observe({ operation: at.operation, door: at.door, status: String(at.status) }, at.durationMs / 1_000),
    /** Read at each scrape. */
    watch: ({ channel, commands, mesh }: Gauges) => {
      watchMesh(registers, mesh);
      new Gauge({
        name: "agent_connections",
        help: "Sockets on this node",
        labelNames: ["state"],
        registers,
        collect() {
          this.set({ state: "open" }, channel.connections);
          this.set({ state: "ready" }, channel.ready);
        },
      });
      new Counter({
        name: "agent_heartbeats_total",
        help: "Heartbeats over sockets",
        registers,
        collect() {
          this.reset();
          this.inc(channel.heartbeats);
        },
      });
      new Counter({
        name: "commands_pushed_total",
        help: "Command frames written",
        registers,
        collect() {
          this.reset();
          this.inc(channel.pushed);
        },
      });
      for (const [name, help, read] of [
        ["agent_frame_gaps_total", "Frames of agents whose numbers never came", () => channel.frameGaps],
        ["agent_frame_repeats_total", "Frames of agents whose numbers came twice", () => channel.frameRepeats],
        ["agent_resends_asked_total", "Commands that agents were asked to speak of again", () => channel.resendsAsked],
      ] as const)
        new Counter({
          name,
          help,
          registers,
          collect() {
            this.reset();
            this.inc(read());
          },
        });
      new Counter({
        name: "agent_connects_total",
        help: "Socket upgrades by result",
        labelNames: ["result"],
        registers,
        collect() {
          this.reset();
          for (const [result, count] of channel.connects) this.inc({ result }, count);
        },
      });
      new Counter({
        name: "agent_closes_total",
        help: "Closed sockets by code",
        labelNames: ["code"],
        registers,
        collect() {
          this.reset();
          for (const [code, count] of channel.closes) this.inc({ code: String(code) }, count);
        },
      });
      const past = new Gauge({ name: "commands_past_deadline", help: "Open commands whose deadline lies more than a minute back; must be 0", registers });
      new Gauge({
        name: "commands_open",
        help: "Open commands by status",
        labelNames: ["status"],
        registers,
        async collect() {
          const counted = await commands();
          past.set(counted.pastDeadline);
          this.reset();
          for (const [status, count] of Object.entries(counted.open)) this.set({ status }, count);
        },
      });
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
};
export type Metrics = ReturnType<typeof createMetrics>;
