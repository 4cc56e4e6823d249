// The node that holds the sockets dies while two others run: a device that is gone is announced once, one that returns in time never.

import { pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import type { Percentiles } from "../../../agent-sim/fleet/latency.ts";
import { createRig, type Rig } from "../rig/rig.ts";
import { OFFLINE_IS_FORGOTTEN } from "../rig/sabotage.ts";
import { ask } from "../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";
import type { TrialStage } from "../trial.ts";
import { throughProxy } from "./agents.ts";
import { OFFLINE_WITHIN_MS, PRESENCE_ENV } from "./presence.ts";

const NODES = 3;
/** Time for the events of devices that come back. */
const BACK_MS = 8_000;

interface Told {
  readonly device_id: string;
  readonly type: string;
  readonly count: string;
}
/** How often each device was announced offline or online since then. */
const toldSince = (rig: Rig, position: string): Promise<readonly Told[]> =>
  ask<Told>(
    rig.postgres,
    "select subject_id as device_id, type, count(*) as count from outbox_events where type in ('device.offline', 'device.online') and position > $1 group by 1, 2",
    [position],
  );

const judgeTold = (told: readonly Told[], gone: ReadonlySet<string>, all: readonly string[]): Readonly<Record<string, number>> => {
  const times = (type: string, deviceId: string): number => Number(told.find((each) => each.type === type && each.device_id === deviceId)?.count ?? 0);
  const violations = { "offline-untold": 0, "offline-repeated": 0, "false-offline": 0, "online-miscounted": 0 };
  for (const deviceId of all) {
    const [offline, online] = [times("device.offline", deviceId), times("device.online", deviceId)];
    if (gone.has(deviceId) && offline === 0) violations["offline-untold"] += 1;
    if (offline > 1) violations["offline-repeated"] += 1;
    if (!gone.has(deviceId) && offline > 0) violations["false-offline"] += 1;
    if (online !== offline) violations["online-miscounted"] += 1;
  }
  return violations;
};

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  const rig = await createRig({ nodes: NODES, seed, redis: true, env: PRESENCE_ENV, sabotage: control ? OFFLINE_IS_FORGOTTEN : undefined });
  const unused: Percentiles = { p50: null, p99: null };
  try {
    const proxy = await rig.openProxy();
    const members = await rig.provision(scale.agents);
    const isShutOut = (index: number): boolean => index % 2 === 0;
    const state = { position: "0", gone: new Set<string>() };
    const trouble = async ({ fault, wait }: TrialStage): Promise<void> => {
      await wait(1_500);
      const [newest] = await ask<{ position: string }>(rig.postgres, "select coalesce(max(position), 0) as position from outbox_events");
      state.position = newest?.position ?? "0";
      const [owner] = rig.nodes;
      const held = await ask<{ device_id: string }>(rig.postgres, "select device_id from device_presence where node_id = $1 and session_id is not null", [
        owner?.name,
      ]);
      const here = new Set(held.map(({ device_id }) => device_id));
      state.gone = new Set(members.filter(({ deviceId }, index) => isShutOut(index) && here.has(deviceId)).map(({ deviceId }) => deviceId));
      fault(`kill -9 ${owner?.name ?? ""}, which holds ${here.size} agents; ${state.gone.size} of them cannot return`);
      proxy.set({ newcomers: "refuse" });
      await owner?.kill();
      await pause(time, OFFLINE_WITHIN_MS);
      proxy.calm();
      await owner?.start();
      await pause(time, BACK_MS);
    };
    const hurried = { ...scale, haste: 4, seconds: Math.max(scale.seconds, 5) };
    const trial = await throughProxy(rig, proxy, { seed, scale: hurried, members, impatient: control, uses: isShutOut, trouble });
    const told = await toldSince(rig, state.position);
    const violations = judgeTold(
      told,
      state.gone,
      members.map(({ deviceId }) => deviceId),
    );
    return {
      ...trial,
      n: members.length,
      violations: { ...trial.violations, ...violations, "nobody-gone": state.gone.size === 0 ? 1 : 0 },
      latencyMs: unused,
      notes: [...trial.notes, `${state.gone.size} devices were gone, the other ${members.length - state.gone.size} stayed or returned in time`],
    };
  } finally {
    await rig.close();
  }
};

export const ownerScenarios: readonly Scenario[] = [
  {
    name: "owner-kill",
    promise: "C4",
    claim:
      "after kill -9 of the node that holds the sockets, the other two emit device.offline once for each device that is gone and never for one that returns",
    needsRedis: true,
    control: { how: "the database does not store that a device is offline, so every sweep of each node finds it again", red: "offline-repeated" },
    run,
  },
];
