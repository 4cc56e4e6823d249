// Nodes whose clocks are wrong: they go by the database's, so no command ends early, nobody is refused, and each says so.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createHttp, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { PortalCommand } from "../../../agent-sim/fleet/portal.ts";
import { statusOfCheck } from "../rig/calls.ts";
import type { Node } from "../rig/node.ts";
import { createRig, urlOf } from "../rig/rig.ts";
import { spoil } from "../rig/sabotage.ts";
import { asking, type Scenario, type ScenarioOutcome } from "../scenario.ts";
import { runTrial } from "../trial.ts";

const LIBRARIES = "/usr/lib";
/** By node; the first one's clock is right. */
const CLOCKS = ["+0s", "+3600s", "-3600s"] as const;
/** Shorter than the clocks are wrong. */
const LIFE_MS = 600_000;
const TOLD_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 500;
/** For a clock that is an hour ahead the deadline has passed. */
const DEADLINES_BY_A_WRONG_CLOCK = spoil("command_queue", "insert", "if new.seq % 3 = 0 then new.deadline_at := new.deadline_at - interval '1 hour'; end if;");

interface Mortal extends PortalCommand {
  readonly expiresAt: string;
}

const findFakeClock = (): string => {
  const libraries = readdirSync(LIBRARIES).map((folder) => join(LIBRARIES, folder, "faketime", "libfaketimeMT.so.1"));
  const found = libraries.find((library) => existsSync(library));
  if (found === undefined) throw new Error("libfaketime is not installed; install it with: apt-get install faketime");
  return found;
};

/** True once the node's readiness calls its clock degraded. */
const tells = async (node: Node): Promise<boolean> => {
  const http = createHttp(urlOf(node), 1);
  const untilMs = time.elapsedMs() + TOLD_WITHIN_MS;
  let isTold = false;
  while (!isTold && time.elapsedMs() < untilMs) {
    isTold = (await statusOfCheck(http, "clock")) === "degraded";
    if (!isTold) await pause(time, LOOK_EVERY_MS);
  }
  http.close();
  return isTold;
};

const nodeClocks: Scenario = {
  name: "node-clocks",
  promise: "S1",
  claim: "nodes whose clocks are an hour ahead or behind lose nothing, let no command expire early, refuse no agent and say that their clock is wrong",
  control: { how: "deadlines of a third of the commands are judged by a clock that is an hour ahead", red: "expired-early" },
  run: async ({ seed, scale, control }): Promise<ScenarioOutcome> => {
    const library = findFakeClock();
    const envOf = (node: number) => ({ LD_PRELOAD: library, FAKETIME: CLOCKS[node] ?? CLOCKS[0], FAKETIME_DONT_FAKE_MONOTONIC: "1" });
    const rig = await createRig({ nodes: CLOCKS.length, seed, envOf, sabotage: control ? DEADLINES_BY_A_WRONG_CLOCK : undefined });
    let silent = 0;
    try {
      const portal = asking(rig.portal, (command): Mortal => ({ ...command, expiresAt: new Date(time.wallMs() + LIFE_MS).toISOString() }));
      const trial = await runTrial({
        rig: { ...rig, portal },
        seed,
        scale,
        impatient: control,
        trouble: async ({ fault, wait }) => {
          const [, ...wrong] = rig.nodes;
          for (const { name } of wrong) fault(`${name} has a wrong clock`);
          silent = (await Promise.all(wrong.map(tells))).filter((isTold) => !isTold).length;
          await wait(1_000);
        },
      });
      const early = Object.entries(trial.verdict.byStatus).reduce((sum, [status, count]) => (status.startsWith("expired") ? sum + count : sum), 0);
      return { ...trial, violations: { ...trial.violations, "expired-early": early, "clock-untold": silent } };
    } finally {
      await rig.close();
    }
  },
};

export const clockScenarios: readonly Scenario[] = [nodeClocks];
