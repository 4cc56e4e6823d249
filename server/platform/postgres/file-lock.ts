// A lock between processes that share a folder, also from several containers: held for moments while one of them starts, adopts or stops the embedded
// database, and by the database itself for as long as it runs.
import { closeSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { tryFileLock } from "../../../protocol/kit/programs/file-lock.ts";
import { systemTimers } from "../../../protocol/kit/timers.ts";
import { ConfigError } from "../../core/errors.ts";
import { processIdentity } from "./process-identity.ts";

const POLL_MS = 100;

export interface FileLockOptions {
  readonly waitMs: number;
  /** Called with the holder, again and again, while another process holds the lock. */
  readonly onHeld?: (holder: string) => void;
  /** The error after the wait. */
  readonly late: (holder: string) => Error;
}

const holderOf = (file: string): string => readFileSync(file, "utf8").trim() || "unknown";

/** Waits for the lock and returns the descriptor that holds it. */
export const lockFile = async (file: string, { waitMs, onHeld, late }: FileLockOptions): Promise<number> => {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const lock = await tryFileLock(file, systemTimers);
    if (lock !== null) {
      if (lock.doubt === null) return lock.fd;
      closeSync(lock.fd);
      throw new ConfigError(
        `The embedded PostgreSQL cannot lock ${file} (${lock.doubt}). Install flock (package util-linux), move DATA_DIR to a local disk, or set DATABASE_URL.`,
      );
    }
    if (performance.now() > deadline) throw late(holderOf(file));
    onHeld?.(holderOf(file));
    await delay(POLL_MS);
  }
};

/** Runs the function while no other process holds the lock of the same file. */
export const withFileLock = async <T>(file: string, options: Omit<FileLockOptions, "late">, run: () => Promise<T>): Promise<T> => {
  const late = (holder: string): Error => new Error(`another process (${holder}) has held ${file} for more than ${options.waitMs} ms`);
  const fd = await lockFile(file, { ...options, late });
  try {
    writeFileSync(file, `${await processIdentity(process.pid)}\n`);
    return await run();
  } finally {
    closeSync(fd);
  }
};
