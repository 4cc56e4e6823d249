// Makes a backup: nothing changes the data while restic reads it, and only what was read back from the repository has succeeded.
import { lstatSync } from "node:fs";
import { join, relative } from "node:path";
import type { DataPlaces, HostData, VolumePlace } from "../app-data.ts";
import { replaceFile, systemDisk } from "../processes/disk.ts";
import type { BackupContext, OrderOf, OutputOf } from "./engine.ts";
import { MANIFEST } from "./manifest.ts";
import { BackupProblem, inStage } from "./problem.ts";
import type { Snapshots, WrittenSnapshot } from "./snapshots.ts";

const MAX_WARNINGS = 100;

export interface CreateOptions {
  readonly data: Pick<HostData, "atRest">;
  readonly snapshots: Snapshots;
  readonly deviceId: string;
  readonly elapsedMs: () => number;
}

const tagOf = (backupId: string): string => `backup:${backupId}`;
const isThere = ({ path }: VolumePlace): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
/** As restic names it in the snapshot: below the app's folder relative to it, elsewhere absolute. */
const wordOf = (folder: string, path: string): string => (path.startsWith(`${folder}/`) ? relative(folder, path) : path);

export const createBackup = async (
  order: OrderOf<"create">,
  context: BackupContext,
  { data, snapshots, deviceId, elapsedMs }: CreateOptions,
): Promise<OutputOf<"create">> => {
  const { backupId, app, type, consistency } = order;
  const startedMs = elapsedMs();
  const seconds = (): number => Math.round(elapsedMs() - startedMs) / 1_000;
  const { progress } = context;

  const read = async (places: DataPlaces): Promise<WrittenSnapshot> => {
    const present = type === "config" ? [] : places.volumes.filter(isThere);
    if (type === "full" && present.length < places.volumes.length) {
      const missing = places.volumes.filter((volume) => !present.includes(volume)).map(({ name }) => name);
      throw new BackupProblem({ stage: "reading", reason: "SOURCE_UNREADABLE", message: `there is no folder of the volume ${missing.join(", ")}` });
    }
    const volumes = present.map(({ name, path }) => ({ name, word: wordOf(places.folder, path) }));
    const manifest = { backup: 1, app: places.app, volumes: volumes.map(({ name, word }) => ({ name, path: word.startsWith("/") ? word : `/${word}` })) };
    replaceFile(systemDisk, join(places.folder, MANIFEST), JSON.stringify(manifest));
    const tags = [tagOf(backupId), `app:${app.appId}`];
    const source = { cwd: places.folder, paths: [MANIFEST, ...volumes.map(({ word }) => word)], tags, host: deviceId };
    const written = await snapshots.write(source, ({ bytesDone, bytesTotal }) =>
      progress(bytesTotal === 0 ? 5 : 5 + (85 * bytesDone) / bytesTotal, "reads and stores the data", { stage: "reading", bytesDone, bytesTotal }),
    );
    return type === "config" ? written : { ...written, warnings: [...places.outside, ...written.warnings] };
  };
  /** The tree comes from the repository, and it is the tree that was written. */
  const readBack = async (written: Pick<WrittenSnapshot, "id"> & Partial<WrittenSnapshot>) => {
    progress(92, "reads the backup back", { stage: "reading_back" });
    const { snapshot, files, bytes } = await snapshots.count(written.id, "reading_back");
    const isWhole = (written.files ?? files) === files && (written.bytes ?? bytes) === bytes && snapshot.tags.includes(tagOf(backupId));
    if (!isWhole)
      throw new BackupProblem({
        stage: "reading_back",
        reason: "REPOSITORY_DAMAGED",
        message: `the repository has ${files} files and ${bytes} bytes of ${written.files} files and ${written.bytes} bytes that were written`,
      });
    return { snapshotId: snapshot.id, files, size: bytes };
  };

  progress(0, "looks for the repository", { stage: "preparing" });
  const earlier = await snapshots.findOfEarlier(tagOf(backupId));
  if (earlier !== null) {
    const found = await readBack(earlier);
    return {
      ...found,
      addedBytes: 0,
      warnings: [
        "an interrupted run made this backup",
        ...(earlier.partial ? ["some files could not be read; the run was interrupted before it named them"] : []),
      ],
      partial: earlier.partial,
      consistency: consistencyOf(order),
      downtimeSeconds: 0,
      seconds: seconds(),
    };
  }
  const { result: written, consistency: kept, downtimeSeconds, warnings } = await inStage("reading", () => data.atRest(app, { backupId, consistency }, read));
  const found = await readBack(written);
  return {
    ...found,
    addedBytes: written.addedBytes,
    warnings: [...warnings, ...written.warnings].slice(0, MAX_WARNINGS),
    partial: written.partial,
    consistency: kept,
    downtimeSeconds,
    seconds: seconds(),
  };
};

/** What the order asked for, of a backup whose own run cannot say it any more. */
const consistencyOf = ({ app, consistency }: OrderOf<"create">): OutputOf<"create">["consistency"] => {
  const { mode = "stop", hooks = {} } = app.spec.backup ?? {};
  const asked = consistency === "template" ? mode : consistency;
  if (asked !== "live") return asked === "stop" ? "stopped" : "paused";
  return consistency === "template" && "pre" in hooks && hooks.pre !== undefined ? "hooks" : "live";
};
