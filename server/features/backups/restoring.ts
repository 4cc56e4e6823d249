// Orders a restore: judges whether it can be, makes the app where there is none, and first makes a safety backup of what would be replaced.
import type { contract } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { BackedApp, Backing, KeptApp } from "../apps/index.ts";
import type { Repositories } from "../backup-destinations/index.ts";
import type { FeatureKit } from "../kit.ts";
import { unknownBackup } from "./handlers/reads.ts";
import { type BackupOrders, incompatible, requireReachable, secretsContext } from "./orders.ts";
import { isKept } from "./states.ts";
import type { BackupSteps } from "./steps.ts";
import { type BackupRow, type RestoreRow, snapshotOf, toRestore } from "./store/backup-row.ts";
import { findBackup, lockBackup } from "./store/backups.ts";
import { insertRestore, saveRestore } from "./store/restores.ts";

type H = Handlers<typeof contract.backups>;
export interface RestoringDeps extends Pick<FeatureKit, "db" | "secretBox"> {
  readonly orders: BackupOrders;
  readonly steps: BackupSteps;
  readonly apps: () => Backing;
  readonly repositories: () => Repositories;
  readonly isKnown: (db: Clients, scope: SystemScope, deviceId: string) => Promise<boolean>;
  readonly requireEngine: (tx: Clients, scope: SystemScope, deviceId: string) => Promise<void>;
}

const nothing = (): void => undefined;

const keptOf = ({ content, spec }: BackupRow): KeptApp => {
  if (content === null || spec === null) throw incompatible("the agent made this backup on its own, and the gateway does not know what is in it");
  return { content, spec };
};

const requireRestorable = (backup: BackupRow, restoreType: RestoreRow["restoreType"]): void => {
  const { backupId, status, type } = backup;
  if (!isKept(status)) throw new AppError("BACKUP_NOT_RESTORABLE", { details: { backupId, status } });
  keptOf(backup);
  if (snapshotOf(backup) === null) throw incompatible("the gateway does not know where this backup is");
  if (type === "config" && restoreType !== "config") throw incompatible("the backup holds the configuration alone");
};

const replacesData = (
  { app, isNew }: { readonly app: BackedApp; readonly isNew: boolean },
  { restoreType, dryRun }: Pick<RestoreRow, "restoreType" | "dryRun">,
): boolean => !isNew && app.hasRun && restoreType !== "config" && !dryRun;

export const createRestoring = (deps: RestoringDeps) => {
  const { db, secretBox, orders, steps, apps, repositories, isKnown, requireEngine } = deps;

  /** Gives the app its former version and configuration, and then its data. The restore is locked, or was just made. */
  const start = async (tx: Tx, scope: SystemScope, row: RestoreRow, backup: BackupRow): Promise<{ readonly row: RestoreRow; readonly notify: () => void }> => {
    const { targetAppId, restoreType, dryRun, createdBy: by } = row;
    const isTurning = !dryRun && (restoreType === "full" || restoreType === "config");
    const turned = isTurning ? await apps().turnBack(tx, scope, targetAppId, { kept: keptOf(backup), by }) : null;
    const app = await apps().lock(tx, { tenantId: scope.tenantId }, targetAppId);
    if (app === null) throw new AppError("APP_NOT_FOUND", { details: { appId: targetAppId } });
    const { commandId, notify } = await orders.restore(tx, scope, row, { backup, app });
    const saved = await saveRestore(tx, scope, row.restoreId, { commandId });
    return {
      row: saved,
      notify: () => {
        turned?.notify();
        notify();
      },
    };
  };

  /** After the safety backup. */
  const startRestore = async (tx: Tx, scope: SystemScope, row: RestoreRow): Promise<RestoreRow> => {
    const backup = await lockBackup(tx, { tenantId: scope.tenantId }, row.backupId);
    const failure = { stage: "validating", lines: [], previousData: "kept" as const };
    if (backup === null || !isKept(backup.status)) {
      const message = "The backup was deleted meanwhile.";
      return steps.restore(tx, scope, row, { to: "failed", patch: { failure: { ...failure, reason: "BACKUP_NOT_RESTORABLE", message } } });
    }
    try {
      // Its notice is lost: the session claims again when the safety backup's lane becomes free.
      return (await start(tx, scope, row, backup)).row;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return steps.restore(tx, scope, row, { to: "failed", patch: { failure: { ...failure, reason: error.code, message: error.message } } });
    }
  };

  interface Target {
    readonly app: BackedApp;
    readonly isNew: boolean;
    readonly notify: () => void;
  }
  const secretsOf = (scope: SystemScope, { backupId, secrets }: BackupRow): Readonly<Record<string, string>> =>
    secrets === null ? {} : (JSON.parse(secretBox.open(secrets, secretsContext(scope, backupId))) as Record<string, string>); // as: only we seal it

  const targetOf = async (
    tx: Tx,
    scope: TenantScope,
    backup: BackupRow,
    { deviceId, targetAppId, dryRun }: { readonly deviceId: BackupRow["deviceId"]; readonly targetAppId: string | undefined; readonly dryRun: boolean },
  ): Promise<Target> => {
    const appId = targetAppId ?? backup.appId;
    const found = await apps().lock(tx, scope, appId);
    const isThere = found !== null && found.deviceId === deviceId && found.status !== "removed";
    if (isThere && found.status === "removing") throw new AppError("INVALID_STATE_TRANSITION", { details: { from: "removing", to: "running", allowed: [] } });
    if (isThere) {
      if (found.content.template !== backup.content?.template) throw incompatible(`the app is of the template ${found.content.template}`);
      return { app: found, isNew: false, notify: nothing };
    }
    if (targetAppId !== undefined) throw new AppError("APP_NOT_FOUND", { details: { appId: targetAppId } });
    if (dryRun) throw incompatible("a dry run needs an app on that device; the restore itself installs it");
    const { app, notify } = await apps().install(tx, scope, { deviceId, kept: keptOf(backup), secrets: secretsOf(scope, backup) });
    const made = await apps().lock(tx, scope, app.appId);
    if (made === null) throw new Error("an app that was just made is gone");
    return { app: made, isNew: true, notify };
  };

  const restore: H["restore"] = async (
    { scope, commit },
    { backupId, restoreType, overwriteExisting, paths, targetDeviceId, targetAppId, dryRun, skipSafetyBackup },
  ) => {
    const seen = await findBackup(db, scope, backupId);
    if (seen === null) throw unknownBackup(backupId);
    const deviceId = (targetDeviceId ?? seen.deviceId) as BackupRow["deviceId"]; // as: known below
    if (!(await isKnown(db, scope, deviceId))) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
    return commit(async (tx, afterwards) => {
      const backup = await lockBackup(tx, scope, backupId);
      if (backup === null) throw unknownBackup(backupId);
      requireRestorable(backup, restoreType);
      const destination = await repositories().hold(tx, scope, backup.destinationId);
      requireReachable(destination.kind, backup, deviceId);
      await requireEngine(tx, scope, deviceId);
      const { app, isNew, notify } = await targetOf(tx, scope, backup, { deviceId, targetAppId, dryRun });
      await orders.requireFree(tx, scope, app.appId);
      const replaces = replacesData({ app, isNew }, { restoreType, dryRun });
      if (replaces && !overwriteExisting) throw new AppError("RESTORE_TARGET_EXISTS", { details: { appId: app.appId } });
      afterwards(notify);
      const by = actorOf(scope.principal);
      const isSafe = !replaces || skipSafetyBackup;
      const safety = isSafe
        ? null
        : await orders.backUp(tx, scope, { app, type: "full", trigger: "pre_restore", destinationId: null, consistency: "template", by });
      if (safety !== null) afterwards(safety.notify);
      const row = await insertRestore(tx, scope, {
        ...{
          restoreId: newId("rst"),
          deviceId,
          backupId: backup.backupId,
          targetAppId: app.appId,
          restoreType,
          paths,
          overwriteExisting,
          dryRun,
          createdBy: by,
        },
        status: "pending",
        safetyBackupId: safety?.row.backupId ?? null,
        commandId: safety?.row.commandId ?? null,
      });
      await steps.tellRestore(tx, scope, row);
      if (safety !== null) return toRestore(await steps.restore(tx, scope, row, { to: "validating" }));
      const started = await start(tx, scope, row, backup);
      afterwards(started.notify);
      return toRestore(started.row);
    });
  };
  return { restore, startRestore };
};
