// A host whose apps exist only in memory, for load and chaos runs. Whether a stage fails, and how long it takes, follows from the seed, the app's
// template and configuration, its revision and the attempt: a run can be repeated, whatever the order of its commands and the ids of its apps.
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { DesiredApp, ReportedApp } from "../../protocol/records/apps/app-spec.ts";
import { between, noop, pause, type Time } from "../agent/index.ts";
import {
  checkAppId,
  checkDesired,
  environmentOf,
  type Host,
  HostFailure,
  type HostOptions,
  portsOf,
  type ReportedFailure,
  refuse,
  takesSecrets,
  toAppFailure,
} from "./host.ts";
import { createTurns } from "./turns.ts";

type Stage = "preparing" | "stopping" | "starting" | "health" | "running" | "removing";

export interface SimulatedHostOptions extends HostOptions {
  readonly time: Time;
  readonly seed: number;
  /** The duration of each stage; default 5 to 50. */
  readonly delayMs?: { readonly least: number; readonly most: number };
  /** Between the start of an app and its crash; default 500 to 3 000. */
  readonly crashAfterMs?: { readonly least: number; readonly most: number };
  /** The share of attempts that fail in a stage, from 0 to 1. `running`: of those that have started, the share that crashes later. */
  readonly failures?: Partial<Record<Stage, number>>;
}

/** What a machine would say. */
const WHY: Readonly<Record<Stage, Pick<ReportedFailure, "reason" | "message">>> = {
  preparing: { reason: "DISK_FULL", message: "no space is left on the device for this app (simulated)" },
  stopping: { reason: "STOP_FAILED", message: "the app did not end when it was told to (simulated)" },
  starting: { reason: "EXITED", message: "the app exited with code 1 right after its start (simulated)" },
  health: { reason: "HEALTH_CHECK_FAILED", message: "the health check got 503 five times in a row (simulated)" },
  running: { reason: "CRASH_LOOP", message: "the app crashed five times within a minute (simulated)" },
  removing: { reason: "DISK_FULL", message: "no space is left on the device to note the removal (simulated)" },
};
const MAX_LINES = 200;
const REQUEST_MS = 1_000;

interface SimulatedApp {
  current: DesiredApp | null;
  incoming: DesiredApp | null;
  state: ReportedApp["state"];
  failure: ReportedFailure | null;
  restarts: number;
  attempts: number;
  requests: number;
  startedMs: number;
  readonly lines: string[];
  readonly followers: Set<(line: string | null) => void>;
}

/** From 0 to 1, the same for the same parts. */
const chance = (...parts: readonly (string | number)[]): number => createHash("sha256").update(parts.join(" ")).digest().readUInt32BE() / 4_294_967_296;

/** An app's figures move around values of its own. */
const SWING_MS = 40_000;
const reportOf = (appId: DesiredApp["appId"], { current, state, failure, restarts, startedMs }: SimulatedApp, nowMs: number): ReportedApp => {
  const runs = state === "running";
  const usual = chance(appId);
  const swing = Math.sin(nowMs / SWING_MS + usual * 50) / 4 + chance(appId, nowMs) / 4;
  return {
    appId,
    revision: current?.revision ?? 0,
    state,
    health: runs ? "healthy" : "unknown",
    failure,
    restarts,
    cpuPercent: runs ? Math.round((0.2 + usual * 10) * (1 + swing) * 10) / 10 : null,
    memoryBytes: runs ? Math.round((20_000_000 + usual * 50_000_000) * (1 + swing / 5)) : null,
    ports: current === null ? {} : portsOf(current),
    ...(runs ? { startedAt: new Date(startedMs).toISOString() } : {}),
    ...(runs && current?.spec.health.http !== undefined ? { responseMs: Math.round((3 + usual * 60) * (1 + swing) * 10) / 10 } : {}),
  };
};

const newApp = (): SimulatedApp => ({
  current: null,
  incoming: null,
  state: "stopped",
  failure: null,
  restarts: 0,
  attempts: 0,
  requests: 0,
  startedMs: 0,
  lines: [],
  followers: new Set(),
});

const isSame = (one: DesiredApp, other: DesiredApp): boolean =>
  isDeepStrictEqual({ ...one, state: null, keepVolumes: null }, { ...other, state: null, keepVolumes: null });

async function* queueOf(app: SimulatedApp, signal: AbortSignal): AsyncIterable<string> {
  const waiting: (string | null)[] = [];
  let wake = noop;
  const take = (line: string | null): void => {
    waiting.push(line);
    wake();
  };
  const end = (): void => take(null);
  app.followers.add(take);
  signal.addEventListener("abort", end, { once: true });
  try {
    while (!signal.aborted) {
      const line = waiting.shift();
      if (line === null) return;
      if (line !== undefined) yield line;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    app.followers.delete(take);
    signal.removeEventListener("abort", end);
  }
}

export const createSimulatedHost = (options: SimulatedHostOptions): Host => {
  const { time, seed, secretsOf, onChange = noop, delayMs = { least: 5, most: 50 }, crashAfterMs = { least: 500, most: 3_000 }, failures = {} } = options;
  const apps = new Map<DesiredApp["appId"], SimulatedApp>();
  const inTurn = createTurns();

  const log = (app: SimulatedApp, text: string): void => {
    const line = `${new Date(time.wallMs()).toISOString()} ${text}`;
    app.lines.push(line);
    app.lines.splice(0, app.lines.length - MAX_LINES);
    for (const tell of app.followers) tell(line);
  };
  const set = (appId: DesiredApp["appId"], app: SimulatedApp, differences: Partial<SimulatedApp>): void => {
    Object.assign(app, differences);
    onChange(reportOf(appId, app, time.wallMs()));
  };
  /** What becomes of this stage of this attempt: how long it takes, and its failure, if it fails. */
  const fateOf = (app: SimulatedApp, desired: DesiredApp, stage: Stage) => {
    const of = [seed, desired.template, JSON.stringify(desired.config), desired.revision, stage, app.attempts];
    const { least, most } = stage === "running" ? crashAfterMs : delayMs;
    const fail = (): HostFailure => {
      log(app, WHY[stage].message);
      return new HostFailure({ stage, ...WHY[stage], lines: app.lines });
    };
    return { afterMs: between(() => chance("delay", ...of), least, most), fail: chance("failure", ...of) < (failures[stage] ?? 0) ? fail : null };
  };
  const pass = async (app: SimulatedApp, desired: DesiredApp, stage: Stage): Promise<void> => {
    const { afterMs, fail } = fateOf(app, desired, stage);
    await pause(time, afterMs);
    if (fail !== null) throw fail();
  };
  const crashLater = (app: SimulatedApp, desired: DesiredApp): void => {
    const { afterMs, fail } = fateOf(app, desired, "running");
    if (fail === null) return;
    time.after(afterMs, () => {
      if (app.current === desired && app.state === "running") set(desired.appId, app, { state: "failed", failure: toAppFailure(fail(), desired.revision) });
    });
  };
  const prepare = async (app: SimulatedApp, desired: DesiredApp): Promise<void> => {
    const numbers = new Set(Object.values(portsOf(desired)));
    for (const [id, { current, incoming }] of apps) {
      const taken = id === desired.appId ? [] : [current, incoming].flatMap((other) => (other === null ? [] : Object.values(portsOf(other))));
      for (const port of taken) if (numbers.has(port)) refuse("PORT_OF_OTHER_APP", `port ${port} belongs to ${id}`);
    }
    app.incoming = desired;
    const fetched = takesSecrets(desired) ? secretsOf(desired.appId) : Promise.resolve({});
    const secrets = await fetched.catch((error: unknown) => {
      throw new HostFailure({ stage: "preparing", reason: "SECRETS_UNAVAILABLE", message: `the secrets cannot be fetched: ${String(error)}` });
    });
    environmentOf(desired, secrets);
    await pass(app, desired, "preparing");
  };
  const update = async (app: SimulatedApp, desired: DesiredApp): Promise<void> => {
    const { appId } = desired;
    const { current, state } = app;
    app.attempts += 1;
    await prepare(app, desired);
    set(appId, app, { state: "installing" });
    try {
      if (state === "running") await pass(app, desired, "stopping");
      if (desired.state === "running") {
        await pass(app, desired, "starting");
        log(app, `--- revision ${desired.revision} starts ---`);
        await pass(app, desired, "health");
      }
      set(appId, app, { current: desired, state: desired.state, failure: null, restarts: 0, startedMs: time.wallMs() });
      if (desired.state === "running") crashLater(app, desired);
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      const failure = toAppFailure(error, desired.revision);
      const restores = current !== null && state !== "failed" && current.revision !== desired.revision;
      set(appId, app, restores ? { state, failure } : { current: desired, state: "failed", failure });
      throw error;
    }
  };
  const bring = async (app: SimulatedApp, desired: DesiredApp, anew: boolean): Promise<void> => {
    const { current, state } = app;
    if (desired.state === "removed") {
      if (current !== null || state === "failed") await pass(app, desired, "removing");
      apps.delete(desired.appId);
      return set(desired.appId, app, { state: "removed", failure: null, current: null });
    }
    if (current === null || !isSame(current, desired)) return update(app, desired);
    if (desired.state === "stopped") return set(desired.appId, app, { state: "stopped", failure: null });
    if (anew || state !== "running") return update(app, desired);
    if (app.failure !== null) set(desired.appId, app, { failure: null });
  };
  const fail = (app: SimulatedApp, { appId, revision }: DesiredApp, error: unknown): never => {
    if (!(error instanceof HostFailure)) throw error;
    const failure = toAppFailure(error, Number.isInteger(revision) && revision > 0 ? revision : 1);
    set(appId, app, { state: app.current === null ? "failed" : app.state, failure });
    throw error;
  };
  const carryOut = async (given: DesiredApp, anew: boolean): Promise<ReportedApp> => {
    const appId = checkAppId(given.appId);
    const app = apps.get(appId) ?? newApp();
    apps.set(appId, app);
    try {
      await bring(app, checkDesired(given), anew);
    } catch (error) {
      return fail(app, given, error);
    } finally {
      app.incoming = null;
      if (app.state === "removed") for (const tell of app.followers) tell(null);
    }
    return reportOf(appId, app, time.wallMs());
  };
  const change = (given: DesiredApp, anew: boolean): Promise<ReportedApp> => inTurn(given.appId, () => carryOut(given, anew));
  /** A running app that somebody follows answers a request every second. */
  const serve = (appId: string, app: SimulatedApp, signal: AbortSignal): void => {
    time.after(REQUEST_MS, () => {
      if (app.state === "running") log(app, `request ${++app.requests} answered in ${Math.ceil(chance(seed, appId, app.requests) * 100)} ms`);
      if (app.followers.size > 0 && !signal.aborted) serve(appId, app, signal);
    });
  };
  const known = (appId: string): SimulatedApp => [...apps].find(([id]) => id === appId)?.[1] ?? refuse("UNKNOWN_APP", "this app is not on the device");
  return {
    apply: (desired) => change(desired, false),
    restart: (desired) => change(desired, true),
    revision: (appId) => [...apps].find(([id]) => id === appId)?.[1].current ?? null,
    report: () => [...apps].map(([appId, app]) => reportOf(appId, app, time.wallMs())),
    tail: async (appId, count) => (count > 0 ? known(appId).lines.slice(-count) : []),
    follow: (appId, signal) => {
      const app = known(appId);
      serve(appId, app, signal);
      return queueOf(app, signal);
    },
    close: async () => {
      for (const { followers } of apps.values()) for (const tell of followers) tell(null);
    },
  };
};
