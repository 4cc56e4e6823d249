// One app of the process host: decides which change brings it to what is desired, and supervises it between the changes.
import { isDeepStrictEqual } from "node:util";
import type { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import type { DataPlaces, Rested, RestOrder, RestoredData, Swap } from "../app-data.ts";
import { checkDesired, type HostFailure, portsOf, toAppFailure } from "../host.ts";
import { carryOut, halt, remove, update } from "./changes.ts";
import { endRest, modeOf, placesOf, readAtRest, swapData, undoSwap } from "./data-changes.ts";
import type { AppContext } from "./settings.ts";
import { expectFailure, trackApp } from "./tracked-app.ts";

export interface ProcessApp {
  /** False once it is removed. */
  readonly exists: boolean;
  /** The revision that runs or ran last. */
  readonly current: DesiredApp | null;
  /** The ports of what runs and of what is being installed. */
  ports(): readonly number[];
  apply(desired: DesiredApp, anew: boolean): Promise<ReportedApp>;
  /** After a start of the agent: adopts what runs and carries on what was interrupted. */
  recover(): Promise<void>;
  report(): ReportedApp;
  tail(lines: number): Promise<readonly string[]>;
  follow(signal: AbortSignal): AsyncIterable<string>;
  places(app: DesiredApp): Promise<DataPlaces>;
  atRest<T>(rest: RestOrder, read: (places: DataPlaces) => Promise<T>): Promise<Rested<T>>;
  swap(swap: Swap): Promise<void>;
  readonly restored: RestoredData | null;
  close(): Promise<void>;
}

/** Equal, but for whether it is to run. */
const isSame = (one: DesiredApp, other: DesiredApp): boolean =>
  isDeepStrictEqual({ ...one, state: null, keepVolumes: null }, { ...other, state: null, keepVolumes: null });

export const createProcessApp = (context: AppContext, appId: DesiredApp["appId"]): ProcessApp => {
  const { onStep: step } = context;
  const tracked = trackApp(context, appId);
  const { folder, process, supervisor } = tracked;

  const recover = async (): Promise<void> => {
    const { change, current, state } = tracked.record;
    if (!tracked.exists) return folder.removeRest();
    if (change?.kind === "remove") return remove(tracked, change.keepVolumes, step);
    if (change?.kind === "update") return carryOut(tracked, change, null, step);
    // What had begun is undone: the order comes again, and the supervisor starts the app.
    if (change?.kind === "rest") return void (await endRest(tracked, change, step));
    if (change?.kind === "swap") return undoSwap(tracked, change, step);
    folder.tidy(current);
    if (state !== "running") await process.stop(tracked.current);
  };
  /** What cannot be carried on is a failed app. A removal is tried again by the next start. */
  const recoverOrFail = (): Promise<void> =>
    recover().catch(async (error: unknown) => {
      const { change, current } = tracked.record;
      const failure = toAppFailure(expectFailure(error, "preparing"), current ?? 1);
      tracked.note({ state: "failed", failure, change: change?.kind === "remove" ? change : null });
      await process.stop(tracked.current).catch((stopError: unknown) => expectFailure(stopError, "stopping"));
    });
  const bring = async (app: DesiredApp, anew: boolean): Promise<void> => {
    if (app.state === "removed") return remove(tracked, app.keepVolumes, step);
    if (tracked.record.change !== null) await recover();
    const { current, record } = tracked;
    if (current === null || !isSame(app, current)) return update(tracked, app, step);
    if (app.state === "stopped") return halt(tracked, step);
    if (anew || record.state !== "running" || !(await process.isAlive())) return update(tracked, app, step);
    if (record.failure !== null) tracked.save({ failure: null });
  };
  /** Nothing supervises the app while it changes. */
  const alone = async <T>(work: () => Promise<T>): Promise<T> => {
    await supervisor.pause();
    try {
      return await work();
    } finally {
      tracked.incoming = null;
      if (tracked.exists && tracked.record.state === "running" && tracked.record.change === null) supervisor.resume();
    }
  };
  /** Most failures are on record by now; one that came before the first step is not. What runs goes on running. */
  const fail = (given: DesiredApp, failure: HostFailure): never => {
    const { record, current } = tracked;
    const revision = Number.isInteger(given.revision) && given.revision > 0 ? given.revision : 1;
    if (record.failure?.revision !== revision || record.failure.reason !== failure.reason)
      tracked.note({ state: current === null ? "failed" : record.state, failure: toAppFailure(failure, revision) });
    throw failure;
  };
  const { elapsedMs } = context.time;
  return {
    get current() {
      return tracked.current;
    },
    get exists() {
      return tracked.exists;
    },
    get restored() {
      return tracked.record.restored ?? null;
    },
    places: (app) => placesOf(tracked, checkDesired(app)),
    atRest: async (rest, read) => {
      if (tracked.record.change !== null) await alone(recover);
      const work = () => readAtRest(tracked, { rest, read, elapsedMs, step });
      // An app that runs on is supervised on.
      return tracked.current !== null && modeOf(tracked.current, rest) === "live" ? work() : alone(work);
    },
    swap: (swap) =>
      alone(async () => {
        if (tracked.record.change !== null) await recover();
        await swapData(tracked, { ...swap, app: checkDesired(swap.app) }, step);
      }),
    ports: () => [tracked.current, tracked.incoming].flatMap((app) => (app === null ? [] : Object.values(portsOf(app)))),
    report: tracked.report,
    tail: process.tail,
    follow: (signal) => process.follow(signal, () => !tracked.exists),
    recover: () => alone(recoverOrFail),
    apply: async (given, anew) => {
      await alone(() => bring(checkDesired(given), anew)).catch((error: unknown) => fail(given, expectFailure(error, "preparing")));
      return tracked.report();
    },
    close: () => supervisor.close(),
  };
};
