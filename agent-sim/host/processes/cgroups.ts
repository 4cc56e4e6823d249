// Puts each app into a cgroup (version 2) of its own, which no process can leave by a new session or a new parent. Only where the agent may make one.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { noop, readBootId } from "../../agent/index.ts";
import type { ProcessName } from "./proc.ts";

export interface Cgroups {
  /** Moves the process into a new cgroup and returns its path, or null where there are none. */
  enter(appId: string, pid: number): string | null;
  members(process: ProcessName): readonly number[];
  kill(process: ProcessName): void;
  /** Returns whether it is gone. A process that has just ended keeps it busy for a moment. */
  remove(process: ProcessName): boolean;
}

export const NO_CGROUPS: Cgroups = { enter: () => null, members: () => [], kill: noop, remove: () => true };

const PREFIX = "mooring-";
const boot = readBootId();

/** Null if the system has none, or refuses: it is read-only, or belongs to another user. */
const attempt = <T>(work: () => T): T | null => {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && "syscall" in error) return null;
    throw error;
  }
};
const textOf = (path: string): string => attempt(() => readFileSync(path, "utf8")) ?? "";

/** The folder of the agent's own cgroup. */
const ownFolder = (): string | null => {
  const mount = textOf("/proc/self/mountinfo")
    .split("\n")
    .map((line) => line.split(" "))
    .find((fields) => fields[fields.indexOf("-") + 1] === "cgroup2")?.[4];
  const own = /^0::(.*)$/m.exec(textOf("/proc/self/cgroup"))?.[1];
  return mount === undefined || own === undefined ? null : join(mount, own);
};

/** A cgroup lasts as long as the boot, so the path of an earlier one is nobody's. */
const pathOf = ({ boot: itsBoot, cgroup }: ProcessName): string | null =>
  itsBoot === boot && cgroup !== undefined && cgroup !== null && basename(cgroup).startsWith(PREFIX) ? cgroup : null;

export const systemCgroups: Cgroups = {
  enter: (appId, pid) => {
    const own = ownFolder();
    if (own === null) return null;
    const path = join(own, `${PREFIX}${appId}-${pid}`);
    const entered = attempt(() => {
      mkdirSync(path);
      writeFileSync(join(path, "cgroup.procs"), String(pid));
      return path;
    });
    if (entered === null) attempt(() => rmdirSync(path));
    return entered;
  },
  members: (process) => {
    const path = pathOf(process);
    if (path === null) return [];
    return textOf(join(path, "cgroup.procs"))
      .split("\n")
      .filter((line) => line !== "")
      .map(Number);
  },
  kill: (process) => {
    const path = pathOf(process);
    // Linux has it since 5.14; before, each member is killed.
    if (path !== null && existsSync(join(path, "cgroup.kill"))) attempt(() => writeFileSync(join(path, "cgroup.kill"), "1"));
  },
  remove: (process) => {
    const path = pathOf(process);
    if (path === null) return true;
    attempt(() => rmdirSync(path));
    return !existsSync(path);
  },
};
