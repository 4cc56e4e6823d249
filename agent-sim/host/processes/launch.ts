// Starts an app's program in a process group and, where the agent may make one, a cgroup of its own.
import { realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { hiddenTexts } from "../../../protocol/kit/masking.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import type { Time } from "../../agent/index.ts";
import { startProgram } from "../../children/index.ts";
import { environmentOf, HostFailure, refuse, type Secrets } from "../host.ts";
import type { AppFolder } from "./app-folder.ts";
import type { Cgroups } from "./cgroups.ts";
import { headlineOf } from "./log-file.ts";
import { MARK, nameProcess, type ProcessName } from "./proc.ts";

/** Below the folder of the agent's own files. */
export const SHIM = "agent-sim/host/processes/shim.mjs";
export const PROGRAMS = "agent-sim/programs";

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
  readonly shim: string;
  readonly logBytes: number;
  readonly time: Time;
  readonly cgroups: Cgroups;
  /** Called when the process is on record and has not begun. */
  readonly onRecorded: () => void;
}

const failed = (reason: string, message: string): HostFailure => new HostFailure({ stage: "starting", reason, message });

/** Starts the program. The process is on record before it begins: if the agent dies in between, the shim gets no order and ends. */
export const launch = async (
  folder: AppFolder,
  { app, secrets, program, shim: shimFile, logBytes, time, cgroups, onRecorded }: Launch,
): Promise<ProcessName> => {
  const { spec, revision } = app;
  const volumes = folder.prepareVolumes(spec.volumes.map(({ name }) => name));
  const ofVolumes = spec.volumes.flatMap(({ name, variable }) => (variable === undefined ? [] : [[variable, volumes[name]]]));
  const environment = { ...environmentOf(app, secrets), ...Object.fromEntries(ofVolumes), [MARK]: folder.path };
  const { child: shim } = startProgram({
    command: process.execPath,
    words: [shimFile],
    cwd: folder.path,
    env: {},
    time,
    stdio: ["pipe", "ignore", "ignore"],
    outlives: true,
  });
  const { stdin } = shim;
  const error = await new Promise<Error | null>((resolve) => shim.once("error", resolve).once("spawn", () => resolve(null)));
  const found = shim.pid === undefined ? null : nameProcess(shim.pid);
  if (error !== null || found === null || stdin === null) throw failed("SPAWN_FAILED", error?.message ?? "the process ended at once");
  // It may end before it has read its order; that it ended is seen by its id.
  stdin.on("error", () => undefined);
  shim.unref();
  // The shim waits for its order, so everything that the program starts is in the cgroup too.
  const name: ProcessName = { ...found, cgroup: cgroups.enter(app.appId, found.pid) };
  try {
    folder.writeProcess(name);
    onRecorded();
  } catch (error_) {
    stdin.destroy();
    throw error_;
  }
  const ordered = { program, environment, hidden: hiddenTexts(Object.values(secrets)), logBytes, headline: headlineOf(revision) };
  await new Promise<void>((resolve) => stdin.end(JSON.stringify(ordered), () => resolve()));
  return name;
};
