// The machine below the bench: its processors, which process may run where, and its limits.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os";

export const PROCESSORS = availableParallelism();
const HAS_TASKSET = spawnSync("taskset", ["--version"]).status === 0;

/** Measured servers run on the first processor, everything else on the second. */
export const SERVER_CPU = 0;
export const LOAD_CPU = 1;

/** Pins a process with its threads and later children. Without `taskset`, or with one processor, it does nothing. */
export const pin = (pid: number, cpu: number | null): void => {
  if (HAS_TASKSET && PROCESSORS > 1)
    spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", cpu === null ? `0-${PROCESSORS - 1}` : String(cpu), String(pid)]);
};

export const residentBytes = (pid: number): number => {
  const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`the memory of process ${pid} cannot be read`);
  return Number(kib) * 1_024;
};

/** The number of sockets that one process may hold, less a reserve. */
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
