// Events of backups, restores, destinations and policies.
import { z } from "zod";
import { event } from "../../kit/event.ts";
import { AppId, BackupDestinationId, BackupId, BackupPolicyId, DeviceId, RestoreId } from "../../kit/ids.ts";
import { BackupFailure, BackupStatus, BackupTrigger, BackupType, RestoreStatus, RestoreType } from "./backup.ts";

const BackupEvent = z.object({
  backupId: BackupId,
  deviceId: DeviceId,
  appId: AppId,
  policyId: BackupPolicyId.nullable(),
  destinationId: BackupDestinationId.nullable(),
  name: z.string(),
  type: BackupType,
  trigger: BackupTrigger,
  status: BackupStatus,
  previous: BackupStatus.nullable(),
  size: z.int().nullable(),
});
const Failed = BackupEvent.extend({ failure: BackupFailure });

const RestoreEvent = z.object({
  restoreId: RestoreId,
  backupId: BackupId,
  deviceId: DeviceId,
  appId: AppId.describe("The app that gets the data."),
  restoreType: RestoreType,
  dryRun: z.boolean(),
  status: RestoreStatus,
  previous: RestoreStatus.nullable(),
});

export const backupEvents = {
  created: event("backup.created", BackupEvent, "Somebody, a policy or an update ordered a backup"),
  started: event("backup.started", BackupEvent, "A device began a backup"),
  completed: event("backup.completed", BackupEvent, "A backup was made and read back from its repository"),
  partiallyFailed: event("backup.partially_failed", BackupEvent, "A backup was made that lacks files which could not be read"),
  failed: event("backup.failed", Failed, "A backup failed"),
  cancelled: event("backup.cancelled", BackupEvent, "A backup was cancelled"),
  changed: event("backup.changed", BackupEvent, "A backup was renamed, held, released or is to be cancelled"),
  verifying: event("backup.verifying", BackupEvent, "A backup is to be verified"),
  verified: event("backup.verified", BackupEvent, "A backup was verified"),
  verificationFailed: event("backup.verification_failed", Failed, "A backup could not be verified: it cannot be trusted"),
  expired: event("backup.expired", BackupEvent, "A policy's retention no longer keeps a backup, and it is deleted"),
  deleting: event("backup.deleting", BackupEvent, "A backup is to be deleted"),
  deletionFailed: event("backup.deletion_failed", Failed, "A backup could not be deleted and stays"),
  deleted: event("backup.deleted", BackupEvent, "A backup was deleted"),
  restoreCreated: event("restore.created", RestoreEvent, "Somebody ordered a restore"),
  restoreStarted: event("restore.started", RestoreEvent, "A device began a restore"),
  restoreChanged: event("restore.changed", RestoreEvent, "A restore got on: it verifies, or is to be cancelled"),
  restoreCompleted: event("restore.completed", RestoreEvent, "An app has the data of a backup, or a dry run has its plan"),
  restoreFailed: event("restore.failed", RestoreEvent.extend({ failure: BackupFailure }), "A restore failed"),
  restoreCancelled: event("restore.cancelled", RestoreEvent, "A restore was cancelled"),
  pruned: event(
    "backup_repository.pruned",
    z.object({ destinationId: BackupDestinationId, deviceId: DeviceId, freedBytes: z.int() }),
    "A device freed the space of deleted backups",
  ),
  pruneFailed: event(
    "backup_repository.prune_failed",
    z.object({ destinationId: BackupDestinationId, deviceId: DeviceId, failure: BackupFailure }),
    "The space of deleted backups could not be freed",
  ),
};

const DestinationEvent = z.object({ destinationId: BackupDestinationId, name: z.string(), kind: z.string() });
export const destinationEvents = {
  created: event("backup_destination.created", DestinationEvent, "A backup destination was created"),
  updated: event("backup_destination.updated", DestinationEvent, "A backup destination was changed"),
  deleted: event("backup_destination.deleted", DestinationEvent, "A backup destination was deleted"),
  tested: event("backup_destination.tested", DestinationEvent.extend({ deviceId: DeviceId }), "A device reached a backup destination"),
  failed: event(
    "backup_destination.failed",
    DestinationEvent.extend({ deviceId: DeviceId, failure: BackupFailure }),
    "A device does not reach a backup destination that it reached before, or reaches for the first time",
  ),
  recovered: event("backup_destination.recovered", DestinationEvent.extend({ deviceId: DeviceId }), "A backup destination works again"),
};
