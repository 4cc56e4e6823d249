// What people, policies and updates want of backups, as orders to the device's agent: the row and the command come together or not at all.
import { type Backup, type BackupDestinationId, type BackupPolicyId, type CommandId, contract, type DeviceId } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError, isAppError } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { orderOf } from "../../core/ports/command-outcomes.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { SealedContext } from "../../platform/keys/sealed.ts";
import type { BackedApp, Backing } from "../apps/index.ts";
import type { Repositories } from "../backup-destinations/index.ts";
import type { FeatureKit } from "../kit.ts";
import type { BackupSteps } from "./steps.ts";
import { type BackupRow, type RestoreRow, snapshotOf } from "./store/backup-row.ts";
import { findOpenBackup, insertBackup, lockAppData, saveBackup } from "./store/backups.ts";
import { findOpenRestore } from "./store/restores.ts";

export interface BackupOrdersDeps extends Pick<FeatureKit, "clock" | "enqueue" | "secretBox" | "plan"> {
  readonly steps: BackupSteps;
  readonly apps: () => Backing;
  readonly repositories: () => Repositories;
  readonly requireEngine: (tx: Clients, scope: SystemScope, deviceId: string) => Promise<void>;
}

export interface WantedBackup {
  readonly app: BackedApp;
  readonly type: Backup["type"];
  readonly trigger: Backup["trigger"];
  readonly name?: string | undefined;
  readonly destinationId: BackupDestinationId | string | null;
  readonly policyId?: BackupPolicyId | null;
  readonly consistency: "template" | "stop" | "pause" | "live";
  readonly retainUntil?: Date | null;
  readonly by: string;
  /** These two instead of the command type's. */
  readonly ttlSeconds?: number;
  readonly timeoutSeconds?: number;
}
export interface OrderedRecord<R> {
  readonly row: R;
  /** Call it after the commit. */
  readonly notify: () => void;
}

export interface BackupOrders {
  /** Throws BACKUP_IN_PROGRESS while somebody works on the app's data. Nobody else begins until the transaction ends. */
  requireFree(tx: Tx, scope: SystemScope, appId: string): Promise<void>;
  backUp(tx: Tx, scope: SystemScope, wanted: WantedBackup): Promise<OrderedRecord<BackupRow>>;
  verify(
    tx: Tx,
    scope: SystemScope,
    row: BackupRow,
    wanted: { readonly mode: "checksum" | "restore_test"; readonly by: string; readonly deviceId?: DeviceId },
  ): Promise<OrderedRecord<BackupRow>>;
  /** The device offers the backup's data for so long. */
  offer(
    tx: Tx,
    scope: SystemScope,
    row: BackupRow,
    wanted: { readonly downloadId: string; readonly seconds: number; readonly by: string },
  ): Promise<{ readonly commandId: CommandId; readonly notify: () => void }>;
  /** Takes backups of one device and one destination, at most 100 that are locked. */
  remove(tx: Tx, scope: SystemScope, rows: readonly BackupRow[], by: string): Promise<{ readonly notify: () => void }>;
  /** A snapshot that no row stands for any more. */
  removeStray(tx: Tx, scope: SystemScope, row: Pick<BackupRow, "backupId" | "deviceId" | "destinationId">, snapshotId: string): Promise<void>;
  restore(
    tx: Tx,
    scope: SystemScope,
    row: RestoreRow,
    from: { readonly backup: BackupRow; readonly app: BackedApp },
  ): Promise<{ readonly commandId: CommandId | null; readonly notify: () => void }>;
  prune(tx: Tx, scope: SystemScope, at: { readonly deviceId: DeviceId; readonly destinationId: BackupDestinationId; readonly key: string }): Promise<void>;
}

const { create, verify, download, delete: remove, restore, prune } = contract.backups.commands;
export const UNVERIFIED: Backup["verification"] = { status: "unverified", mode: null, verifiedAt: null, failure: null };
export const secretsContext = ({ tenantId }: SystemScope, backupId: string): SealedContext => `backup-secrets|${tenantId}|${backupId}`;
export const incompatible = (reason: string): AppError => new AppError("RESTORE_INCOMPATIBLE", { details: { reason } });
/** Throws RESTORE_INCOMPATIBLE if this device cannot read the backup. */
export const requireReachable = (kind: string, backup: BackupRow, deviceId: string): void => {
  if (kind === "local" && deviceId !== backup.deviceId) throw incompatible("the backup lies on its own device");
};
const requireSnapshot = (row: BackupRow): string => {
  const found = snapshotOf(row);
  if (found === null) throw new AppError("BACKUP_NOT_RESTORABLE", { details: { backupId: row.backupId, status: "unknown_repository" } });
  return found;
};
const busy = (appId: string): AppError => new AppError("BACKUP_IN_PROGRESS", { details: { appId } });
/** The device was removed. */
const isGone = (error: unknown): boolean => isAppError(error) && error.code === "DEVICE_NOT_FOUND";
const GONE: readonly BackedApp["status"][] = ["removing", "removed"];

export const createBackupOrders = (deps: BackupOrdersDeps): BackupOrders => {
  const { clock, enqueue, secretBox, plan, steps, apps, repositories, requireEngine } = deps;
  const requireFree: BackupOrders["requireFree"] = async (tx, scope, appId) => {
    await lockAppData(tx, scope, appId);
    const open = (await findOpenBackup(tx, scope, appId)) ?? (await findOpenRestore(tx, scope, { targetAppId: appId }));
    if (open !== null) throw busy(appId);
  };
  const nameOf = ({ name }: BackedApp): string => `${name.slice(0, 80)} ${clock.now().toISOString().slice(0, 16).replace("T", " ")}`;

  /** Null: the device was removed, so nobody is left who could delete the snapshots. */
  const orderRemoval = async (tx: Tx, scope: SystemScope, rows: readonly BackupRow[], by: string) => {
    const [first] = rows;
    const snapshotIds = rows.flatMap((row) => snapshotOf(row) ?? []);
    if (first === undefined || first.destinationId === null || snapshotIds.length === 0) return { commandId: null, notify: () => undefined };
    const { destinationId, deviceId } = first;
    const key = `delete:${first.backupId}:${first.version}`;
    try {
      const { commandIds, notify } = await enqueue(tx, scope, [orderOf(remove, { deviceId, key, orderedBy: by, payload: { destinationId, snapshotIds } })]);
      return { commandId: commandIds[0] ?? null, notify };
    } catch (error) {
      if (!isGone(error)) throw error;
      return null;
    }
  };

  return {
    requireFree,
    backUp: async (tx, scope, { app, type, trigger, name, destinationId, policyId = null, consistency, retainUntil = null, by, ...times }) => {
      const { appId, deviceId } = app;
      if (GONE.includes(app.status)) throw new AppError("INVALID_STATE_TRANSITION", { details: { from: app.status, to: "running", allowed: [] } });
      await requireEngine(tx, scope, deviceId);
      const destination = await repositories().hold(tx, scope, destinationId);
      // Nobody knows how large it gets; the repository refuses what is beyond the limit.
      if (destination.kind === "gateway") await plan.require(tx, scope, "storageGB", 0);
      await repositories().repository(tx, scope, { destinationId: destination.destinationId, deviceId });
      const backupId = newId("bak");
      const secrets = await apps().secretsOf(tx, scope, appId);
      const order = orderOf(create, {
        deviceId,
        key: `backup:${backupId}`,
        orderedBy: by,
        payload: { backupId, app: app.desired, type, consistency },
        ...(times.ttlSeconds === undefined ? {} : { ttlSeconds: times.ttlSeconds }),
        ...(times.timeoutSeconds === undefined ? {} : { executionTimeoutSeconds: times.timeoutSeconds }),
      });
      const { commandIds, notify } = await enqueue(tx, scope, [order]);
      const row = await insertBackup(tx, scope, {
        backupId,
        deviceId,
        appId,
        policyId,
        type,
        trigger,
        retainUntil,
        wantedMode: consistency,
        createdBy: by,
        destinationId: destination.destinationId,
        name: name ?? nameOf(app),
        status: "pending",
        content: app.content,
        spec: app.spec,
        secrets: Object.keys(secrets).length === 0 ? null : secretBox.seal(JSON.stringify(secrets), secretsContext(scope, backupId)),
        verification: UNVERIFIED,
        commandId: commandIds[0] ?? null,
      });
      await steps.tell(tx, scope, row, "created");
      return { row, notify };
    },
    verify: async (tx, scope, row, { mode, by, deviceId = row.deviceId }) => {
      const { backupId, appId } = row;
      await requireEngine(tx, scope, deviceId);
      const snapshotId = requireSnapshot(row);
      const order = orderOf(verify, { deviceId, key: `verify:${backupId}:${row.version}`, orderedBy: by, payload: { backupId, appId, snapshotId, mode } });
      const { commandIds, notify } = await enqueue(tx, scope, [order]);
      const verification = { ...row.verification, status: "verifying" as const, mode, failure: null };
      const saved = await saveBackup(tx, scope, backupId, { verification, commandId: commandIds[0] ?? null });
      await steps.tell(tx, scope, saved, "verifying");
      return { row: saved, notify };
    },
    offer: async (tx, scope, row, { downloadId, seconds, by }) => {
      const { backupId, deviceId } = row;
      await requireEngine(tx, scope, deviceId);
      const payload = { backupId, snapshotId: requireSnapshot(row), downloadId, seconds };
      const { commandIds, notify } = await enqueue(tx, scope, [orderOf(download, { deviceId, key: `download:${downloadId}`, orderedBy: by, payload })]);
      const [commandId] = commandIds;
      if (commandId === undefined) throw new Error("an order has no command");
      return { commandId, notify };
    },
    remove: async (tx, scope, rows, by) => {
      const ordered = await orderRemoval(tx, scope, rows, by);
      const isAway = ordered === null;
      for (const row of rows) {
        const isStored = !isAway && snapshotOf(row) !== null;
        if (row.status === "failed" || row.status === "cancelled") await steps.backup(tx, scope, row, { to: "deleted" });
        else {
          const patch = { deletedFrom: row.status, failure: null, ...(isStored ? { commandId: ordered?.commandId ?? null } : {}) };
          const deleting = await steps.backup(tx, scope, row, { to: "deleting", patch });
          // An agent's own backup is its own affair: only the record goes.
          if (!isStored) await steps.backup(tx, scope, deleting, { to: "deleted" });
        }
      }
      return { notify: ordered?.notify ?? (() => undefined) };
    },
    removeStray: async (tx, scope, { backupId, deviceId, destinationId }, snapshotId) => {
      if (destinationId === null) return;
      await enqueue(tx, scope, [
        orderOf(remove, {
          deviceId,
          key: `stray:${backupId}:${snapshotId.slice(0, 16)}`,
          orderedBy: "system",
          payload: { destinationId, snapshotIds: [snapshotId] },
        }),
      ]);
    },
    restore: async (tx, scope, row, { backup, app }) => {
      const snapshotId = requireSnapshot(backup);
      const { restoreId, backupId, deviceId, restoreType, paths, overwriteExisting, dryRun, safetyBackupId } = row;
      const { commandIds, notify } = await enqueue(tx, scope, [
        orderOf(restore, {
          deviceId,
          key: `restore:${restoreId}`,
          orderedBy: row.createdBy,
          payload: { restoreId, backupId, app: app.desired, snapshotId, restoreType, paths: [...paths], overwriteExisting, dryRun, safetyBackupId },
        }),
      ]);
      return { commandId: commandIds[0] ?? null, notify };
    },
    prune: async (tx, scope, { deviceId, destinationId, key }) => {
      await enqueue(tx, scope, [orderOf(prune, { deviceId, key: `prune:${key}`, orderedBy: "system", payload: { destinationId } })]);
    },
  };
};
