// The process that starts the agent's current version, tries a new one, and goes back to the former if the new one does not reach the gateway.
import { existsSync } from "node:fs";
import { compareVersions } from "../../protocol/records/devices/agent-release.ts";
import { AGENT_VERSION, pause, type Time } from "../agent/index.ts";
import { type Program, type ProgramEnd, startProgram } from "../children/index.ts";
import type { AgentVersions, UpdateState } from "./versions.ts";

/** The agent ends with this code to be started again. */
export const RESTART_CODE = 75;
/** What the agent sends to its launcher once it has reached the gateway. */
export const REACHED_GATEWAY = "ready";
const COULD_NOT_RUN = 2;
const AGAIN_MS = 2_000;
/** A version that ends by itself this often, this soon after its trial, is given up like one that fails it. */
const PROBATION = { ms: 600_000, crashes: 3 };
/** Longer than the agent takes to stop. */
const PATIENCE_MS = 12_000;

export interface LauncherOptions {
  readonly versions: AgentVersions;
  /** The main file of the version that was installed by hand. */
  readonly installed: string;
  readonly args: readonly string[];
  readonly trialMs: number;
  readonly time: Time;
  readonly say: (text: string) => void;
}

export const launchAgent = async ({ versions, installed, args, trialMs, time, say }: LauncherOptions): Promise<number> => {
  let agent: Program | null = null;
  let probation: { readonly former: string | null; readonly untilMs: number; crashes: number; readonly named: NonNullable<UpdateState["trial"]> } | null = null;
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      stopping = true;
      void agent?.end();
    });

  const fileOf = (version: string | null): string => {
    const isNewer = version !== null && compareVersions(version, AGENT_VERSION) > 0;
    return isNewer && existsSync(versions.mainOf(version)) ? versions.mainOf(version) : installed;
  };
  // If the launcher dies, the agent stops by itself.
  const start = (file: string): Program =>
    startProgram({
      command: process.execPath,
      words: [...process.execArgv, file, "agent", ...args],
      env: process.env,
      time,
      stdio: ["inherit", "inherit", "inherit", "ipc"],
      patienceMs: PATIENCE_MS,
      outlives: true,
      sharesTerminal: true,
    });
  /** Resolves to why the version on trial does not run; null if it does. */
  const problemOf = async ({ child, ended }: Program): Promise<string | null> => {
    const late = new AbortController();
    const problem = await Promise.race([
      new Promise<null>((resolve) => child.on("message", (message) => message === REACHED_GATEWAY && resolve(null))),
      ended.then(({ code, signal, error }) => error?.message ?? (signal === null ? `it ended with code ${code}` : `${signal} ended it`)),
      pause(time, trialMs, late.signal).then(() => `it did not reach the gateway within ${Math.round(trialMs / 1_000)} s`),
    ]);
    late.abort();
    return problem;
  };
  const run = async (): Promise<Pick<ProgramEnd, "code" | "signal">> => {
    const { current, trial } = versions.read();
    const started = start(fileOf(trial?.version ?? current));
    agent = started;
    if (trial === null) return started.ended;
    const problem = await problemOf(started);
    if (stopping) return started.ended;
    if (problem === null) {
      versions.write({ current: trial.version, trial: null, failed: null });
      probation = { former: current, untilMs: time.elapsedMs() + PROBATION.ms, crashes: 0, named: trial };
    } else {
      say(`${trial.version} does not run: ${problem}`);
      started.child.kill("SIGKILL");
      versions.write({ trial: null, failed: { ...trial, message: problem, told: false } });
      await started.end();
      return { code: RESTART_CODE, signal: null };
    }
    return started.ended;
  };
  /** The version that has just been taken crashes again and again: the former one comes back. */
  const crashed = (): void => {
    if (probation === null || time.elapsedMs() > probation.untilMs) return;
    probation.crashes += 1;
    if (probation.crashes < PROBATION.crashes) return;
    const { former, named } = probation;
    const message = `it ended ${PROBATION.crashes} times within ${PROBATION.ms / 60_000} minutes of its update`;
    say(`${named.version} is given up: ${message}`);
    versions.write({ current: former, trial: null, failed: { ...named, message, told: false } });
    probation = null;
  };
  for (;;) {
    const { code, signal } = await run();
    if (stopping || code === 0 || code === COULD_NOT_RUN) return code ?? 0;
    if (code === RESTART_CODE) continue;
    say(`the agent ended (${signal ?? code}) and is started again`);
    crashed();
    await pause(time, AGAIN_MS);
    if (stopping) return 0;
  }
};
