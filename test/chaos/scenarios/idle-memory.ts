// The memory that a connected, idle agent costs.
import { type PairedDevice, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { Node } from "../rig/node.ts";
import { connectAll, frameHead, OPCODE, type RawAgent } from "../rig/raw.ts";
import { type Rig, withRig } from "../rig/rig.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const WARM_UP = 100;
const PROVISION_STEP = 500;
/** The allowed cost per agent, and the normal variation of a process. */
const ALLOWED = { perAgentBytes: 20_000, variationBytes: 32_000_000 };
const REST_MS = 2_000;
const HOARD_BYTES = 250_000;

const provisionAll = async (rig: Rig, count: number): Promise<readonly PairedDevice[]> => {
  const members: PairedDevice[] = [];
  while (members.length < count) members.push(...(await rig.provision(Math.min(PROVISION_STEP, count - members.length))));
  return members;
};

/** The least of a few readings, so that uncollected garbage does not count. */
const settled = async (node: Node): Promise<number> => {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 4; n += 1) {
    await pause(time, REST_MS / 4);
    least = Math.min(least, (await node.residentBytes()) ?? Number.NaN);
  }
  return least;
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 1, seed }, async (rig) => {
    const [node] = rig.nodes;
    if (!node) throw new Error("there is no node");
    const count = scale.agents > 50 ? scale.agents * 20 : 300;
    const members = await provisionAll(rig, count);
    const agents: RawAgent[] = [];
    try {
      const first = await connectAll(node.port, members.slice(0, WARM_UP), "ready");
      for (const agent of first) agent.destroy();
      const before = await settled(node);
      agents.push(...(await connectAll(node.port, members, "ready")));
      if (control) for (const agent of agents) agent.write(Buffer.concat([frameHead(OPCODE.text, HOARD_BYTES + 1), Buffer.alloc(HOARD_BYTES, " ")]));
      const begun = await settled(node);
      const after = await settled(node);
      if (Number.isNaN(after)) throw new Error("the memory of a process can be read on Linux only");
      const growth = after - before;
      const allowed = count * ALLOWED.perAgentBytes + ALLOWED.variationBytes;
      return {
        n: count,
        faults: 0,
        violations: { "memory-unbounded": growth > allowed ? 1 : 0, "fell-off": agents.filter(({ closedAtMs }) => closedAtMs !== null).length },
        latencyMs: { p50: null, p99: null },
        notes: [
          `n counts idle agents: ${(growth / count / 1_000).toFixed(1)} kB of resident memory each, ${((after - begun) / 1_000 / (REST_MS / 1_000)).toFixed(0)} kB/s growth while idle`,
          `the bound is ${ALLOWED.perAgentBytes / 1_000} kB each plus ${ALLOWED.variationBytes / 1_000_000} MB for the process; it grew by ${(growth / 1_000_000).toFixed(1)} MB`,
        ],
      };
    } finally {
      for (const agent of agents) agent.destroy();
    }
  });

export const idleMemoryScenarios: readonly Scenario[] = [
  {
    name: "idle-memory",
    promise: "C8",
    claim: `an idle authenticated agent costs less than ${ALLOWED.perAgentBytes / 1_000} kB of the gateway's memory`,
    control: { how: `each agent begins a message of ${HOARD_BYTES / 1_000} kB and never ends it`, red: "memory-unbounded" },
    run,
  },
];
