// Guide to backups and restores.
import type { Guide } from "../guide.ts";
import { AT, IDS, LATER, shownWithActors } from "../records.ts";

const backupId = "bak_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const restoreId = "rst_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const destinationId = "bkd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const { appId, commandId, deviceId, tenantId, userId } = IDS;
const checksum = `sha256:${"4f".repeat(32)}`;
const unverified = { status: "unverified", mode: null, verifiedAt: null, failure: null };

export const backup = {
  id: backupId,
  backupId,
  tenantId,
  deviceId,
  appId,
  policyId: null,
  destinationId,
  name: "Before the move",
  type: "full",
  trigger: "manual",
  status: "completed",
  size: 73_400_320,
  addedBytes: 1_048_576,
  files: 412,
  checksum,
  progress: null,
  consistency: "stopped",
  downtimeSeconds: 2.4,
  content: { appName: "notes", template: "key-value", templateVersion: "1.2.0", revision: 3, configuration: { port: 8_090 } },
  startedAt: AT,
  completedAt: LATER,
  retainUntil: null,
  verification: unverified,
  failure: null,
  warnings: [],
  commandId,
  createdBy: `user:${userId}`,
  version: 3,
  createdAt: AT,
  updatedAt: LATER,
};
const pending = {
  ...backup,
  status: "pending",
  size: null,
  addedBytes: null,
  files: null,
  checksum: null,
  consistency: null,
  downtimeSeconds: null,
  startedAt: null,
  completedAt: null,
  version: 1,
};
const restore = {
  id: restoreId,
  restoreId,
  tenantId,
  backupId,
  restoreType: "full",
  paths: [],
  overwriteExisting: true,
  deviceId,
  targetDeviceId: deviceId,
  targetAppId: appId,
  dryRun: false,
  plan: null,
  safetyBackupId: "bak_01J9ZQ9V1X3Z5B7D9F0H2K4M6P",
  status: "validating",
  progress: null,
  files: null,
  bytes: null,
  failure: null,
  startedAt: AT,
  completedAt: null,
  commandId,
  createdBy: `user:${userId}`,
  version: 2,
  createdAt: AT,
  updatedAt: AT,
};
export const repositoryAccess = {
  destinationId,
  kind: "gateway",
  right: "append",
  mayInitialize: false,
  repository: "rest:https://mooring:eyJ0Ijoi…@backups.example.org:8082/restic/rep_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R/",
  password: "nN3…",
  environment: {},
  expiresAt: "2026-11-21T15:30:00.000Z",
};
const ofAgent = { ...backup, trigger: "agent", destinationId: null, content: null, addedBytes: null, files: null, consistency: null, downtimeSeconds: null };
const said = { status: "completed", size: 73_400_320, checksum };

export const backups: Guide<"backups"> = {
  list: {
    description: "Lists the tenant's backups, newest first. Deleted ones are shown for 30 days, and only if you ask for them by `status=deleted`.",
    input: { appId, status: ["completed"] },
    output: { items: [shownWithActors(backup)], total: 1 },
  },
  listOfDevice: { description: "Takes the filters and orders of `GET /backups`.", input: { deviceId }, output: { items: [shownWithActors(backup)], total: 1 } },
  listOfTenant: { description: "Takes the filters and orders of `GET /backups`.", input: { tenantId }, output: { items: [shownWithActors(backup)], total: 1 } },
  get: {
    description:
      "Returns the backup. It is `completed` only when its agent has read it back from the repository: the snapshot is there and has the files that were counted.",
    input: { backupId },
    output: shownWithActors(backup),
  },
  wait: {
    description: "Answers when the backup has one of these states, and at the latest after `timeout` seconds.",
    input: { backupId, status: ["completed", "partially_failed", "failed", "cancelled"], timeout: 60 },
    output: shownWithActors(backup),
  },
  create: {
    description:
      "Orders a backup from the app's device. The template says how the data is made consistent; the app runs again as soon as its data is read. While a backup or a restore of the app is under way, the answer is 409 `BACKUP_IN_PROGRESS`. Without `destinationId` it goes to the tenant's default destination.",
    input: { deviceId, appId, name: "Before the move" },
    output: pending,
  },
  report: {
    description:
      "For agents that make backups on their own: creates the record with 201, or updates it with 200 if it exists. What the gateway ordered ends by the command's acknowledgement, so reporting it is refused with 409.",
    input: { deviceId, backupId, appId, ...said },
    output: ofAgent,
  },
  change: {
    description: "Changes only the fields that you send. While `retainUntil` lies ahead, neither people nor policies delete the backup.",
    input: { backupId, retainUntil: "2027-01-01T00:00:00.000Z" },
    output: { ...backup, retainUntil: "2027-01-01T00:00:00.000Z" },
  },
  reportChange: { description: "For agents: the same as the report of a backup, for one that exists.", input: { backupId, ...said }, output: ofAgent },
  remove: {
    description:
      "Orders the deletion from the device and answers at once; the backup is `deleting` until its repository has let go of it. The freed space returns with the next weekly prune. A failed or cancelled backup is only a record, and goes at once, and so does one whose device was removed: then what its repository holds stays there.",
    input: { backupId },
  },
  cancel: {
    description: "Asks the agent to stop. The backup is `cancelled` when it has, and completed if it was faster.",
    input: { backupId },
    output: { ...pending, status: "cancelling", version: 3 },
  },
  verify: {
    description:
      "Lets the device read the backup. `checksum` compares every stored block, `restore_test` restores into a folder of its own, compares and deletes that. A backup that fails is no longer counted by policies, and `backup.verification_failed` tells of it. After its device was removed, name another one as `deviceId`, unless the backup lies on its own device.",
    input: { backupId, mode: "checksum" },
    output: { ...backup, verification: { ...unverified, status: "verifying", mode: "checksum" } },
  },
  download: {
    description:
      "Orders the device to offer the backup's data and returns a link to it: a tar archive with the app's volumes and `app.json`, decrypted. The link works once, within 15 minutes and for whoever has it. The archive comes straight from the device, through its carrier, and is stored nowhere; one that breaks off ends the transfer with an error. `POST`, because each call is an order of its own.",
    input: { backupId },
    output: {
      backupId,
      url: "https://edge.example.org:8082/backup-downloads/eyJiYWNrdXBJZCI6ImJha18wMUo5In0.9xQ2",
      expiresAt: "2026-11-21T12:15:00.000Z",
      commandId,
    },
  },
  restore: {
    description:
      "Restores beside the running app, compares what was written, and swaps the data only then. If the app is not healthy with it, the agent brings the former data back. Existing data needs `overwriteExisting: true`, and is backed up first unless you send `skipSafetyBackup: true`. On another device the app is installed first, with the configuration and secrets that the backup kept.",
    input: { backupId, restoreType: "full", overwriteExisting: true },
    output: restore,
  },
  listRestores: { description: "Lists restores, newest first.", input: { appId }, output: { items: [shownWithActors(restore)], total: 1 } },
  getRestore: { description: "Returns the restore, with its progress and, of a dry run, its plan.", input: { restoreId }, output: shownWithActors(restore) },
  waitRestore: {
    description: "Answers when the restore has one of these states, and at the latest after `timeout` seconds.",
    input: { restoreId, status: ["completed", "failed", "cancelled"], timeout: 60 },
    output: shownWithActors(restore),
  },
  cancelRestore: {
    description: "Asks the agent to stop. Once the data is being compared, it is too late.",
    input: { restoreId },
    output: { ...restore, status: "cancelling" },
  },
  access: {
    description:
      "For agents: where the repository is and what restic needs to open it, for one open command. The right is that of the command: a backup appends, a restore reads. Each call needs a signature of its own, because the answer contains secrets.",
    input: { backupId, commandId },
    output: repositoryAccess,
  },
};
