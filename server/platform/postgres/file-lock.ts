// A lock between processes of one machine, held for moments while one of them starts, adopts or stops the embedded database.
import { randomUUID } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { processIdentity } from "./process-identity.ts";

const POLL_MS = 25;

export interface FileLockOptions {
  readonly waitMs: number;
  /** Called with the holder, again and again, while a living process holds the lock. */
  readonly onHeld?: (holder: string) => void;
}

/**
 * Runs the function while no other process holds the lock of the same file. It waits up to `waitMs` for a living holder,
 * and takes the lock from a dead one.
 */
export const withFileLock = async <T>(file: string, { waitMs, onHeld }: FileLockOptions, run: () => Promise<T>): Promise<T> => {
  const me = await processIdentity(process.pid);
  const mine = `${file}.${randomUUID()}`;
  await writeFile(mine, `${me}\n${randomUUID()}\n`);
  try {
    const deadline = performance.now() + waitMs;
    // Only link() creates a name together with its content and fails when the name exists.
    while (!(await linked(mine, file))) {
      await removeIfDead(file);
      if (performance.now() > deadline) throw new Error(`a living process (${await holder(file)}) has held ${file} for more than ${waitMs} ms`);
      onHeld?.(await holder(file));
      await delay(POLL_MS);
    }
    try {
      return await run();
    } finally {
      await rm(file, { force: true });
    }
  } finally {
    await rm(mine, { force: true });
  }
};

const linked = async (from: string, to: string): Promise<boolean> => {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
};

const content = (file: string): Promise<string | undefined> => readFile(file, "utf8").catch(() => undefined);
const holder = async (file: string): Promise<string> => (await content(file))?.split("\n")[0] ?? "unknown";

// Moves the file aside before it removes it: if another process has replaced the dead lock meanwhile, the content differs and the file goes back.
const removeIfDead = async (file: string): Promise<void> => {
  const seen = await content(file);
  if (seen === undefined) return;
  const identity = seen.split("\n")[0] ?? "";
  const pid = Number.parseInt(identity, 10);
  if (Number.isInteger(pid) && pid > 0 && (await processIdentity(pid)) === identity) return;
  const aside = `${file}.${randomUUID()}`;
  const moved = await rename(file, aside).then(
    () => true,
    () => false,
  );
  if (!moved) return;
  if ((await content(aside)) !== seen) await linked(aside, file);
  await rm(aside, { force: true });
};
