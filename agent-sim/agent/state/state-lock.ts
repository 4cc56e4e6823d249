// Locks an agent's state for one process. Two processes would both run each command, since neither rereads the journal after its start.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/** Another process holds the state. */
export class StateInUse extends Error {
  override readonly name = "StateInUse";
}

const hasCode = (error: unknown, code: string): boolean => error instanceof Error && "code" in error && error.code === code;

/** Process ids are reused, so the start time identifies a process together with its id. Empty where the system does not tell it. */
const startedAt = (pid: number): string => {
  try {
    // The name in parentheses may contain spaces; the first field after it is the state, the 20th the start time.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /su, "")
      .split(" ");
    return /[ZX]/.test(fields[0] ?? "") ? "ended" : (fields[19] ?? "");
  } catch {
    return "";
  }
};
const nameOf = (pid: number): string => `${pid} ${startedAt(pid)}`;

const isAlive = (holder: string): boolean => {
  const pid = Number.parseInt(holder, 10);
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (hasCode(error, "ESRCH")) return false;
  }
  return nameOf(pid) === holder;
};

/** Null if there is none. */
const read = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
};

/** Removes the lock of a dead process. If another one took it over meanwhile, that one keeps it: only its name in the file tells whose it is. */
const removeStale = (lock: string, holder: string, aside: string): void => {
  try {
    renameSync(lock, aside);
    if (read(aside) !== holder) linkSync(aside, lock);
  } catch (error) {
    if (!hasCode(error, "ENOENT") && !hasCode(error, "EEXIST")) throw error;
  } finally {
    rmSync(aside, { force: true });
  }
};

/** Returns a function that releases the lock. Throws StateInUse while a live process holds it; takes over the lock of a dead one. */
export const lockState = (path: string): (() => void) => {
  const lock = `${path}.lock`;
  const mine = `${lock}.${process.pid}`;
  // A link is atomic, so no process ever sees a lock without its holder.
  writeFileSync(mine, nameOf(process.pid), { mode: 0o600 });
  try {
    for (;;) {
      try {
        linkSync(mine, lock);
        return () => {
          if (read(lock) === nameOf(process.pid)) rmSync(lock, { force: true });
        };
      } catch (error) {
        if (!hasCode(error, "EEXIST")) throw error;
      }
      const holder = read(lock);
      if (holder === null) continue;
      if (isAlive(holder))
        throw new StateInUse(`another agent (process ${Number.parseInt(holder, 10)}) already uses ${path}; stop it first, or give this one a state of its own`);
      removeStale(lock, holder, `${mine}.stale`);
    }
  } finally {
    rmSync(mine, { force: true });
  }
};
