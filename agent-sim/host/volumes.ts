// Finds the volumes of a machine and measures them within a time. A size that is not known is absent.
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { AppId } from "../../protocol/kit/ids.ts";
import type { Time } from "../agent/index.ts";
import type { HostVolume } from "./app-data.ts";
import { refuse } from "./host.ts";

/** The volumes of a host, those of no app included. */
export interface HostVolumes {
  list(): Promise<readonly HostVolume[]>;
  /** False: there is none of this name. Refuses to remove one that belongs to an app. */
  remove(name: string): Promise<boolean>;
}

const MAX_FOLDERS = 10_000;
const foldersIn = (path: string): readonly string[] => {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .slice(0, MAX_FOLDERS);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
};

/** The folders of programs' data, named `<appId>.<volume>`. */
export const createFolderVolumes = (apps: string, exists: (appId: string) => boolean): HostVolumes => {
  const list = (): readonly HostVolume[] =>
    foldersIn(apps).flatMap((appId) => {
      if (!AppId.safeParse(appId).success) return [];
      const isOf = exists(appId);
      return foldersIn(join(apps, appId, "volumes")).map((volume) => ({
        name: `${appId}.${volume}`,
        driver: "local",
        path: join(apps, appId, "volumes", volume),
        labels: {},
        appId: isOf ? appId : null,
        inUse: isOf,
      }));
    });
  return {
    list: async () => list(),
    remove: async (wanted) => {
      const found = list().find(({ name }) => name === wanted);
      if (found === undefined) return false;
      if (found.appId !== null) return refuse("VOLUME_IN_USE", `the volume belongs to ${found.appId}`);
      rmSync(found.path, { recursive: true, force: true });
      const app = join(apps, wanted.slice(0, wanted.indexOf(".")));
      // Nothing is left of the app.
      for (const empty of [join(app, "volumes"), app]) if (foldersIn(empty).length === 0 && readdirSync(empty).length === 0) rmSync(empty, { recursive: true });
      return true;
    },
  };
};

export interface Measured {
  /** Absent unless everything was seen. */
  readonly size?: number;
  readonly files?: number;
  readonly sizeState: "exact" | "incomplete" | "unknown";
}

export interface MeasureOptions {
  readonly time: Pick<Time, "elapsedMs">;
  /** On the monotonic clock. */
  readonly untilMs: number;
  readonly signal: AbortSignal;
}

/** What a file of several names takes counts once; links are not followed. */
export const measure = async (path: string, { time, untilMs, signal }: MeasureOptions): Promise<Measured> => {
  const seen = new Set<string>();
  let [size, files] = [0, 0];
  const isOver = (): boolean => signal.aborted || time.elapsedMs() > untilMs;
  const walk = async (folder: string): Promise<boolean> => {
    for await (const entry of await opendir(folder)) {
      if (isOver()) return false;
      const inside = join(folder, entry.name);
      if (entry.isDirectory() && !(await walk(inside))) return false;
      if (!entry.isFile()) continue;
      const found = await lstat(inside);
      files += 1;
      const key = `${found.dev}:${found.ino}`;
      if (found.nlink > 1 && seen.has(key)) continue;
      if (found.nlink > 1) seen.add(key);
      size += found.size;
    }
    return true;
  };
  try {
    if (isOver()) return { sizeState: "incomplete" };
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return { sizeState: "unknown" };
    return (await walk(path)) ? { size, files, sizeState: "exact" } : { sizeState: "incomplete" };
  } catch (error) {
    // It changes meanwhile, or nobody may look into it.
    if (error instanceof Error && "code" in error) return { sizeState: "unknown" };
    throw error;
  }
};
