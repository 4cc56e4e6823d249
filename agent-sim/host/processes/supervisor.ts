// Watches a running app: starts it again when it ends, gives up when it ends too often, and asks for its health.

import type { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { pause } from "../../agent/index.ts";
import { HostClosed, HostFailure, toAppFailure, toHostFailure } from "../host.ts";
import type { AppRecord } from "./app-folder.ts";
import { askHealth } from "./health.ts";
import type { AppContext, AppProcess } from "./settings.ts";

export interface Supervised {
  readonly context: AppContext;
  readonly process: AppProcess;
  readonly app: () => DesiredApp | null;
  readonly record: () => AppRecord;
  readonly note: (differences: Partial<AppRecord>) => void;
  /** Writes the record where the disk could not hold it before. */
  readonly keep: () => void;
  readonly changed: () => void;
}

export interface Supervisor {
  readonly health: ReportedApp["health"];
  /** The time that the last healthy answer took, until a check gets none. */
  readonly responseMs: number | undefined;
  /** The app has been changed: what was known of it counts no more. */
  reset(healthy: boolean): void;
  resume(): void;
  /** Resolves when it no longer touches the app. */
  pause(): Promise<void>;
  /** Pauses for good. */
  close(): Promise<void>;
}

/** It waits for the gateway, or for space on the disk, as long as that takes. */
const NO_FAULT_OF_THE_APP: ReadonlySet<string> = new Set(["SECRETS_UNAVAILABLE", "DISK_FULL"]);

export const createSupervisor = ({ context, process, app, record, note, keep, changed }: Supervised): Supervisor => {
  const { time, supervision } = context;
  let health: ReportedApp["health"] = "unknown";
  let crashes: number[] = [];
  let missed = 0;
  let responseMs: number | undefined;
  let askedMs = 0;
  let startedMs = time.elapsedMs();
  let stop = new AbortController();
  let watching: Promise<void> | null = null;
  let closed = false;

  const setHealth = (next: ReportedApp["health"]): void => {
    if (next === health) return;
    health = next;
    changed();
  };
  const giveUp = async (watched: DesiredApp, why: string): Promise<void> => {
    const seconds = Math.round(supervision.windowMs / 1_000);
    const message = `ended ${crashes.length} times within ${seconds} s; the last time, ${why}`;
    const failure = new HostFailure({ stage: "running", reason: "CRASH_LOOP", message, lines: await process.lastLines() });
    await process.stop(watched);
    health = "unknown";
    note({ state: "failed", failure: toAppFailure(failure, watched.revision) });
  };
  /** Starts it again; if that fails, the next look finds it still ended, which counts as another time. */
  const startAgain = async (watched: DesiredApp): Promise<HostFailure | null> => {
    try {
      await process.stop(watched);
      const begin = await process.prepare(watched, new Set());
      await begin();
      return null;
    } catch (error) {
      const failure = toHostFailure(error, "starting");
      if (failure instanceof HostFailure) return failure;
      throw failure;
    }
  };
  let notStarted: HostFailure | null = null;
  /** Returns false if the app is given up. */
  const handleEnd = async (watched: DesiredApp, signal: AbortSignal): Promise<boolean> => {
    const nowMs = time.elapsedMs();
    const waits = notStarted !== null && NO_FAULT_OF_THE_APP.has(notStarted.reason);
    crashes = [...crashes.filter((atMs) => atMs > nowMs - supervision.windowMs), ...(waits ? [] : [nowMs])];
    const why = notStarted?.message ?? process.ending();
    if (crashes.length > supervision.crashes) {
      await giveUp(watched, why);
      return false;
    }
    [health, responseMs] = ["unhealthy", undefined];
    if (!waits) note({ restarts: record().restarts + 1 });
    const backoffMs = waits ? supervision.maxBackoffMs : supervision.backoffMs * 2 ** (crashes.length - 1);
    await pause(time, Math.min(supervision.maxBackoffMs, backoffMs), signal);
    if (signal.aborted) return true;
    notStarted = await startAgain(watched);
    if (notStarted === null) [health, missed, startedMs] = ["unknown", 0, time.elapsedMs()];
    return true;
  };
  const checkHealth = async (watched: DesiredApp): Promise<void> => {
    const { intervalSeconds, retries, startSeconds } = watched.spec.health;
    if (time.elapsedMs() - askedMs < intervalSeconds * 1_000 && health !== "unknown") return;
    askedMs = time.elapsedMs();
    let tookMs: number | undefined;
    const answer = await askHealth(watched, context.closing, (ms) => {
      tookMs = Math.round(ms * 10) / 10;
    });
    if (context.closing.aborted) throw new HostClosed();
    responseMs = tookMs;
    if (answer !== null && health === "unknown" && askedMs - startedMs < startSeconds * 1_000) return;
    missed = answer === null ? 0 : missed + 1;
    if (missed === 0) setHealth("healthy");
    else if (missed >= retries) setHealth("unhealthy");
  };
  /** Returns false if the app is given up. What the system or the engine refuses now, the next look tries again. */
  const look = async (watched: DesiredApp, signal: AbortSignal): Promise<boolean> => {
    try {
      keep();
      if (!(await process.isAlive())) return await handleEnd(watched, signal);
      await checkHealth(watched);
    } catch (error) {
      const failure = toHostFailure(error, "running");
      if (!(failure instanceof HostFailure)) throw failure;
    }
    return true;
  };
  const watch = async (watched: DesiredApp, signal: AbortSignal): Promise<void> => {
    try {
      while (!signal.aborted && (await look(watched, signal))) await pause(time, supervision.lookMs, signal);
    } catch (error) {
      if (!(error instanceof HostClosed)) throw error;
    }
  };
  const pauseWatching = async (): Promise<void> => {
    stop.abort();
    await watching;
  };
  return {
    get health() {
      return health;
    },
    get responseMs() {
      return responseMs;
    },
    reset: (healthy) => {
      [health, crashes, missed, askedMs, notStarted] = [healthy ? "healthy" : "unknown", [], 0, time.elapsedMs(), null];
      responseMs = undefined;
    },
    resume: () => {
      const watched = app();
      if (closed || watched === null || watching !== null) return;
      stop = new AbortController();
      watching = watch(watched, stop.signal).finally(() => {
        watching = null;
      });
    },
    pause: pauseWatching,
    close: () => {
      closed = true;
      return pauseWatching();
    },
  };
};
