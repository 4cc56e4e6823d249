// The machine that is measured on: its processors, who may run where, what else it does.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os";

export const PROCESSORS = availableParallelism();
const HAS_TASKSET = spawnSync("taskset", ["--version"]).status === 0;

/** Where processes live: servers that are measured on the first processor, everything else on the second. */
export const SERVER_CPU = 0;
export const LOAD_CPU = 1;

/** Moves a process with its threads; what it starts later follows. Without `taskset`, or with one processor, everybody runs everywhere. */
export const pin = (pid: number, cpu: number | null): void => {
  if (HAS_TASKSET && PROCESSORS > 1)
    spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", cpu === null ? `0-${PROCESSORS - 1}` : String(cpu), String(pid)]);
};

export const residentBytes = (pid: number): number => {
  const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no memory`);
  return Number(kib) * 1_024;
};

/** How many sockets one process may hold; some are left for everything else. */
export const socketLimit = (): number => {
  const hard = /Max open files\s+\d+\s+(\d+|unlimited)/.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
  return hard === undefined || hard === "unlimited" ? Number.POSITIVE_INFINITY : Number(hard) - 500;
};

export const describeMachine = (): Readonly<Record<string, string | number | boolean>> => ({
  processor: cpus()[0]?.model ?? "unknown",
  processors: PROCESSORS,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  system: `${platform()} ${release()} ${arch()}`,
  node: process.version,
  pinned: HAS_TASKSET && PROCESSORS > 1,
  loadAtStart: loadavg()[0] ?? 0,
});
