// Where commands go and in which order, while connections come and go over two nodes.
import { onRig } from "./kills.ts";
import { createRig } from "./rig.ts";
import { ADDRESS_IS_MIXED_UP, LANES_ARE_OPEN } from "./sabotage.ts";
import { asking, type Scenario } from "./scenario.ts";
import { runTrial, type Stage } from "./trial.ts";

const NODES = 2;
const ONE_LANE_PER_SECOND = 30;

const laneOrder: Scenario = {
  name: "lane-order",
  promise: "R8",
  claim: "one device, one lane, callers on two nodes, a connection that breaks every 1 to 3 s: each command first comes in the order of the queue",
  needsRedis: true,
  control: { how: "while they wait, commands of one lane may overtake each other", red: "reordered" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: NODES, seed, redis: true, sabotage: control ? LANES_ARE_OPEN : undefined });
    const portal = asking(rig.portal, (command) => ({ ...command, type: "restart-app", requiresAck: true, payload: { appId: "app_1" } }));
    const trouble = async ({ running, random, fault, wait }: Stage): Promise<void> => {
      while (running()) {
        await wait(1_000 + random() * 2_000);
        if (running() && rig.agentDoor.reset() > 0) fault("the connection cut");
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
  claim: "while five agents a second lose their connection and come back, on this node or the other, no command reaches another device than its own",
  needsRedis: true,
  control: { how: "one command in five is written to another device of the tenant", red: "wrong-device" },
  run: ({ seed, scale, control }) =>
    onRig(
      { nodes: NODES, seed, redis: true, sabotage: control ? ADDRESS_IS_MIXED_UP : undefined },
      {
        seed,
        scale,
        impatient: control,
        trouble: async ({ rig, running, fault, wait }: Stage) => {
          while (running()) {
            await wait(CUT_EVERY_MS);
            const cut = rig.agentDoor.reset(1 / Math.max(1, rig.agentDoor.open));
            if (cut > 0) fault(`${cut} connections cut`);
          }
        },
      },
    ),
};

export const orderScenarios: readonly Scenario[] = [laneOrder, rightDevice];
