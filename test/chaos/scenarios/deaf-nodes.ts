// Nodes whose Redis subscription is dead while everything looks healthy: they must notice, report and repair it.
import { createHttp, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { statusOfCheck } from "../rig/calls.ts";
import type { Node } from "../rig/node.ts";
import { createRig, type Rig, urlOf } from "../rig/rig.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";
import { runTrial, type TrialStage } from "../trial.ts";
import { deafness } from "./wakeups.ts";

const NODES = 2;
/** Two rounds of the probe to notice, three to repair, 5 s each; readiness caches for a second, and the rest is slack for a busy machine. */
const NOTICED_WITHIN_MS = 10_000 + 2_500;
const MENDED_WITHIN_MS = 15_000 + 2_500;
const LOOK_MS = 200;
const GIVEN_UP_MS = 30_000;
/** Longer than the probe's period, so that a brief healthy moment does not count as repaired. */
const STAYS_HEALTHY_MS = 6_500;

interface Seen {
  noticedMs: number | null;
  mendedMs: number | null;
}
/** Watches a node's readiness: Redis must be degraded within the first bound and healthy again within the second. */
const watchNode = async (node: Node, sinceMs: number): Promise<Seen> => {
  const http = createHttp(urlOf(node), 1);
  const seen: Seen = { noticedMs: null, mendedMs: null };
  const isOver = (lastedMs: number): boolean => lastedMs >= GIVEN_UP_MS || (seen.mendedMs !== null && lastedMs - seen.mendedMs >= STAYS_HEALTHY_MS);
  for (let lastedMs = 0; !isOver(lastedMs); lastedMs = time.elapsedMs() - sinceMs) {
    const redis = await statusOfCheck(http, "redis");
    if (redis === "degraded") {
      seen.noticedMs ??= time.elapsedMs() - sinceMs;
      seen.mendedMs = null;
    }
    if (redis === "healthy" && seen.noticedMs !== null) seen.mendedMs ??= time.elapsedMs() - sinceMs;
    await pause(time, LOOK_MS);
  }
  http.close();
  return seen;
};

type Way = (rig: Rig, deafen: () => void) => Promise<void>;
const WAYS: Readonly<Record<string, Way>> = {
  "the existing subscriptions go deaf": async (_, deafen) => deafen(),
  "all connections to Redis die silently": async ({ redisProxy }) => void redisProxy?.abandon(),
};

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const { state, filter } = deafness("old", control ? (text) => text.includes('"probe"') : undefined);
  const rig = await createRig({ nodes: NODES, seed, redis: true, redisFilter: filter });
  const [noticed, mended] = [createLatency(), createLatency()];
  const counts = { unnoticed: 0, unmended: 0, rounds: 0 };
  const round = async (fault: TrialStage["fault"], [what, way]: [string, Way]): Promise<void> => {
    fault(what);
    const sinceMs = time.elapsedMs();
    await way(rig, () => {
      state.since = sinceMs;
    });
    const seen = await Promise.all(rig.nodes.map((node) => watchNode(node, sinceMs)));
    for (const { noticedMs, mendedMs } of seen) {
      if (noticedMs === null || noticedMs > NOTICED_WITHIN_MS) counts.unnoticed += 1;
      if (mendedMs === null || mendedMs > MENDED_WITHIN_MS) counts.unmended += 1;
      if (noticedMs !== null) noticed.add(noticedMs);
      if (mendedMs !== null) mended.add(mendedMs);
    }
    counts.rounds += 1;
  };
  try {
    const ways = control ? Object.entries(WAYS).slice(0, 1) : Object.entries(WAYS);
    const trial = await runTrial({
      rig,
      seed,
      scale,
      impatient: control,
      trouble: async ({ fault, wait }) => {
        await wait(500);
        for (const way of ways) await round(fault, way);
        fault("CLIENT KILL TYPE pubsub");
        await rig.redis?.ask("CLIENT", "KILL", "TYPE", "pubsub");
      },
    });
    const [n, m] = [noticed.percentiles(), mended.percentiles()];
    const figures = `noticed after ${Math.round(n.p50 ?? 0)} ms (p50), ${Math.round(n.p99 ?? 0)} ms (longest); repaired after ${Math.round(m.p50 ?? 0)} ms, ${Math.round(m.p99 ?? 0)} ms`;
    return {
      ...trial,
      n: NODES * counts.rounds,
      violations: { ...trial.violations, unnoticed: counts.unnoticed, unmended: counts.unmended },
      latencyMs: m,
      notes: [...trial.notes, `${figures}; ms are from the fault to a healthy readiness`],
    };
  } finally {
    await rig.close();
  }
};

export const deafNodeScenarios: readonly Scenario[] = [
  {
    name: "redis-half-dead",
    promise: "R6",
    claim: "a node whose subscription is dead although PING works reports it within 10 s and hears again within 15 s",
    needsRedis: true,
    control: { how: "only the node's own probes get through, so it notices nothing", red: "unnoticed" },
    run,
  },
];
