// The engine of an agent with a process host, real restic and a repository in a folder of its own.
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemTime } from "../../../agent-sim/agent/index.ts";
import type { BackupContext, BackupEngine, OrderOf } from "../../../agent-sim/host/backups/engine.ts";
import { createOffers, type Offers } from "../../../agent-sim/host/backups/offers.ts";
import { openRealEngine, openRestic } from "../../../agent-sim/host/backups/real-engine.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { openProcesses, type ProcessHarness } from "../../agent-sim/host/harness.ts";

export interface EngineHarness {
  readonly harness: ProcessHarness;
  readonly repository: string;
  /** The access that the gateway would give. */
  readonly environment: Record<string, string>;
  readonly access: { mayInitialize: boolean };
  readonly engine: BackupEngine;
  readonly offers: Offers;
  /** As a new agent over the same data, after this one has ended. */
  reopen(): Promise<void>;
  context(signal?: AbortSignal): BackupContext;
  create(app: DesiredApp, differences?: Partial<OrderOf<"create">>): ReturnType<BackupEngine["create"]>;
  restore(app: DesiredApp, snapshotId: string, differences?: Partial<OrderOf<"restore">>): ReturnType<BackupEngine["restore"]>;
  pathOf(app: DesiredApp, ...names: string[]): string;
  close(): Promise<void>;
}

let numbered = 0;
export const newId = <P extends string>(prefix: P): `${P}_${string}` => {
  numbered += 1;
  return `${prefix}_${String(numbered).padStart(26, "0")}`;
};

/** `program` instead of the PATH's restic. */
export const openEngine = (program = "restic"): EngineHarness => {
  const harness = openProcesses();
  const repository = join(harness.folder, "repository");
  mkdirSync(repository);
  const environment: Record<string, string> = { RESTIC_REPOSITORY: repository, RESTIC_PASSWORD: "correct horse" };
  const access = { mayInitialize: true };
  const folder = join(harness.folder, "backups");
  const offers = createOffers(systemTime);
  const open = (): BackupEngine => {
    const restic = openRestic({ time: systemTime, folder, program });
    return openRealEngine({
      host: harness.host,
      find: async () => ({ key: "one", isLocal: true, environment, ...access }),
      deviceId: "dev_1",
      folder,
      time: systemTime,
      restic,
      offers,
    });
  };
  let engine = open();
  const context = (signal = new AbortController().signal): BackupContext => ({ commandId: "cmd_1", signal, progress: () => undefined });
  return {
    harness,
    repository,
    environment,
    access,
    offers,
    get engine() {
      return engine;
    },
    reopen: async () => {
      await harness.reopen();
      engine = open();
    },
    context,
    create: (app, differences = {}) => engine.create({ backupId: newId("bak"), app, type: "full", consistency: "template", ...differences }, context()),
    restore: (app, snapshotId, differences = {}) => {
      const order = { restoreId: newId("rst"), backupId: newId("bak"), app, snapshotId, restoreType: "full", paths: [], overwriteExisting: true } as const;
      return engine.restore({ ...order, dryRun: false, safetyBackupId: null, ...differences, paths: [...(differences.paths ?? [])] }, context());
    },
    pathOf: ({ appId }, ...names) => join(harness.folder, "apps", appId, ...names),
    close: () => harness.close(),
  };
};

/** The sha256 of a tree: names, kinds, modes, links and bytes. */
export const treeHash = (root: string): string => {
  const hash = createHash("sha256");
  const walk = (folder: Buffer): void => {
    const names = readdirSync(folder, { encoding: "buffer" }).sort(Buffer.compare);
    for (const name of names) {
      const path = Buffer.concat([folder, Buffer.from("/"), name]);
      const stat = lstatSync(path);
      hash.update(`${name.toString("hex")} ${stat.mode} ${stat.uid} ${stat.gid} ${Math.floor(stat.mtimeMs)} ${stat.isFile() ? stat.size : 0}\n`);
      if (stat.isSymbolicLink()) hash.update(readlinkSync(path, { encoding: "buffer" }));
      else if (stat.isFile()) hash.update(createHash("sha256").update(readFileSync(path)).digest());
      else if (stat.isDirectory()) walk(path);
    }
  };
  walk(Buffer.from(root));
  return hash.digest("hex");
};
export const remove = (path: string): void => rmSync(path, { recursive: true, force: true });
