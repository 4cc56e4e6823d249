// How long a command takes at an offered rate that must be kept: from create to ack, as the caller sees it, and from create to push, as the agent sees it.
import { summarise } from "../arithmetic.ts";
import { checkCommands } from "../read-back.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";
import { burst, type CommandPlan, keptRate, openCluster, total } from "./cluster.ts";
import { measuredBursts } from "./commands.ts";

const RATE = 2_000;
const WAIT_SECONDS = 10;

/** The commits are durable: PostgreSQL waits for its disk. */
export const roundTrip = (stage: BenchStage, { rounds, windowMs, agents }: CommandPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const cluster = await openCluster(scope, { nodes: 2, agents, wait: WAIT_SECONDS, inspected: scope.profile !== null });
    const found = await measuredBursts(scope, cluster, { rounds, load: { windowMs, rate: RATE } });
    await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
    const [p50, p99] = [summarise(found.map(({ p50Ms }) => p50Ms)), summarise(found.map(({ p99Ms }) => p99Ms))];
    const rate = keptRate(found, RATE);
    return [
      { id: "command-roundtrip-p50", value: p50.value, span: [p50.min, p50.max], rounds: found, ...rate },
      { id: "command-roundtrip-p99", value: p99.value, span: [p99.min, p99.max], rounds: found, ...rate },
    ];
  });

const PUSH_RATE = 500;

const PUSH_ROUNDS = { rounds: 3, windowMs: 6_000 } as const;

/** From the moment for which the caller planned the request to the moment at which the agent has read the command. */
export const push = (stage: BenchStage, agents: number): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const cluster = await openCluster(scope, { nodes: 2, agents, stamped: true });
    const rounds: { readonly answeredPerSecond: number; readonly p50Ms: number; readonly p99Ms: number }[] = [];
    for (let round = 0; round <= PUSH_ROUNDS.rounds; round += 1) {
      const { answeredPerSecond, commands } = await burst(cluster, { windowMs: PUSH_ROUNDS.windowMs, rate: PUSH_RATE });
      const pushed = await Promise.all(cluster.agents.map((loader) => loader.pushes()));
      if (total(pushed, ({ windowAnswers }) => windowAnswers) !== commands) throw new InvalidRun("some commands did not carry their time");
      const [p50Ms, p99Ms] = [Math.max(...pushed.map((reply) => reply.p50Ms)), Math.max(...pushed.map((reply) => reply.p99Ms))];
      process.stderr.write(`  ${String(round).padStart(2)}  ${commands} commands pushed  p50 ${p50Ms.toFixed(2)} ms  p99 ${p99Ms.toFixed(2)} ms\n`);
      if (round > 0) rounds.push({ answeredPerSecond, p50Ms, p99Ms });
    }
    await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
    const { value, min, max } = summarise(rounds.map(({ p99Ms }) => p99Ms));
    const { note, ...kept } = keptRate(rounds, PUSH_RATE);
    const p50 = summarise(rounds.map(({ p50Ms }) => p50Ms)).value;
    return [{ id: "command-push-p99", value, span: [min, max], rounds, ...kept, note: `p50 ${p50.toFixed(1)} ms, ${note}` }];
  });
