// Locks a file for as long as somebody holds it open: this process, or a program that inherits the descriptor. The kernel keeps the lock, so it ends with
// its last holder, however that ends, and counts across containers that share the file. A process id would not: each container has its own.
import { closeSync, constants, openSync } from "node:fs";
import type { Timers } from "../timers.ts";
import { runProgram } from "./run-program.ts";

export interface FileLock {
  /** Closing it releases the lock, unless a program has inherited it. */
  readonly fd: number;
  /** Null once the file is locked. Otherwise nobody knows whether others hold it, such as where flock(1) is not installed. */
  readonly doubt: string | null;
}

/** Where programs of the operating system are. */
export const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const WITHIN_MS = 10_000;
/** The exit code of flock(1), from util-linux and from busybox, when somebody else holds the lock. */
const CONFLICT = 1;
/** macOS has no flock(1); there, and only there, a flag of open(2) does the same. */
const O_EXLOCK = 0x20;
const MODE = 0o600;

const lockWithOpen = (path: string): FileLock | null => {
  try {
    return { fd: openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | O_EXLOCK, MODE), doubt: null };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return null;
    throw error;
  }
};

/** Creates the file if there is none. Returns null while somebody else holds the lock. */
export const tryFileLock = async (path: string, time: Timers): Promise<FileLock | null> => {
  if (process.platform === "darwin") return lockWithOpen(path);
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, MODE);
  // The lock belongs to the open file, which both processes share, and outlives flock(1).
  const { outcome, code, error, errors } = await runProgram({
    command: "flock",
    words: ["-n", "3"],
    env: { PATH: SYSTEM_PATH, LC_ALL: "C" },
    time,
    withinMs: WITHIN_MS,
    inherits: [fd],
  });
  if (outcome === "ended" && code === 0) return { fd, doubt: null };
  if (outcome !== "ended" || code !== CONFLICT || errors !== "") return { fd, doubt: `flock: ${error?.message ?? (errors.trim() || outcome)}` };
  closeSync(fd);
  return null;
};
