// Where the runs of one process keep their files, with a note of whose they are: killed hard, it leaves a PostgreSQL or Redis behind, and the next start ends them.
import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PREFIX = "mooring-chaos-";
const NOTE = "processes";

const linuxIdentity = (pid: number): string | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in the second field may hold spaces and brackets, so fields are counted from its end: state first, start time twentieth.
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
/** A number and when it began, so that a later process of the same number is not taken for it; null when there is none. */
export const identityOf = (pid: number): string | null => (process.platform === "linux" ? linuxIdentity(pid) : otherIdentity(pid));

const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
const pidOf = (identity: string): number => Number.parseInt(identity, 10);
const lives = (identity: string): boolean => identityOf(pidOf(identity)) === identity;

/** Ends what dead owners have left in this folder, each process by its number and start; answers how many there were. */
export const reapLeftovers = (root = tmpdir()): number => {
  let ended = 0;
  for (const name of readdirSync(root)) {
    const note = join(root, name, NOTE);
    if (!name.startsWith(PREFIX) || !existsSync(note)) continue;
    const [owner = "", ...children] = readFileSync(note, "utf8").split("\n").filter(Boolean);
    if (lives(owner)) continue;
    for (const child of children.filter(lives)) {
      process.kill(pidOf(child), "SIGKILL");
      ended += 1;
    }
    remove(join(root, name));
  }
  return ended;
};

let made: string | null = null;

/** The folder of this process, made with the first call and removed when the process ends. PostgreSQL's own user may look inside. */
export const workspace = (): string => {
  if (made !== null) return made;
  const left = reapLeftovers();
  if (left > 0) process.stderr.write(`ended ${left} processes that an earlier run had left behind\n`);
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  chmodSync(folder, 0o755);
  appendFileSync(join(folder, NOTE), `${identityOf(process.pid) ?? ""}\n`);
  process.once("exit", () => remove(folder));
  made = folder;
  return folder;
};

/** Writes a child down, so that it can be found should this process not live to end it. */
export const noteChild = (pid: number): void => {
  const identity = identityOf(pid);
  if (identity !== null) appendFileSync(join(workspace(), NOTE), `${identity}\n`);
};

/** A folder of its own inside. */
export const makeFolder = (name: string): string => {
  const folder = mkdtempSync(join(workspace(), `${name}-`));
  chmodSync(folder, 0o755);
  return folder;
};
