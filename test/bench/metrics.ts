// Every metric of the bench: its id, its reference and its target.

export interface Metric {
  readonly id: string;
  readonly name: string;
  readonly unit: string;
  /** The reference that the same run measures. */
  readonly reference: string;
  readonly better: "more" | "less";
  readonly target: number | null;
  readonly stretch: number | null;
}

const ratio = (id: string, name: string, reference: string, [target, stretch]: readonly [number | null, number | null]): Metric => ({
  id,
  name,
  unit: "x",
  reference,
  better: "more",
  target,
  stretch,
});
const figure = (
  id: string,
  name: string,
  unit: string,
  { target = null, stretch = null, ...rest }: Partial<Metric> & Pick<Metric, "better" | "reference">,
): Metric => ({
  id,
  name,
  unit,
  target,
  stretch,
  ...rest,
});

const ECHO = "bare uWebSockets.js echo";
const UNDICI = "bare undici loop";
const BARE_HTTP = "bare uWebSockets.js HTTP";

export const METRICS = [
  ratio("ingest-1k", "heartbeats of 1,000 agents: CPU per message, echo over ours", ECHO, [0.82, 0.88]),
  ratio("ingest-10k", "heartbeats of 10,000 agents: CPU per message, echo over ours", ECHO, [0.86, 0.92]),
  ratio("ingest-mixed", "heartbeats of 1,000 agents, a fifth of the frames in another shape: CPU per message, echo over ours", ECHO, [0.65, 0.75]),
  ratio("vs-socketio", "heartbeats per CPU second, ours over socket.io", "socket.io", [4.5, 5]),
  ratio("vs-ws", "heartbeats per CPU second, ours over ws", "plain ws echo", [1.9, 2.1]),
  ratio("vs-mosquitto", "heartbeats per CPU second, ours over Mosquitto", "Mosquitto QoS 1", [1.1, 1.2]),
  figure("memory-per-agent", "resident memory of an idle authenticated agent", "bytes", { better: "less", reference: ECHO, target: 1_600, stretch: 1_200 }),
  figure("handshake", "CPU of an authenticated connect up to ready, over a bare upgrade", "x", { better: "less", reference: ECHO }),
  ratio("handshake-vs-socketio", "CPU up to the end of the upgrade, socket.io over ours", "socket.io", [3, null]),
  ratio("trpc", "tRPC query without input: CPU per request, bare over ours", BARE_HTTP, [0.37, 0.42]),
  ratio("trpc-vs-stock", "tRPC query without input: requests per CPU second, ours over stock tRPC", "stock tRPC standalone", [16, null]),
  ratio("trpc-input", "tRPC query with zod input: CPU per request, bare over ours", BARE_HTTP, [0.26, 0.3]),
  ratio("trpc-input-vs-stock", "tRPC query with zod input: requests per CPU second, ours over stock tRPC", "stock tRPC standalone", [12, null]),
  ratio("rest", "REST query: CPU per request, bare over ours", BARE_HTTP, [0.3, 0.35]),
  ratio("rest-vs-fastify", "REST query: requests per CPU second, ours over fastify", "fastify", [null, null]),
  figure("acked-commands", "commands created, pushed, acked and committed on two nodes, closed loop", "1/s", {
    better: "more",
    reference: "none",
    target: 6_500,
    stretch: 9_000,
  }),
  figure("acked-commands-one-node", "the same on one node", "1/s", { better: "more", reference: "none", target: 8_000, stretch: 11_000 }),
  figure("command-cpu", "processor time of everything together per acked command in the closed loop", "us", {
    better: "less",
    reference: "none",
    target: 250,
    stretch: 180,
  }),
  figure("command-wal", "PostgreSQL log written per acked command in the closed loop", "bytes", {
    better: "less",
    reference: "none",
    target: 2_000,
    stretch: 1_200,
  }),
  figure("command-bytes", "tables and indexes kept per ended command, vacuumed", "bytes", { better: "less", reference: "none", target: 1_200, stretch: 800 }),
  figure("command-roundtrip-p50", "create to ack at the caller with a durable commit, 2,000 commands/s offered and kept, p50", "ms", {
    better: "less",
    reference: "none",
    target: 8,
    stretch: 4,
  }),
  figure("command-roundtrip-p99", "create to ack at the caller with a durable commit, 2,000 commands/s offered and kept, p99", "ms", {
    better: "less",
    reference: "none",
    target: 30,
    stretch: 12,
  }),
  figure("command-push-p99", "create to push at 500 commands/s with 2,000 agents on two nodes, p99", "ms", {
    better: "less",
    reference: "none",
    target: 20,
    stretch: 10,
  }),
  figure("one-each", "one command to each of 10,000 agents, from the first of ten requests to the last ack", "s", {
    better: "less",
    reference: "none",
    target: 3,
    stretch: 1.5,
  }),
  figure("persisted-heartbeats", "presence rows written to PostgreSQL", "1/s", { better: "more", reference: "none", target: 80_000, stretch: 120_000 }),
  ratio("persisted-heartbeats-vs-prisma", "presence rows written, over one prisma.update per heartbeat", "prisma.update", [20, 35]),
  figure("persisted-heartbeats-lag", "lag of the presence row behind the socket, p99", "s", { better: "less", reference: "none", target: 2 }),
  figure("storm", "time until 19,000 agents that were cut at once are ready again and have acked their queued commands", "s", {
    better: "less",
    reference: "none",
    target: 3,
    stretch: 1.5,
  }),
  figure("storm-lost", "commands lost in the storm", "commands", { better: "less", reference: "none", target: 0 }),
  figure("storm-duplicated", "commands acked twice in the storm", "commands", { better: "less", reference: "none", target: 0 }),
  figure("idle-fleet", "share of one core for 19,000 agents at a 30 s heartbeat", "%", { better: "less", reference: "none", target: 2.5, stretch: 1.7 }),
  figure("nodes", "cost of a command on 1, 2 and 3 nodes and with 1,000 to 19,000 agents, highest over lowest", "x", {
    better: "less",
    reference: "itself",
    target: 1.2,
  }),
  ratio("webhooks", "webhook deliveries per second from committed event to stored result, ours over a bare loop", UNDICI, [0.5, 0.7]),
  ratio("webhooks-cpu", "webhook deliveries: CPU per delivery, bare loop over ours", UNDICI, [null, null]),
  figure("lists-slowest", "the slowest list of a tenant with 1,000,000 ended commands, by any filter", "ms", {
    better: "less",
    reference: "none",
    target: 500,
  }),
  figure("lists-beside", "p99 of another tenant's creates beside 25 readers of such lists, over the p99 without them", "x", {
    better: "less",
    reference: "itself",
    target: 1.5,
  }),
  figure("lists-failed", "creates that failed beside the readers", "commands", { better: "less", reference: "none", target: 0 }),
  figure("lists-unready", "readiness answers that were not 200 beside the readers", "answers", { better: "less", reference: "none", target: 0 }),
  figure("rollout-agents", "rollout to 10,000 agents: processor time per device, over calls that queue one command each", "x", {
    better: "less",
    reference: "one-each",
    target: 1.3,
  }),
  figure("rollout-step", "rollout of agents: PostgreSQL's time per device beyond that of a queued command", "us", {
    better: "less",
    reference: "one-each",
    target: 80,
  }),
  figure("rollout-beside", "processor time of a command beside a live rollout, over the same without it", "x", {
    better: "less",
    reference: "itself",
    target: 1.02,
  }),
  figure("rollouts-waiting", "steps that 20 rollouts take in 15 s while they wait for their windows", "steps", {
    better: "less",
    reference: "none",
    target: 0,
  }),
  figure("bulk-command", "bulk device.command: processor time per device, over calls that queue one command each", "x", {
    better: "less",
    reference: "one-each",
    target: 1.15,
  }),
  figure("bulk-tag", "bulk device.tag: processor time per device", "us", { better: "less", reference: "none", target: 60 }),
  figure("backup-restic", "backup of 1 GiB by the agent's engine, stop, start and reading back included, over plain restic", "x", {
    better: "less",
    reference: "restic backup",
    target: 1.15,
    stretch: 1.05,
  }),
  figure("backup-gateway", "the same to a repository of the gateway", "x", { better: "less", reference: "restic backup", target: 1.25, stretch: 1.1 }),
  figure("backup-tar", "the same to a folder, over tar with a checksum", "x", { better: "less", reference: "tar and sha256sum", target: 1.2, stretch: 1 }),
  figure("restore-restic", "restore of 1 GiB by the agent's engine, comparison and swap included, over plain restic", "x", {
    better: "less",
    reference: "restic restore --verify",
    target: 1.2,
    stretch: 1.1,
  }),
  figure("policy-seconds", "a run of a backup policy over 500 simulated devices, beyond its jitter", "s", { better: "less", reference: "none", target: 60 }),
  figure("policy-beside", "p99 of other calls beside that run, over the same without it", "x", { better: "less", reference: "itself", target: 2 }),
  figure("tunnel-cpu", "processor time of a GiB through a tunnel, gateway and agent, over a port that ssh -R forwards", "x", {
    better: "less",
    reference: "OpenSSH",
    target: 0.9,
    stretch: 0.7,
  }),
  figure("tunnel-cpu-tls", "the same with TLS to the visitor and to the agent", "x", { better: "less", reference: "OpenSSH", target: 1.5, stretch: 1.1 }),
  ratio("tunnel-throughput", "speed of a download through a tunnel, over a reverse proxy", "nginx", [0.4, 0.6]),
  figure("tunnel-request-cpu", "processor time of a small request through a tunnel, over a reverse proxy", "x", {
    better: "less",
    reference: "nginx",
    target: 10,
    stretch: 6,
  }),
  figure("tunnel-latency", "what a tunnel adds to the median of small requests", "ms", {
    better: "less",
    reference: "the service itself",
    target: 0.8,
    stretch: 0.4,
  }),
  figure("tunnel-stalled", "p99 of small requests beside 20 downloads that nobody reads, over the same without them", "x", {
    better: "less",
    reference: "itself",
    target: 1.2,
    stretch: 1.05,
  }),
  figure("tunnel-commands", "p99 of commands beside 100 MB/s through a tunnel of their device, over the same without it", "x", {
    better: "less",
    reference: "itself",
    target: 1.5,
    stretch: 1.2,
  }),
  figure("batch-reads", "a batch of 20 reads: processor time, over 20 single calls", "x", { better: "less", reference: "single calls", target: 0.8 }),
  figure("export-rows", "rows that an export writes for each second of a processor, PostgreSQL included", "1/s", {
    better: "more",
    reference: "none",
    target: 20_000,
  }),
  figure("export-beside", "p99 of another tenant's creates beside exports, over the p99 without them", "x", {
    better: "less",
    reference: "itself",
    target: 1.5,
    stretch: 1.2,
  }),
  figure("import-statements", "statements for each record that an import makes, its plan included; counted only if it is named", "statements", {
    better: "less",
    reference: "none",
    target: 1.5,
  }),
  figure("import-cpu", "processor time for each record that an import makes, its plan included, over one call that makes it", "x", {
    better: "less",
    reference: "single calls",
    target: null,
  }),
  figure("costs-year", "an allocation of a year over one of 30 days, 10,000 devices, the slowest aggregate", "x", {
    better: "less",
    reference: "itself",
    target: 3,
  }),
  figure("webhooks-rate", "webhook deliveries of one node", "1/s", { better: "more", reference: "none" }),
] as const satisfies readonly Metric[];

export type MetricId = (typeof METRICS)[number]["id"];

export const metricOf = (id: MetricId): Metric => {
  const found = METRICS.find((metric) => metric.id === id);
  if (found === undefined) throw new Error(`there is no metric ${id}`);
  return found;
};
