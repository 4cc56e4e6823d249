// One agent at a time on one state: two would run the same command each, since neither reads the journal again after its start.
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** Another process holds the state. */
export class StateInUse extends Error {
  override readonly name = "StateInUse";
}

const hasCode = (error: unknown, code: string): boolean => error instanceof Error && "code" in error && error.code === code;

/** Ids of processes come again; together with when it began, one names a process. Empty where the system does not tell. */
const beganAt = (pid: number): string => {
  try {
    // The name in brackets may hold blanks; of what follows it the 20th field is the start.
    return (
      readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /su, "")
        .split(" ")[19] ?? ""
    );
  } catch {
    return "";
  }
};
const nameOf = (pid: number): string => `${pid} ${beganAt(pid)}`;

const lives = (holder: string): boolean => {
  const pid = Number.parseInt(holder, 10);
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (hasCode(error, "ESRCH")) return false;
  }
  return nameOf(pid) === holder;
};

/** Throws StateInUse while another process lives that holds it; what a dead one left behind is taken over. Returns how to let go. */
export const lockState = (path: string): (() => void) => {
  const lock = `${path}.lock`;
  const mine = `${lock}.${process.pid}`;
  // Linked, not written in place: nobody ever sees a lock without its holder.
  writeFileSync(mine, nameOf(process.pid), { mode: 0o600 });
  try {
    for (;;) {
      try {
        linkSync(mine, lock);
        return () => rmSync(lock, { force: true });
      } catch (error) {
        if (!hasCode(error, "EEXIST")) throw error;
      }
      const holder = readFileSync(lock, { encoding: "utf8", flag: "r" });
      if (lives(holder))
        throw new StateInUse(`another agent (process ${Number.parseInt(holder, 10)}) already uses ${path}; stop it first, or give this one a state of its own`);
      rmSync(lock, { force: true });
    }
  } finally {
    rmSync(mine, { force: true });
  }
};
