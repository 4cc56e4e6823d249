// Agents in trouble: acks that never arrive, readers that stop reading, wrong clocks.

import { type AgentOptions, createHttp, createRandom } from "../../../agent-sim/agent/index.ts";
import { drunken, forgetfulJournal, shifted } from "../rig/forgetful.ts";
import { frameFilter } from "../rig/frames.ts";
import type { FaultProxy } from "../rig/proxy.ts";
import { createRig, type Rig, urlOf } from "../rig/rig.ts";
import { WRITTEN_IS_DONE } from "../rig/sabotage.ts";
import { asking, hurried, type Scenario, type ScenarioOutcome } from "../scenario.ts";
import { runTrial, type TrialOptions, type TrialStage } from "../trial.ts";
import { onRig } from "./kills.ts";

const LOST_SHARE = 0.3;
/** The share lost in each direction, so that three of ten acks stay unanswered. */
const LOST_EACH_WAY = 1 - Math.sqrt(1 - LOST_SHARE);
const POLL_SOCKETS = 16;

/** A trial in which some agents connect through a separate proxy. */
export const throughProxy = async (
  rig: Rig,
  proxy: FaultProxy,
  options: Omit<TrialOptions, "rig"> & { readonly uses: (index: number) => boolean },
): Promise<ScenarioOutcome> => {
  const http = createHttp(urlOf(proxy), POLL_SOCKETS);
  const tune: TrialOptions["tune"] = (member, base, index) => {
    const tuned = options.tune?.(member, base, index) ?? base;
    return options.uses(index) ? { ...tuned, url: urlOf(proxy), http } : tuned;
  };
  try {
    return await runTrial({ ...options, rig, tune });
  } finally {
    http.close();
  }
};

const cutNowAndThen =
  (proxy: FaultProxy) =>
  async ({ running, fault, wait }: TrialStage): Promise<void> => {
    await wait(1_000);
    while (running()) {
      fault(`${proxy.reset(LOST_SHARE)} connections cut`);
      await wait(1_500);
    }
  };

const acksDropped: Scenario = {
  name: "acks-dropped",
  promise: "R7",
  claim: "with 30 % of acks or their answers lost and connections cut, every command ends and none runs twice",
  control: { how: "the agents do not deduplicate: every delivery looks new to them", red: "executed-twice" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: 1, seed });
    const random = createRandom(seed + 13);
    let dropped = 0;
    try {
      const filter = frameFilter((direction, text) => {
        const isAck = direction === "up" ? text.includes('"op":"ack"') : text.includes('"op":"ack_ok"');
        const lost = isAck && random() < LOST_EACH_WAY;
        if (lost) dropped += 1;
        return !lost;
      });
      const proxy = await rig.openProxy({ filter });
      const tune = (_: unknown, base: AgentOptions): AgentOptions => (control ? { ...base, journal: forgetfulJournal() } : base);
      const trial = await throughProxy(rig, proxy, { seed, scale, tune, impatient: control, uses: () => true, trouble: cutNowAndThen(proxy) });
      return { ...trial, faults: trial.faults + dropped, notes: [...trial.notes, `${dropped} acks or answers dropped`] };
    } finally {
      await rig.close();
    }
  },
};

const BIG_TEXT = "x".repeat(24_000);
/** Beyond this the gateway would keep what slow readers do not read: the bound is a full buffer each plus normal variation. */
const allowedGrowth = (slow: number): number => slow * 1_200_000 + 150_000_000;

const slowReaders: Scenario = {
  name: "slow-readers",
  promise: "R15",
  claim: "agents that stop reading cost bounded memory, disturb nobody and lose nothing once they read again",
  control: { how: "a command counts as done once it is written to a socket", red: "never-ran" },
  run: async ({ seed, scale, control }) => {
    const rig = await createRig({ nodes: 1, seed, ...(control ? { sabotage: WRITTEN_IS_DONE } : {}) });
    try {
      const proxy = await rig.openProxy();
      const fat = { ...rig, portal: asking(rig.portal, (command) => ({ ...command, type: "echo", requiresAck: true, payload: { text: BIG_TEXT } })) };
      const before = (await rig.nodes[0]?.residentBytes()) ?? null;
      const state = { growth: 0 };
      const outcome = await throughProxy(fat, proxy, {
        seed,
        scale,
        impatient: control,
        uses: (index) => index % 2 === 0,
        trouble: async ({ fault, wait, members, running }) => {
          await wait(300);
          fault(`${Math.ceil(members.length / 2)} agents stop reading`);
          proxy.set({ hold: ["down"] });
          while (running()) await wait(200);
          // Half of them lose what was in transit; the others read on where they stopped.
          fault(`${proxy.reset(0.5)} connections cut`);
        },
        relief: async () => {
          const after = (await rig.nodes[0]?.residentBytes()) ?? null;
          state.growth = before === null || after === null ? 0 : after - before;
          proxy.calm();
        },
      });
      const tooMuch = state.growth > allowedGrowth(scale.agents / 2) ? 1 : 0;
      const note = `resident memory grew by ${Math.round(state.growth / 1_048_576)} MiB while ${Math.ceil(scale.agents / 2)} did not read`;
      return { ...outcome, violations: { ...outcome.violations, "memory-unbounded": tooMuch }, notes: [...outcome.notes, note] };
    } finally {
      await rig.close();
    }
  },
};

const HOUR_MS = 3_600_000;
const clockSkew: Scenario = {
  name: "clock-skew",
  promise: "S1",
  claim: "agents whose clocks are hours ahead or behind correct themselves by the gateway's answer and work",
  control: { how: "the clocks jump at each reading, so no correction holds", red: "never-connected" },
  run: ({ seed, scale, control }) =>
    onRig(
      { nodes: 1, seed },
      {
        seed,
        scale,
        impatient: control,
        trouble: async ({ members, fault }) => members.forEach((_, n) => void fault(`clock of agent ${n} is wrong`)),
        tune: (_, base, index) => {
          const random = createRandom(seed + index);
          const byMs = (index % 2 === 0 ? 1 : -1) * (0.2 + (index % 12)) * HOUR_MS;
          const clock = hurried(scale.haste);
          return { ...base, time: control ? drunken(clock, HOUR_MS, random) : shifted(clock, byMs) };
        },
      },
    ),
};

export const agentScenarios: readonly Scenario[] = [acksDropped, slowReaders, clockSkew];
