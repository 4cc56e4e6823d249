// The rows of backups and restores with the types of what their columns hold, and the records that people see.
import { Prisma } from "../../../../prisma/generated/client.ts";
import {
  type AppId,
  type AppSpec,
  Backup,
  type BackupDestinationId,
  type BackupId,
  type BackupPolicyId,
  type CommandId,
  type DeviceId,
  Restore,
  type RestoreId,
} from "../../../../protocol/index.ts";
import { recordOf } from "../../../core/rows/records.ts";

interface NarrowedBackup {
  readonly backupId: BackupId;
  readonly deviceId: DeviceId;
  readonly appId: AppId;
  readonly policyId: BackupPolicyId | null;
  readonly destinationId: BackupDestinationId | null;
  readonly commandId: CommandId | null;
  readonly type: Backup["type"];
  readonly trigger: Backup["trigger"];
  readonly status: Backup["status"];
  readonly consistency: Backup["consistency"];
  readonly progress: Backup["progress"];
  readonly content: Backup["content"];
  readonly spec: AppSpec | null;
  readonly verification: Backup["verification"];
  readonly failure: Backup["failure"];
}
export type BackupRow = Omit<Prisma.BackupModel, keyof NarrowedBackup> & NarrowedBackup;
export const toBackupRow = (row: Prisma.BackupModel): BackupRow => row as unknown as BackupRow; // as: only this feature writes the columns

interface NarrowedRestore {
  readonly restoreId: RestoreId;
  readonly backupId: BackupId;
  readonly deviceId: DeviceId;
  readonly targetAppId: AppId;
  readonly safetyBackupId: BackupId | null;
  readonly commandId: CommandId | null;
  readonly restoreType: Restore["restoreType"];
  readonly status: Restore["status"];
  readonly plan: Restore["plan"];
  readonly progress: Restore["progress"];
  readonly failure: Restore["failure"];
}
export type RestoreRow = Omit<Prisma.RestoreModel, keyof NarrowedRestore> & NarrowedRestore;
export const toRestoreRow = (row: Prisma.RestoreModel): RestoreRow => row as unknown as RestoreRow; // as: as above

const figure = (value: bigint | null): number | null => (value === null ? null : Number(value));

export const toBackup = (row: BackupRow): Backup =>
  recordOf(Backup, { ...row, id: row.backupId, size: figure(row.size), addedBytes: figure(row.addedBytes), files: figure(row.files) });

export const toRestore = (row: RestoreRow): Restore =>
  recordOf(Restore, { ...row, id: row.restoreId, targetDeviceId: row.deviceId, files: figure(row.files), bytes: figure(row.bytes) });

/** The id of the restic snapshot; null for a backup that has none or whose repository the gateway does not know. */
export const snapshotOf = ({ checksum, destinationId }: Pick<BackupRow, "checksum" | "destinationId">): string | null =>
  checksum === null || destinationId === null ? null : checksum.replace(/^sha256:/, "");

type Json = Record<string, unknown> | null;
const column = (value: object | null | undefined) => (value === undefined ? {} : value === null ? Prisma.DbNull : (value as Exclude<Json, null>));

export type BackupPatch = Partial<Omit<BackupRow, "tenantId" | "backupId" | "version">>;
/** Null clears a column of JSON. */
export const backupColumns = ({ progress, failure, content, spec, verification, ...rest }: BackupPatch) =>
  ({
    ...rest,
    ...(progress === undefined ? {} : { progress: column(progress) }),
    ...(failure === undefined ? {} : { failure: column(failure) }),
    ...(content === undefined ? {} : { content: column(content) }),
    ...(spec === undefined ? {} : { spec: column(spec) }),
    ...(verification === undefined ? {} : { verification }),
  }) as Omit<Prisma.BackupUncheckedUpdateInput, "tenantId">; // as: parsed JSON

export type RestorePatch = Partial<Omit<RestoreRow, "tenantId" | "restoreId" | "version">>;
export const restoreColumns = ({ progress, failure, plan, ...rest }: RestorePatch) =>
  ({
    ...rest,
    ...(progress === undefined ? {} : { progress: column(progress) }),
    ...(failure === undefined ? {} : { failure: column(failure) }),
    ...(plan === undefined ? {} : { plan: column(plan) }),
  }) as Omit<Prisma.RestoreUncheckedUpdateInput, "tenantId">; // as: as above
