// Fleets without sockets, and agents that poll while their socket is open: both take from one queue.

import { type Agent, type AgentOptions, createAgent, createHttp, createMemoryJournal, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { forgetfulJournal } from "../rig/forgetful.ts";
import { createRig, urlOf } from "../rig/rig.ts";
import { NO_LEASE } from "../rig/sabotage.ts";
import { asking, type Scenario } from "../scenario.ts";
import { runTrial, type TrialStage } from "../trial.ts";
import { ANSWERED_FROM_MEMORY, onRig, trialOf } from "./kills.ts";

const POLL_ENV = { POLL_SECONDS: "2" };

const killOnce = async ({ rig, fault, wait }: TrialStage): Promise<void> => {
  await wait(1_500);
  for (const node of rig.nodes) {
    fault(`kill -9 ${node.name}`);
    await node.kill();
    await node.start();
  }
};

const pollOnly: Scenario = {
  name: "poll-only",
  promise: "R1, R7",
  claim: "a fleet that never opens a socket receives and acknowledges every command, across kill -9 of the gateway",
  control: ANSWERED_FROM_MEMORY,
  run: (context) => onRig({ nodes: 1, seed: context.seed, env: POLL_ENV }, { ...trialOf(context), pollOnlyPct: 100, trouble: killOnce }),
};

/** Long enough for a poll while the command runs. */
const TAKES_SECONDS = 0.3;

/** Each device uses a socket and polls all the time beside it. */
const mixed: Scenario = {
  name: "poll-and-socket",
  promise: "R7, R8",
  claim: "a device that polls while its socket is open receives each command in lane order and runs none twice",
  control: { how: "a claimed command stays in the queue for the other channel, and the agents forget the commands they have begun", red: "executed-twice" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: 1, seed, env: POLL_ENV, ...(control ? { sabotage: NO_LEASE } : {}) });
    const http = createHttp(urlOf(rig.agentProxy), 16);
    const pollers: Agent[] = [];
    const tune = (_: unknown, base: AgentOptions): AgentOptions => {
      const journal = control ? forgetfulJournal() : createMemoryJournal(time.wallMs);
      // Socket and poller are one process, so they share an instance id.
      return { ...base, journal, instanceId: base.deviceId };
    };
    const slow = asking(rig.portal, (command) => ({ ...command, type: "wait", requiresAck: true, payload: { seconds: TAKES_SECONDS } }));
    try {
      return await runTrial({
        rig: { ...rig, portal: slow },
        seed,
        scale,
        tune,
        impatient: control,
        beside: (options) => {
          const poller = createAgent({ ...options, mode: "poll", http, firstWindowMs: 500 });
          pollers.push(poller);
          poller.start();
        },
        trouble: async ({ rig: { agentProxy }, running, fault, wait }) => {
          await wait(1_000);
          while (running()) {
            fault(`${agentProxy.reset(0.3)} connections cut`);
            await wait(1_500);
          }
        },
      });
    } finally {
      await Promise.all(pollers.map((poller) => poller.stop()));
      http.close();
      await rig.close();
    }
  },
};

export const pollScenarios: readonly Scenario[] = [pollOnly, mixed];
