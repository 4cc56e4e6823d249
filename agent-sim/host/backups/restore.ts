// Restores a backup: the app runs until the verified data lies beside its own; then they change places, and back again if the app is not healthy.
import { lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import type { DataPlaces, HostData, SwapItem, VolumePlace } from "../app-data.ts";
import type { Host } from "../host.ts";
import type { BackupContext, OrderOf, OutputOf } from "./engine.ts";
import { MANIFEST, type Manifest, readManifest } from "./manifest.ts";
import { BackupProblem, type BackupStage, inStage } from "./problem.ts";
import type { Snapshots } from "./snapshots.ts";

const MAX_REPLACES = 100;
const PROGRESS_MS = 2_000;
/** Left to the machine beside what is restored. */
const SPARE_BYTES = 16_777_216;

export interface RestoreOptions {
  readonly data: HostData;
  readonly host: Pick<Host, "apply">;
  readonly snapshots: Snapshots;
}

const fail = (stage: BackupStage, reason: string, message: string): never => {
  throw new BackupProblem({ stage, reason, message, previousData: "kept" });
};

const freeBytesAt = async (path: string): Promise<number | null> => {
  for (let at = path; ; at = dirname(at)) {
    const found = await statfs(at).catch(() => null);
    if (found !== null) return found.bavail * found.bsize;
    if (at === dirname(at)) return null;
  }
};
const isFilled = ({ path }: VolumePlace): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true && readdirSync(path).length > 0;
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** What one restore is about: pairs of a path in the snapshot and the place on the device. */
interface Part {
  readonly source: string;
  readonly to: string;
  readonly before: string;
  /** As people name it. */
  readonly name: string;
}

/** `volume/path` of a selective restore. The gateway has checked it; the agent trusts nobody. */
const checkedPath = (path: string): string => {
  const normal = posix.normalize(path);
  const isBad = path.includes("\0") || path.startsWith("/") || normal === "." || normal.split("/").includes("..");
  return isBad ? fail("preparing", "PATH_REFUSED", "a path of a selective restore is relative and begins with a volume") : normal.replace(/\/$/, "");
};

const partsOf = (order: OrderOf<"restore">, { volumes: there }: DataPlaces, { volumes: kept }: Manifest): readonly Part[] => {
  const placeOf = (name: string): VolumePlace =>
    there.find((place) => place.name === name) ?? fail("preparing", "BACKUP_INVALID", `the app has no volume ${name}`);
  if (order.restoreType === "config") return [];
  if (order.restoreType !== "selective")
    return kept.map(({ name, path }) => {
      const { path: to, before } = placeOf(name);
      return { source: path, to, before, name };
    });
  return order.paths.map(checkedPath).map((wanted, at) => {
    const [name = "", ...rest] = wanted.split("/");
    const volume = kept.find((each) => each.name === name) ?? fail("preparing", "PATH_MISSING", `the backup has no volume ${name}`);
    const place = placeOf(name);
    return { source: posix.join(volume.path, ...rest), to: join(place.path, ...rest), before: join(dirname(place.before), `${at}-${name}`), name: wanted };
  });
};

const isWithin =
  (parts: readonly Part[], withManifest: boolean) =>
  (path: string): boolean =>
    (withManifest && path === `/${MANIFEST}`) || parts.some(({ source }) => path === source || path.startsWith(`${source}/`));

export const restoreBackup = async (
  order: OrderOf<"restore">,
  context: BackupContext,
  { data, host, snapshots }: RestoreOptions,
): Promise<OutputOf<"restore">> => {
  const { restoreId, snapshotId, restoreType, dryRun, overwriteExisting } = order;
  const app: DesiredApp = order.app;
  const { progress } = context;
  const done = data.restored(app.appId);
  // The order came again after its end.
  if (!dryRun && done?.restoreId === restoreId) return { files: done.files, bytes: done.bytes, verified: true };

  progress(0, "looks into the backup", { stage: "preparing" });
  const places = await inStage("preparing", () => data.places(app));
  const { incoming } = places;
  const isPartial = restoreType === "selective" || restoreType === "config";
  const clean = (): void => rmSync(incoming, { recursive: true, force: true });
  const fetchManifest = async (): Promise<Manifest> => {
    clean();
    mkdirSync(incoming, { recursive: true, mode: 0o700 });
    await snapshots.restore(snapshotId, incoming, [`/${MANIFEST}`]);
    return readManifest(join(incoming, MANIFEST));
  };
  /** What the restore would do, without doing it. */
  const look = async () => {
    // Only what is a part of the snapshot needs to be found in it first.
    const chosen = isPartial ? partsOf(order, places, await inStage("restoring", fetchManifest)) : null;
    const found = new Set<string>();
    const filter = chosen === null ? undefined : isWithin(chosen, restoreType === "config");
    const { files, bytes } = await snapshots.count(snapshotId, "preparing", filter, (path) => {
      if (chosen?.some(({ source }) => source === path)) found.add(path);
    });
    for (const { source, name } of chosen ?? []) if (!found.has(source)) fail("preparing", "PATH_MISSING", `the backup does not have ${name}`);
    const filled = isPartial ? [] : places.volumes.filter(isFilled).map(({ name }) => name);
    const replaces = [...filled, ...(chosen ?? []).filter(({ to }) => isThere(to)).map(({ name }) => name)].slice(0, MAX_REPLACES);
    return { chosen, plan: { files, bytes, freeBytes: await freeBytesAt(incoming), replaces } };
  };
  const restore = async (): Promise<OutputOf<"restore">> => {
    const { chosen, plan } = await look();
    const { files, bytes, freeBytes, replaces } = plan;
    if (dryRun) return { files, bytes, verified: false, plan };
    if (!overwriteExisting && replaces.length > 0) fail("preparing", "RESTORE_TARGET_EXISTS", `there is data already: ${replaces.slice(0, 10).join(", ")}`);
    if (freeBytes !== null && bytes + SPARE_BYTES > freeBytes) fail("preparing", "DISK_FULL", `the backup needs ${bytes} bytes, and ${freeBytes} are free`);
    if (restoreType === "config") {
      await inStage("starting", () => host.apply(app));
      return { files, bytes, verified: true };
    }
    await write(chosen?.map(({ source }) => source) ?? [], { bytes, freeBytes });
    const parts = chosen ?? partsOf(order, places, readManifest(join(incoming, MANIFEST)));
    context.signal.throwIfAborted();
    progress(92, "exchanges the data", { stage: "swapping" });
    const items = (): readonly SwapItem[] => parts.map(({ source, to, before }) => ({ from: join(incoming, source), to, before }));
    await exchange({ restoreId, app, items, files, bytes });
    return { files, bytes, verified: true };
  };
  const write = async (include: readonly string[], { bytes, freeBytes }: { readonly bytes: number; readonly freeBytes: number | null }): Promise<void> => {
    // restic 0.14 says nothing while it restores, so the space that it takes is asked for.
    const ask = async (): Promise<void> => {
      const now = await freeBytesAt(incoming);
      if (now === null || freeBytes === null) return;
      const bytesDone = Math.max(0, Math.min(bytes, freeBytes - now));
      progress(5 + (bytes === 0 ? 0 : (85 * bytesDone) / bytes), "restores beside the data of the app", { stage: "restoring", bytesDone, bytesTotal: bytes });
    };
    const asking = setInterval(() => void ask(), PROGRESS_MS);
    try {
      clean();
      mkdirSync(incoming, { recursive: true, mode: 0o700 });
      await ask();
      await inStage("restoring", () => snapshots.restore(snapshotId, incoming, include));
    } finally {
      clearInterval(asking);
    }
  };
  const exchange = async (swap: Parameters<HostData["swap"]>[0]): Promise<void> => {
    try {
      await data.swap(swap);
    } catch (error) {
      const problem = await inStage("starting", () => Promise.reject(error)).catch((each: unknown) => each);
      if (!(problem instanceof BackupProblem)) throw problem;
      const { stage, reason, message, lines } = problem.said;
      const isUnhealthy = ["HEALTH_CHECK_FAILED", "EXITED", "COMPOSE_FAILED"].includes(reason);
      const told = isUnhealthy
        ? { stage: "health" as const, reason: "NOT_HEALTHY_AFTER_RESTORE", message: `${reason}: ${message}` }
        : { stage: stage as BackupStage, reason, message };
      throw new BackupProblem({ ...told, lines: lines ?? [], previousData: places.app === null ? "none" : "kept" });
    }
  };
  try {
    return await restore();
  } catch (error) {
    throw error instanceof BackupProblem && error.said.previousData === undefined
      ? new BackupProblem({ ...error.said, stage: error.said.stage as BackupStage, previousData: "kept" })
      : error;
  } finally {
    if (!data.closing.aborted) clean();
  }
};
