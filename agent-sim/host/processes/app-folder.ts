// The folder of one app: its record, its revisions, its volumes, its log, and the process that runs.
import { lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import { DesiredApp, ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { HostFailure, refuse } from "../host.ts";
import { type Disk, isUnfinished, readText, replaceFile, syncFolder } from "./disk.ts";
import { ProcessName } from "./proc.ts";

const Failure = ReportedApp.shape.failure;

/** A change of the app that has begun. Written before its first step and before the restoring, so that the next start carries it on. */
const Change = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("update"),
    to: z.int(),
    /** The revision to restore if the new one fails. */
    from: z.int().nullable(),
    /** What is to be then: of an app that was stopped, the restored revision stays stopped. */
    before: z.enum(["running", "stopped", "failed"]),
    state: z.enum(["running", "stopped"]),
    /** Set: the new revision has failed and the old one is being restored. */
    failure: Failure,
  }),
  z.object({ kind: z.literal("remove"), keepVolumes: z.boolean() }),
  /** The app is at rest while a backup reads its data. */
  z.object({ kind: z.literal("rest"), backupId: z.string(), mode: z.enum(["stop", "pause", "live"]), hooks: z.boolean() }),
  /** A restore exchanges the data. Undone until the app runs with the new data. */
  z.object({
    kind: z.literal("swap"),
    restoreId: z.string(),
    to: z.int(),
    items: z.array(z.object({ from: z.string(), to: z.string(), before: z.string(), had: z.boolean() })),
  }),
]);
export type AppChange = z.output<typeof Change>;

const AppRecord = z.object({
  /** The revision that runs or ran last. */
  current: z.int().nullable(),
  /** What is to be: after a start of the agent too. */
  state: z.enum(["running", "stopped", "failed"]),
  failure: Failure,
  restarts: z.int(),
  change: Change.nullable(),
  /** The last restore, so that an order that comes again does not replace what was written since. */
  restored: z.object({ restoreId: z.string(), files: z.number(), bytes: z.number() }).nullish(),
});
export type AppRecord = z.output<typeof AppRecord>;
export const NO_RECORD: AppRecord = { current: null, state: "stopped", failure: null, restarts: 0, change: null };

/** How a program ended. */
const Exit = z.object({ code: z.int().nullable(), signal: z.string().nullable() });
export type ProgramExit = z.output<typeof Exit>;

const RECORD = "record.json";
const VOLUMES = "volumes";

const kindOf = (path: string): "none" | "folder" | "link" | "other" => {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "none";
  if (stat.isSymbolicLink()) return "link";
  return stat.isDirectory() ? "folder" : "other";
};

const damaged = (path: string): HostFailure =>
  new HostFailure({ stage: "preparing", reason: "RECORD_DAMAGED", message: `${basename(path)} of the app cannot be read` });

/** Writes are whole, so only a fault of the disk or somebody else makes a text that is not understood. */
const parsed = <S extends z.ZodType>(schema: S, path: string): z.output<S> | null => {
  const text = readText(path);
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw damaged(path);
  }
};

export interface AppFolder {
  readonly path: string;
  readRecord(): AppRecord | null;
  writeRecord(record: AppRecord): void;
  readRevision(revision: number): DesiredApp;
  writeRevision(app: DesiredApp): void;
  readProcess(): ProcessName | null;
  writeProcess(name: ProcessName): void;
  readExit(): ProgramExit | null;
  /** Forgets the process that has ended. */
  dropProcess(): void;
  /** Removes the other revisions and unfinished writes. */
  tidy(current: number | null): void;
  /** Refuses links in place of the folders of volumes, and creates nothing. */
  checkVolumes(names: readonly string[]): void;
  /** Creates the folders of an app's volumes and returns them by name. Refuses links. */
  prepareVolumes(names: readonly string[]): Readonly<Record<string, string>>;
  /** The folder of a volume, whether it is there or not. */
  volumePath(name: string): string;
  removeVolumes(): void;
  /** Removes everything but the volumes, the record last. */
  removeRest(): void;
}

/** `apps` is the folder of all apps. Nothing is created before the first write. */
export const openAppFolder = (apps: string, appId: string, disk: Disk): AppFolder => {
  const path = join(apps, appId);
  const at = (...names: readonly string[]): string => join(path, ...names);
  /** Neither the app nor anybody else may lead the agent elsewhere by a link. */
  const checked = (wanted: string): string =>
    ["link", "other"].includes(kindOf(wanted)) ? refuse("LINK_REFUSED", `${basename(wanted)} is not a folder of the agent`) : wanted;
  const folder = (wanted: string): string => {
    mkdirSync(checked(wanted), { recursive: true, mode: 0o700 });
    return wanted;
  };
  const write = (name: string, value: unknown): void => {
    folder(path);
    replaceFile(disk, at(name), JSON.stringify(value));
  };
  const read = <S extends z.ZodType>(schema: S, ...names: readonly string[]): z.output<S> | null => parsed(schema, at(...names));
  const readOrNull = <S extends z.ZodType>(schema: S, name: string): z.output<S> | null => {
    try {
      return read(schema, name);
    } catch (error) {
      if (error instanceof HostFailure) return null;
      throw error;
    }
  };
  const remove = (...names: readonly string[]): void => rmSync(at(...names), { recursive: true, force: true });
  const namesIn = (...names: readonly string[]): readonly string[] => (kindOf(at(...names)) === "folder" ? readdirSync(at(...names)) : []);
  const revisionFile = (revision: number): string => join("revisions", `${revision}.json`);
  return {
    path,
    readRecord: () => read(AppRecord, RECORD),
    writeRecord: (record) => write(RECORD, record),
    readRevision: (revision) => {
      const app = read(DesiredApp, revisionFile(revision));
      if (app === null) throw damaged(revisionFile(revision));
      return app;
    },
    writeRevision: (app) => {
      folder(path);
      folder(at("revisions"));
      write(revisionFile(app.revision), app);
    },
    readProcess: () => readOrNull(ProcessName, "pid"),
    writeProcess: (name) => write("pid", name),
    readExit: () => readOrNull(Exit, "exit"),
    dropProcess: () => {
      remove("exit");
      remove("pid");
    },
    tidy: (current) => {
      for (const name of namesIn("revisions")) if (name !== `${current}.json`) remove("revisions", name);
      for (const name of namesIn()) if (isUnfinished(name)) remove(name);
    },
    checkVolumes: (names) => {
      for (const volume of [path, at(VOLUMES), ...names.map((name) => at(VOLUMES, name))]) checked(volume);
    },
    prepareVolumes: (names) => {
      folder(path);
      folder(at(VOLUMES));
      return Object.fromEntries(names.map((name) => [name, folder(at(VOLUMES, name))]));
    },
    volumePath: (name) => at(VOLUMES, name),
    removeVolumes: () => remove(VOLUMES),
    removeRest: () => {
      for (const name of namesIn()) if (name !== VOLUMES && name !== RECORD) remove(name);
      remove(RECORD);
      if (kindOf(path) === "folder" && namesIn().length === 0) remove();
      if (kindOf(apps) === "folder") syncFolder(apps);
    },
  };
};
