// The mark of a test run: in the environment and the folders of its processes, so that test/kit/setup/run-guard.mjs finds them when the run is interrupted.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAME = "TEST_RUN";
/** A run's pid follows. */
export const RUN_PREFIX = "mooring-test-";

/** A file system in memory, where Linux has one. */
const IN_MEMORY = "/dev/shm";
/** A run's databases take 3 GB, and its processes as much again. */
const LEAST_FREE_BYTES = 8 * 2 ** 30;
/** Where the folders of runs stand. */
const RUN_ROOTS = [tmpdir(), IN_MEMORY];
/** The folders of runs whose names begin so. */
export const runFolders = (beginning: string): readonly string[] =>
  RUN_ROOTS.filter(existsSync).flatMap((root) =>
    readdirSync(root)
      .filter((name) => name.startsWith(beginning))
      .map((name) => join(root, name)),
  );

/** The variable that hands the mark to a process with an environment of its own; empty outside of a run. */
export const markOfRun = (): Readonly<Record<string, string>> => {
  const mark = process.env[NAME];
  return mark === undefined ? {} : { [NAME]: mark };
};
/** The beginning of a temporary folder's name. */
export const folderPrefix = (subject: string): string => `${process.env[NAME] ?? "mooring"}-${subject}-`;

const parentOf = (pid: number): string =>
  readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")[1] ?? "";

/** Marks this process's children from now on, and lets the guard watch over them. */
export const guardRun = (): string => {
  const mark = `${RUN_PREFIX}${process.pid}-${randomBytes(3).toString("hex")}`;
  process.env[NAME] = mark;
  if (process.platform !== "linux") return mark;
  const npm = process.env["npm_lifecycle_event"] === undefined ? [] : [parentOf(process.ppid)];
  const { [NAME]: _, ...unmarked } = process.env;
  const guard = spawn(process.execPath, [join(import.meta.dirname, "run-guard.mjs"), RUN_ROOTS.join(":"), mark, String(process.pid), ...npm], {
    env: unmarked,
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.unref();
  return mark;
};

/**
 * A new folder for the run's databases: in memory where enough is free. Copying the template's files takes 30 ms there, and on some disks 400 ms of processor
 * time.
 */
export const makeRunFolder = async (mark: string): Promise<string> => {
  const { bavail, bsize } = await statfs(IN_MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  const fits = Math.min(bavail * bsize, process.availableMemory()) > LEAST_FREE_BYTES;
  return mkdtemp(join(fits ? IN_MEMORY : tmpdir(), `${mark}-`));
};
