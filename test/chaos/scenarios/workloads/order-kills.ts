// Backups, restores, verifications, deletions and prunes of many simulated devices while their agents, the nodes and PostgreSQL are killed: each order ends, and
// what the gateway says of it is true of the device. What an agent had stored before it was killed is there afterwards, and nothing else.

import { z } from "zod";
import { createRandom, pause, type Random, systemTime as time, until } from "../../../../agent-sim/agent/index.ts";
import { deployAll, ordersFor } from "../../../../agent-sim/fleet/deployments.ts";
import type { BackupMemory } from "../../../../agent-sim/host/backups/simulated-engine.ts";
import { type Calls, createCalls, headersOf, isSuccess, patience } from "../../rig/calls.ts";
import { type DeployFleet, withDeployFleet } from "../../rig/deploy-fleet.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import { ask } from "../../rig/sql.ts";
import { provisionWithBackups } from "../../rig/stored-backups.ts";
import { killNode, killPostgres } from "../../rig/troubles.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";

const NODES = 2;
const ROUNDS = 8;
const CONTROL_DEVICES = 24;
const CONTROL_ROUNDS = 4;
const TIMEOUT_SECONDS = 600;
const DEPLOY_MS = 240_000;
/** What a killed node held is taken up within two minutes, and an order waits for what came before it. */
const REST_MS = 240_000;
const LOOK_MS = 1_000;
/** Between two troubles. */
const LEAST_MS = 1_000;
const MORE_MS = 4_000;
/** Of the agents, at once. */
const KILLED_SHARE = 0.3;
const ENDED = ["completed", "partially_failed", "failed", "cancelled"];

interface Counts {
  backups: number;
  complete: number;
  restores: number;
  verifications: number;
  deletions: number;
  refused: number;
}
interface Violations {
  hanging: number;
  unbacked: number;
  unrestored: number;
  undeleted: number;
}
interface Stage {
  readonly rig: Rig;
  readonly fleet: DeployFleet;
  readonly calls: Calls;
  readonly random: Random;
  readonly memories: ReadonlyMap<string, BackupMemory>;
  readonly counts: Counts;
  readonly found: Violations;
  /** What a device had stored when its agent was killed last; a control returns to it. */
  readonly forgetful: Map<string, ReturnType<BackupMemory["get"]>> | null;
}
interface Place {
  readonly appId: string;
  readonly deviceId: string;
}

const Made = z.object({ data: z.object({ backupId: z.string().optional(), restoreId: z.string().optional() }) });
const Backup = z.object({ status: z.string(), checksum: z.string().nullable() });
const snapshotOf = (checksum: string | null): string => (checksum ?? "").replace(/^sha256:/, "");

const killAgents = ({ fleet, random, memories, forgetful }: Stage): number => {
  const victims = fleet.members.filter(() => random() < KILLED_SHARE);
  for (const { deviceId } of victims) {
    const memory = memories.get(deviceId);
    if (forgetful !== null && memory !== undefined) {
      const before = forgetful.get(deviceId);
      if (before !== undefined) memory.put(before);
      forgetful.set(deviceId, memory.get());
    }
    fleet.group.kill(deviceId);
  }
  return victims.length;
};

/** Repositories of which something was deleted are due again, instead of next week. */
const PRUNE_AGAIN = `
  update backup_repositories set prune_started_at = null, last_pruned_at = null
   where repository_id in (select repository_id from backup_repositories for update skip locked)`;

type Trouble = (stage: Stage, turn: number) => Promise<number>;
const TROUBLES: readonly Trouble[] = [
  async (stage) => killAgents(stage),
  async ({ rig }, turn) => {
    await ask(rig.postgres, PRUNE_AGAIN);
    // A node that starts looks for what is due.
    await killNode(rig, turn);
    return 1;
  },
  async (stage) => killAgents(stage),
  async ({ rig }) => {
    await killPostgres(rig);
    return 1;
  },
];

/** The answer to an order; null where the gateway refuses it, such as while another order of the app has not ended. */
const order = async ({ calls, counts }: Stage, method: "POST" | "DELETE", path: string, body?: object): Promise<z.output<typeof Made>["data"] | null> => {
  const answer = await calls.ask(method, path, body);
  if (answer.status === 204) return {};
  if (isSuccess(answer)) return Made.safeParse(answer.body).data?.data ?? {};
  counts.refused += 1;
  return null;
};
const untilEnded = async ({ calls, found }: Stage, path: string, states = ENDED): Promise<string> => {
  const status = await calls.settled(path, states, REST_MS);
  if (!states.includes(status)) found.hanging += 1;
  return status;
};
const isStored = ({ memories }: Stage, { deviceId }: Place, backupId: string, checksum: string | null): boolean => {
  const kept = memories.get(deviceId)?.get().snapshots[snapshotOf(checksum)];
  return kept !== undefined && !kept.deleted && kept.backupId === backupId;
};

const backUp = async (stage: Stage, place: Place): Promise<string | null> => {
  const { calls, counts, found } = stage;
  const made = await order(stage, "POST", `/devices/${place.deviceId}/backups`, { appId: place.appId });
  if (made?.backupId === undefined) return null;
  counts.backups += 1;
  if ((await untilEnded(stage, `/backups/${made.backupId}`)) !== "completed") return null;
  counts.complete += 1;
  const { checksum } = await calls.data(Backup, "GET", `/backups/${made.backupId}`);
  if (!isStored(stage, place, made.backupId, checksum)) found.unbacked += 1;
  return made.backupId;
};
const restore = async (stage: Stage, { appId, deviceId }: Place, backupId: string): Promise<void> => {
  const made = await order(stage, "POST", `/backups/${backupId}/restore`, { overwriteExisting: true, skipSafetyBackup: true });
  if (made?.restoreId === undefined) return;
  stage.counts.restores += 1;
  const status = await untilEnded(stage, `/restores/${made.restoreId}`);
  if (status === "completed" && stage.memories.get(deviceId)?.get().restored[appId] !== made.restoreId) stage.found.unrestored += 1;
};
const verify = async (stage: Stage, backupId: string): Promise<void> => {
  if ((await order(stage, "POST", `/backups/${backupId}/verify`, {})) === null) return;
  stage.counts.verifications += 1;
  await untilEnded(stage, `/backups/${backupId}`);
};
/** A deletion that fails leaves the backup as it was. */
const remove = async (stage: Stage, place: Place, backupId: string): Promise<void> => {
  const { checksum } = await stage.calls.data(Backup, "GET", `/backups/${backupId}`);
  if ((await order(stage, "DELETE", `/backups/${backupId}`)) === null) return;
  stage.counts.deletions += 1;
  const status = await untilEnded(stage, `/backups/${backupId}`, ["deleted", ...ENDED]);
  if (status === "deleted" && isStored(stage, place, backupId, checksum)) stage.found.undeleted += 1;
};

const work = async (stage: Stage, place: Place, rounds: number): Promise<void> => {
  const kept: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const backupId = await backUp(stage, place);
    if (backupId === null) continue;
    kept.push(backupId);
    await restore(stage, place, backupId);
    await verify(stage, backupId);
    const oldest = kept.length > 1 ? kept.shift() : undefined;
    if (oldest !== undefined) await remove(stage, place, oldest);
  }
};

const workInTrouble = async (stage: Stage, places: readonly Place[], rounds: number, troubles: readonly Trouble[]): Promise<number> => {
  const state = { over: false, faults: 0 };
  const make = async (): Promise<void> => {
    for (let turn = 0; !state.over; turn += 1) {
      await pause(time, LEAST_MS + stage.random() * MORE_MS);
      if (!state.over) state.faults += (await troubles[turn % troubles.length]?.(stage, turn)) ?? 0;
    }
  };
  const trouble = make();
  try {
    await Promise.all(places.map((place) => work(stage, place, rounds)));
  } finally {
    state.over = true;
    await trouble;
  }
  return state.faults;
};

const PLACES = "select app_id, device_id from apps where status = 'running' order by app_id";
const KEPT = "select backup_id, device_id, app_id, status, checksum from backups where status in ('completed', 'partially_failed', 'deleted')";
const PRUNES = "select count(*)::int as count from commands where type = 'backup.prune' and status = 'succeeded'";

/** When all is over: each backup that the gateway knows is on its device, no deleted one is, and each app runs. */
const judge = async (stage: Stage) => {
  const { rig, fleet, found, counts } = stage;
  const down = (): number => fleet.members.length - [...fleet.onDevices().values()].filter(({ state }) => state === "running").length;
  await until(time, () => down() === 0, { everyMs: LOOK_MS, withinMs: REST_MS });
  const rows = await ask<{ backup_id: string; device_id: string; app_id: string; status: string; checksum: string | null }>(rig.postgres, KEPT);
  const stored = (row: (typeof rows)[number]): boolean => isStored(stage, { appId: row.app_id, deviceId: row.device_id }, row.backup_id, row.checksum);
  const [{ count: prunes } = { count: 0 }] = await ask<{ count: number }>(rig.postgres, PRUNES);
  return {
    violations: {
      ...found,
      unbacked: Math.max(found.unbacked, rows.filter((row) => row.status === "completed" && !stored(row)).length),
      undeleted: Math.max(found.undeleted, rows.filter((row) => row.status === "deleted" && stored(row)).length),
      down: down(),
      "executed-twice": fleet.tracker.counts.executedTwice,
    },
    n: counts.backups + counts.restores + counts.verifications + counts.deletions + prunes,
    notes: [
      `${counts.backups} backups, of which ${counts.complete} completed, ${counts.restores} restores, ${counts.verifications} verifications, ${counts.deletions} deletions and ${prunes} prunes; ${counts.refused} orders were refused`,
    ],
  };
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: NODES, seed, redis: true }, async (rig) => {
    const { members, clock, memories, memoryAt } = await provisionWithBackups(rig, { ...scale, agents: control ? CONTROL_DEVICES : scale.agents });
    const backupsOf = (index: number) => ({ memory: memoryAt(index) });
    return withDeployFleet(rig, { members, seed, clock, backupsOf }, async (fleet) => {
      await deployAll(fleet.portal, ordersFor(fleet.members, 1, TIMEOUT_SECONDS), patience(DEPLOY_MS));
      if (!(await fleet.untilSettled(DEPLOY_MS))) throw new Error("the apps could not be deployed");
      const places = await ask<{ app_id: string; device_id: string }>(rig.postgres, PLACES);
      const stage: Stage = {
        rig,
        fleet,
        calls: createCalls(rig.http, headersOf(rig.credentials), { lookMs: LOOK_MS }),
        random: createRandom(seed),
        memories,
        counts: { backups: 0, complete: 0, restores: 0, verifications: 0, deletions: 0, refused: 0 },
        found: { hanging: 0, unbacked: 0, unrestored: 0, undeleted: 0 },
        forgetful: control ? new Map() : null,
      };
      const startMs = time.elapsedMs();
      const troubles = control ? TROUBLES.slice(0, 1) : TROUBLES;
      const faults = await workInTrouble(
        stage,
        places.map(({ app_id: appId, device_id: deviceId }) => ({ appId, deviceId })),
        control ? CONTROL_ROUNDS : ROUNDS,
        troubles,
      );
      const seconds = Math.round((time.elapsedMs() - startMs) / 1_000);
      const { violations, n, notes } = await judge(stage);
      return {
        n,
        faults,
        violations,
        latencyMs: { p50: null, p99: null },
        notes: [`n counts the orders to ${places.length} devices, in ${seconds} s; faults counts each killed agent`, ...notes],
      };
    });
  });

export const orderKillScenarios: readonly Scenario[] = [
  {
    name: "order-kills",
    promise: "D4",
    claim:
      "across kill -9 of agents, nodes and PostgreSQL each ordered backup, restore, verification, deletion and prune ends, and what the gateway says of it is true of the device",
    needsRedis: true,
    control: { how: "a killed agent loses what it had stored since its agent was killed before", red: "unbacked" },
    run,
  },
];
