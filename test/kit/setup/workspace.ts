// The folder for the files of one run, with a note of its processes: a run that is killed leaves PostgreSQL or Redis behind, and the next run ends them.
import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PREFIX = "mooring-chaos-";
const NOTE = "processes";

const linuxIdentity = (pid: number): string | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in the second field may hold spaces and brackets, so count fields after its end: state first, start time twentieth.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? null : `${pid}@${fields[19]}`;
  } catch {
    return null;
  }
};
const otherIdentity = (pid: number): string | null => {
  try {
    const started = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    return started === "" ? null : `${pid}@${started}`;
  } catch {
    return null;
  }
};
/** A pid with its start time, so that a later process with the same pid is not confused with it; null if there is none. */
export const identityOf = (pid: number): string | null => (process.platform === "linux" ? linuxIdentity(pid) : otherIdentity(pid));

const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
const pidOf = (identity: string): number => Number.parseInt(identity, 10);
const lives = (identity: string): boolean => identityOf(pidOf(identity)) === identity;

/** The owner of the folder and its children; nothing while the folder is being made, or removed by another run. */
const readNote = (folder: string): readonly string[] => {
  try {
    return readFileSync(join(folder, NOTE), "utf8").split("\n").filter(Boolean);
  } catch {
    return [];
  }
};

/** False if another run has ended it meanwhile. */
const end = (identity: string): boolean => {
  try {
    return process.kill(pidOf(identity), "SIGKILL");
  } catch {
    return false;
  }
};

/** Ends the processes that dead runs left behind, each by its pid and start time; returns their number. */
export const reapLeftovers = (root = tmpdir()): number => {
  let ended = 0;
  for (const name of readdirSync(root)) {
    const [owner, ...children] = name.startsWith(PREFIX) ? readNote(join(root, name)) : [];
    if (owner === undefined || lives(owner)) continue;
    ended += children.filter(lives).filter(end).length;
    remove(join(root, name));
  }
  return ended;
};

let made: string | null = null;

/** The folder of this process, made at the first call and removed when the process ends. PostgreSQL's own user may read it. */
export const workspace = (): string => {
  if (made !== null) return made;
  const left = reapLeftovers();
  if (left > 0) process.stderr.write(`ended ${left} processes that an earlier run left behind\n`);
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  chmodSync(folder, 0o755);
  appendFileSync(join(folder, NOTE), `${identityOf(process.pid) ?? ""}\n`);
  process.once("exit", () => remove(folder));
  made = folder;
  return folder;
};

/** Notes a child, so that the next run finds it if this process dies first. */
export const noteChild = (pid: number): void => {
  const identity = identityOf(pid);
  if (identity !== null) appendFileSync(join(workspace(), NOTE), `${identity}\n`);
};

/** A new folder inside the workspace. */
export const makeFolder = (name: string): string => {
  const folder = mkdtempSync(join(workspace(), `${name}-`));
  chmodSync(folder, 0o755);
  return folder;
};
