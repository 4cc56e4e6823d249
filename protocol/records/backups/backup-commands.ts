// What agents are ordered to do with backups. Every command is safe to repeat: the agent finds its earlier work by the record's id.
import { z } from "zod";
import { command } from "../../kit/command-type.ts";
import { AppId, BackupDestinationId, BackupId, RestoreId } from "../../kit/ids.ts";
import { DesiredApp } from "../apps/app-spec.ts";
import { BackupMode, BackupType, Bytes, Consistency, RestorePlan, RestoreType, VerifyMode } from "./backup.ts";

const HOUR = 3_600;
const DAY = 24 * HOUR;
const SnapshotId = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe("The full id of the restic snapshot, 64 hexadecimal digits.");

const common = { lane: "app", ttlSeconds: DAY, executionTimeoutSeconds: 6 * HOUR } as const;

export const backupCommands = {
  create: command("backup.create", {
    ...common,
    summary: "Back up an app",
    payload: z.object({
      backupId: BackupId.describe("Tag the snapshot `backup:<backupId>`: a snapshot with this tag is the work of an earlier delivery."),
      app: DesiredApp.describe("The app as it should be; its template's `backup` says how its data is made consistent."),
      type: BackupType,
      consistency: z.enum(["template", ...BackupMode.options]).describe("`template`: as the app's template says. Otherwise this mode instead, without hooks."),
    }),
    output: z.object({
      snapshotId: SnapshotId,
      size: Bytes.describe("The bytes that a restore writes."),
      addedBytes: Bytes.describe("The bytes that the repository grew by."),
      files: z.int().min(0).max(Number.MAX_SAFE_INTEGER),
      warnings: z.array(z.string().max(4_200)).max(100).describe("Files that could not be read; the snapshot lacks them."),
      partial: z.boolean().default(false).describe("Whether the snapshot lacks files that should be in it."),
      consistency: Consistency,
      downtimeSeconds: z.number().min(0).max(1e9).default(0),
      seconds: z.number().min(0).max(1e9),
    }),
  }),
  restore: command("backup.restore", {
    ...common,
    risk: "danger",
    summary: "Restore an app from a backup",
    payload: z.object({
      restoreId: RestoreId,
      backupId: BackupId.describe("For the access to its repository."),
      app: DesiredApp.describe("The app that gets the data."),
      snapshotId: SnapshotId,
      restoreType: RestoreType,
      paths: z.array(z.string()).max(100),
      overwriteExisting: z.boolean().describe("`false`: fail with RESTORE_TARGET_EXISTS if a volume that would be replaced has data."),
      dryRun: z.boolean().describe("Change nothing and answer with `plan`."),
      safetyBackupId: BackupId.nullable().describe("The backup of the present data, which an earlier command has made. `null`: there is none."),
    }),
    output: z.object({
      files: z.int().min(0).max(Number.MAX_SAFE_INTEGER),
      bytes: Bytes,
      verified: z.boolean().describe("Whether the written data was compared with the snapshot."),
      plan: RestorePlan.optional().describe("Of a dry run."),
    }),
  }),
  verify: command("backup.verify", {
    ...common,
    risk: "none",
    summary: "Verify a backup",
    payload: z.object({ backupId: BackupId, appId: AppId, snapshotId: SnapshotId, mode: VerifyMode }),
    output: z.object({ bytes: Bytes.describe("Bytes that were read and compared.") }),
  }),
  download: command("backup.download", {
    ...common,
    lane: "none",
    ttlSeconds: 900,
    summary: "Offer a backup for a download",
    payload: z.object({
      backupId: BackupId,
      snapshotId: SnapshotId,
      downloadId: z.string().max(64).describe("For the carrier: a stream to `download:<downloadId>` gets the snapshot as a tar archive, once."),
      seconds: z.int().min(1).max(3_600).describe("Offer it for so long, and keep a carrier open for it."),
    }),
    output: z.object({}),
  }),
  delete: command("backup.delete", {
    ...common,
    lane: "none",
    ttlSeconds: 7 * DAY,
    risk: "danger",
    summary: "Delete backups from a repository",
    payload: z.object({
      destinationId: BackupDestinationId.describe("For the access to the repository."),
      snapshotIds: z.array(SnapshotId).min(1).max(100),
    }),
    output: z.object({
      deleted: z.array(SnapshotId).max(100),
      missing: z.array(SnapshotId).max(100).describe("Snapshots that the repository no longer had."),
    }),
  }),
  prune: command("backup.prune", {
    ...common,
    lane: "none",
    summary: "Free the space of deleted backups",
    payload: z.object({ destinationId: BackupDestinationId.describe("For the access to the repository.") }),
    output: z.object({ freedBytes: Bytes, checked: z.boolean().describe("Whether the repository was checked afterwards and is whole.") }),
  }),
};

export const destinationCommands = {
  test: command("backup.test", {
    lane: "none",
    ttlSeconds: HOUR,
    executionTimeoutSeconds: 300,
    summary: "Test a backup destination",
    payload: z.object({
      destinationId: BackupDestinationId.describe("For the access to the repository."),
      initialize: z.boolean().default(false).describe("Somebody has said that a lost repository is to be replaced by an empty one."),
    }),
    output: z.object({
      created: z.boolean().describe("Whether the repository was made by this test."),
      snapshots: z.int().min(0).max(Number.MAX_SAFE_INTEGER),
      seconds: z.number().min(0).max(1e9),
    }),
  }),
};
