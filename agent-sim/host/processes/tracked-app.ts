// What the process host knows of one app, in memory and on disk, and how that is reported.
import type { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { HostFailure, portsOf, type ReportedFailure, toAppFailure, toHostFailure } from "../host.ts";
import { type AppFolder, type AppRecord, NO_RECORD, openAppFolder } from "./app-folder.ts";
import type { AppContext, AppProcess } from "./settings.ts";
import { createSupervisor, type Supervisor } from "./supervisor.ts";

/** The failure, or a rejection with the defect. */
export const expectFailure = (error: unknown, stage: ReportedFailure["stage"]): HostFailure => {
  const failure = toHostFailure(error, stage);
  if (failure instanceof HostFailure) return failure;
  throw failure;
};

export interface TrackedApp {
  readonly folder: AppFolder;
  readonly process: AppProcess;
  readonly supervisor: Supervisor;
  /** False before its first record and once it is removed. */
  readonly exists: boolean;
  readonly record: AppRecord;
  /** The revision that runs or ran last. */
  readonly current: DesiredApp | null;
  /** The revision that is being installed. */
  incoming: DesiredApp | null;
  report(): ReportedApp;
  save(differences: Partial<AppRecord>): void;
  /** Like `save`, where the disk must not decide: if it cannot hold it (false), the supervisor tries again, and until then a start of the agent finds the change. */
  note(differences: Partial<AppRecord>): boolean;
  /** Ends a change with this revision. A failure must be noted, whatever the disk says. */
  settle(app: DesiredApp, ending: Pick<AppRecord, "state" | "failure" | "restored">): void;
  removed(): void;
}

interface Found {
  readonly record: AppRecord | null;
  readonly current: DesiredApp | null;
}

/** A damaged record is a failed app, which the next order replaces: one bad folder must not keep the agent from its other apps. */
const readFrom = (folder: AppFolder): Found => {
  try {
    const record = folder.readRecord();
    return { record, current: record === null || record.current === null ? null : folder.readRevision(record.current) };
  } catch (error) {
    const failure = toAppFailure(expectFailure(error, "preparing"), 1);
    return { record: { ...NO_RECORD, state: "failed", failure }, current: null };
  }
};

export const trackApp = (context: AppContext, appId: DesiredApp["appId"]): TrackedApp => {
  const folder = openAppFolder(context.apps, appId, context.disk);
  const process = context.createProcess(context, folder);
  const found = readFrom(folder);
  let exists = found.record !== null;
  let record = found.record ?? NO_RECORD;
  let current = found.current;
  let isOnDisk = true;

  const report = (): ReportedApp => {
    const runs = record.state === "running" && record.change === null;
    const startedAt = runs ? process.startedAt() : null;
    return {
      appId,
      revision: record.current ?? 0,
      state: !exists ? "removed" : record.change?.kind === "update" ? "installing" : record.state,
      health: runs ? supervisor.health : "unknown",
      failure: record.failure,
      restarts: record.restarts,
      ...process.figures(),
      ports: current === null ? {} : portsOf(current),
      ...(startedAt === null ? {} : { startedAt: startedAt.toISOString() }),
      ...(runs && supervisor.responseMs !== undefined ? { responseMs: supervisor.responseMs } : {}),
    };
  };
  const changed = (): void => context.onChange(report());
  const put = (next: AppRecord): void => {
    [record, exists] = [next, true];
    changed();
  };
  const save = (differences: Partial<AppRecord>): boolean => {
    const next = { ...record, ...differences };
    folder.writeRecord(next);
    isOnDisk = true;
    put(next);
    return true;
  };
  const note = (differences: Partial<AppRecord>): boolean => {
    try {
      return save(differences);
    } catch (error) {
      expectFailure(error, "preparing");
      isOnDisk = false;
      put({ ...record, ...differences });
      return false;
    }
  };
  const keep = (): void => {
    if (!isOnDisk) note({});
  };
  const supervisor = createSupervisor({ context, process, app: () => current, record: () => record, note, keep, changed });
  return {
    folder,
    process,
    supervisor,
    report,
    save,
    note,
    incoming: null,
    get exists() {
      return exists;
    },
    get record() {
      return record;
    },
    get current() {
      return current;
    },
    settle: (app, ending) => {
      const write = ending.failure === null ? save : note;
      supervisor.reset(ending.state === "running");
      const before = current;
      current = app;
      try {
        const onRecord = write({ ...ending, current: app.revision, restarts: 0, change: null });
        context.onStep("tidy");
        // The change on the disk still names the other revision.
        if (onRecord) folder.tidy(app.revision);
      } catch (error) {
        current = before;
        throw error;
      }
    },
    removed: () => {
      [exists, current, record] = [false, null, { ...NO_RECORD, current: record.current }];
      changed();
    },
  };
};
