// Agents that are killed before and after each journal write: a command that has begun never begins again.
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createRandom, type PairedDevice, packageRoot, pause, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { createCommandTracker } from "../../../agent-sim/fleet/command-tracker.ts";
import { startLoad } from "../../../agent-sim/fleet/load.ts";
import { type Child, plainEnv, startChild } from "../../kit/net/children.ts";
import { makeFolder } from "../../kit/setup/workspace.ts";
import { checkHistory, countViolations, VIOLATIONS } from "../check/checker.ts";
import { createHistory, recorded } from "../check/history.ts";
import { readTruth } from "../check/truth.ts";
import { createRig, type Rig, urlOf } from "../rig/rig.ts";
import type { Orders } from "../rig/victim.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const VICTIMS = 4;
const REST_MS = 40_000;
const POINTS: readonly Orders["point"][] = ["before-journal", "after-journal", "before-result", "after-result"];

interface Victim {
  readonly effects: string;
  readonly deaths: number;
  stop(): Promise<void>;
}

/** Restarts the agent after each death until the load is over, then once more without a death. */
const keepAlive = (
  rig: Rig,
  folder: string,
  { member, index, context, lives }: { member: PairedDevice; index: number; context: Context; lives: () => boolean },
): Victim => {
  const [journal, effects, file] = ["journal", "effects", "orders"].map((name) => join(folder, `${index}.${name}`)) as [string, string, string];
  const program = join(packageRoot(import.meta.dirname), "dist", "test", "chaos", "rig", "victim.js");
  const point = context.control ? "before-result" : (POINTS[index % POINTS.length] ?? null);
  const state: { deaths: number; child: Child | null; over: boolean } = { deaths: 0, child: null, over: false };
  const run = async (): Promise<void> => {
    while (!state.over) {
      const doomed = lives();
      const orders: Orders = { url: urlOf(rig.agentProxy), member, journal, effects, point: doomed ? point : null, at: 3, haste: context.scale.haste };
      await writeFile(file, JSON.stringify(orders));
      const child = startChild({ command: process.execPath, words: [program, file], env: plainEnv() });
      state.child = child;
      await until(time, () => !child.alive || state.over || (doomed && !lives()), { everyMs: 50, withinMs: 600_000 });
      if (child.alive) await child.stop();
      else if (child.process.signalCode === "SIGKILL") state.deaths += 1;
      else throw new Error(`an agent ended by itself: ${child.said}`);
      // Control: the agent forgets the commands that it has begun.
      if (context.control) await rm(journal, { force: true });
      if (!doomed && !state.over) await pause(time, 100);
    }
  };
  const running = run();
  return {
    effects,
    get deaths() {
      return state.deaths;
    },
    stop: () => {
      state.over = true;
      return running;
    },
  };
};

const runDeaths = async (context: Context): Promise<ScenarioOutcome> => {
  const { seed, scale, control } = context;
  const rig = await createRig({ nodes: 1, seed });
  const folder = makeFolder("deaths");
  const victims: Victim[] = [];
  try {
    const members = await rig.provision(VICTIMS);
    const [history, tracker, random] = [createHistory(), createCommandTracker(time.elapsedMs), createRandom(seed)];
    const portal = recorded(rig.portal, { history, elapsedMs: time.elapsedMs });
    const state = { loading: true };
    victims.push(...members.map((member, index) => keepAlive(rig, folder, { member, index, context, lives: () => state.loading })));
    const signal = new AbortController().signal;
    const perSecond = Math.min(scale.perSecond, 12);
    const load = startLoad({ portal, tracker, members, perSecond, durationMs: scale.seconds * 1_600, time, random, graceMs: REST_MS, signal });
    await load.done;
    await until(time, () => load.outstanding === 0, { everyMs: 50, withinMs: REST_MS });
    state.loading = false;
    const patience = { time, random: Math.random, untilMs: time.elapsedMs() + REST_MS };
    const truth = await readTruth(
      rig,
      members.map(({ deviceId }) => deviceId),
      patience,
    );
    await Promise.all(victims.map((victim) => victim.stop()));
    for (const { effects } of victims)
      for (const id of (await readFile(effects, "utf8").catch(() => "")).split("\n").filter(Boolean))
        history.add({ op: "execute", phase: "ok", id, actor: "victim", tMs: 0 });
    const verdict = checkHistory(history.lines, truth);
    const faults = victims.reduce((sum, { deaths }) => sum + deaths, 0);
    return {
      n: verdict.accepted,
      faults,
      // Without a journal, commands may also end without having run, so the control checks only for repeated execution.
      violations: Object.fromEntries((control ? (["executed-twice"] as const) : VIOLATIONS).map((kind) => [kind, countViolations(verdict, [kind])])),
      latencyMs: { p50: null, p99: null },
      notes: [
        `ended as ${Object.entries(verdict.byStatus)
          .map(([status, count]) => `${count} ${status}`)
          .join(", ")}`,
        ...VIOLATIONS.flatMap((kind) => (verdict.violations[kind].length > 0 ? [`${kind}: ${verdict.violations[kind].slice(0, 3).join(" ")}`] : [])),
      ],
    };
  } finally {
    await Promise.allSettled(victims.map((victim) => victim.stop()));
    await rig.close();
    await rm(folder, { recursive: true, force: true });
  }
};

export const deathScenarios: readonly Scenario[] = [
  {
    name: "agent-kill",
    promise: "R7",
    claim: "when agents are killed before and after each journal write, every command ends and none runs twice",
    control: { how: "each death deletes the agent's journal", red: "executed-twice" },
    run: runDeaths,
  },
];
