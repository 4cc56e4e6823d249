// What the engine does in a repository on behalf of one command: finds, writes, reads back, restores and deletes snapshots.
import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { z } from "zod";
import { pause, type Time } from "../../agent/index.ts";
import { readText } from "../processes/disk.ts";
import type { Repository } from "./access.ts";
import { BackupProblem, type BackupStage } from "./problem.ts";
import { type Restic, ResticFailure, type ResticRun } from "./restic.ts";

const LOCKED_AGAIN_MS = 5_000;
const LOCKED_TRIES = 4;
const MAX_WARNINGS = 100;
/** The exit code for a snapshot that lacks files which could not be read. */
const INCOMPLETE = 3;
/** What the mark of a backup says once a file could not be read. */
const LACKS_FILES = "lacks files";

export interface Snapshot {
  readonly id: string;
  readonly tags: readonly string[];
}
/** Made by a run whose end nobody heard. */
export interface EarlierSnapshot extends Snapshot {
  /** Files could not be read, so it lacks them. */
  readonly partial: boolean;
}
export interface WrittenSnapshot {
  /** As much of the id as this version of restic tells. */
  readonly id: string;
  readonly files: number;
  readonly bytes: number;
  readonly addedBytes: number;
  readonly warnings: readonly string[];
  readonly partial: boolean;
}
export interface CountedSnapshot {
  readonly snapshot: Snapshot;
  readonly files: number;
  readonly bytes: number;
}
export interface ReadBytes {
  readonly bytesDone: number;
  readonly bytesTotal: number;
}
type Filter = (path: string) => boolean;

export interface Snapshots {
  /** The snapshot with this tag, if an earlier delivery of the command may have made one. */
  findOfEarlier(tag: string): Promise<EarlierSnapshot | null>;
  write(
    order: { readonly cwd: string; readonly paths: readonly string[]; readonly tags: readonly string[]; readonly host: string },
    onBytes: (bytes: ReadBytes) => void,
  ): Promise<WrittenSnapshot>;
  /** Reads the snapshot's whole tree from the repository, not from the cache. */
  count(id: string, stage: BackupStage, filter?: Filter, onPath?: (path: string, type: string) => void): Promise<CountedSnapshot>;
  /** Writes the files that fit into a folder and compares them with the snapshot. */
  restore(id: string, target: string, include?: readonly string[]): Promise<void>;
  /** Reads every stored block of the snapshot. restic compares each with its hash. */
  readAll(id: string): Promise<void>;
  /** Writes the snapshot's data as a tar archive. Without a lock, so that it delays nobody: what is kept stays readable. */
  send(id: string, into: Writable): Promise<void>;
  all(): Promise<readonly Snapshot[]>;
  forget(ids: readonly string[]): Promise<void>;
  /** Returns the bytes that became free, as exactly as restic says it. */
  prune(): Promise<number>;
  check(): Promise<void>;
  /** Makes the repository if there is none and none was there before. */
  ensure(stage: BackupStage): Promise<{ readonly created: boolean }>;
  unlock(): Promise<void>;
  /** The command has ended, and nothing of it is left in the repository. */
  settled(): void;
}

const Summary = z.object({
  message_type: z.literal("summary"),
  snapshot_id: z.string(),
  data_added: z.number(),
  data_added_packed: z.number().optional(),
  total_files_processed: z.number(),
  total_bytes_processed: z.number(),
});
const Status = z.object({ message_type: z.literal("status"), bytes_done: z.number().default(0), total_bytes: z.number().default(0) });
const Complaint = z.object({
  message_type: z.literal("error"),
  item: z.string().catch(""),
  error: z.looseObject({ message: z.string().optional() }).catch({}),
});
const Listed = z.array(z.object({ id: z.string(), tags: z.array(z.string()).nullish() }));
const Head = z.object({ struct_type: z.literal("snapshot"), id: z.string(), tags: z.array(z.string()).nullish() });
const Node = z.object({ type: z.string(), path: z.string(), size: z.number().default(0) });

const parse = <S extends z.ZodType>(schema: S, line: string): z.output<S> | undefined => {
  try {
    return schema.safeParse(JSON.parse(line)).data;
  } catch {
    // restic says some things in words, and of a line that is too long only the beginning comes.
    return undefined;
  }
};

const UNITS: ReadonlyMap<string, number> = new Map([
  ["B", 1],
  ["KiB", 1_024],
  ["MiB", 1_048_576],
  ["GiB", 1_073_741_824],
  ["TiB", 1_099_511_627_776],
]);
/** From "total prune: 3 blobs / 1.204 MiB"; what is in unreferenced packs comes on top. */
export const freedBytesIn = (lines: readonly string[]): number => {
  const found = lines.flatMap((line) => /^(?:total prune|unused pack|unindexed pack).*?([\d.]+)\s*([KMGT]?i?B)/i.exec(line.trim()) ?? []);
  const [, amount = "0", unit = "B"] = found;
  return Math.round(Number(amount) * (UNITS.get(unit) ?? 1));
};

/** From 0.15 on, restic leaves holes where files had them. */
const hasSparse = (version: string | null): boolean => {
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  return major > 0 || minor >= 15;
};

/** A pattern that fits this path and what is below it, and nothing else. */
export const patternOf = (path: string): string => path.replaceAll(/[\\*?[\]]/g, "\\$&");

export interface SnapshotsOptions {
  readonly restic: Restic;
  readonly repository: Repository;
  readonly time: Time;
  /** The agent's own folder for backups. */
  readonly folder: string;
  readonly signal: AbortSignal;
  /** The agent ends. */
  readonly closing: AbortSignal;
}

export const openSnapshots = ({ restic, repository, time, folder, signal, closing }: SnapshotsOptions): Snapshots => {
  const { environment, key, mayInitialize } = repository;
  // It is there while a command works in the repository: one that finds it follows a kill.
  const mark = join(folder, `working-${createHash("sha256").update(key).digest("hex").slice(0, 16)}`);
  const left = readText(mark);
  const follows = left !== null;
  const begin = (): void => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(mark, "", { flag: "a" });
  };
  let unlocked = false;
  const runOnce = (words: readonly string[], options: Omit<ResticRun, "environment" | "signal" | "closing" | "cwd"> & { readonly cwd?: string }) =>
    restic.run(words, { cwd: folder, ...options, environment, signal, closing });
  const unlock = async (): Promise<void> => {
    unlocked = true;
    // Only locks of processes that have ended: those of others are right.
    await runOnce(["unlock"], { stage: "preparing" });
  };
  /** restic's own locks outlive a kill, and some stand in the way of everything. */
  const run: typeof runOnce = async (words, options) => {
    begin();
    if (follows && !unlocked) await unlock().catch(noRepository);
    for (let tries = 1; ; tries += 1) {
      try {
        return await runOnce(words, options);
      } catch (error) {
        if (!(error instanceof ResticFailure) || error.code !== "REPOSITORY_LOCKED" || tries >= LOCKED_TRIES) throw error;
        await unlock();
        if (tries > 1) await pause(time, LOCKED_AGAIN_MS, signal);
      }
    }
  };
  const noRepository = (error: unknown): void => {
    if (!(error instanceof ResticFailure) || error.code !== "REPOSITORY_MISSING") throw error;
  };
  /** Only where none has been: one that is lost must not come back empty, as if it had held nothing. */
  const initialize = async (error: unknown, stage: BackupStage): Promise<void> => {
    noRepository(error);
    if (!mayInitialize) throw error;
    await runOnce(["init"], { stage });
  };
  const output = async (words: readonly string[], stage: BackupStage): Promise<readonly string[]> => {
    const lines: string[] = [];
    await run(words, { stage, onLine: (line) => void lines.push(line) });
    return lines;
  };
  const list = async (more: readonly string[]): Promise<readonly Snapshot[]> => {
    const lines = await output(["snapshots", "--json", ...more], "preparing");
    const listed = parse(Listed, lines.join("")) ?? [];
    return listed.map(({ id, tags }) => ({ id, tags: tags ?? [] }));
  };
  return {
    unlock,
    all: () => list([]),
    settled: () => rmSync(mark, { force: true }),
    findOfEarlier: async (tag) => {
      if (!follows) return null;
      const found = await list(["--tag", tag]).catch((error: unknown): readonly Snapshot[] => {
        noRepository(error);
        return [];
      });
      const [earlier] = found;
      return earlier === undefined ? null : { ...earlier, partial: left === LACKS_FILES };
    },
    ensure: async (stage) => {
      begin();
      try {
        await runOnce(["cat", "config"], { stage });
        return { created: false };
      } catch (error) {
        await initialize(error, stage);
        return { created: true };
      }
    },
    write: async ({ cwd, paths, tags, host }, onBytes) => {
      let summary: z.output<typeof Summary> | undefined;
      const warnings: string[] = [];
      const words = ["backup", "--json", "--host", host, ...tags.flatMap((tag) => ["--tag", tag]), "--", ...paths];
      begin();
      writeFileSync(mark, "");
      const writing = () =>
        run(words, {
          stage: "reading",
          cwd,
          codes: [0, INCOMPLETE],
          onLine: (line) => {
            const status = parse(Status, line);
            if (status !== undefined) onBytes({ bytesDone: status.bytes_done, bytesTotal: status.total_bytes });
            summary = parse(Summary, line) ?? summary;
          },
          onComplaint: (line) => {
            const complaint = parse(Complaint, line);
            // The snapshot does not say it, and the agent may be killed before it does.
            if (complaint !== undefined && warnings.length === 0) writeFileSync(mark, LACKS_FILES);
            if (complaint !== undefined && warnings.length < MAX_WARNINGS)
              warnings.push(`${complaint.item}: ${complaint.error.message ?? "could not be read"}`.slice(0, 4_200));
          },
        });
      const { code } = await writing().catch(async (error: unknown) => {
        await initialize(error, "preparing");
        return writing();
      });
      if (summary === undefined) throw new BackupProblem({ stage: "reading", reason: "ENGINE_FAILED", message: "restic ended without a summary" });
      const { snapshot_id: id, total_files_processed: files, total_bytes_processed: bytes, data_added: added, data_added_packed: packed } = summary;
      return { id, files, bytes, addedBytes: packed ?? added, warnings, partial: code === INCOMPLETE };
    },
    count: async (id, stage, filter = () => true, onPath) => {
      let snapshot: Snapshot | null = null;
      let [files, bytes] = [0, 0];
      await run(["ls", "--json", "--no-cache", id], {
        stage,
        onLine: (line) => {
          const head = snapshot === null ? parse(Head, line) : undefined;
          if (head !== undefined) snapshot = { id: head.id, tags: head.tags ?? [] };
          const node = head === undefined ? parse(Node, line) : undefined;
          if (node === undefined || !filter(node.path)) return;
          onPath?.(node.path, node.type);
          if (node.type !== "file") return;
          files += 1;
          bytes += node.size;
        },
      });
      if (snapshot === null) throw new BackupProblem({ stage, reason: "SNAPSHOT_MISSING", message: "the repository does not have this snapshot" });
      return { snapshot, files, bytes };
    },
    restore: async (id, target, include = []) => {
      const holes = hasSparse(await restic.version()) ? ["--sparse"] : [];
      await run(["restore", id, "--target", target, "--verify", ...holes, ...include.flatMap((path) => ["--include", patternOf(path)])], {
        stage: "restoring",
      });
    },
    readAll: async (id) => {
      await run(["dump", "--no-cache", "--archive", "tar", id, "/"], { stage: "verifying", discard: true });
    },
    send: async (id, into) => {
      await runOnce(["dump", "--no-lock", "--archive", "tar", id, "/"], { stage: "restoring", into });
    },
    forget: async (ids) => {
      await run(["forget", ...ids], { stage: "deleting" });
    },
    prune: async () => freedBytesIn(await output(["prune"], "pruning")),
    check: async () => {
      await run(["check"], { stage: "verifying" });
    },
  };
};
