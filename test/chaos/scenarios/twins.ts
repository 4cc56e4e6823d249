// Two agents with one identity, as after a cloned disk: the first keeps its session, the newcomer is refused, and both never hold sessions for long.

import {
  type Agent,
  type AgentEvents,
  type AgentOptions,
  createAgent,
  createJournal,
  noop,
  pause,
  systemTime as time,
} from "../../../agent-sim/agent/index.ts";
import { CLOSE } from "../../../protocol/index.ts";
import { createRig, urlOf } from "../rig/rig.ts";
import { EPOCH_STANDS_STILL } from "../rig/sabotage.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";
import { runTrial, type TrialOptions } from "../trial.ts";

const NODES = 2;
const BOTH_AT_MOST_MS = 2_000;
/** Twins arrive spread over this time, because the nodes check their sessions every 5 s and the test should hit every phase of that. */
const ARRIVE_OVER_MS = 4_000;

type Side = "first" | "twin";

/** Tracks which of each pair holds a session, and since when both do. */
const createPairs = () => {
  const held = new Map<string, Set<Side>>();
  const sinceMs = new Map<string, number>();
  const refused = new Set<string>();
  let longestMs = 0;
  const broken = new Set<string>();
  const change = (pair: string, side: Side, holds: boolean): void => {
    const sides = held.get(pair) ?? new Set<Side>();
    held.set(pair, sides);
    if (holds) sides.add(side);
    else sides.delete(side);
    const since = sinceMs.get(pair);
    if (since !== undefined) {
      const bothMs = time.elapsedMs() - since;
      longestMs = Math.max(longestMs, bothMs);
      if (bothMs > BOTH_AT_MOST_MS) broken.add(pair);
    }
    if (sides.size < 2) sinceMs.delete(pair);
    else if (since === undefined) sinceMs.set(pair, time.elapsedMs());
  };
  return {
    refused,
    watch: (pair: string, side: Side, on: AgentEvents = {}): AgentEvents => ({
      ...on,
      ready: () => {
        change(pair, side, true);
        on.ready?.();
      },
      away: (end, inMs) => {
        if (end.kind === "closed" && end.code === CLOSE.duplicateIdentity.code) refused.add(pair);
        change(pair, side, false);
        on.away?.(end, inMs);
      },
    }),
    /** Counts pairs that both held a session for too long, including those that still do. */
    judge: () => {
      for (const pair of held.keys()) change(pair, "first", held.get(pair)?.has("first") ?? false);
      return { both: broken.size, longestMs: Math.round(longestMs) };
    },
  };
};

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const rig = await createRig({ nodes: NODES, seed, redis: !control, sabotage: control ? EPOCH_STANDS_STILL : undefined });
  const twins: Agent[] = [];
  try {
    const proxies = await Promise.all(rig.nodes.map(({ port }) => rig.openProxy({ targets: () => [port] })));
    const members = await rig.provision(Math.max(2, Math.floor(scale.agents / 2)));
    const pairs = createPairs();
    const originals: AgentOptions[] = [];
    const [here, there] = proxies.map(urlOf);
    const tune: TrialOptions["tune"] = (member, base) => ({ ...base, url: here ?? base.url, on: pairs.watch(member.deviceId, "first", base.on) });
    const trial = await runTrial({
      rig,
      seed,
      scale: { ...scale, seconds: Math.max(scale.seconds, 6) },
      members,
      tune,
      impatient: control,
      beside: (options) => void originals.push(options),
      trouble: async ({ fault, wait }) => {
        for (const options of originals) {
          fault("a twin connects to the other node");
          // A separate journal: neither twin knows what the other has run.
          const journal = createJournal({ wallMs: time.wallMs, write: noop });
          const on = pairs.watch(options.deviceId, "twin", { ...options.on, ready: noop, away: noop });
          const twin = createAgent({ ...options, url: there ?? options.url, journal, firstWindowMs: 0, on });
          twins.push(twin);
          twin.start();
          await wait(ARRIVE_OVER_MS / originals.length);
        }
        await pause(time, BOTH_AT_MOST_MS + 500);
      },
    });
    const { both, longestMs } = pairs.judge();
    return {
      ...trial,
      n: members.length,
      violations: { ...trial.violations, "both-connected": both, "not-refused": members.length - pairs.refused.size },
      notes: [
        ...trial.notes,
        `${pairs.refused.size} of ${members.length} newcomers were refused with ${CLOSE.duplicateIdentity.code}; both twins held sessions for at most ${longestMs} ms`,
      ],
    };
  } finally {
    await Promise.all(twins.map((twin) => twin.stop()));
    await rig.close();
  }
};

export const twinScenarios: readonly Scenario[] = [
  {
    name: "clone-pairs",
    promise: "C1",
    claim:
      "an agent whose identity is connected to the other node is refused with 4505; twins never both hold sessions for more than 2 s; no command runs twice",
    needsRedis: true,
    control: { how: "the nodes share no Redis, and the database does not raise the epoch", red: "both-connected" },
    run,
  },
];
