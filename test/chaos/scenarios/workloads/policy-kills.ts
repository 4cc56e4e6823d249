// Runs of backup policies over many simulated devices while nodes and PostgreSQL are killed and connections are cut: each run and each backup ends, what is
// called complete is in the device's repository, and retention deletes what no rule keeps and never the last good one. A scenario has ten minutes, which is enough for some hundred devices.
import { createRandom, pause, type Random, systemTime as time } from "../../../../agent-sim/agent/index.ts";
import { deployAll, ordersFor } from "../../../../agent-sim/fleet/deployments.ts";
import type { BackupMemory } from "../../../../agent-sim/host/backups/simulated-engine.ts";
import { inLanes, patience, send } from "../../rig/calls.ts";
import { type DeployFleet, withDeployFleet } from "../../rig/deploy-fleet.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import { ask } from "../../rig/sql.ts";
import { provisionWithBackups } from "../../rig/stored-backups.ts";
import { killNode, killPostgres } from "../../rig/troubles.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";

const NODES = 2;
/** So that a third of them is never none. */
const CONTROL_DEVICES = 48;
/** As many apps as a policy may have. */
const APPS_PER_POLICY = 1_000;
const ROUNDS_UNDER_FIRE = 2;
/** Between two troubles; more agents take longer to come to themselves. */
const LEAST_MS = 500;
const MORE_MS = 4_000;
const AGENTS_OF_A_KILL = 120;
const TIMEOUT_SECONDS = 600;
const CALLS_MS = 180_000;
const LANES = 16;
const LOOK_MS = 300;
/** Beside the time for each device: what a killed node held is taken up within two minutes. */
const REST_MS = 240_000;
const REST_PER_DEVICE_MS = 150;

interface Stage {
  readonly rig: Rig;
  readonly fleet: DeployFleet;
  readonly random: Random;
  readonly restMs: number;
}

/** One app on each device, and policies for all of them that keep one backup each. Nothing runs by its time. */
const prepare = async ({ rig, fleet, restMs }: Stage): Promise<readonly string[]> => {
  const orders = ordersFor(fleet.members, 1, TIMEOUT_SECONDS);
  for (let from = 0; from < orders.length; from += APPS_PER_POLICY)
    await deployAll(fleet.portal, orders.slice(from, from + APPS_PER_POLICY), patience(CALLS_MS));
  if (!(await fleet.untilSettled(restMs))) throw new Error("the apps could not be deployed");
  const appIds = (await ask<{ app_id: string }>(rig.postgres, "select app_id from apps where status = 'running' order by app_id")).map(({ app_id }) => app_id);
  const schedule = `0 ${(new Date().getUTCHours() + 12) % 24} * * *`;
  const policyIds: string[] = [];
  for (let from = 0; from < appIds.length; from += APPS_PER_POLICY) {
    const target = { appIds: appIds.slice(from, from + APPS_PER_POLICY) };
    const policy = { name: `policy ${from}`, schedule, retention: { keepLast: 1 }, timeoutSeconds: TIMEOUT_SECONDS, target };
    policyIds.push(String((await send(rig, "POST", "/backup-policies", policy, CALLS_MS))["policyId"]));
  }
  return policyIds;
};

const OPEN = `
  select ((select count(*) from backup_runs where ended_at is null or retained_at is null)
    + (select count(*) from backups where status not in ('completed', 'partially_failed', 'failed', 'cancelled', 'deleted')))::int as open`;
/** Null while the database is away. */
const openWork = ({ rig }: Stage): Promise<number | null> =>
  ask<{ open: number }>(rig.postgres, OPEN).then(
    ([row]) => row?.open ?? 0,
    () => null,
  );

type Trouble = (stage: Stage, turn: number) => Promise<void>;
const TROUBLES: readonly Trouble[] = [
  ({ rig }, turn) => killNode(rig, turn),
  ({ rig }) => killPostgres(rig),
  async ({ rig }) => void rig.agentProxy.reset(0.3),
];

/** Runs each policy once, in trouble until nothing is open or the time is over. Returns the number of faults. */
const runAll = async (stage: Stage, policyIds: readonly string[], troubles: readonly Trouble[]): Promise<number> => {
  const { rig, fleet, random, restMs } = stage;
  const state = { over: false, faults: 0 };
  const make = async (): Promise<void> => {
    for (; !state.over && troubles.length > 0; state.faults += 1) {
      await pause(time, (LEAST_MS + random() * MORE_MS) * Math.max(1, fleet.members.length / AGENTS_OF_A_KILL));
      if (!state.over) await troubles[state.faults % troubles.length]?.(stage, state.faults);
    }
  };
  const trouble = make();
  try {
    await inLanes(policyIds, LANES, (policyId) => send(rig, "POST", `/backup-policies/${policyId}/run`, {}, CALLS_MS));
    for (const endMs = time.elapsedMs() + restMs; time.elapsedMs() < endMs && (await openWork(stage)) !== 0; ) await pause(time, LOOK_MS);
  } finally {
    state.over = true;
    await trouble;
  }
  return state.faults;
};

const BACKUPS = "select backup_id, device_id, app_id, status, checksum from backups where policy_id is not null";
interface BackupFact {
  readonly [column: string]: unknown;
  readonly backup_id: string;
  readonly device_id: string;
  readonly app_id: string;
  readonly status: string;
  readonly checksum: string | null;
}
const countBy = (rows: readonly BackupFact[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const { app_id } of rows) counts.set(app_id, (counts.get(app_id) ?? 0) + 1);
  return counts;
};

const judge = async ({ rig, fleet }: Stage, memories: ReadonlyMap<string, BackupMemory>) => {
  const rows = await ask<BackupFact>(rig.postgres, BACKUPS);
  const ofStatus = (...all: readonly string[]): readonly BackupFact[] => rows.filter(({ status }) => all.includes(status));
  const isStored = ({ device_id, backup_id, checksum }: BackupFact): boolean => {
    const found = memories.get(device_id)?.get().snapshots[(checksum ?? "").replace(/^sha256:/, "")];
    return found !== undefined && !found.deleted && found.backupId === backup_id;
  };
  const good = ofStatus("completed");
  const perApp = countBy(good);
  const apps = [...fleet.onDevices().values()];
  return {
    violations: {
      hanging: (await ask<{ open: number }>(rig.postgres, OPEN))[0]?.open ?? 0,
      unbacked: good.filter((row) => !isStored(row)).length,
      undeleted: [...perApp.values()].filter((count) => count > 1).length + ofStatus("deleted").filter(isStored).length,
      "last-good-deleted": [...countBy(ofStatus("completed", "deleted")).keys()].filter((appId) => !perApp.has(appId)).length,
      down: apps.filter(({ state }) => state !== "running").length,
      "executed-twice": fleet.tracker.counts.executedTwice,
    },
    notes: [
      `${rows.length} backups, of which ${good.length} are kept and ${ofStatus("deleted").length} deleted by retention; ${ofStatus("failed").length} failed`,
    ],
  };
};

/** Loses a third of what is written into it. */
const losing = (memory: BackupMemory): BackupMemory => ({
  get: memory.get,
  put: (next) =>
    memory.put({ ...next, snapshots: Object.fromEntries(Object.entries(next.snapshots).filter(([id]) => Number.parseInt(id.slice(0, 6), 16) % 3 > 0)) }),
});

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: NODES, seed, redis: true }, async (rig) => {
    const { members, clock, memories, memoryAt } = await provisionWithBackups(rig, { ...scale, agents: control ? CONTROL_DEVICES : scale.agents });
    const backupsOf = (index: number) => {
      const memory = memoryAt(index);
      return control ? { memory: losing(memory), tuneBackups: { without: "read back" as const } } : { memory };
    };
    return withDeployFleet(rig, { members, seed, clock, backupsOf }, async (fleet) => {
      const stage: Stage = { rig, fleet, random: createRandom(seed), restMs: REST_MS + members.length * REST_PER_DEVICE_MS };
      const policyIds = await prepare(stage);
      const startMs = time.elapsedMs();
      let faults = 0;
      for (let round = 0; round < (control ? 0 : ROUNDS_UNDER_FIRE); round += 1) faults += await runAll(stage, policyIds, TROUBLES);
      // What failed under fire is made up for when it is quiet.
      await runAll(stage, policyIds, []);
      const { violations, notes } = await judge(stage, memories);
      return {
        n: members.length * (control ? 1 : ROUNDS_UNDER_FIRE + 1),
        faults: control ? 1 : faults,
        violations,
        latencyMs: { p50: null, p99: null },
        notes: [
          `n counts the backups that ${policyIds.length} policies ordered of ${members.length} devices, in ${Math.round((time.elapsedMs() - startMs) / 1_000)} s`,
          ...notes,
        ],
      };
    });
  });

export const policyKillScenarios: readonly Scenario[] = [
  {
    name: "policy-kills",
    promise: "D4",
    claim:
      "across kill -9 of nodes and PostgreSQL and cut connections in runs of backup policies each run and backup ends, what is complete is stored, and retention leaves one good backup of each app",
    needsRedis: true,
    control: { how: "agents that read nothing back from repositories that lose a third of what is written", red: "unbacked" },
    run,
  },
];
