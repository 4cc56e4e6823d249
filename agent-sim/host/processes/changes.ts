// The changes of an app, step by step. Each step is on record before it is taken, and each change can begin anew after any of them.
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { HostFailure, portsOf, type ReportedFailure, toAppFailure } from "../host.ts";
import type { AppChange } from "./app-folder.ts";
import type { Start } from "./settings.ts";
import { expectFailure, type TrackedApp } from "./tracked-app.ts";

type Update = Extract<AppChange, { kind: "update" }>;
type Step = (step: string) => void;

const start = async ({ process }: TrackedApp, app: DesiredApp, prepared: Start | null): Promise<void> => {
  const begin = prepared ?? (await process.prepare(app, new Set()));
  await begin();
  await process.untilHealthy(app);
};

const restore = async (tracked: TrackedApp, change: Update & { readonly from: number; readonly failure: ReportedFailure }, step: Step): Promise<void> => {
  const old = tracked.folder.readRevision(change.from);
  let { before: state, failure } = change;
  try {
    step("stop new");
    await tracked.process.stop(tracked.incoming);
    if (state === "running") {
      step("start old");
      await start(tracked, old, null);
    }
  } catch (error) {
    const { message } = expectFailure(error, "starting");
    [state, failure] = [
      "failed",
      { ...failure, message: `${failure.message}; revision ${change.from} did not start again either: ${message}`.slice(0, 1_000) },
    ];
    await tracked.process.stop(old);
  }
  step("commit old");
  tracked.settle(old, { state, failure });
};

/** Returns why the new revision does not run; null if it does. */
const advance = async (tracked: TrackedApp, app: DesiredApp, { change, prepared, step }: Advance): Promise<ReportedFailure | null> => {
  try {
    step("stop old");
    await tracked.process.stop(tracked.current);
    if (change.state === "running") {
      step("start new");
      await start(tracked, app, prepared);
    }
    step("commit new");
    tracked.settle(app, { state: change.state, failure: null });
    return null;
  } catch (error) {
    return toAppFailure(expectFailure(error, "starting"), change.to);
  }
};
interface Advance {
  readonly change: Update;
  readonly prepared: Start | null;
  readonly step: Step;
}

/** Ends with the new revision, with the restored one, or with a failed one if there is nothing to restore. */
export const carryOut = async (tracked: TrackedApp, change: Update, prepared: Start | null, step: Step): Promise<void> => {
  const app = tracked.folder.readRevision(change.to);
  tracked.incoming = app;
  const failure = change.failure ?? (await advance(tracked, app, { change, prepared, step }));
  if (failure === null) return;
  if (change.from === null) {
    step("stop failed");
    await tracked.process.stop(app);
    return tracked.settle(app, { state: "failed", failure });
  }
  step("note failure");
  tracked.note({ change: { ...change, failure } });
  await restore(tracked, { ...change, from: change.from, failure }, step);
};

export const update = async (tracked: TrackedApp, app: DesiredApp, step: Step): Promise<void> => {
  const { process, folder, record, current } = tracked;
  tracked.incoming = app;
  const prepared = await process.prepare(app, new Set(current !== null && (await process.isAlive()) ? Object.values(portsOf(current)) : []));
  step("write revision");
  folder.writeRevision(app);
  step("begin");
  const from = record.state === "failed" || record.current === app.revision ? null : record.current;
  const state = app.state === "running" ? "running" : "stopped";
  const change: Update = { kind: "update", to: app.revision, from, before: record.state, state, failure: null };
  tracked.save({ change });
  await carryOut(tracked, change, prepared, step);
  if (tracked.record.failure !== null) throw new HostFailure(tracked.record.failure);
};

export const remove = async (tracked: TrackedApp, keepVolumes: boolean, step: Step): Promise<void> => {
  if (!tracked.exists) return;
  step("begin");
  tracked.save({ change: { kind: "remove", keepVolumes } });
  step("stop");
  await tracked.process.stop(tracked.current);
  step("remove volumes");
  if (!keepVolumes) await tracked.process.removeVolumes();
  step("remove rest");
  tracked.folder.removeRest();
  tracked.removed();
};

export const halt = async (tracked: TrackedApp, step: Step): Promise<void> => {
  step("begin");
  tracked.save({ state: "stopped", failure: null });
  step("stop");
  await tracked.process.stop(tracked.current);
};
