// `npm run bench`: runs the chosen benchmarks on one stage, prints the table and writes the results.

import { backups } from "./benches/backups.ts";
import { commands, commandsOnOneNode } from "./benches/commands.ts";
import { fleet, fleetSize } from "./benches/fleet.ts";
import { handshake } from "./benches/handshake.ts";
import { heartbeats } from "./benches/heartbeats.ts";
import { ingest } from "./benches/ingest.ts";
import { lists } from "./benches/lists.ts";
import { many } from "./benches/many.ts";
import { memory } from "./benches/memory.ts";
import { nodes } from "./benches/nodes.ts";
import { oneEach } from "./benches/one-each.ts";
import { policy } from "./benches/policy.ts";
import { push, roundTrip } from "./benches/round-trip.ts";
import { batchBench, costBench, exportBench, importBench } from "./benches/transfer.ts";
import { transports } from "./benches/transports.ts";
import { tunnels } from "./benches/tunnels.ts";
import { webhooks } from "./benches/webhooks.ts";
import { compileLoader } from "./loader.ts";
import type { MetricId } from "./metrics.ts";
import { BENCH_HELP, type BenchOptions, isWanted, readOptions, UsageError } from "./options.ts";
import { BACKUPS, COMMANDS, FULL, LISTS, MANY, POLICY, QUICK, TRANSFER, TUNNELS, WEBHOOKS } from "./plan.ts";
import { mediansOf } from "./repeat.ts";
import { document, type Finding, save, table, toResult } from "./report.ts";
import { InvalidRun } from "./rounds.ts";
import { type BenchStage, createFolder, openStage } from "./stage.ts";

interface Bench {
  readonly ids: readonly MetricId[];
  readonly quick: boolean;
  run(stage: BenchStage, options: BenchOptions): Promise<readonly Finding[]>;
}

const wantsTenThousand = (options: BenchOptions): boolean => !options.quick && isWanted(options, "ingest-10k");

const wantsClosedLoop = (options: BenchOptions): boolean => (["acked-commands", "command-cpu", "command-wal"] as const).some((id) => isWanted(options, id));

const BENCHES: readonly Bench[] = [
  {
    ids: ["ingest-1k", "ingest-10k", "ingest-mixed", "vs-socketio", "vs-ws", "vs-mosquitto"],
    quick: true,
    run: (stage, options) => ingest(stage, options.quick ? QUICK : FULL, wantsTenThousand(options) ? 10_000 : 1_000),
  },
  { ids: ["memory-per-agent"], quick: true, run: (stage) => memory(stage, 10_000) },
  { ids: ["handshake", "handshake-vs-socketio"], quick: false, run: (stage) => handshake(stage, FULL) },
  { ids: ["trpc", "trpc-vs-stock", "trpc-input", "trpc-input-vs-stock", "rest", "rest-vs-fastify"], quick: false, run: (stage) => transports(stage, FULL) },
  {
    ids: ["acked-commands", "command-cpu", "command-wal", "command-bytes"],
    quick: false,
    run: (stage, options) => commands(stage, { ...COMMANDS, agents: 10_000 }, { bytes: isWanted(options, "command-bytes"), rounds: wantsClosedLoop(options) }),
  },
  { ids: ["acked-commands-one-node"], quick: false, run: (stage) => commandsOnOneNode(stage, { ...COMMANDS, agents: 10_000 }) },
  { ids: ["command-roundtrip-p50", "command-roundtrip-p99"], quick: false, run: (stage) => roundTrip(stage, { ...COMMANDS, agents: 10_000 }) },
  { ids: ["command-push-p99"], quick: false, run: (stage) => push(stage, 2_000) },
  { ids: ["one-each"], quick: false, run: (stage) => oneEach(stage, 10_000) },
  {
    ids: ["persisted-heartbeats", "persisted-heartbeats-vs-prisma", "persisted-heartbeats-lag"],
    quick: false,
    run: (stage) => heartbeats(stage, FULL, 2_000),
  },
  {
    ids: ["storm", "storm-lost", "storm-duplicated", "idle-fleet"],
    quick: false,
    run: (stage, options) => fleet(stage, { idle: isWanted(options, "idle-fleet"), storm: isWanted(options, "storm") }),
  },
  { ids: ["webhooks", "webhooks-cpu", "webhooks-rate"], quick: false, run: (stage) => webhooks(stage, WEBHOOKS) },
  { ids: ["lists-slowest", "lists-beside", "lists-failed", "lists-unready"], quick: false, run: (stage) => lists(stage, LISTS) },
  {
    ids: ["rollout-agents", "rollout-step", "rollout-beside", "rollouts-waiting", "bulk-command", "bulk-tag"],
    quick: false,
    run: (stage) => many(stage, MANY),
  },
  { ids: ["batch-reads"], quick: false, run: (stage) => batchBench(stage, TRANSFER) },
  { ids: ["export-rows", "export-beside"], quick: false, run: (stage) => exportBench(stage, TRANSFER) },
  { ids: ["import-statements", "import-cpu"], quick: false, run: (stage) => importBench(stage, TRANSFER) },
  { ids: ["costs-year"], quick: false, run: (stage) => costBench(stage, TRANSFER) },
  { ids: ["backup-restic", "backup-gateway", "backup-tar", "restore-restic"], quick: false, run: (stage) => backups(stage, BACKUPS) },
  { ids: ["policy-seconds", "policy-beside"], quick: false, run: (stage) => policy(stage, POLICY) },
  {
    ids: ["tunnel-cpu", "tunnel-cpu-tls", "tunnel-throughput", "tunnel-request-cpu", "tunnel-latency", "tunnel-stalled", "tunnel-commands"],
    quick: false,
    run: (stage) => tunnels(stage, TUNNELS),
  },
  { ids: ["nodes"], quick: false, run: (stage) => nodes(stage, { ...COMMANDS, agents: fleetSize() }) },
];

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** A benchmark with an invalid run scores 0 in all its metrics; one that fails is reported without a value. */
const attempt = async ({ ids, run }: Bench, stage: BenchStage, options: BenchOptions): Promise<readonly Finding[]> => {
  say(`\n${ids.join(", ")}`);
  const startedAt = performance.now();
  try {
    return await run(stage, options);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    say(error instanceof InvalidRun ? `  ${text}` : `  ${error instanceof Error ? error.stack : text}`);
    const invalid = error instanceof InvalidRun;
    return ids.map((id) => ({ id, value: invalid ? 0 : null, unsound: true, invalid, note: text.split("\n")[0] ?? "" }));
  } finally {
    say(`  took ${Math.round((performance.now() - startedAt) / 1_000)} s`);
  }
};

/** Measures everything that is wanted once, from an empty database. */
const runAll = async (options: BenchOptions): Promise<readonly Finding[]> => {
  const folder = createFolder();
  const loader = compileLoader(folder);
  if ("missing" in loader) throw new UsageError(`cannot measure: ${loader.missing}`);
  const counts = options.profile !== null || options.only.includes("import-statements");
  const stage = await openStage(folder, loader.program, options.profile, counts);
  const findings: Finding[] = [];
  try {
    for (const bench of BENCHES) {
      const wanted = bench.ids.filter((id) => isWanted(options, id));
      if (wanted.length > 0 && (bench.quick || !options.quick))
        findings.push(...(await attempt(bench, stage, options)).filter(({ id }) => isWanted(options, id) && (id !== "ingest-10k" || !options.quick)));
    }
  } finally {
    await stage.close();
  }
  return findings;
};

const main = async (): Promise<void> => {
  const options = readOptions(process.argv.slice(2));
  if (options === null) return void process.stdout.write(`${BENCH_HELP}\n`);
  const started = new Date();
  const runs: (readonly Finding[])[] = [];
  for (let run = 1; run <= options.repeat; run += 1) {
    if (options.repeat > 1) say(`\nrun ${run} of ${options.repeat}`);
    runs.push(await runAll(options));
  }
  const results = document(mediansOf(runs).map(toResult), started);
  process.stdout.write(options.json ? `${JSON.stringify(results, null, 2)}\n` : `\n${table(results.metrics)}\n`);
  say(`\n${Math.round((Date.now() - started.getTime()) / 1_000)} s; raw rounds in ${save(results)}`);
  process.exitCode = results.metrics.every(({ ok }) => ok !== false) ? 0 : 1;
};

// Exit through process.exit, so that every exit handler runs.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

main().catch((error: unknown) => {
  say(error instanceof UsageError ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 2;
});
