// What a backup says of itself: the app as it was, and where in the snapshot each of its volumes is.
import { readFileSync } from "node:fs";
import { z } from "zod";
import { AppSlug, DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { BackupProblem } from "./problem.ts";

export const MANIFEST = "app.json";
const MAX_BYTES = 1_048_576;

const Manifest = z.object({
  backup: z.literal(1),
  app: DesiredApp,
  /** The path begins with a slash, as restic names it. */
  volumes: z.array(z.object({ name: AppSlug, path: z.string().startsWith("/") })).max(32),
});
export type Manifest = z.output<typeof Manifest>;

export const readManifest = (path: string): Manifest => {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > MAX_BYTES) throw new Error("it is too large");
    const manifest = Manifest.parse(JSON.parse(bytes.toString("utf8")));
    if (manifest.volumes.some((volume) => volume.path.split("/").includes(".."))) throw new Error("a path leads elsewhere");
    return manifest;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new BackupProblem({ stage: "restoring", reason: "BACKUP_INVALID", message: `${MANIFEST} of the backup cannot be used: ${why}` });
  }
};
