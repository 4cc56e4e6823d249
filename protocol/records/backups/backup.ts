// Backups and restores as people see them: what was kept, how far it is, and what was found when it was read back.
import { z } from "zod";
import { AppId, BackupDestinationId, BackupId, BackupPolicyId, CommandId, DeviceId, RestoreId, TenantId } from "../../kit/ids.ts";
import { AppConfig } from "../apps/app-spec.ts";

const Timestamp = z.iso.datetime();
/** Bytes that a JavaScript number holds exactly. */
export const Bytes = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

export const BACKUP_STATUSES = ["pending", "in_progress", "cancelling", "completed", "partially_failed", "failed", "cancelled", "deleting", "deleted"] as const;
export const BackupStatus = z.enum(BACKUP_STATUSES);
export type BackupStatus = z.output<typeof BackupStatus>;

export const RESTORE_STATUSES = ["pending", "validating", "in_progress", "verifying", "cancelling", "completed", "failed", "cancelled"] as const;
export const RestoreStatus = z.enum(RESTORE_STATUSES);
export type RestoreStatus = z.output<typeof RestoreStatus>;

export const BackupType = z.enum(["full", "config"]).describe("`full`: the app's volumes and its configuration. `config`: the configuration alone.");
export type BackupType = z.output<typeof BackupType>;
export const BackupTrigger = z.enum(["manual", "policy", "pre_update", "pre_restore", "agent"]);
export type BackupTrigger = z.output<typeof BackupTrigger>;
/** How the agent keeps the data from changing while it reads it. */
export const BackupMode = z.enum(["stop", "pause", "live"]);
export type BackupMode = z.output<typeof BackupMode>;
export const Consistency = z
  .enum(["stopped", "hooks", "paused", "live"])
  .describe("How the data was kept from changing while it was read. `live`: it was not.");
export type Consistency = z.output<typeof Consistency>;
export const VerifyMode = z
  .enum(["checksum", "restore_test"])
  .describe("`checksum`: read and compare every stored block of the backup. `restore_test`: restore it into a folder of its own, compare, and delete that.");
export type VerifyMode = z.output<typeof VerifyMode>;
export const RestoreType = z
  .enum(["full", "data", "config", "selective"])
  .describe("`full`: data and configuration. `selective`: only `paths`, into the data that is there.");
export type RestoreType = z.output<typeof RestoreType>;

/** Relative, below the folder of the app's volumes. */
export const BackupPath = z
  .string()
  .min(1)
  .refine((path) => new TextEncoder().encode(path).length <= 4_096, "must have at most 4096 bytes")
  .refine((path) => !path.includes("\0"), "must not contain NUL")
  .refine((path) => !path.startsWith("/"), "must be relative")
  .refine((path) => !path.split("/").includes(".."), "must not contain ..");

export const BackupChecksum = z
  .string()
  .regex(/^(?:sha256:)?[0-9a-f]{64}$/)
  .describe("A sha256 in hexadecimal digits: of backups that the agent made by order `sha256:` and the id of the snapshot, whose tree covers every byte.");

/** What an agent says of a failure, as the output of an ack with the status `failed`. */
export const BackupFailureSaid = z.object({
  stage: z
    .string()
    .max(32)
    .describe("Where it failed: `preparing`, `hook`, `reading`, `uploading`, `reading_back`, `restoring`, `swapping`, `starting`, `health`, `deleting` …"),
  reason: z
    .string()
    .max(64)
    .describe(
      "For machines: HOOK_FAILED, DISK_FULL, REPOSITORY_MISSING, REPOSITORY_UNREACHABLE, REPOSITORY_LOCKED, REPOSITORY_DAMAGED, STORAGE_LIMIT, SOURCE_UNREADABLE, NOT_HEALTHY_AFTER_RESTORE, BACKUP_ENGINE_MISSING …",
    ),
  message: z.string().max(1_000),
  lines: z.array(z.string().max(1_000)).max(20).default([]).describe("The last lines of the engine or the hook, with secrets masked."),
  previousData: z.enum(["kept", "none"]).optional().describe("Of a restore: whether the app has the data again that it had before."),
});
export type BackupFailureSaid = z.output<typeof BackupFailureSaid>;

export const BackupFailure = z.object({
  stage: z.string().nullable().describe("`null`: the command did not reach the agent, or it did not say."),
  reason: z
    .string()
    .describe("For machines, such as `HOOK_FAILED`, `DISK_FULL`, `REPOSITORY_MISSING`, `REPOSITORY_UNREACHABLE`, `STORAGE_LIMIT` or `BACKUP_STALLED`."),
  message: z.string(),
  lines: z.array(z.string()),
});
export type BackupFailure = z.output<typeof BackupFailure>;

export const BackupProgress = z.object({
  percent: z.number().min(0).max(100).nullable(),
  bytesDone: Bytes.nullable(),
  bytesTotal: Bytes.nullable(),
  at: Timestamp.describe("When the agent said so."),
});
export type BackupProgress = z.output<typeof BackupProgress>;

export const BackupVerification = z.object({
  status: z.enum(["unverified", "verifying", "verified", "failed"]),
  mode: VerifyMode.nullable(),
  verifiedAt: Timestamp.nullable(),
  failure: BackupFailure.nullable(),
});
export type BackupVerification = z.output<typeof BackupVerification>;

/** What the app was when the backup was made. Its secrets are kept beside it and are never shown. */
export const BackupContent = z.object({
  appName: z.string(),
  template: z.string(),
  templateVersion: z.string(),
  revision: z.int(),
  configuration: AppConfig,
});
export type BackupContent = z.output<typeof BackupContent>;

export const Backup = z.object({
  id: BackupId.describe("The same as `backupId`."),
  backupId: BackupId,
  tenantId: TenantId,
  deviceId: DeviceId,
  appId: AppId,
  policyId: BackupPolicyId.nullable().describe("The policy that ordered it."),
  destinationId: BackupDestinationId.nullable().describe("`null`: the device's agent made it on its own, and the gateway does not know where it is."),
  name: z.string(),
  type: BackupType,
  trigger: BackupTrigger,
  status: BackupStatus.describe(
    "`completed`: the agent has read the backup back from its repository. `partially_failed`: so it has, but `warnings` names files that are missing.",
  ),
  size: Bytes.nullable().describe("The bytes that a restore writes. `null`: not known yet."),
  addedBytes: Bytes.nullable().describe("The bytes that the repository grew by."),
  files: z.int().nullable(),
  checksum: z.string().nullable().describe("`sha256:` and the id of the snapshot."),
  progress: BackupProgress.nullable(),
  consistency: Consistency.nullable().describe("`null`: not known yet."),
  downtimeSeconds: z.number().nullable().describe("How long the app stood still for it."),
  content: BackupContent.nullable().describe("`null`: the device's agent made the backup on its own."),
  startedAt: Timestamp.nullable(),
  completedAt: Timestamp.nullable(),
  retainUntil: Timestamp.nullable().describe("Nobody deletes it before then, neither people nor policies."),
  verification: BackupVerification,
  failure: BackupFailure.nullable().describe("Why it failed; of one that should be deleted, why that failed."),
  warnings: z.array(z.string()).describe("At most 100, such as files that could not be read."),
  commandId: CommandId.nullable().describe("The command that carried out, or carries out, the last change."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Backup = z.output<typeof Backup>;

export const BackupDownload = z.object({
  backupId: BackupId,
  url: z.url().describe("A tar archive, once and by whoever has the link. It comes from the device, so that must stay connected."),
  expiresAt: Timestamp.describe("The download has to begin before then."),
  commandId: CommandId.describe("The order to the device to offer it."),
});
export type BackupDownload = z.output<typeof BackupDownload>;

export const RestorePlan = z.object({
  files: z.int().min(0),
  bytes: Bytes,
  freeBytes: Bytes.nullable().describe("Free space on the device where the data would go. `null`: the agent cannot tell."),
  replaces: z.array(z.string().max(4_200)).max(100).describe("Volumes, or files of a selective restore, that are there and would be replaced. At most 100."),
});
export type RestorePlan = z.output<typeof RestorePlan>;

export const Restore = z.object({
  id: RestoreId.describe("The same as `restoreId`."),
  restoreId: RestoreId,
  tenantId: TenantId,
  backupId: BackupId,
  restoreType: RestoreType,
  paths: z.array(z.string()).describe("Of a selective restore."),
  overwriteExisting: z.boolean(),
  deviceId: DeviceId.describe("The same as `targetDeviceId`."),
  targetDeviceId: DeviceId,
  targetAppId: AppId,
  dryRun: z.boolean().describe("It changes nothing and ends with a `plan`."),
  plan: RestorePlan.nullable(),
  safetyBackupId: BackupId.nullable().describe("The backup that was made of the target before."),
  status: RestoreStatus,
  progress: BackupProgress.nullable(),
  files: z.int().nullable(),
  bytes: Bytes.nullable(),
  failure: BackupFailure.extend({
    previousData: z.enum(["kept", "none"]).nullable().describe("`kept`: the app has the data that it had before. `null`: the agent did not say."),
  }).nullable(),
  startedAt: Timestamp.nullable(),
  completedAt: Timestamp.nullable(),
  commandId: CommandId.nullable(),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Restore = z.output<typeof Restore>;
