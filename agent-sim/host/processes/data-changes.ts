// The changes of an app's data, step by step: a rest while a backup reads, and the swap of a restore. Each is on record before it begins, and a crash
// undoes it: the next start of the agent wakes the app, or gives it back the data that it had.
import { existsSync, lstatSync, mkdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import type { Consistency } from "../../../protocol/records/backups/backup.ts";
import type { DataPlaces, Rested, RestOrder, Swap, SwapItem } from "../app-data.ts";
import { HostClosed, refuse, toAppFailure } from "../host.ts";
import type { AppChange } from "./app-folder.ts";
import { INCOMING } from "./data-words.ts";
import { syncFolder } from "./disk.ts";
import { expectFailure, type TrackedApp } from "./tracked-app.ts";

type Resting = Extract<AppChange, { kind: "rest" }>;
type Swapping = Extract<AppChange, { kind: "swap" }>;
type Step = (step: string) => void;

const hooksOf = ({ spec }: DesiredApp) => spec.backup?.hooks ?? {};
export const modeOf = ({ spec }: DesiredApp, { consistency }: RestOrder): Resting["mode"] =>
  consistency === "template" ? (spec.backup?.mode ?? "stop") : consistency;

/** Where the data of an app is, or would be. */
export const placesOf = async ({ folder, process, current }: TrackedApp, app: DesiredApp): Promise<DataPlaces> => {
  const volumes = await process.volumes(app);
  const outside = (await process.outside?.()) ?? [];
  return { app: current, folder: folder.path, volumes, incoming: volumes[0]?.incoming ?? join(folder.path, INCOMING), outside };
};

const say = (error: unknown): string => expectFailure(error, "running").message;

/** After the reading, or after a crash in it. Returns what went wrong; the supervisor goes on where the app does not start. */
export const endRest = async (tracked: TrackedApp, { mode, hooks }: Resting, step: Step): Promise<readonly string[]> => {
  const { process, current, record } = tracked;
  const warnings: string[] = [];
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (error instanceof HostClosed) throw error;
      warnings.push(`${what}: ${say(error)}`);
    }
  };
  if (current !== null && record.state === "running") {
    step("wake");
    if (mode !== "live") await attempt("the app did not start again at once", () => process.wake(current, mode));
    const { post } = hooksOf(current);
    step("post hook");
    if (hooks && post !== undefined) await attempt("the hook after the backup failed", () => process.hook(current, post));
  }
  step("commit rest");
  tracked.note({ change: null });
  return warnings;
};

interface Reading<T> {
  readonly rest: RestOrder;
  readonly read: (places: DataPlaces) => Promise<T>;
  readonly elapsedMs: () => number;
  readonly step: Step;
}

export const readAtRest = async <T>(tracked: TrackedApp, { rest, read, elapsedMs, step }: Reading<T>): Promise<Rested<T>> => {
  const { process, current, record } = tracked;
  if (current === null) return refuse("UNKNOWN_APP", "this app is not on the device");
  const runs = record.state === "running";
  const mode = modeOf(current, rest);
  const hooks = rest.consistency === "template" ? hooksOf(current) : {};
  const usesHooks = runs && (hooks.pre ?? hooks.post) !== undefined;
  const change: Resting = { kind: "rest", backupId: rest.backupId, mode, hooks: usesHooks };
  const places = await placesOf(tracked, current);
  let since: number | null = null;
  const begin = async (): Promise<void> => {
    step("begin rest");
    tracked.save({ change });
    step("pre hook");
    if (usesHooks && hooks.pre !== undefined) await process.hook(current, hooks.pre);
    if (mode === "live") return;
    step("rest");
    since = elapsedMs();
    await process.rest(current, mode);
  };
  const work = async (): Promise<T> => {
    if (runs) await begin();
    step("read");
    return read(places);
  };
  let warnings: readonly string[] = [];
  let result: T;
  try {
    result = await work();
  } finally {
    if (tracked.record.change !== null) warnings = await endRest(tracked, change, step);
  }
  const consistency: Consistency = !runs || mode === "stop" ? "stopped" : mode === "pause" ? "paused" : hooks.pre === undefined ? "live" : "hooks";
  return { result, consistency, downtimeSeconds: since === null ? 0 : Math.round(elapsedMs() - since) / 1_000, warnings };
};

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
const move = (from: string, to: string): void => {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  renameSync(from, to);
  syncFolder(dirname(to));
  syncFolder(dirname(from));
};

/** Can begin anew after any of its steps. */
const putBack = ({ items }: Swapping): void => {
  for (const { from, to, before, had } of items) {
    if (isThere(before)) {
      if (isThere(to)) rmSync(to, { recursive: true, force: true });
      move(before, to);
    } else if (!had && !isThere(from) && isThere(to)) move(to, from);
  }
};

/** No link in between may lead the swap elsewhere. */
const checkWay = ({ to }: SwapItem, roots: readonly string[]): void => {
  const root = roots.find((each) => to === each || to.startsWith(`${each}${sep}`)) ?? refuse("LINK_REFUSED", "the data lies outside of the app's volumes");
  let folder = dirname(to);
  while (folder.length >= root.length && !existsSync(folder)) folder = dirname(folder);
  if (folder.length < root.length) return;
  const real = realpathSync(folder);
  const realRoot = realpathSync(root);
  if (real !== realRoot && !real.startsWith(`${realRoot}${sep}`)) refuse("LINK_REFUSED", "a link leads out of the app's volumes");
};

/** What a crash or a failure leaves: the app has the data that it had, and the caller starts it. */
export const undoSwap = async (tracked: TrackedApp, change: Swapping, step: Step): Promise<void> => {
  step("put back");
  await tracked.process.stop(tracked.incoming ?? tracked.current);
  putBack(change);
  step("commit undo");
  if (tracked.current !== null) return void tracked.note({ change: null });
  tracked.folder.removeRest();
  tracked.removed();
};

const hookAfter = async ({ process }: TrackedApp, app: DesiredApp): Promise<void> => {
  const { restored } = hooksOf(app);
  if (restored !== undefined) await process.hook(app, restored);
};

export const swapData = async (tracked: TrackedApp, { restoreId, app, items, files, bytes }: Swap, step: Step): Promise<void> => {
  const { process, folder } = tracked;
  const { state: before, current } = tracked.record;
  const roots = (await process.volumes(app)).map(({ path }) => path);
  tracked.incoming = app;
  const prepared = app.state === "running" ? await process.prepare(app, new Set(tracked.current === null ? [] : Object.values(tracked.report().ports))) : null;
  step("write revision");
  folder.writeRevision(app);
  const change: Swapping = { kind: "swap", restoreId, to: app.revision, items: [] };
  step("begin swap");
  tracked.save({ change });
  step("stop");
  await process.stop(tracked.current);
  let journaled = change;
  try {
    const moves = items();
    for (const item of moves) checkWay(item, roots);
    // What a swap left that had been committed.
    for (const { before: aside } of moves) rmSync(aside, { recursive: true, force: true });
    journaled = { ...change, items: moves.map((item) => ({ ...item, had: isThere(item.to) })) };
    step("journal swap");
    tracked.save({ change: journaled });
    for (const { from, to, before: aside } of moves) {
      step("move old");
      if (isThere(to)) move(to, aside);
      step("move new");
      move(from, to);
    }
    if (prepared !== null) {
      step("start new");
      await prepared();
      await process.untilHealthy(app);
      step("restored hook");
      await hookAfter(tracked, app);
    }
    step("commit swap");
    tracked.settle(app, { state: app.state === "running" ? "running" : "stopped", failure: null, restored: { restoreId, files, bytes } });
  } catch (error) {
    if (error instanceof HostClosed) throw error;
    const failure = expectFailure(error, "starting");
    await undoSwap(tracked, journaled, step);
    if (current !== null && before === "running") await startOld(tracked);
    throw failure;
  }
  for (const { before: aside } of journaled.items) rmSync(aside, { recursive: true, force: true });
};

/** What does not start now, the supervisor starts again. */
const startOld = async (tracked: TrackedApp): Promise<void> => {
  if (tracked.current === null) return;
  try {
    await tracked.process.wake(tracked.current, "stop");
  } catch (error) {
    if (error instanceof HostClosed) throw error;
    tracked.note({ failure: toAppFailure(expectFailure(error, "starting"), tracked.current.revision) });
  }
};
