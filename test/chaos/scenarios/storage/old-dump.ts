// An older dump takes the database's place under a living fleet: what was queued since is gone, and every device works again.
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRandom, type PairedDevice, pairDevice, pause, systemTime as time, until } from "../../../../agent-sim/agent/index.ts";
import { createAgentGroup } from "../../../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../../../agent-sim/fleet/command-tracker.ts";
import { createPortal } from "../../../../agent-sim/fleet/portal.ts";
import { folderPrefix } from "../../../kit/setup/run-mark.ts";
import { inLanes, patience } from "../../rig/calls.ts";
import { createPostgres, type Postgres } from "../../rig/postgres.ts";
import { type Rig, urlOf, withRig } from "../../rig/rig.ts";
import { rotateSecret, statusWith } from "../../rig/secrets.ts";
import { type Context, hurried, type Scenario, type ScenarioOutcome } from "../../scenario.ts";
import { runTrial } from "../../trial.ts";

const NODES = 2;
/** Devices whose agents know no secret but their newest. */
const FORGETFUL = 10;
const WITHIN_MS = 60_000;
const KNOWN_WITHIN_MS = 8_000;

/** Another server with what the first one has now. */
const dumpOf = async (postgres: Postgres, folder: string): Promise<Postgres> => {
  await mkdir(folder, { mode: 0o755 });
  await postgres.stop();
  const dump = await createPostgres({ folder, from: postgres });
  await postgres.start();
  return dump;
};

const isKnown = async ({ http }: Rig, member: PairedDevice): Promise<boolean> => (await statusWith(http, member)) === 200;

/** Without Redis a node may know the former secret for five seconds more. */
const isSoonKnown = async (rig: Rig, member: PairedDevice): Promise<boolean> => {
  for (const untilMs = time.elapsedMs() + KNOWN_WITHIN_MS; time.elapsedMs() < untilMs; await pause(time, 250)) if (await isKnown(rig, member)) return true;
  return false;
};

const restore = async ({ nodes, postgres, databaseProxy, failOver, cli }: Rig, dump: Postgres, opensRepairs: boolean): Promise<void> => {
  for (const node of nodes) await node.stop();
  await postgres.kill();
  await dump.start();
  failOver(dump);
  databaseProxy.reset();
  await Promise.all(nodes.map((node) => node.start()));
  await cli("after-restore", ...(opensRepairs ? ["--repair"] : []));
};

const run = ({ seed, scale, control }: Context): Promise<ScenarioOutcome> =>
  withRig({ nodes: NODES, seed }, async (rig) => {
    const folder = await mkdtemp(join(tmpdir(), folderPrefix("old-dump")));
    const tenant = await rig.tenant();
    const fingerprints = Array.from({ length: FORGETFUL }, () => `forgetful-${randomUUID()}`);
    const forgetful = await createPortal(rig.http, tenant).provision(fingerprints, randomUUID(), patience(WITHIN_MS));
    const members = await rig.provision(scale.agents);
    const [tracker, random] = [createCommandTracker(time.elapsedMs), createRandom(seed)];
    const fleet = { heartbeatSec: null, pollOnlyPct: 0, rampPerSecond: 200, onAlarm: () => undefined };
    const group = createAgentGroup({ url: urlOf(rig.agentProxy), members, tracker, time: hurried(scale.haste), random, seed, ...fleet });
    const dump = await dumpOf(rig.postgres, join(folder, "dump"));
    let lockedOut = 0;
    let doubled = 0;
    try {
      group.start();
      const rotated: PairedDevice[] = [];
      await inLanes(forgetful, 2, async (member) =>
        rotated.push({ ...member, secret: await rotateSecret(rig.http, tenant, member, join(folder, member.deviceId)) }),
      );
      if (!(await until(time, () => group.connected === group.size, { everyMs: 50, withinMs: WITHIN_MS }))) throw new Error("the fleet did not connect");

      await restore(rig, dump, !control);
      const startMs = time.elapsedMs();
      for (const member of rotated) {
        if (await isKnown(rig, member)) throw new Error("the dump knows a secret that is newer");
        const { deviceId, fingerprint } = member;
        const again = await pairDevice({ url: urlOf(rig.apiProxy), enrollmentToken: tenant.enrollmentToken, fingerprint, withinMs: WITHIN_MS }).catch(
          () => null,
        );
        if (again === null || !(await isSoonKnown(rig, again))) lockedOut += 1;
        else if (again.deviceId !== deviceId) doubled += 1;
      }
      await until(time, () => group.connected === group.size, { everyMs: 50, withinMs: WITHIN_MS });
      const backMs = Math.round(time.elapsedMs() - startMs);
      const away = group.size - group.connected;
      await group.stop();
      const trial = await runTrial({ rig, seed, scale, members, impatient: control });
      return {
        ...trial,
        faults: 1,
        violations: { ...trial.violations, "locked-out": lockedOut, "another-device": doubled, "left-offline": away },
        notes: [...trial.notes, `${FORGETFUL} agents knew only a secret that is newer than the dump; all agents were back ${backMs} ms after the restore`],
      };
    } finally {
      await group.stop();
      await dump.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });

export const oldDumpScenarios: readonly Scenario[] = [
  {
    name: "old-dump",
    promise: "R4",
    claim:
      "after the restore of an older dump under a living fleet every agent is back, one whose secret is newer than the dump by its repair window, and nothing queued since is lost",
    control: { how: "no repair windows are opened", red: "locked-out" },
    run,
  },
];
