// Gateways that are killed with SIGKILL, one or several.
import { createRig, type RigOptions } from "../rig/rig.ts";
import { fromMemory, type MakeShortcut } from "../rig/shortcuts.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";
import { runTrial, type TrialOptions, type TrialStage } from "../trial.ts";

export const ANSWERED_FROM_MEMORY = {
  how: "the gateway answers 2xx from the memory of one node, which writes the command 0.6 s later",
  red: "ok-lost",
} as const;

/** Runs one trial on a new rig. */
export const onRig = async (rigOptions: RigOptions, options: Omit<TrialOptions, "rig">): Promise<ScenarioOutcome> => {
  const rig = await createRig(rigOptions);
  try {
    return await runTrial({ ...options, rig });
  } finally {
    await rig.close();
  }
};

/** The options of the usual trial; its control answers before the command is safe from the scenario's fault. */
export const trialOf = (
  { seed, scale, control }: Context,
  shortcut: MakeShortcut | null = fromMemory,
): Pick<TrialOptions, "seed" | "scale" | "shortcut" | "impatient"> => ({
  seed,
  scale,
  shortcut: control ? shortcut : null,
  impatient: control,
});

const killOften = async ({ rig, running, random, fault, wait }: TrialStage): Promise<void> => {
  await wait(700);
  while (running()) {
    const node = rig.nodes[Math.floor(random() * rig.nodes.length)];
    if (!node) return;
    fault(`kill -9 ${node.name}`);
    await node.kill();
    await wait(300 + random() * 700);
    await node.start();
    await wait(1_500 + random() * 2_000);
  }
};

const killScenario = (nodes: number): Scenario => ({
  name: nodes === 1 ? "node-kill" : "node-kill-two",
  promise: nodes === 1 ? "R1" : "R1, R9, R10",
  claim:
    nodes === 1 ? "a command answered 2xx survives kill -9 of the only node" : "a command answered 2xx survives kill -9 of either of two nodes on one database",
  control: ANSWERED_FROM_MEMORY,
  run: (context) => onRig({ nodes, seed: context.seed }, { ...trialOf(context), trouble: killOften }),
});

export const killScenarios: readonly Scenario[] = [killScenario(1), killScenario(2)];
