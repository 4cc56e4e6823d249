// A Redis that forgets, freezes or goes deaf: it only wakes the gateways, so no command may be lost and few may be late.
import { createHttp, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createPortal } from "../../../agent-sim/fleet/portal.ts";
import { lateDeliveries } from "../check/checker.ts";
import type { ByteFilter } from "../rig/proxy.ts";
import { createRig, type Rig, urlOf } from "../rig/rig.ts";
import { SWEEP_FINDS_NOTHING } from "../rig/sabotage.ts";
import { fromRedis } from "../rig/shortcuts.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";
import { runTrial, type Trial, type TrialStage } from "../trial.ts";
import { onRig, trialOf } from "./kills.ts";

const NODES = 2;
const MASTERS = 3;
/** The sweep's bound plus one second. */
const SWEPT_WITHIN_MS = 11_000;
const SWEEP_IS_BLIND = { how: "the database forgets which node holds a socket, so the sweep finds nothing", red: "late" } as const;

/** Scripts call the first node and agents connect to the second, so every command needs a wake-up between the nodes. */
const crossing = async (rig: Rig): Promise<Rig> => {
  const [first, second] = await Promise.all(rig.nodes.map(({ port }) => rig.openProxy({ targets: () => [port] })));
  if (!first || !second) throw new Error("crossing needs two nodes");
  const http = createHttp(urlOf(first));
  const close = (): Promise<void> => {
    http.close();
    return rig.close();
  };
  return { ...rig, agentProxy: second, apiProxy: first, http, portal: createPortal(http, rig.credentials), close };
};

const judgeDelay = (trial: Trial): ScenarioOutcome => {
  const { late, longestMs } = lateDeliveries(trial.history.lines, SWEPT_WITHIN_MS);
  return { ...trial, violations: { ...trial.violations, late }, notes: [...trial.notes, `the longest delivery took ${longestMs} ms from its 2xx`] };
};

const restarts: Scenario = {
  name: "redis-restart",
  promise: "R2",
  claim: "a command answered 2xx survives FLUSHALL and kill -9 of a Redis without persistence",
  needsRedis: true,
  control: { how: "the gateway answers 2xx once the command is in Redis and writes it to the database 0.6 s later", red: "ok-lost" },
  run: (context) => {
    const trouble = async ({ rig, running, random, fault, wait }: TrialStage): Promise<void> => {
      await wait(800);
      while (running()) {
        fault("FLUSHALL");
        await rig.redis?.ask("FLUSHALL");
        await wait(1_000);
        if (!running()) return;
        fault("kill -9 Redis, which has no persistence");
        await rig.redis?.kill();
        await wait(300 + random() * 900);
        await rig.redis?.start();
        await wait(2_000);
      }
    };
    return onRig({ nodes: NODES, seed: context.seed, redis: true }, { ...trialOf(context, fromRedis), trouble });
  },
};

/** Masters of a cluster are lost in turn; each comes back as a replica of the one that took its place. */
const clusterFailovers: Scenario = {
  name: "redis-cluster-failover",
  promise: "R2, R5",
  claim: `while masters of a Redis Cluster are killed and frozen in turn no call fails, nothing is lost, and commands arrive within ${SWEPT_WITHIN_MS / 1_000} s`,
  needsRedis: true,
  control: SWEEP_IS_BLIND,
  run: async ({ seed, scale, control }): Promise<ScenarioOutcome> => {
    const rig = await crossing(await createRig({ nodes: NODES, seed, redisCluster: true, sabotage: control ? SWEEP_FINDS_NOTHING : undefined }));
    const { redisCluster } = rig;
    if (redisCluster === null) throw new Error("the rig has no cluster");
    const trouble = async ({ running, fault, wait }: TrialStage): Promise<void> => {
      await wait(800);
      // In the control all go at once, so that no hint arrives.
      for (const master of control ? [0, 1, 2, 3, 4, 5] : []) await redisCluster.kill(master);
      for (let master = 0; running() && !control; master = (master + 1) % MASTERS) {
        const [lost, promoted] = (await redisCluster.isMaster(master)) ? [master, redisCluster.replicaOf(master)] : [redisCluster.replicaOf(master), master];
        fault(`kill -9 ${master}, a master`);
        await redisCluster.kill(lost);
        while (running() && !(await redisCluster.isMaster(promoted))) await wait(100);
        await redisCluster.start(lost);
        await wait(2_000);
      }
      while (running()) await wait(200);
    };
    try {
      return judgeDelay(await runTrial({ rig, seed, scale, impatient: control, trouble }));
    } finally {
      await rig.close();
    }
  },
};

/** No wake-up passes between the nodes while Redis is frozen; the sweep makes up for it. */
const runFrozen = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const rig = await crossing(await createRig({ nodes: NODES, seed, redis: true, sabotage: control ? SWEEP_FINDS_NOTHING : undefined }));
  const forMs = Math.min(15_000, scale.seconds * 400);
  const trouble = async ({ running, fault, wait }: TrialStage): Promise<void> => {
    await wait(500);
    for (let n = 0; running(); n += 1) {
      const stops = n % 2 === 0;
      fault(stops ? "SIGSTOP Redis" : "DEBUG SLEEP");
      if (stops) rig.redis?.signal("SIGSTOP");
      // Redis answers after its sleep, when nobody waits here any more.
      else void rig.redis?.ask("DEBUG", "SLEEP", String(forMs / 1_000)).catch(() => undefined);
      // A later hint would deliver what an earlier one should have, so the control lets no hint through.
      if (control) return;
      await wait(forMs);
      if (stops) rig.redis?.signal("SIGCONT");
      await wait(1_500);
    }
  };
  try {
    const relief = async (): Promise<void> => {
      if (control) await pause(time, SWEPT_WITHIN_MS + 1_000);
      rig.redis?.signal("SIGCONT");
    };
    return judgeDelay(await runTrial({ rig, seed, scale, impatient: control, trouble, relief }));
  } finally {
    await rig.close();
  }
};

const frozen: Scenario = {
  name: "redis-frozen",
  promise: "R2, R5",
  claim: `a Redis that is stopped or blocked for seconds loses nothing, and commands still arrive within ${SWEPT_WITHIN_MS / 1_000} s`,
  needsRedis: true,
  control: SWEEP_IS_BLIND,
  run: runFrozen,
};

const MESSAGE = /\$7\r\nmessage\r\n/i;
/** Drops published messages and passes everything else, so PING works and nobody hears a message. `who`: all connections, or only those older than the fault. */
export const deafness = (who: "all" | "old", passes: (chunk: string) => boolean = () => false) => {
  const state = { since: Number.POSITIVE_INFINITY, swallowed: 0 };
  const filter = (): ByteFilter => {
    const bornMs = time.elapsedMs();
    return (direction, chunk) => {
      const deaf = time.elapsedMs() >= state.since && (who === "all" || bornMs < state.since);
      const text = deaf && direction === "down" ? chunk.toString("latin1") : "";
      if (!MESSAGE.test(text) || passes(text)) return chunk;
      state.swallowed += 1;
      return Buffer.alloc(0);
    };
  };
  return { state, filter };
};

const deaf: Scenario = {
  name: "redis-deaf",
  promise: "R5",
  claim: `while every published message is lost although PING works, commands still arrive within ${SWEPT_WITHIN_MS / 1_000} s`,
  needsRedis: true,
  control: SWEEP_IS_BLIND,
  run: async ({ seed, scale, control }): Promise<ScenarioOutcome> => {
    const { state, filter } = deafness("all");
    const sabotage = control ? SWEEP_FINDS_NOTHING : undefined;
    const rig = await crossing(await createRig({ nodes: NODES, seed, redis: true, redisFilter: filter, sabotage }));
    const trouble = async ({ running, fault, wait }: TrialStage): Promise<void> => {
      await wait(500);
      fault("the subscriptions go deaf");
      state.since = time.elapsedMs();
      while (running()) await wait(200);
    };
    try {
      const outcome = judgeDelay(await runTrial({ rig, seed, scale, impatient: control, trouble }));
      const notes = [...outcome.notes, `${state.swallowed} chunks of published messages swallowed`];
      return { ...outcome, violations: { ...outcome.violations, "nothing-swallowed": state.swallowed === 0 ? 1 : 0 }, notes };
    } finally {
      await rig.close();
    }
  },
};

export const redisScenarios: readonly Scenario[] = [restarts, frozen, deaf, clusterFailovers];
