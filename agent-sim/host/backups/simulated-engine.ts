// Backups of apps that exist only in memory. Sizes, durations and failures follow from the seed and the record's id; the snapshots are kept in a file,
// so that they survive a restart as a repository would.
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { noop, pause, type Time } from "../../agent/index.ts";
import type { HostData, HostVolume } from "../app-data.ts";
import { type Host, HostFailure } from "../host.ts";
import { readText, replaceFile, systemDisk } from "../processes/disk.ts";
import { createTurns } from "../turns.ts";
import type { FindRepository } from "./access.ts";
import { type BackupContext, type BackupEngine, notOffered, type OrderOf, type OutputOf, paced } from "./engine.ts";
import type { Offers } from "./offers.ts";
import { BackupProblem, type BackupStage } from "./problem.ts";

const Kept = z.object({
  backupId: z.string(),
  destination: z.string(),
  appId: z.string(),
  bytes: z.number(),
  files: z.number(),
  deleted: z.boolean().default(false),
});
type Kept = z.output<typeof Kept>;
const File = z.object({ snapshots: z.record(z.string(), Kept).default({}), restored: z.record(z.string(), z.string()).default({}) });

/** What the repositories of a simulated device hold, and which restore each app had last. */
export interface BackupMemory {
  get(): z.output<typeof File>;
  put(next: z.output<typeof File>): void;
}

/** In a file of this folder, written whole. Without a folder it lasts as long as the process. */
export const openBackupMemory = (folder: string | null): BackupMemory => {
  const path = folder === null ? null : join(folder, "simulated.json");
  const read = (): z.output<typeof File> => {
    const text = path === null ? null : readText(path);
    return File.parse(text === null ? {} : JSON.parse(text));
  };
  let state = read();
  return {
    get: () => state,
    put: (next) => {
      state = next;
      if (folder === null || path === null) return;
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      replaceFile(systemDisk, path, JSON.stringify(next));
    },
  };
};

export type BackupFailures = Partial<Record<"reading" | "reading_back" | "restoring" | "health" | "verifying" | "deleting" | "pruning", number>>;

export interface SimulatedEngineOptions {
  readonly host: Pick<Host, "report" | "apply">;
  readonly find: FindRepository;
  readonly time: Time;
  readonly seed: number;
  readonly memory: BackupMemory;
  /** The share of the runs that fail in a stage, from 0 to 1. */
  readonly failures?: BackupFailures;
  /** The duration of each stage; default 5 to 50. */
  readonly delayMs?: { readonly least: number; readonly most: number };
  /** Called before each step, such as by a test that kills the device there. */
  readonly onStep?: (step: string) => void;
  /** Without it there are no downloads. */
  readonly offers?: Offers;
  /** The controls of the chaos runs leave a promise out. */
  readonly without?: "read back";
}

const REASONS: Readonly<Record<keyof BackupFailures, string>> = {
  reading: "SOURCE_UNREADABLE",
  reading_back: "REPOSITORY_DAMAGED",
  restoring: "DISK_FULL",
  health: "NOT_HEALTHY_AFTER_RESTORE",
  verifying: "REPOSITORY_DAMAGED",
  deleting: "REPOSITORY_UNREACHABLE",
  pruning: "REPOSITORY_LOCKED",
};
const digestOf = (...parts: readonly (string | number)[]): Buffer => createHash("sha256").update(parts.join(" ")).digest();
/** From 0 to 1, the same for the same parts. */
const chance = (...parts: readonly (string | number)[]): number => digestOf(...parts).readUInt32BE() / 4_294_967_296;

const BLOCK_BYTES = 512;
/** A tar archive with one file, which stands for all of the backup's. */
const simulatedArchive = (name: string, text: string): Buffer => {
  const octal = (value: number, width: number): string => `${value.toString(8).padStart(width, "0")}\0`;
  const head = Buffer.alloc(BLOCK_BYTES);
  const size = Buffer.byteLength(text);
  head.write(name.slice(0, 99));
  head.write(`${octal(0o644, 7)}${octal(0, 7)}${octal(0, 7)}${octal(size, 11)}${octal(0, 11)}        0`, 100);
  head.write("ustar\u000000", 257);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${octal(sum, 6)} `, 148);
  const body = Buffer.alloc(Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES + 2 * BLOCK_BYTES);
  body.write(text);
  return Buffer.concat([head, body]);
};

/** The volumes of simulated apps: one each, of a size that stays. */
export const simulatedVolumes = (host: Pick<Host, "report">): Pick<HostData, "volumes" | "removeVolume"> => ({
  volumes: async () =>
    host.report().map(
      ({ appId, state }): HostVolume => ({
        name: `${appId}.data`,
        driver: "local",
        path: `/simulated/${appId}/data`,
        labels: {},
        appId,
        inUse: state === "running",
      }),
    ),
  removeVolume: async () => false,
});

export const createSimulatedEngine = (options: SimulatedEngineOptions): BackupEngine => {
  const { host, find, time, seed, memory, failures = {}, delayMs = { least: 5, most: 50 }, onStep = noop, without, offers } = options;
  const inTurn = createTurns();
  const { elapsedMs } = time;

  const fail = (stage: BackupStage, reason: string, previousData?: "kept"): never => {
    throw new BackupProblem({ stage, reason, message: `${reason} (simulated)`, lines: [], ...(previousData === undefined ? {} : { previousData }) });
  };
  const pass = async (stage: keyof BackupFailures, id: string, { signal }: BackupContext): Promise<void> => {
    onStep(stage);
    await pause(time, delayMs.least + chance("delay", seed, id, stage) * (delayMs.most - delayMs.least), signal);
    signal.throwIfAborted();
    if (chance("failure", seed, id, stage) < (failures[stage] ?? 0))
      fail(stage, REASONS[stage], stage === "restoring" || stage === "health" ? "kept" : undefined);
  };
  const keyOf = async (of: Parameters<FindRepository>[0], context: BackupContext): Promise<string> => (await find(of, context.commandId, context.signal)).key;
  const work = async <T>(
    of: Parameters<FindRepository>[0],
    context: BackupContext,
    carryOut: (destination: string, context: BackupContext) => Promise<T>,
  ): Promise<T> => {
    const destination = await keyOf(of, context);
    return inTurn(destination, () => carryOut(destination, { ...context, progress: paced(context.progress, elapsedMs) }));
  };
  const keep = (id: string, kept: Kept): void => memory.put({ ...memory.get(), snapshots: { ...memory.get().snapshots, [id]: kept } });
  const kept = (id: string, destination: string, stage: BackupStage): Kept => {
    const found = memory.get().snapshots[id];
    return found === undefined || found.deleted || found.destination !== destination ? fail(stage, "SNAPSHOT_MISSING") : found;
  };

  const create = async ({ backupId, app, type, consistency }: OrderOf<"create">, destination: string, context: BackupContext): Promise<OutputOf<"create">> => {
    const { progress } = context;
    const startedMs = elapsedMs();
    const id = digestOf("snapshot", backupId).toString("hex");
    const bytes = type === "config" ? 2_048 : 1_000_000 + Math.floor(chance("bytes", app.appId) * 500_000_000);
    const files = type === "config" ? 1 : 2 + Math.floor(chance("files", app.appId) * 5_000);
    const isFirst = !Object.values(memory.get().snapshots).some((each) => each.appId === app.appId);
    if (memory.get().snapshots[id] === undefined) {
      progress(5, "reads and stores the data", { stage: "reading", bytesDone: 0, bytesTotal: bytes });
      await pass("reading", backupId, context);
      onStep("store");
      keep(id, { backupId, destination, appId: app.appId, bytes, files, deleted: false });
      onStep("stored");
    }
    progress(92, "reads the backup back", { stage: "reading_back" });
    await pass("reading_back", backupId, context);
    if (without !== "read back") kept(id, destination, "reading_back");
    const mode = consistency === "template" ? (app.spec.backup?.mode ?? "stop") : consistency;
    const seconds = Math.round(elapsedMs() - startedMs) / 1_000;
    return {
      snapshotId: id,
      size: bytes,
      addedBytes: isFirst ? bytes : Math.floor(bytes / 20),
      files,
      warnings: [],
      partial: false,
      consistency: mode === "live" ? "live" : mode === "pause" ? "paused" : "stopped",
      downtimeSeconds: mode === "live" ? 0 : seconds,
      seconds,
    };
  };
  const restore = async (order: OrderOf<"restore">, destination: string, context: BackupContext): Promise<OutputOf<"restore">> => {
    const { restoreId, snapshotId, dryRun, app, overwriteExisting } = order;
    const { bytes, files } = kept(snapshotId, destination, "preparing");
    const isThere = host.report().some(({ appId }) => appId === app.appId);
    if (dryRun) return { files, bytes, verified: false, plan: { files, bytes, freeBytes: 50_000_000_000, replaces: isThere ? ["data"] : [] } };
    if (memory.get().restored[app.appId] === restoreId) return { files, bytes, verified: true };
    if (isThere && !overwriteExisting) fail("preparing", "RESTORE_TARGET_EXISTS", "kept");
    context.progress(10, "restores beside the data of the app", { stage: "restoring", bytesDone: 0, bytesTotal: bytes });
    await pass("restoring", restoreId, context);
    onStep("swap");
    try {
      await host.apply(app);
    } catch (error) {
      throw error instanceof HostFailure
        ? new BackupProblem({ stage: "health", reason: "NOT_HEALTHY_AFTER_RESTORE", message: error.message, lines: [...error.lines], previousData: "kept" })
        : error;
    }
    await pass("health", restoreId, context);
    memory.put({ ...memory.get(), restored: { ...memory.get().restored, [app.appId]: restoreId } });
    onStep("swapped");
    return { files, bytes, verified: true };
  };
  return {
    version: async () => "simulated",
    create: (order, context) => work(`backups/${order.backupId}`, context, (destination, paces) => create(order, destination, paces)),
    restore: (order, context) => work(`backups/${order.backupId}`, context, (destination, paces) => restore(order, destination, paces)),
    verify: ({ backupId, snapshotId }, context) =>
      work(`backups/${backupId}`, context, async (destination, paces) => {
        await pass("verifying", backupId, paces);
        return { bytes: kept(snapshotId, destination, "verifying").bytes };
      }),
    download: async ({ backupId, snapshotId, downloadId, seconds }, context) => {
      if (offers === undefined) throw notOffered();
      const { appId, bytes } = kept(snapshotId, await keyOf(`backups/${backupId}`, context), "preparing");
      offers.add({ downloadId, seconds, send: async (into) => void into.write(simulatedArchive(`${appId}/data`, `${bytes} bytes of ${backupId}\n`)) });
      return {};
    },
    delete: ({ destinationId, snapshotIds }, context) =>
      work(`backup-destinations/${destinationId}`, context, async (destination, paces) => {
        await pass("deleting", snapshotIds.join(), paces);
        const isPresent = (id: string): boolean => memory.get().snapshots[id]?.destination === destination && memory.get().snapshots[id]?.deleted === false;
        const deleted = snapshotIds.filter(isPresent);
        for (const id of deleted) {
          const found = memory.get().snapshots[id];
          if (found !== undefined) keep(id, { ...found, deleted: true });
          onStep("deleted");
        }
        return { deleted, missing: snapshotIds.filter((id) => !deleted.includes(id)) };
      }),
    prune: ({ destinationId }, context) =>
      work(`backup-destinations/${destinationId}`, context, async (destination, paces) => {
        await pass("pruning", destinationId, paces);
        const all = Object.entries(memory.get().snapshots);
        const gone = all.filter(([, each]) => each.deleted && each.destination === destination);
        memory.put({ ...memory.get(), snapshots: Object.fromEntries(all.filter(([id]) => !gone.some(([other]) => other === id))) });
        return { freedBytes: gone.reduce((sum, [, { bytes }]) => sum + bytes, 0), checked: true };
      }),
    test: ({ destinationId }, context) =>
      work(`backup-destinations/${destinationId}`, context, async (destination) => {
        const of = Object.values(memory.get().snapshots).filter((each) => each.destination === destination && !each.deleted);
        return { created: of.length === 0, snapshots: of.length, seconds: 0 };
      }),
  };
};
