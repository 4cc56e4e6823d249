// Which device gets a command and in which order, while connections come and go on two nodes.

import { createRig } from "../rig/rig.ts";
import { ADDRESS_IS_MIXED_UP, LANES_ARE_OPEN } from "../rig/sabotage.ts";
import { asking, type Scenario } from "../scenario.ts";
import { runTrial, type TrialStage } from "../trial.ts";
import { onRig } from "./kills.ts";

const NODES = 2;
const ONE_LANE_PER_SECOND = 30;

const laneOrder: Scenario = {
  name: "lane-order",
  promise: "R8",
  claim: "with callers on two nodes and a connection that breaks every 1 to 3 s, a device first receives the commands of a lane in queue order",
  needsRedis: true,
  control: { how: "waiting commands of one lane may overtake each other", red: "reordered" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: NODES, seed, redis: true, sabotage: control ? LANES_ARE_OPEN : undefined });
    const portal = asking(rig.portal, (command) => ({ ...command, type: "restart-app", requiresAck: true, payload: { appId: "app_1" } }));
    const trouble = async ({ running, random, fault, wait }: TrialStage): Promise<void> => {
      while (running()) {
        await wait(1_000 + random() * 2_000);
        if (running() && rig.agentProxy.reset() > 0) fault("the connection cut");
      }
    };
    try {
      const members = await rig.provision(1);
      const perSecond = Math.min(scale.perSecond, ONE_LANE_PER_SECOND);
      return await runTrial({ rig: { ...rig, portal }, seed, scale: { ...scale, perSecond }, members, impatient: control, trouble });
    } finally {
      await rig.close();
    }
  },
};

const CUT_EVERY_MS = 200;

const rightDevice: Scenario = {
  name: "reconnect-churn",
  promise: "R10",
  claim: "while five agents a second reconnect to either of two nodes, no command reaches another device than its own",
  needsRedis: true,
  control: { how: "every fifth command is written to another device of the tenant", red: "wrong-device" },
  run: ({ seed, scale, control }) =>
    onRig(
      { nodes: NODES, seed, redis: true, sabotage: control ? ADDRESS_IS_MIXED_UP : undefined },
      {
        seed,
        scale,
        impatient: control,
        trouble: async ({ rig, running, fault, wait }: TrialStage) => {
          while (running()) {
            await wait(CUT_EVERY_MS);
            const cut = rig.agentProxy.reset(1 / Math.max(1, rig.agentProxy.open));
            if (cut > 0) fault(`${cut} connections cut`);
          }
        },
      },
    ),
};

export const orderScenarios: readonly Scenario[] = [laneOrder, rightDevice];
