// A device is removed on one node while its agent holds a socket on another: the socket closes soon, and the agent stays out.

import { callWithRetry, type Http, type PairedDevice, pause, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { headersOf, inLanes, patience, withClients } from "../rig/calls.ts";
import type { FaultProxy } from "../rig/proxy.ts";
import { connectAll, openRawAgent, type RawAgent } from "../rig/raw.ts";
import { type Rig, withRig } from "../rig/rig.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

/** With Redis the other node is told; without Redis it finds out at its next read of the database. */
const WITHIN_MS = { up: 5_000, down: 10_000 } as const;
const SLACK_MS = 1_000;

interface Cut {
  readonly latency: ReturnType<typeof createLatency>;
  readonly notCut: number;
  readonly cameBack: number;
}

const remove = async (client: Http, { credentials }: Rig, { deviceId }: PairedDevice): Promise<number> => {
  const answer = await callWithRetry(
    () => client.call({ method: "DELETE", path: `/v1/devices/${deviceId}`, headers: headersOf(credentials) }),
    patience(10_000),
  );
  // 404: the device is already gone because the first answer got lost.
  if (answer.status !== 204 && answer.status !== 404) throw new Error(`a device could not be removed: ${answer.status}`);
  return time.elapsedMs();
};

/** Whether any node accepts the agent again. */
const comesBack = async (rig: Rig, member: PairedDevice): Promise<boolean> => {
  const attempts = rig.nodes.map(({ port }) => openRawAgent(port, member, "ready"));
  await until(time, () => attempts.every(({ closedAtMs, reachedAtMs }) => closedAtMs !== null || reachedAtMs !== null), { everyMs: 20, withinMs: 5_000 });
  for (const attempt of attempts) attempt.destroy();
  return attempts.some(({ reachedAtMs }) => reachedAtMs !== null);
};

interface Revoking {
  readonly rig: Rig;
  readonly client: Http;
  readonly members: readonly PairedDevice[];
  readonly proxy: FaultProxy;
  readonly control: boolean;
  readonly withinMs: number;
}
const revokeAll = async ({ rig, client, members, proxy, control, withinMs }: Revoking): Promise<Cut> => {
  const agents: readonly RawAgent[] = await Promise.all(members.map(async (member) => (await connectAll(proxy.port, [member], "ready"))[0] as RawAgent));
  if (control) proxy.set({ hold: ["down"] });
  const latency = createLatency();
  const removedAtMs: number[] = [];
  await inLanes(members, 4, async (member, index) => {
    removedAtMs[index] = await remove(client, rig, member);
  });
  await until(time, () => agents.every(({ closedAtMs }) => closedAtMs !== null), { everyMs: 20, withinMs: withinMs + SLACK_MS });
  const tookMs = agents.map(({ closedAtMs }, index) => (closedAtMs === null ? Number.POSITIVE_INFINITY : closedAtMs - (removedAtMs[index] ?? 0)));
  // The close may overtake the answer to the removal.
  for (const ms of tookMs) if (Number.isFinite(ms)) latency.add(Math.max(0, ms));
  let cameBack = 0;
  await inLanes(members, 4, async (member) => {
    if (await comesBack(rig, member)) cameBack += 1;
  });
  for (const agent of agents) agent.destroy();
  proxy.calm();
  return { latency, notCut: tookMs.filter((ms) => ms > withinMs + SLACK_MS).length, cameBack };
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 2, seed, redis: true }, (rig) =>
    withClients(rig.nodes, async ([client]) => {
      const half = scale.agents > 50 ? 100 : 10;
      const members = await rig.provision(2 * half);
      const proxy = await rig.openProxy({ targets: () => rig.nodes.slice(1).map(({ port }) => port) });
      const base = { rig, client: client as Http, proxy, control };
      const up = await revokeAll({ ...base, members: members.slice(0, half), withinMs: WITHIN_MS.up });
      await rig.redis?.kill();
      await pause(time, 500);
      const down = await revokeAll({ ...base, members: members.slice(half), withinMs: control ? WITHIN_MS.up : WITHIN_MS.down });
      const { p50, p99 } = down.latency.percentiles();
      return {
        n: 2 * half,
        faults: 1,
        violations: { "not-cut": up.notCut, "not-cut-without-redis": down.notCut, "came-back": up.cameBack + down.cameBack },
        latencyMs: up.latency.percentiles(),
        notes: [
          `n counts devices that were removed on one node while their agents were connected to another, half of them without Redis; ms are from the answer to the close, with Redis`,
          `without Redis p50 ${p50} ms, p99 ${p99} ms; the bounds are ${WITHIN_MS.up / 1_000} s with it and ${WITHIN_MS.down / 1_000} s without`,
        ],
      };
    }),
  );

export const revocationScenarios: readonly Scenario[] = [
  {
    name: "revocation",
    promise: "S14",
    claim: `a removed device's socket on another node closes within ${WITHIN_MS.up / 1_000} s, or ${WITHIN_MS.down / 1_000} s while Redis is down, and its agent stays out`,
    needsRedis: true,
    control: { how: "a proxy holds back everything that the gateway sends to the agents, including the close", red: "not-cut" },
    run,
  },
];
