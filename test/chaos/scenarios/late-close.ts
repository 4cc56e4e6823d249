// The close of an old connection arrives seconds late: the agent is already back on another node and stays online.

import { createRandom, type PairedDevice, pause, type Random, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency } from "../../../agent-sim/fleet/latency.ts";
import { connectAll, heartbeatOf } from "../rig/raw.ts";
import { type Rig, withRig } from "../rig/rig.ts";
import { meddle, type SqlConnection, withSql } from "../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const HEARTBEAT_SECONDS = 2;
const LATE_MS = { least: 500, most: 3_000 };
/** Two rounds of the presence flush and of the offline sweep. */
const WATCH_MS = 9_000;

/** An event in the same transaction announces each change to offline, so this finds even changes between two reads. */
const offlineEvents = async (sql: SqlConnection, deviceIds: readonly string[]): Promise<number> => {
  const rows = await sql.query<{ said: number }>("select count(*)::int as said from outbox_events where type = 'device.offline' and subject_id = any($1)", [
    deviceIds,
  ]);
  return rows[0]?.said ?? 0;
};

interface Round {
  readonly rig: Rig;
  readonly sql: SqlConnection;
  readonly members: readonly PairedDevice[];
  readonly from: number;
  readonly to: number;
  readonly random: Random;
  readonly onLate: (ms: number) => void;
}
/** Returns how often a device was announced offline. */
const runRound = async ({ rig, sql, members, from, to, random, onLate }: Round): Promise<number> => {
  const proxy = await rig.openProxy({ targets: () => [from] });
  const old = await connectAll(proxy.port, members, "ready");
  proxy.set({ hold: ["up", "down"] });
  const back = await connectAll(to, members, "ready");
  const backAtMs = time.elapsedMs();
  let beats = 0;
  const beating = setInterval(() => {
    beats += 1;
    for (const agent of back) agent.write(heartbeatOf(beats));
  }, HEARTBEAT_SECONDS * 500);
  try {
    await pause(time, LATE_MS.least + random() * (LATE_MS.most - LATE_MS.least));
    onLate(time.elapsedMs() - backAtMs);
    proxy.reset();
    await pause(time, WATCH_MS);
    return await offlineEvents(
      sql,
      members.map(({ deviceId }) => deviceId),
    );
  } finally {
    clearInterval(beating);
    for (const agent of [...old, ...back]) agent.destroy();
    await proxy.close();
  }
};

// Without Redis nobody tells the old node of the new session, so it learns only of the close.
const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: 2, seed, env: { HEARTBEAT_SECONDS: String(HEARTBEAT_SECONDS), CLOSE_GRACE_SECONDS: "0" } }, (rig) =>
    withSql(rig.postgres, async (sql) => {
      if (control) await meddle(sql, "device_presence", "update", "new.epoch := least(new.epoch, 1);");
      const [rounds, size] = scale.agents > 50 ? [10, 100] : [1, 20];
      const latency = createLatency();
      const random = createRandom(seed);
      let offline = 0;
      for (let round = 0; round < rounds; round += 1) {
        const members = await rig.provision(size);
        const [from = 0, to = 0] = rig.nodes.map(({ port }) => port).map((_, index, ports) => ports[(index + round) % ports.length] ?? 0);
        offline += await runRound({ rig, sql, members, from, to, random, onLate: latency.add });
      }
      return {
        n: rounds * size,
        faults: rounds * size,
        violations: { "false-offline": offline },
        latencyMs: latency.percentiles(),
        notes: [
          "n counts late closes; ms are their delay from the new session to the close of the old one",
          "broken sockets get no grace: CLOSE_GRACE_SECONDS is 0",
        ],
      };
    }),
  );

export const lateCloseScenarios: readonly Scenario[] = [
  {
    name: "late-close",
    promise: "C2",
    claim: "the late close of an old connection never turns a device offline if its agent is back on another node",
    control: { how: "a database trigger gives every session the same epoch", red: "false-offline" },
    run,
  },
];
