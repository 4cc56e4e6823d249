// Locks an agent's state for one process. Two processes would both run each command, since neither rereads the journal after its start.
import { closeSync, readFileSync, writeFileSync } from "node:fs";
import { tryFileLock } from "../../../protocol/kit/programs/file-lock.ts";
import type { Timers } from "../../../protocol/kit/timers.ts";

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

const read = (path: string): string => readFileSync(path, "utf8");

const inUse = (path: string, holder: string): StateInUse => {
  // The kernel knows better: processes of another container have ids of their own.
  const who = isAlive(holder) ? `process ${Number.parseInt(holder, 10)}` : "in another container";
  return new StateInUse(`another agent (${who}) already uses ${path}; stop it first, or give this one a state of its own`);
};

/**
 * Returns a function that releases the lock. Throws StateInUse while another process holds it, in this container or in another one.
 * The file stays, and names its holder.
 */
export const lockState = async (path: string, time: Timers): Promise<() => void> => {
  const file = `${path}.lock`;
  const lock = await tryFileLock(file, time);
  const holder = read(file);
  if (lock === null) throw inUse(path, holder);
  // An agent of an earlier version has only its name in the file.
  if (isAlive(holder)) {
    closeSync(lock.fd);
    throw inUse(path, holder);
  }
  writeFileSync(file, nameOf(process.pid));
  return () => {
    if (read(file) === nameOf(process.pid)) writeFileSync(file, "");
    closeSync(lock.fd);
  };
};
