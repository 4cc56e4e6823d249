// Backups of apps and restores from them. An order is carried out by the device's agent, and its word moves the record.
import { z } from "zod";
import { Moment, Version } from "../kit/bounds.ts";
import { BackupId, ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { awaitedFields, MAX_WAIT_SECONDS } from "../kit/wait.ts";
import { named } from "../records/actor.ts";
import {
  Backup,
  BackupChecksum,
  BackupDownload,
  BackupFailure,
  BackupMode,
  BackupPath,
  BackupProgress,
  BackupStatus,
  BackupTrigger,
  BackupType,
  BackupVerification,
  Bytes,
  Restore,
  RestorePlan,
  RestoreStatus,
  RestoreType,
  VerifyMode,
} from "../records/backups/backup.ts";
import { backupCommands } from "../records/backups/backup-commands.ts";
import { backupEvents } from "../records/backups/backup-events.ts";
import { RepositoryAccess } from "../records/backups/repository-access.ts";

const Name = z.string().trim().min(1).max(100);
const one = z.strictObject({ backupId: ref("bak") });
const oneRestore = z.strictObject({ restoreId: ref("rst") });
const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "backup:read" } as const;
const ofAgent = { auth: ["agent"], permission: "self", limit: "agent" } as const;
const onDevice = ["/devices/{deviceId}/backups", "/hosts/{deviceId}/backups"] as const;

const filters = {
  appId: ref("app").optional().describe("Only backups of this app."),
  policyId: ref("bpl").optional().describe("Only backups of this policy."),
  destinationId: ref("bkd").optional().describe("Only backups at this destination."),
  status: z.array(BackupStatus).min(1).max(9).optional().describe("Only backups in one of these states, separated by commas. Default: all but `deleted`."),
  trigger: BackupTrigger.optional().describe("Only backups that were made for this reason."),
  q: z.string().min(1).max(100).optional().describe("Only backups whose name contains this text."),
};
const order = { sort: ["createdAt", "name", "status"], by: "-createdAt" } as const;
const CHANGE = ["BACKUP_NOT_FOUND", "INVALID_STATE_TRANSITION"] as const;
const ORDER = ["DEVICE_NOT_FOUND", "COMMAND_QUEUE_FULL", "BACKUP_ENGINE_MISSING", "BACKUP_DESTINATION_UNREACHABLE", "PLAN_LIMIT_EXCEEDED"] as const;

/** What an agent that makes backups on its own says of one. */
const reported = {
  status: z.enum(["in_progress", "completed", "partially_failed", "failed"]),
  size: Bytes,
  checksum: BackupChecksum,
};

export const backups = group({
  tag: "Backups",
  records: { Backup, BackupDownload, BackupFailure, BackupProgress, BackupVerification, Restore, RestorePlan, RepositoryAccess },
  operations: {
    list: query({
      ...read,
      summary: "List backups",
      rest: ["GET /backups"],
      list: "page",
      input: listQuery({ ...order, filters: { ...filters, deviceId: ref("dev").optional().describe("Only backups of this device.") } }),
      output: paged(named(Backup)),
    }),
    listOfDevice: query({
      ...read,
      summary: "List a device's backups",
      rest: [`GET ${onDevice[0]}`, `GET ${onDevice[1]}`],
      list: "page",
      input: listQuery({ ...order, filters: { ...filters, deviceId: ref("dev") } }),
      output: paged(named(Backup)),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    listOfTenant: query({
      ...read,
      summary: "List a tenant's backups",
      rest: ["GET /tenants/{tenantId}/backups"],
      list: "page",
      input: listQuery({ ...order, filters: { ...filters, tenantId: ref("ten") } }),
      output: paged(named(Backup)),
      errors: ["TENANT_NOT_FOUND"],
    }),
    get: query({ ...read, summary: "Get a backup", rest: ["GET /backups/{backupId}"], input: one, output: named(Backup), errors: ["BACKUP_NOT_FOUND"] }),
    wait: query({
      ...read,
      summary: "Wait until a backup has one of several states",
      rest: ["GET /backups/{backupId}/wait"],
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: one.extend(awaitedFields(BackupStatus)),
      output: named(Backup),
      errors: ["BACKUP_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    create: mutation({
      ...people,
      permission: "backup:create",
      summary: "Back up an app",
      rest: [`POST ${onDevice[0]}`, `POST ${onDevice[1]}`],
      status: 201,
      location: "/backups/{backupId}",
      input: z.strictObject({
        deviceId: ref("dev"),
        appId: ref("app"),
        type: BackupType.default("full"),
        name: Name.optional().describe("Default: the app's name and the time."),
        destinationId: ref("bkd").optional().describe("Default: the tenant's default destination."),
        consistency: z
          .enum(["template", ...BackupMode.options])
          .default("template")
          .describe("`template`: the data is made consistent as the app's template says. Otherwise this mode instead, without hooks."),
        retainUntil: Moment.optional().describe("Nobody deletes it before then."),
      }),
      output: Backup,
      errors: [...ORDER, "APP_NOT_FOUND", "INVALID_STATE_TRANSITION", "BACKUP_IN_PROGRESS", "BACKUP_DESTINATION_NOT_FOUND"],
    }),
    report: mutation({
      ...ofAgent,
      summary: "Report a backup that the agent made on its own",
      rest: [`POST ${onDevice[0]}`, `POST ${onDevice[1]}`],
      status: 201,
      input: z.object({ deviceId: ref("dev"), backupId: BackupId, appId: ref("app"), ...reported }),
      output: Backup,
      errors: ["BACKUP_NOT_FOUND", "APP_NOT_FOUND", "INVALID_STATE_TRANSITION", "BACKUP_IN_PROGRESS"],
    }),
    change: mutation({
      ...people,
      permission: "backup:update",
      summary: "Rename, hold or release a backup",
      rest: ["PATCH /backups/{backupId}"],
      input: one.extend({
        name: Name.optional(),
        retainUntil: Moment.nullable().optional().describe("Nobody deletes it before then. `null`: releases it."),
        version: Version.optional(),
      }),
      output: Backup,
      errors: ["BACKUP_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    reportChange: mutation({
      ...ofAgent,
      summary: "Report how a backup that the agent makes on its own gets on",
      rest: ["PATCH /backups/{backupId}"],
      input: z.object({ backupId: ref("bak"), status: reported.status.optional(), size: Bytes.optional(), checksum: BackupChecksum.optional() }),
      output: Backup,
      errors: ["BACKUP_NOT_FOUND", "INVALID_STATE_TRANSITION", "BACKUP_IN_PROGRESS", "CHECKSUM_MISMATCH"],
    }),
    remove: mutation({
      ...people,
      permission: "backup:delete",
      summary: "Delete a backup",
      rest: ["DELETE /backups/{backupId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: [...CHANGE, "BACKUP_RETAINED", "DEVICE_NOT_FOUND", "COMMAND_QUEUE_FULL"],
    }),
    cancel: mutation({
      ...people,
      permission: "backup:create",
      summary: "Cancel a backup",
      rest: ["POST /backups/{backupId}/cancel"],
      input: one,
      output: Backup,
      errors: [...CHANGE],
    }),
    verify: mutation({
      ...people,
      permission: "backup:verify",
      summary: "Verify a backup",
      rest: ["POST /backups/{backupId}/verify"],
      input: one.extend({
        mode: VerifyMode.default("checksum"),
        deviceId: ref("dev")
          .optional()
          .describe("The device that verifies it, such as another one after its own was removed. Default: the device of the backup."),
      }),
      output: Backup,
      errors: [
        ...["BACKUP_NOT_FOUND", "BACKUP_NOT_RESTORABLE", "BACKUP_IN_PROGRESS", "BACKUP_ENGINE_MISSING", "RESTORE_INCOMPATIBLE", "DEVICE_NOT_FOUND"],
        "COMMAND_QUEUE_FULL",
      ] as const,
    }),
    download: mutation({
      ...people,
      permission: "backup:restore",
      summary: "Make a link that downloads a backup",
      rest: ["POST /backups/{backupId}/download"],
      status: 201,
      input: one,
      output: BackupDownload,
      errors: ["BACKUP_NOT_FOUND", "BACKUP_NOT_RESTORABLE", "DEVICE_OFFLINE", ...ORDER],
    }),
    restore: mutation({
      ...people,
      permission: "backup:restore",
      summary: "Restore an app from a backup",
      rest: ["POST /backups/{backupId}/restore"],
      status: 201,
      location: "/restores/{restoreId}",
      input: one
        .extend({
          restoreType: RestoreType.default("full"),
          overwriteExisting: z.boolean().default(false).describe("`false`: it fails if a volume that it would replace has data."),
          paths: z
            .array(BackupPath)
            .max(100)
            .default([])
            .describe("Of a selective restore: files and folders, each relative to the folder of the app's volumes."),
          targetDeviceId: ref("dev").optional().describe("Default: the device of the backup."),
          targetAppId: ref("app")
            .optional()
            .describe("Default: the app of the backup, if it is on that device; else the app is installed there first, as it was when the backup was made."),
          dryRun: z.boolean().default(false).describe("`true`: changes nothing and ends with a `plan`."),
          skipSafetyBackup: z.boolean().default(false).describe("`true`: replace existing data without a backup of it."),
        })
        .refine(({ restoreType, paths }) => (restoreType === "selective") === paths.length > 0, {
          path: ["paths"],
          message: "must name files if and only if restoreType is selective",
        }),
      output: Restore,
      errors: [
        ...["BACKUP_NOT_FOUND", "BACKUP_NOT_RESTORABLE", "BACKUP_IN_PROGRESS", "RESTORE_TARGET_EXISTS", "RESTORE_INCOMPATIBLE", "APP_NOT_FOUND"],
        ...["INVALID_STATE_TRANSITION", "PLAN_UPGRADE_REQUIRED", ...ORDER],
      ] as const,
    }),
    listRestores: query({
      ...read,
      summary: "List restores",
      rest: ["GET /restores"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "status"],
        by: "-createdAt",
        filters: {
          backupId: ref("bak").optional().describe("Only restores from this backup."),
          deviceId: ref("dev").optional().describe("Only restores to this device."),
          appId: ref("app").optional().describe("Only restores of this app."),
          status: z.array(RestoreStatus).min(1).max(8).optional().describe("Only restores in one of these states, separated by commas."),
        },
      }),
      output: paged(named(Restore)),
    }),
    getRestore: query({
      ...read,
      summary: "Get a restore",
      rest: ["GET /restores/{restoreId}"],
      input: oneRestore,
      output: named(Restore),
      errors: ["RESTORE_NOT_FOUND"],
    }),
    waitRestore: query({
      ...read,
      summary: "Wait until a restore has one of several states",
      rest: ["GET /restores/{restoreId}/wait"],
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: oneRestore.extend(awaitedFields(RestoreStatus)),
      output: named(Restore),
      errors: ["RESTORE_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    cancelRestore: mutation({
      ...people,
      permission: "backup:restore",
      summary: "Cancel a restore",
      rest: ["POST /restores/{restoreId}/cancel"],
      input: oneRestore,
      output: Restore,
      errors: ["RESTORE_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
    access: query({
      ...ofAgent,
      replay: "once",
      summary: "Get the access to a backup's repository",
      rest: ["GET /agent/backups/{backupId}/access"],
      input: z.strictObject({ backupId: ref("bak"), commandId: ref("cmd").describe("The open command that the agent carries out.") }),
      output: RepositoryAccess,
      errors: ["BACKUP_NOT_FOUND", "COMMAND_NOT_FOUND", "BACKUP_DESTINATION_UNREACHABLE"],
    }),
  },
  commands: backupCommands,
  events: backupEvents,
});
