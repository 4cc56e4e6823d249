// Gateways that die: killed hard, one or several.
import { createRig, type RigOptions } from "./rig.ts";
import { rolling } from "./rolling.ts";
import type { Context, Outcome, Scenario } from "./scenario.ts";
import { fromMemory, type MakeShortcut } from "./shortcuts.ts";
import { runTrial, type Stage, type TrialOptions } from "./trial.ts";

export const ANSWERED_FROM_MEMORY = { how: "2xx is answered from the memory of one node, which writes 0.6 s later", red: "ok-lost" } as const;

/** A rig for one trial. */
export const onRig = async (rigOptions: RigOptions, options: Omit<TrialOptions, "rig">): Promise<Outcome> => {
  const rig = await createRig(rigOptions);
  try {
    return await runTrial({ ...options, rig });
  } finally {
    await rig.close();
  }
};

/** The usual trial; its control answers before the command is safe from what the scenario breaks. */
export const trialOf = (
  { seed, scale, control }: Context,
  shortcut: MakeShortcut | null = fromMemory,
): Pick<TrialOptions, "seed" | "scale" | "shortcut" | "impatient"> => ({
  seed,
  scale,
  shortcut: control ? shortcut : null,
  impatient: control,
});

const killOften = async ({ rig, running, random, fault, wait }: Stage): Promise<void> => {
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

export const killScenarios: readonly Scenario[] = [killScenario(1), killScenario(2), rolling];
