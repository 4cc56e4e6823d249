// Stops an app's processes: what runs in its process group, in its cgroup, or with its mark, whoever its parent is by now.
import { type Time, until } from "../../agent/index.ts";
import { HostClosed, HostFailure } from "../host.ts";
import type { AppFolder } from "./app-folder.ts";
import type { Cgroups } from "./cgroups.ts";
import { isAlive, markedWith, membersOf, type ProcessName } from "./proc.ts";

const LOOK_MS = 50;
/** How long the processes may take to vanish after SIGKILL. */
const KILLED_WITHIN_MS = 10_000;
/** How long an empty cgroup may stay busy. One that stays longer is left to the next boot. */
const EMPTY_FOR_MS = 1_000;

export const sendSignal = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It has ended meanwhile, or runs as another user.
    if (!(error instanceof Error && "code" in error && (error.code === "ESRCH" || error.code === "EPERM"))) throw error;
  }
};

/** The living processes of its group and its cgroup. */
export const processesOf = (leader: ProcessName, folder: string, cgroups: Cgroups): readonly number[] => [
  ...new Set([...membersOf(leader, folder), ...cgroups.members(leader)]),
];

export interface Stopping {
  readonly time: Time;
  readonly cgroups: Cgroups;
  readonly closing: AbortSignal;
}

/** Ends the app's processes, first politely, and forgets them. Does nothing if none runs. */
export const stopProcess = async (folder: AppFolder, stopSeconds: number, { time, cgroups, closing }: Stopping): Promise<void> => {
  const leader = folder.readProcess();
  const left = (): readonly number[] => [...(leader === null ? [] : processesOf(leader, folder.path, cgroups)), ...markedWith(folder.path)];
  const wait = async (condition: () => boolean, withinMs: number): Promise<boolean> => {
    const held = await until(time, condition, { everyMs: LOOK_MS, withinMs, signal: closing });
    if (closing.aborted && !held) throw new HostClosed();
    return held;
  };
  /** Again with each look: a process may have forked in between. */
  const killAll = (): boolean => {
    if (leader !== null) cgroups.kill(leader);
    const pids = left();
    for (const pid of pids) sendSignal(pid, "SIGKILL");
    return pids.length === 0;
  };
  if (leader !== null && membersOf(leader, folder.path).length > 0) {
    sendSignal(-leader.pid, "SIGTERM");
    // The leader ends when the program has; what the program leaves behind gets no more time.
    await wait(() => !isAlive(leader), stopSeconds * 1_000);
  }
  if (left().length > 0 && !(await wait(killAll, KILLED_WITHIN_MS)))
    throw new HostFailure({ stage: "stopping", reason: "STOP_FAILED", message: `process ${left()[0]} did not end after SIGKILL` });
  if (leader === null) return;
  await wait(() => cgroups.remove(leader), EMPTY_FOR_MS);
  folder.dropProcess();
};
