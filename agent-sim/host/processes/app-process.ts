// The process of one app: checks what it needs, starts it, waits until it is healthy, and measures it.

import { join } from "node:path";
import { createMasker } from "../../../protocol/kit/masking.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { runProgram } from "../../children/index.ts";
import { environmentOf, HostClosed, HostFailure, portsOf, refuse, type Secrets, takesSecrets } from "../host.ts";
import type { AppFolder } from "./app-folder.ts";
import { FORMER, hookFailure, INCOMING } from "./data-words.ts";
import { untilHealthy } from "./health.ts";
import { launch, programFile } from "./launch.ts";
import { followLog, linesOfLastStart, tailLog } from "./log-file.ts";
import { checkPorts } from "./ports.ts";
import { figuresOf, isAlive, startOf } from "./proc.ts";
import type { AppContext, AppProcess } from "./settings.ts";
import { processesOf, sendSignal, stopProcess } from "./stop.ts";

const LOOK_MS = 100;
const REPORT_LINES = 20;
/** The stopping time of an app whose revision cannot be read. */
const STOP_SECONDS = 10;
/** CPU time over a shorter span says nothing. */
const MEASURED_OVER_MS = 1_000;
/** A machine that learns the time after its start moves its own start, too. Smaller differences are the clock's drift, and no news. */
const CLOCK_SET_MS = 5_000;

const whenClosed = (closing: AbortSignal, done: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const close = (): void => reject(new HostClosed());
    if (closing.aborted) return close();
    closing.addEventListener("abort", close, { once: true });
    done.addEventListener("abort", () => closing.removeEventListener("abort", close), { once: true });
  });

export const fetchSecrets = async ({ secretsOf, closing }: AppContext, app: DesiredApp): Promise<Secrets> => {
  if (!takesSecrets(app)) return {};
  const done = new AbortController();
  try {
    return await Promise.race([secretsOf(app.appId), whenClosed(closing, done.signal)]);
  } catch (error) {
    if (error instanceof HostClosed) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new HostFailure({ stage: "preparing", reason: "SECRETS_UNAVAILABLE", message: `the secrets cannot be fetched: ${why}` });
  } finally {
    done.abort();
  }
};

export const refusePortsOfOthers = (context: AppContext, app: DesiredApp): void => {
  const taken = context.portsOfOthers(app.appId);
  for (const port of Object.values(portsOf(app))) {
    const other = taken.get(port);
    if (other !== undefined) refuse("PORT_OF_OTHER_APP", `port ${port} belongs to ${other}`);
  }
};

export const createAppProcess = (context: AppContext, folder: AppFolder): AppProcess => {
  const { time, supervision, programs } = context;
  let measured = { atMs: 0, cpuMs: 0, percent: null as number | null, pid: 0 };
  let started: { readonly pid: number; readonly at: Date } | null = null;
  const isRunning = (): boolean => {
    const name = folder.readProcess();
    return name !== null && isAlive(name);
  };
  const lastLines = (): readonly string[] => linesOfLastStart(folder.path, REPORT_LINES);
  const ending = (): string => {
    const exit = folder.readExit();
    if (exit === null) return "it was killed together with its shim";
    return exit.signal === null ? `it ended with code ${exit.code}` : `${exit.signal} ended it`;
  };
  const members = (): readonly number[] => {
    const leader = folder.readProcess();
    return leader === null ? [] : processesOf(leader, folder.path, context.cgroups);
  };
  const stop: AppProcess["stop"] = (app) => stopProcess(folder, app?.spec.stopSeconds ?? STOP_SECONDS, context);
  const self: AppProcess = {
    isAlive: async () => isRunning(),
    ending,
    lastLines: async () => lastLines(),
    tail: async (lines) => tailLog(folder.path, lines),
    follow: (signal, isOver) => followLog({ folder: folder.path, time, signal, isOver }),
    removeVolumes: async () => folder.removeVolumes(),
    volumes: async ({ spec }) => {
      folder.checkVolumes(spec.volumes.map(({ name }) => name));
      const incoming = join(folder.path, INCOMING);
      return spec.volumes.map(({ name }) => ({ name, path: folder.volumePath(name), before: join(folder.path, FORMER, name), incoming }));
    },
    rest: async (app, mode) => {
      if (mode === "stop") return stop(app);
      for (const pid of members()) sendSignal(pid, "SIGSTOP");
    },
    wake: async (app, mode) => {
      if (mode === "pause") for (const pid of members()) sendSignal(pid, "SIGCONT");
      if (isRunning()) return;
      await stop(app);
      const begin = await self.prepare(app, new Set());
      await begin();
      await self.untilHealthy(app);
    },
    hook: async (app, step) => {
      const program = app.spec.kind === "process" ? programFile(programs, app.spec.program) : refuse("KIND_REFUSED", "this device runs no containers");
      const secrets = await fetchSecrets(context, app);
      const volumes = app.spec.volumes.flatMap(({ name, variable }) => (variable === undefined ? [] : [[variable, folder.volumePath(name)]]));
      const env = { ...environmentOf(app, secrets), ...Object.fromEntries(volumes) };
      const words = [program, ...step.command];
      const run = { command: process.execPath, words, cwd: folder.path, env, time, signals: [context.closing], withinMs: step.timeoutSeconds * 1_000 };
      const { outcome, code, errors } = await runProgram(run);
      if (context.closing.aborted) throw new HostClosed();
      if (outcome === "ended" && code === 0) return;
      const lines = createMasker(Object.values(secrets)).mask(errors).trim().split("\n");
      throw hookFailure(step, outcome === "late" ? `it did not end within ${step.timeoutSeconds} s` : `it ended with code ${code}`, lines);
    },
    prepare: async (app, ownPorts) => {
      if (app.spec.kind !== "process") return refuse("KIND_REFUSED", "this device runs no containers");
      const program = programFile(programs, app.spec.program);
      refusePortsOfOthers(context, app);
      folder.checkVolumes(app.spec.volumes.map(({ name }) => name));
      const secrets = await fetchSecrets(context, app);
      environmentOf(app, secrets);
      await checkPorts(app, ownPorts);
      return async () => {
        await checkPorts(app, new Set());
        const { time, cgroups, onStep, shim } = context;
        await launch(folder, { app, secrets, program, shim, logBytes: supervision.logBytes, time, cgroups, onRecorded: () => onStep("give order") });
      };
    },
    untilHealthy: (app) =>
      untilHealthy(app, {
        context,
        lookMs: LOOK_MS,
        settleMs: supervision.settleMs,
        ended: async () => (isRunning() ? null : ending()),
        lastLines: async () => lastLines(),
      }),
    stop,
    startedAt: () => {
      const leader = folder.readProcess();
      const at = leader === null ? null : startOf(leader, time.wallMs());
      if (leader === null || at === null) return null;
      if (started?.pid !== leader.pid || Math.abs(started.at.getTime() - at.getTime()) > CLOCK_SET_MS) started = { pid: leader.pid, at };
      return started.at;
    },
    figures: () => {
      const leader = folder.readProcess();
      if (leader === null || !isAlive(leader)) return { cpuPercent: null, memoryBytes: null };
      const { cpuMs, memoryBytes } = figuresOf(processesOf(leader, folder.path, context.cgroups).filter((pid) => pid !== leader.pid));
      const nowMs = time.elapsedMs();
      if (measured.pid !== leader.pid) measured = { atMs: nowMs, cpuMs, percent: null, pid: leader.pid };
      else if (nowMs - measured.atMs >= MEASURED_OVER_MS) {
        const share = Math.max(0, cpuMs - measured.cpuMs) / (nowMs - measured.atMs);
        measured = { ...measured, atMs: nowMs, cpuMs, percent: Math.round(share * 1_000) / 10 };
      }
      return { cpuPercent: measured.percent, memoryBytes };
    },
  };
  return self;
};
