// Agents, restic, the gateway and PostgreSQL that are killed in the middle of backups, restores and deletions: each record ends, no app stays down, and what
// is called complete can be restored byte for byte by plain restic.
import { readFileSync } from "node:fs";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { createRandom, pause, type Random, systemTime as time, until } from "../../../../agent-sim/agent/index.ts";
import { freePort } from "../../../kit/net/free-port.ts";
import { makeFolder } from "../../../kit/setup/workspace.ts";
import { type BackedApp, installApp, openPlainRestic, sheetOf } from "../../rig/backed-app.ts";
import { type Calls, createCalls } from "../../rig/calls.ts";
import { type ProcessAgent, withProcessAgents } from "../../rig/process-agents.ts";
import { type Rig, withRig } from "../../rig/rig.ts";
import type { Context, Scenario, ScenarioOutcome } from "../../scenario.ts";

const REST_MS = 180_000;
const AGENTS_PER_REAL_ONE = 30;
const AGENTS_PER_ROUND = 12;
/** Somewhere in the middle of a backup. */
const SOON_MS = 1_500;
const RESTIC_MS = 2_000;
const ENDED = ["completed", "partially_failed", "failed", "cancelled"];
const TRIES = 3;
/** So that each of them was killed once, however few rounds there are. */
const MIN_TURNS = 5;
const MAX_ROUNDS = 60;
const ANSWERS_MS = 60_000;

type Plain = ReturnType<typeof openPlainRestic>;
const VICTIMS = ["restic", "agent", "gateway", "database"] as const;
type Victim = (typeof VICTIMS)[number];
interface Stage {
  readonly rig: Rig;
  readonly calls: Calls;
  readonly random: Random;
  readonly rounds: number;
  readonly restMs: number;
  readonly victims: readonly Victim[];
}
interface Made {
  readonly backupId: string;
  readonly hash: string;
}
interface Counts {
  backups: number;
  complete: number;
  restores: number;
  deletions: number;
  hanging: number;
  torn: number;
  undeleted: number;
  down: number;
  unrestorable: number;
  damaged: number;
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
};
const killRestic = async (agent: ProcessAgent, random: Random): Promise<number> => {
  const found = (): readonly number[] => agent.processes().filter((pid) => commandOf(pid) === "restic");
  await until(time, () => found().length > 0, { everyMs: 20, withinMs: RESTIC_MS });
  await pause(time, random() * 200);
  let killed = 0;
  for (const pid of found())
    try {
      process.kill(pid, "SIGKILL");
      killed += 1;
    } catch {
      // It has ended by itself.
    }
  return killed;
};

/** Kills one of them after the other, each at a random moment, until the work is done. */
const killing = async ({ rig, random, victims }: Stage, agents: readonly ProcessAgent[], begin: (wasEnough: () => boolean) => Promise<unknown>) => {
  const state = { over: false, turns: 0 };
  const deaths = { agent: 0, restic: 0, gateway: 0, database: 0 };
  const done = begin(() => state.turns >= MIN_TURNS).finally(() => {
    state.over = true;
  });
  const [node] = rig.nodes;
  const trouble = async (): Promise<void> => {
    for (; !state.over; state.turns += 1) {
      const untilMs = time.elapsedMs() + random() * SOON_MS;
      await until(time, () => state.over || time.elapsedMs() > untilMs, { everyMs: 20, withinMs: SOON_MS * 2 });
      const agent = agents[Math.floor(random() * agents.length)];
      if (state.over || agent === undefined || node === undefined) return;
      const victim = victims[state.turns % victims.length];
      if (victim === "restic") deaths.restic += await killRestic(agent, random);
      else if (victim === "agent") {
        deaths.agent += 1;
        await agent.kill();
      } else if (victim === "gateway") {
        deaths.gateway += 1;
        await node.kill();
        await node.start();
      } else {
        deaths.database += 1;
        await rig.postgres.kill();
        await rig.postgres.start();
      }
      // They come to themselves, so that not everything fails.
      const restMs = time.elapsedMs() + SOON_MS * (1 + 2 * random());
      await until(time, () => state.over || time.elapsedMs() > restMs, { everyMs: 50, withinMs: SOON_MS * 5 });
    }
  };
  await Promise.all([done, trouble()]);
  return deaths;
};

const Backup = z.object({ backupId: z.string() });
const Restore = z.object({ restoreId: z.string() });
const backUp = async ({ calls, restMs }: Stage, { agent, appId }: BackedApp): Promise<{ readonly backupId: string; readonly status: string }> => {
  const { backupId } = await calls.data(Backup, "POST", `/devices/${agent.deviceId}/backups`, { appId });
  return { backupId, status: await calls.settled(`/backups/${backupId}`, ENDED, restMs) };
};
/** Whether it is gone. A deletion that fails leaves the backup as it was. */
const remove = async ({ calls, restMs }: Stage, backupId: string): Promise<boolean> => {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { status } = await calls.ask("DELETE", `/backups/${backupId}`);
    if (status !== 204 && status !== 409) return false;
    if ((await calls.settled(`/backups/${backupId}`, ["deleted", ...ENDED], restMs)) === "deleted") return true;
  }
  return false;
};

/** Backs up, restores and deletes in turn, whatever happens meanwhile. Returns what is there at the end. */
const work = async (stage: Stage, app: BackedApp, counts: Counts, wasEnough: () => boolean): Promise<readonly Made[]> => {
  const kept: Made[] = [];
  for (let round = 0; round < stage.rounds || (!wasEnough() && round < MAX_ROUNDS); round += 1) {
    const hash = app.write();
    const { backupId, status } = await backUp(stage, app);
    counts.backups += 1;
    if (!ENDED.includes(status)) counts.hanging += 1;
    if (status !== "completed") continue;
    counts.complete += 1;
    kept.push({ backupId, hash });
    if (round % 2 === 1) {
      const before = app.write();
      const order = { overwriteExisting: true, skipSafetyBackup: true };
      const { restoreId } = await stage.calls.data(Restore, "POST", `/backups/${backupId}/restore`, order);
      const end = await stage.calls.settled(`/restores/${restoreId}`, ENDED, stage.restMs);
      counts.restores += 1;
      if (!ENDED.includes(end)) counts.hanging += 1;
      else if (app.hash() !== (end === "completed" ? hash : before)) counts.torn += 1;
    }
    if (kept.length > 1) {
      const [oldest] = kept;
      counts.deletions += 1;
      // What fails in the middle of it all is tried again when it is quiet.
      if (oldest !== undefined && (await remove(stage, oldest.backupId))) kept.shift();
    }
  }
  return kept;
};

const Shown = z.object({ checksum: z.string().nullable() });
/** When it is quiet: the app answers, the oldest backup can be deleted, and restic restores each of the others. */
const judge = async (
  stage: Stage,
  { app, kept, plain }: { readonly app: BackedApp; readonly kept: readonly Made[]; readonly plain: Plain },
  counts: Counts,
) => {
  const answersMs = time.elapsedMs() + ANSWERS_MS;
  let isUp = await app.answers();
  while (!isUp && time.elapsedMs() < answersMs) {
    await pause(time, 300);
    isUp = await app.answers();
  }
  if (!isUp) counts.down += 1;
  const { backupId, status } = await backUp(stage, app);
  counts.backups += 1;
  if (status !== "completed") counts.hanging += 1;
  else if (!(await remove(stage, backupId))) counts.undeleted += 1;
  await plain.unlock();
  for (const made of kept) {
    const { checksum } = await stage.calls.data(Shown, "GET", `/backups/${made.backupId}`);
    if ((await plain.restoredHash((checksum ?? "").replace(/^sha256:/, ""))) !== made.hash) counts.unrestorable += 1;
  }
  if (!(await plain.isSound())) counts.damaged += 1;
};

const Destinations = z.array(z.object({ destinationId: z.string(), isDefault: z.boolean() }));

const drill = async (stage: Stage, agents: readonly ProcessAgent[], folder: string): Promise<ScenarioOutcome> => {
  const counts: Counts = { backups: 0, complete: 0, restores: 0, deletions: 0, hanging: 0, torn: 0, undeleted: 0, down: 0, unrestorable: 0, damaged: 0 };
  const { calls } = stage;
  const apps: BackedApp[] = [];
  for (const agent of agents) apps.push(await installApp(calls, agent, await freePort()));
  for (const app of apps) {
    app.write();
    const first = await backUp(stage, app);
    if (first.status !== "completed") throw new Error(`the first backup is ${first.status}`);
  }
  const place = (await calls.data(Destinations, "GET", "/backup-destinations")).find(({ isDefault }) => isDefault);
  const plains = await Promise.all(
    apps.map(async ({ agent }) => {
      const own = join(folder, `plain-${agent.deviceId}`);
      await mkdir(own, { recursive: true });
      return openPlainRestic(await sheetOf(calls, place?.destinationId ?? "", agent.deviceId), own);
    }),
  );
  const kept = new Map<BackedApp, readonly Made[]>();
  const deaths = await killing(stage, agents, (wasEnough) => Promise.all(apps.map(async (app) => kept.set(app, await work(stage, app, counts, wasEnough)))));
  for (const [at, app] of apps.entries()) {
    const plain = plains[at];
    if (plain !== undefined) await judge(stage, { app, kept: kept.get(app) ?? [], plain }, counts);
  }
  const { backups, complete, restores, deletions, ...violations } = counts;
  return {
    n: backups + restores + deletions,
    faults: deaths.agent + deaths.restic + deaths.gateway + deaths.database,
    violations,
    latencyMs: { p50: null, p99: null },
    notes: [
      `${backups} backups of 12 MB by ${agents.length} real agents to the gateway's repository, of which ${complete} completed under fire; ${restores} restores, ${deletions} deletions`,
      `kill -9: ${deaths.agent} of an agent, ${deaths.restic} of restic, ${deaths.gateway} of the gateway, ${deaths.database} of PostgreSQL`,
      "each backup that was kept was restored by plain restic with the recovery sheet and compared, and each repository passed restic check --read-data",
    ],
  };
};

/** A restic that never removes a lock. */
const spoiltRestic = async (folder: string): Promise<string> => {
  const programs = join(folder, "programs");
  await mkdir(programs, { recursive: true });
  const own = join(programs, "restic");
  const real = (process.env["PATH"] ?? "").split(":").map((each) => `[ -x ${each}/restic ] && exec ${each}/restic "$@"`);
  await writeFile(own, `#!/bin/sh\n[ "$1" = unlock ] && exit 0\n${real.join("\n")}\n`);
  await chmod(own, 0o755);
  return programs;
};

const run = async ({ seed, scale, control }: Context): Promise<ScenarioOutcome> => {
  // Real agents, and restic, take more of a machine than simulated ones.
  const agents = control ? 1 : Math.ceil(scale.agents / AGENTS_PER_REAL_ONE);
  const rounds = control ? 2 : Math.ceil(scale.agents / AGENTS_PER_ROUND);
  const edgePort = String(await freePort());
  return withRig({ nodes: 1, seed, env: { EDGE_PORT: edgePort } }, async (rig) => {
    const folder = makeFolder("backup-agents");
    try {
      const owner = await rig.tenant();
      const programs = control ? { programs: await spoiltRestic(folder) } : {};
      const stage: Stage = {
        rig,
        calls: createCalls(rig.http, { authorization: `Bearer ${owner.token}` }),
        random: createRandom(seed),
        rounds,
        restMs: REST_MS,
        victims: control ? ["restic"] : VICTIMS,
      };
      const use = (started: readonly ProcessAgent[]) => drill(stage, started, folder);
      return await withProcessAgents({ ...rig, credentials: owner }, agents, { folder, leavesStrays: false, ...programs, use });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
};

export const backupKillScenarios: readonly Scenario[] = [
  {
    name: "backup-kills",
    promise: "D4",
    claim:
      "across kill -9 of agents, restic, the gateway and PostgreSQL in backups, restores and deletions each record ends, no app stays down, and plain restic restores each complete backup byte for byte",
    control: { how: "a restic that never removes the lock which a killed one left", red: "undeleted" },
    run,
  },
];
