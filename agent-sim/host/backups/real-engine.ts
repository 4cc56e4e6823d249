// The engine of hosts whose apps have data: restic, one run at a time in a repository.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Time } from "../../agent/index.ts";
import { type DataHost, HostClosed } from "../host.ts";
import { createTurns } from "../turns.ts";
import type { FindRepository } from "./access.ts";
import { createBackup } from "./create.ts";
import { type BackupContext, type BackupEngine, notOffered, paced } from "./engine.ts";
import type { Offers, SendArchive } from "./offers.ts";
import { BackupProblem } from "./problem.ts";
import { createRestic, INSTALL_LINE, type Restic, type ResticOptions } from "./restic.ts";
import { restoreBackup } from "./restore.ts";
import { openSnapshots, type Snapshots } from "./snapshots.ts";

export interface RealEngineOptions {
  readonly host: DataHost;
  readonly find: FindRepository;
  readonly deviceId: string;
  /** The agent's own folder for backups. */
  readonly folder: string;
  readonly time: Time;
  readonly restic: Restic;
  /** Without it there are no downloads. */
  readonly offers?: Offers;
}

/** Opened before the host: what a killed agent left running ends before an app starts again. */
export const openRestic = ({ folder, ...options }: ResticOptions): Restic => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const restic = createRestic({ folder, ...options });
  restic.endLeftovers();
  return restic;
};

export const openRealEngine = ({ host, find, deviceId, folder, time, restic, offers }: RealEngineOptions): BackupEngine => {
  const { data } = host;
  const inTurn = createTurns();
  const { elapsedMs } = time;
  /** The repositories that this process has written to. An access from before may still say that they can be made. */
  const known = new Set<string>();

  const requireEngine = async (): Promise<void> => {
    if ((await restic.version()) === null)
      throw new BackupProblem({ stage: "preparing", reason: "BACKUP_ENGINE_MISSING", message: `there is no restic on this machine: ${INSTALL_LINE}` });
  };
  type Work<T> = (snapshots: Snapshots, context: BackupContext) => Promise<T>;
  const work = async <T>(of: Parameters<FindRepository>[0], context: BackupContext, carryOut: Work<T>, initialize = false): Promise<T> => {
    await requireEngine();
    const first = await find(of, context.commandId, context.signal);
    return inTurn(first.key, async () => {
      context.signal.throwIfAborted();
      const repository = { ...first, mayInitialize: first.mayInitialize && (initialize || !known.has(first.key)) };
      const snapshots = openSnapshots({ restic, repository, time, folder, signal: context.signal, closing: data.closing });
      const paces = { ...context, progress: paced(context.progress, elapsedMs) };
      try {
        const result = await carryOut(snapshots, paces);
        snapshots.settled();
        if (first.mayInitialize) known.add(first.key);
        return result;
      } catch (error) {
        // After a kill its lock is left, so the mark stays.
        if (!(error instanceof HostClosed) && !context.signal.aborted) snapshots.settled();
        throw error;
      }
    });
  };
  /** Into a folder of its own, which is deleted again. */
  const testRestore = async (snapshots: Snapshots, snapshotId: string): Promise<void> => {
    const target = mkdtempSync(join(folder, "test-restore-"));
    try {
      await snapshots.restore(snapshotId, target);
    } finally {
      rmSync(target, { recursive: true, force: true });
    }
  };
  return {
    version: restic.version,
    create: (order, context) =>
      work(`backups/${order.backupId}`, context, (snapshots, paces) => createBackup(order, paces, { data, snapshots, deviceId, elapsedMs })),
    restore: (order, context) => work(`backups/${order.backupId}`, context, (snapshots, paces) => restoreBackup(order, paces, { data, host, snapshots })),
    verify: ({ backupId, snapshotId, mode }, context) =>
      work(`backups/${backupId}`, context, async (snapshots, { progress }) => {
        progress(5, "reads the tree of the backup", { stage: "verifying" });
        const { bytes } = await snapshots.count(snapshotId, "verifying");
        progress(20, "compares the stored data", { stage: "verifying" });
        if (mode === "restore_test") await testRestore(snapshots, snapshotId);
        else await snapshots.readAll(snapshotId);
        return { bytes };
      }),
    download: async ({ backupId, snapshotId, downloadId, seconds }, { commandId, signal }) => {
      if (offers === undefined) throw notOffered();
      await requireEngine();
      const repository = await find(`backups/${backupId}`, commandId, signal);
      const send: SendArchive = (into, gone) => openSnapshots({ restic, repository, time, folder, signal: gone, closing: data.closing }).send(snapshotId, into);
      offers.add({ downloadId, seconds, send });
      return {};
    },
    delete: ({ destinationId, snapshotIds }, context) =>
      work(`backup-destinations/${destinationId}`, context, async (snapshots) => {
        // A lock of ours that a kill left would stand in the way.
        await snapshots.unlock();
        const before = new Set((await snapshots.all()).map(({ id }) => id));
        const present = snapshotIds.filter((id) => before.has(id));
        if (present.length > 0) await snapshots.forget(present);
        const after = new Set((await snapshots.all()).map(({ id }) => id));
        const left = present.filter((id) => after.has(id));
        if (left.length > 0) throw new BackupProblem({ stage: "deleting", reason: "ENGINE_FAILED", message: `${left.length} snapshots are there still` });
        return { deleted: present, missing: snapshotIds.filter((id) => !before.has(id)) };
      }),
    prune: ({ destinationId }, context) =>
      work(`backup-destinations/${destinationId}`, context, async (snapshots, { progress }) => {
        await snapshots.unlock();
        progress(5, "frees the space of deleted backups", { stage: "pruning" });
        const freedBytes = await snapshots.prune();
        progress(80, "checks the repository", { stage: "verifying" });
        await snapshots.check();
        return { freedBytes, checked: true };
      }),
    test: ({ destinationId, initialize }, context) =>
      work(
        `backup-destinations/${destinationId}`,
        context,
        async (snapshots) => {
          const startedMs = elapsedMs();
          const { created } = await snapshots.ensure("testing");
          const found = await snapshots.all();
          return { created, snapshots: found.length, seconds: Math.round(elapsedMs() - startedMs) / 1_000 };
        },
        initialize,
      ),
  };
};
