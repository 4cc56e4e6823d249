// Reads processes from /proc: who lives, which group it belongs to, whose mark it carries, and what it uses.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { uptime } from "node:os";
import { z } from "zod";
import { readBootId } from "../../agent/index.ts";

/** Process ids are reused, so the boot and the start time identify a process together with its id. */
export const ProcessName = z.object({
  pid: z.int().min(1),
  boot: z.string(),
  started: z.string(),
  /** The folder of its cgroup, where the agent could make one. */
  cgroup: z.string().nullish(),
});
export type ProcessName = z.output<typeof ProcessName>;

export interface ProcessFigures {
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

/** Linux counts CPU time in hundredths of a second, whatever the machine. */
const TICK_MS = 10;
const boot = readBootId();

interface Stat {
  readonly dead: boolean;
  readonly group: number;
  readonly cpuMs: number;
  readonly started: string;
}

const read = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It has ended meanwhile.
    return null;
  }
};

const statOf = (pid: number): Stat | null => {
  // The name in parentheses may contain spaces and parentheses; the fields after it are numbers, the first one is the state.
  const fields = read(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /su, "")
    .split(" ");
  if (fields === undefined) return null;
  const at = (field: number): string => fields[field - 3] ?? "";
  return { dead: /[ZX]/.test(at(3)), group: Number(at(5)), cpuMs: (Number(at(14)) + Number(at(15))) * TICK_MS, started: at(22) };
};

/** Null if there is no such process any more. */
export const nameProcess = (pid: number): ProcessName | null => {
  const stat = statOf(pid);
  return stat === null ? null : { pid, boot, started: stat.started };
};

export const isAlive = ({ pid, boot: itsBoot, started }: ProcessName): boolean => {
  const stat = itsBoot === boot ? statOf(pid) : null;
  return stat !== null && !stat.dead && stat.started === started;
};

/** When it was started, by this machine's clock. Null if it has ended. */
export const startOf = (name: ProcessName, wallMs: number): Date | null => {
  if (!isAlive(name)) return null;
  return new Date(wallMs - uptime() * 1_000 + Number(name.started) * TICK_MS);
};

const workingFolder = (pid: number): string | null => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return null;
  }
};

/**
 * The living processes of a group. If its leader has ended, the system may have given the number to a group of somebody else, so only
 * processes that work in the given folder count.
 */
export const membersOf = (leader: ProcessName, folder: string): readonly number[] => {
  if (leader.boot !== boot) return [];
  const isOurs = (pid: number): boolean => isAlive(leader) || (workingFolder(pid) ?? "").startsWith(folder);
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      const stat = pid > 0 ? statOf(pid) : null;
      return stat !== null && !stat.dead && stat.group === leader.pid && isOurs(pid);
    });
};

/** Every program of an app gets this variable with the app's folder, and passes it on to whatever it starts. */
export const MARK = "MOORING_APP";

/** The living processes that carry the app's mark. A process may forget its environment; where there are cgroups, those know it nevertheless. */
export const markedWith = (folder: string): readonly number[] => {
  const mark = `${MARK}=${folder}`;
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && (read(`/proc/${pid}/environ`)?.split("\0").includes(mark) ?? false) && statOf(pid)?.dead === false);
};

const memoryOf = (pid: number): number => Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? "")?.[1] ?? 0) * 1_024;

/** The sum over these processes. */
export const figuresOf = (pids: readonly number[]): ProcessFigures =>
  pids.reduce((sum, pid) => ({ cpuMs: sum.cpuMs + (statOf(pid)?.cpuMs ?? 0), memoryBytes: sum.memoryBytes + memoryOf(pid) }), { cpuMs: 0, memoryBytes: 0 });
