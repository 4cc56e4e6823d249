// Child processes of a chaos run or a bench: direct children that the run ends by their ids, however the run itself ends.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { markOfRun } from "../setup/run-mark.ts";
import { noteChild } from "../setup/workspace.ts";

const STOP_WITHIN_MS = 30_000;
const KEPT_COMPLAINT = 4_000;

export interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly alive: boolean;
  /** The end of its output, for a person. */
  readonly said: string;
  /** Resolves with its output up to the sign; rejects if it ends before. */
  waitFor(sign: string, withinMs: number): Promise<string>;
  signal(name: NodeJS.Signals): void;
  /** Sends SIGKILL and resolves once the process is gone. */
  kill(): Promise<void>;
  /** Asks it to end; returns its exit code, or null if it had to be killed. */
  stop(name?: NodeJS.Signals): Promise<number | null>;
}

export interface ChildProgram {
  readonly command: string;
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

const living = new Set<ChildProcess>();
const endAll = (): void => {
  for (const child of living) child.kill("SIGKILL");
};
// The last resort: whatever ends this process, a failure included, ends its children.
process.once("exit", endAll);

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

export const startChild = ({ command, words, env, cwd }: ChildProgram): Child => {
  // A process group of its own, so that Ctrl-C reaches only the runner, which ends its children in order.
  const child = spawn(command, words, { env, ...(cwd === undefined ? {} : { cwd }), stdio: ["ignore", "pipe", "pipe"], detached: true });
  living.add(child);
  if (child.pid !== undefined) noteChild(child.pid);
  let said = "";
  const listeners = new Set<() => void>();
  const hear = (text: string): void => {
    said = (said + text).slice(-KEPT_COMPLAINT);
    for (const listener of listeners) listener();
  };
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", hear);
  child.once("error", (error) => hear(`\n${String(error)}`));
  child.once("close", () => {
    living.delete(child);
    for (const listener of listeners) listener();
  });
  const ended = async (): Promise<void> => {
    if (!hasEnded(child) && child.pid !== undefined) await once(child, "exit");
  };
  return {
    process: child,
    pid: child.pid ?? -1,
    get alive() {
      return !hasEnded(child) && child.pid !== undefined;
    },
    get said() {
      return said;
    },
    waitFor: (sign, withinMs) =>
      new Promise((resolve, reject) => {
        const settle = (act: () => void): void => {
          listeners.delete(look);
          clearTimeout(late);
          act();
        };
        const look = (): void => {
          if (said.includes(sign)) settle(() => resolve(said));
          else if (hasEnded(child) || child.pid === undefined)
            settle(() => reject(new Error(`${command} ended before it said "${sign}": ${said.slice(-1_500)}`)));
        };
        const late = setTimeout(() => settle(() => reject(new Error(`${command} did not say "${sign}" in ${withinMs} ms: ${said.slice(-1_500)}`))), withinMs);
        listeners.add(look);
        look();
      }),
    signal: (name) => void child.kill(name),
    kill: async () => {
      child.kill("SIGKILL");
      await ended();
    },
    stop: async (name = "SIGTERM") => {
      if (hasEnded(child) || child.pid === undefined) return child.exitCode;
      child.kill(name);
      const stubborn = setTimeout(() => child.kill("SIGKILL"), STOP_WITHIN_MS);
      await ended();
      clearTimeout(stubborn);
      return child.exitCode;
    },
  };
};

/** The environment without any variable that the gateway reads, so a run means the same on every machine. */
export const plainEnv = (): NodeJS.ProcessEnv => ({
  ...markOfRun(),
  ...Object.fromEntries(["PATH", "HOME", "TMPDIR", "LANG", "TZ"].flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))),
});
