// Starts an app's program in a process group of its own, and stops whatever runs in such a group.
import { spawn } from "node:child_process";
import { realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { hiddenTexts } from "../../../protocol/kit/log-text.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { packageRoot, type Time, until } from "../../agent/index.ts";
import { environmentOf, HostFailure, refuse, type Secrets } from "../host.ts";
import type { AppFolder } from "./app-folder.ts";
import { headlineOf } from "./log-file.ts";
import { isAlive, membersOf, nameProcess, type ProcessName } from "./proc.ts";

/** Not in dist/: the compiler leaves plain JavaScript where it is. */
const SHIM = join(packageRoot(import.meta.dirname), "agent-sim/host/processes/shim.mjs");
export const OWN_PROGRAMS = join(packageRoot(import.meta.dirname), "agent-sim/programs");
const LOOK_MS = 50;
/** How long a group may take to vanish after SIGKILL. */
const KILLED_WITHIN_MS = 10_000;

/** The file of a program, which is below the folder of programs, links included. */
export const programFile = (programs: string, name: string): string => {
  try {
    const root = realpathSync(programs);
    const file = realpathSync(join(root, name, "main.mjs"));
    return file.startsWith(`${root}${sep}`) ? file : refuse("LINK_REFUSED", `the program ${name} lies outside of the agent's programs`);
  } catch (error) {
    if (error instanceof HostFailure) throw error;
    return refuse("UNKNOWN_PROGRAM", `this agent has no program ${name}`);
  }
};

export interface Launch {
  readonly app: DesiredApp;
  readonly secrets: Secrets;
  readonly program: string;
  readonly logBytes: number;
  /** Called when the process is on record and has not begun. */
  readonly onRecorded: () => void;
}

const failed = (reason: string, message: string): HostFailure => new HostFailure({ stage: "starting", reason, message });

/** Starts the program. The process is on record before it begins: if the agent dies in between, the shim gets no order and ends. */
export const launch = async (folder: AppFolder, { app, secrets, program, logBytes, onRecorded }: Launch): Promise<ProcessName> => {
  const { spec, revision } = app;
  const volumes = folder.prepareVolumes(spec.volumes.map(({ name }) => name));
  const ofVolumes = spec.volumes.flatMap(({ name, variable }) => (variable === undefined ? [] : [[variable, volumes[name]]]));
  const environment = { ...environmentOf(app, secrets), ...Object.fromEntries(ofVolumes) };
  const shim = spawn(process.execPath, [SHIM], { cwd: folder.path, env: {}, detached: true, stdio: ["pipe", "ignore", "ignore"] });
  const error = await new Promise<Error | null>((resolve) => shim.once("error", resolve).once("spawn", () => resolve(null)));
  const name = shim.pid === undefined ? null : nameProcess(shim.pid);
  if (error !== null || name === null) throw failed("SPAWN_FAILED", error?.message ?? "the process ended at once");
  // It may end before it has read its order; that it ended is seen by its id.
  shim.stdin.on("error", () => undefined);
  shim.unref();
  try {
    folder.writeProcess(name);
    onRecorded();
  } catch (error_) {
    shim.stdin.destroy();
    throw error_;
  }
  const ordered = { program, environment, hidden: hiddenTexts(Object.values(secrets)), logBytes, headline: headlineOf(revision) };
  await new Promise<void>((resolve) => shim.stdin.end(JSON.stringify(ordered), () => resolve()));
  return name;
};

const signalGroup = ({ pid }: ProcessName, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
};

/** Ends the app's processes, first politely, and forgets them. Does nothing if none runs. */
export const stopProcess = async (folder: AppFolder, stopSeconds: number, time: Time): Promise<void> => {
  const leader = folder.readProcess();
  if (leader === null) return;
  const isGone = (): boolean => membersOf(leader, folder.path).length === 0;
  const isEnded = (): boolean => !isAlive(leader);
  if (!isGone()) {
    signalGroup(leader, "SIGTERM");
    // The leader ends when the program has; what the program leaves behind gets no more time.
    await until(time, isEnded, { everyMs: LOOK_MS, withinMs: stopSeconds * 1_000 });
    if (!isGone()) signalGroup(leader, "SIGKILL");
    if (!(await until(time, isGone, { everyMs: LOOK_MS, withinMs: KILLED_WITHIN_MS })))
      throw new HostFailure({ stage: "stopping", reason: "STOP_FAILED", message: `process ${leader.pid} did not end after SIGKILL` });
  }
  folder.dropProcess();
};
