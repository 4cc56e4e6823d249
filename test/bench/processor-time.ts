// Processor time of process trees, and what each part of the system took of a span. Times in nanoseconds.
import { readdirSync, readFileSync } from "node:fs";
import { PROCESSORS } from "./machine.ts";

const TICK_NS = 10_000_000;
/** Positions in /proc/<pid>/stat after the name, which may contain spaces: the time of children that have ended. */
const ENDED_CHILDREN = [13, 14] as const;
/** Positions in the first line of /proc/stat: everything but idle and waiting for the disk, which the kernel does not count as use. */
const BUSY = [1, 2, 3, 6, 7, 8] as const;

const readOr = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process or thread has just ended; its parent has its time.
    return "";
  }
};

const threadsOf = (pid: number): readonly string[] => {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
  } catch {
    return [];
  }
};

/** The process itself: its threads and its children that have ended. */
export const ownNs = (pid: number): number => {
  const stat = readOr(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ") ?? [];
  const ended = ENDED_CHILDREN.reduce((sum, at) => sum + Number(stat[at] ?? 0) * TICK_NS, 0);
  return threadsOf(pid).reduce((sum, thread) => sum + Number.parseInt(readOr(`${thread}/schedstat`) || "0", 10), ended);
};

/** The process and all its descendants. */
export const treeOf = (pid: number): readonly number[] => {
  const children = threadsOf(pid).flatMap((thread) => readOr(`${thread}/children`).split(" ").filter(Boolean).map(Number));
  return [pid, ...children.flatMap(treeOf)];
};

export const treeNs = (pid: number): number => treeOf(pid).reduce((sum, each) => sum + ownNs(each), 0);

const busyNs = (): number => {
  const fields = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]?.split(/\s+/) ?? [];
  return BUSY.reduce((sum, at) => sum + Number(fields[at] ?? 0) * TICK_NS, 0);
};

/** Process trees by the part of the system that they are. */
export type Parts = Readonly<Record<string, readonly number[]>>;

export interface ProcessorSample {
  readonly atMs: number;
  readonly busyNs: number;
  readonly partNs: Readonly<Record<string, number>>;
}

/** This process is a part, `bench`, without the processes that it has started. */
export const sampleParts = (parts: Parts): ProcessorSample => ({
  atMs: performance.now(),
  busyNs: busyNs(),
  partNs: {
    ...Object.fromEntries(Object.entries(parts).map(([part, pids]) => [part, pids.reduce((sum, pid) => sum + treeNs(pid), 0)])),
    bench: ownNs(process.pid),
  },
});

export interface ProcessorUse {
  /** Microseconds per unit of work. */
  readonly totalUs: number;
  readonly partUs: Readonly<Record<string, number>>;
  /** The share of all processors that other processes used. */
  readonly foreign: number;
}

/** What `units` of work took between two samples. */
export const useBetween = (before: ProcessorSample, after: ProcessorSample, units: number): ProcessorUse => {
  const spentNs = Object.entries(after.partNs).map(([part, ns]) => [part, ns - (before.partNs[part] ?? 0)] as const);
  const totalNs = spentNs.reduce((sum, [, ns]) => sum + ns, 0);
  const spanNs = (after.atMs - before.atMs) * 1e6 * PROCESSORS;
  return {
    totalUs: totalNs / 1_000 / units,
    partUs: Object.fromEntries(spentNs.map(([part, ns]) => [part, ns / 1_000 / units])),
    foreign: Math.max(0, (after.busyNs - before.busyNs - totalNs) / spanNs),
  };
};
