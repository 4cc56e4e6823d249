// Commands created at one node, pushed by another, acknowledged, committed: how many per second in a closed loop, and what one costs in processor time,
// in bytes of PostgreSQL's log and in bytes of its tables.
import { summarise } from "../arithmetic.ts";
import type { MetricId } from "../metrics.ts";
import { type ProcessorUse, sampleParts, useBetween } from "../processor-time.ts";
import { profiled } from "../profile.ts";
import { checkCommands } from "../read-back.ts";
import type { Finding } from "../report.ts";
import type { BenchStage } from "../stage.ts";
import { growth, type LogUse, logBetween, markLog, vacuumedSizes } from "../storage.ts";
import { type BenchCluster, type Burst, burst, bursts, type CommandPlan, type Load, openCluster, show, visits, warmUp } from "./cluster.ts";

/** Work that a command leaves for later, such as the relay of its events, ends within this time and counts as its cost. */
const SETTLE_MS = 250;
/** The paced load whose tables are measured: so many commands that free space left by vacuum hardly counts. */
const KEPT = { rate: 1_500, windowMs: 25_000 } as const;
/** Below this the growth of a table in whole pages is too coarse. */
const MIN_KEPT = 20_000;

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, SETTLE_MS));

export interface MeasuredBurst extends Burst {
  readonly use: ProcessorUse;
  readonly log: LogUse;
}

const measuredBurst = async (stage: BenchStage, cluster: BenchCluster, load: Load): Promise<MeasuredBurst> => {
  const [mark, sample] = [await markLog(stage), sampleParts(cluster.parts)];
  const found = await burst(cluster, load);
  await settle();
  const use = useBetween(sample, sampleParts(cluster.parts), found.commands);
  return { ...found, use, log: await logBetween(stage, mark, await markLog(stage)) };
};

const showCost = (round: number, { use, log, commands }: MeasuredBurst): void =>
  void process.stderr.write(
    `  ${String(round).padStart(2)}  ${use.totalUs.toFixed(0)} us each: ${partsOf(use)}; foreign ${use.foreign.toFixed(2)}; log ${(log.bytes / commands).toFixed(0)} bytes each\n`,
  );

const partsOf = ({ partUs }: Pick<ProcessorUse, "partUs">): string =>
  Object.entries(partUs)
    .map(([part, us]) => `${part} ${us.toFixed(0)}`)
    .join(", ");

/** The median of each part over the rounds. */
const medianParts = (rounds: readonly MeasuredBurst[]): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.keys(rounds[0]?.use.partUs ?? {}).map((part) => [part, summarise(rounds.map(({ use }) => use.partUs[part] ?? 0)).value]));

/** Rounds after those that warm up. A profile covers the rounds alone. */
export const measuredBursts = async (stage: BenchStage, cluster: BenchCluster, { rounds, load }: { readonly rounds: number; readonly load: Load }) => {
  await warmUp(cluster, load);
  const run = () => visits(1, rounds, () => measuredBurst(stage, cluster, load));
  const found = await profiled(stage, cluster, { run, partUs: medianParts });
  for (const [index, measured] of found.entries()) showCost(index + 1, measured);
  return found;
};

/** A checkpoint first, so that the first round writes the whole pages that a later round would otherwise write at an unknown moment. */
const closedLoop = async (stage: BenchStage, cluster: BenchCluster, { rounds, windowMs }: CommandPlan): Promise<readonly MeasuredBurst[]> => {
  await stage.admin("checkpoint");
  return measuredBursts(stage, cluster, { rounds, load: { windowMs } });
};

const findingOf = (id: MetricId, rounds: readonly MeasuredBurst[], of: (round: MeasuredBurst) => number, note: string): Finding => {
  const { value, min, max } = summarise(rounds.map(of));
  return { id, value, span: [min, max], rounds, note };
};

const costsOf = (rounds: readonly MeasuredBurst[]): readonly Finding[] => {
  const foreign = Math.max(...rounds.map(({ use }) => use.foreign));
  const pages = summarise(rounds.map(({ log, commands }) => log.pageBytes / commands)).value;
  const checkpoints = rounds.reduce((sum, { log }) => sum + log.checkpoints, 0);
  const cpuNote = `${partsOf({ partUs: medianParts(rounds) })}${foreign > 0.05 ? `; others used ${Math.round(foreign * 100)} % of the machine` : ""}`;
  const logNote = `${Math.round(pages)} of it copies of whole pages${checkpoints > 0 ? `; ${checkpoints} checkpoints` : ""}`;
  return [
    findingOf("command-cpu", rounds, ({ use }) => use.totalUs, cpuNote),
    findingOf("command-wal", rounds, ({ log, commands }) => log.bytes / commands, logNote),
  ];
};

/** What ended commands leave in tables and indexes, by a paced load on tables that held none. */
const kept = async (stage: BenchStage, cluster: BenchCluster): Promise<Finding> => {
  const [before, mark] = [await vacuumedSizes(stage), await markLog(stage)];
  const found = await burst(cluster, KEPT);
  show(0, found);
  await settle();
  const log = await logBetween(stage, mark, await markLog(stage));
  const tables = growth(before, await vacuumedSizes(stage), found.commands);
  const value = tables.reduce((sum, { bytesEach }) => sum + bytesEach, 0);
  const largest = tables.filter(({ bytesEach }) => bytesEach > value / 100).map(({ table, bytesEach }) => `${table} ${Math.round(bytesEach)}`);
  return {
    id: "command-bytes",
    value,
    rounds: [{ ...found, tables, logBytesEach: log.bytes / found.commands }],
    unsound: found.commands < MIN_KEPT,
    note: `${found.commands} commands: ${largest.join(", ")}`,
  };
};

export interface CommandWants {
  readonly bytes: boolean;
  readonly rounds: boolean;
}

/** On two nodes. The bytes come first, because they need tables without free space from other commands. */
export const commands = (stage: BenchStage, plan: CommandPlan, wants: CommandWants): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const cluster = await openCluster(scope, { nodes: 2, agents: plan.agents, inspected: scope.profile !== null });
    const findings: Finding[] = wants.bytes ? [await kept(scope, cluster)] : [];
    const rounds = wants.rounds ? await closedLoop(scope, cluster, plan) : [];
    if (rounds.length > 0)
      findings.push(
        findingOf("acked-commands", rounds, ({ perSecond }) => perSecond, `${plan.agents} agents`),
        ...costsOf(rounds),
      );
    await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
    return findings;
  });

export const commandsOnOneNode = (stage: BenchStage, { rounds, windowMs, agents }: CommandPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const cluster = await openCluster(scope, { nodes: 1, agents });
    const found = await bursts(cluster, rounds, { windowMs });
    await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
    const { value, min, max } = summarise(found.map(({ perSecond }) => perSecond));
    return [{ id: "acked-commands-one-node", value, span: [min, max], rounds: found, note: `${agents} agents` }];
  });
