// Changes of backups by people: make, rename, hold, verify, cancel and delete.
import type { contract } from "../../../../protocol/index.ts";
import type { Clients, Tx } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import { actorOf, type SystemScope } from "../../../core/scope.ts";
import type { Backing, CancelOrdered } from "../../apps/index.ts";
import type { Repositories } from "../../backup-destinations/index.ts";
import type { FeatureKit } from "../../kit.ts";
import { type BackupOrders, requireReachable } from "../orders.ts";
import { canMoveBackup, canMoveRestore, isKept, isOpenBackup, isOpenRestore } from "../states.ts";
import type { BackupSteps } from "../steps.ts";
import { type BackupRow, toBackup, toRestore } from "../store/backup-row.ts";
import { findBackup, lockBackup, saveBackup } from "../store/backups.ts";
import { findOpenRestore, findRestore, lockRestore } from "../store/restores.ts";
import { unknownBackup, unknownRestore } from "./reads.ts";

type H = Handlers<typeof contract.backups>;
export interface BackupChangesDeps extends Pick<FeatureKit, "db" | "clock"> {
  readonly orders: BackupOrders;
  readonly steps: BackupSteps;
  readonly apps: () => Backing;
  readonly repositories: () => Repositories;
  readonly cancelOrdered: CancelOrdered;
  readonly isKnown: (db: Clients, scope: SystemScope, deviceId: string) => Promise<boolean>;
}

const locked = async (tx: Tx, scope: SystemScope, backupId: string): Promise<BackupRow> => {
  const row = await lockBackup(tx, scope, backupId);
  if (row === null) throw unknownBackup(backupId);
  return row;
};
const cannot = (from: string, to: string): AppError => new AppError("INVALID_STATE_TRANSITION", { details: { from, to, allowed: [] } });
const isHeld = ({ retainUntil }: BackupRow, now: Date): boolean => retainUntil !== null && retainUntil > now;

type Changes = Pick<H, "create" | "change" | "remove" | "verify" | "cancel" | "cancelRestore">;
export const createBackupChanges = (deps: BackupChangesDeps): Changes => {
  const { clock, orders, steps, apps, repositories, isKnown } = deps;
  return {
    ...createCancels(deps),
    create: ({ scope, commit, fail }, { deviceId, appId, retainUntil, destinationId, ...wanted }) =>
      commit(async (tx, afterwards) => {
        if (!(await isKnown(tx, scope, deviceId))) throw fail("DEVICE_NOT_FOUND", { deviceId });
        const app = await apps().lock(tx, scope, appId);
        if (app === null || app.deviceId !== deviceId) throw fail("APP_NOT_FOUND", { appId });
        await orders.requireFree(tx, scope, appId);
        const { row, notify } = await orders.backUp(tx, scope, {
          ...wanted,
          app,
          trigger: "manual",
          destinationId: destinationId ?? null,
          retainUntil: retainUntil === undefined ? null : new Date(retainUntil),
          by: actorOf(scope.principal),
        });
        afterwards(notify);
        return toBackup(row);
      }),
    change: ({ scope, commit, fail }, { backupId, name, retainUntil, version }) =>
      commit(async (tx) => {
        const before = await locked(tx, scope, backupId);
        if (version !== undefined && version !== before.version) throw fail("VERSION_CONFLICT", { currentVersion: before.version });
        const row = await saveBackup(tx, scope, backupId, {
          ...(name === undefined ? {} : { name }),
          ...(retainUntil === undefined ? {} : { retainUntil: retainUntil === null ? null : new Date(retainUntil) }),
        });
        await steps.tell(tx, scope, row, "changed");
        return toBackup(row);
      }),
    remove: ({ scope, commit, fail }, { backupId }) =>
      commit(async (tx, afterwards) => {
        const row = await locked(tx, scope, backupId);
        if (isHeld(row, clock.now())) throw fail("BACKUP_RETAINED", { backupId, retainUntil: row.retainUntil?.toISOString() });
        if (row.verification.status === "verifying") throw cannot("verifying", "deleting");
        if (!canMoveBackup(row.status, "deleting") && !canMoveBackup(row.status, "deleted")) throw cannot(row.status, "deleting");
        if (row.status === "deleting") throw cannot("deleting", "deleting");
        if ((await findOpenRestore(tx, scope, { backupId })) !== null) throw cannot("in_use", "deleting");
        const { notify } = await orders.remove(tx, scope, [row], actorOf(scope.principal));
        afterwards(notify);
        return null;
      }),
    verify: ({ scope, commit, fail }, { backupId, mode, deviceId: other }) =>
      commit(async (tx, afterwards) => {
        if (other !== undefined && !(await isKnown(tx, scope, other))) throw fail("DEVICE_NOT_FOUND", { deviceId: other });
        const row = await locked(tx, scope, backupId);
        if (!isKept(row.status)) throw fail("BACKUP_NOT_RESTORABLE", { backupId, status: row.status });
        if (row.verification.status === "verifying") throw fail("BACKUP_IN_PROGRESS", { appId: row.appId });
        const deviceId = (other ?? row.deviceId) as BackupRow["deviceId"]; // as: it is known
        requireReachable((await repositories().hold(tx, scope, row.destinationId)).kind, row, deviceId);
        const { row: saved, notify } = await orders.verify(tx, scope, row, { mode, deviceId, by: actorOf(scope.principal) });
        afterwards(notify);
        return toBackup(saved);
      }),
  };
};

const createCancels = ({ db, steps, cancelOrdered }: BackupChangesDeps): Pick<H, "cancel" | "cancelRestore"> => ({
  cancel: async ({ scope, commit }, { backupId }) => {
    const seen = await findBackup(db, scope, backupId);
    if (seen === null) throw unknownBackup(backupId);
    const { deviceId, commandId } = seen;
    if (!isOpenBackup(seen.status) || commandId === null) throw cannot(seen.status, "cancelling");
    const cancel = await cancelOrdered(scope, { tenantId: scope.tenantId, deviceId, commandId });
    return commit(async (tx, afterwards) => {
      const { notify } = await cancel(tx, {
        by: actorOf(scope.principal),
        reason: "backup_cancelled",
        before: async () => {
          const row = await locked(tx, scope, backupId);
          if (!isOpenBackup(row.status)) throw cannot(row.status, "cancelling");
          if (row.status === "in_progress") await steps.backup(tx, scope, row, { to: "cancelling" });
        },
      });
      afterwards(notify);
      return toBackup(await locked(tx, scope, backupId));
    });
  },
  cancelRestore: async ({ scope, commit }, { restoreId }) => {
    const seen = await findRestore(db, scope, restoreId);
    if (seen === null) throw unknownRestore(restoreId);
    const { deviceId, commandId } = seen;
    if (commandId === null || !canMoveRestore(seen.status, "cancelling")) throw cannot(seen.status, "cancelling");
    const cancel = await cancelOrdered(scope, { tenantId: scope.tenantId, deviceId, commandId });
    return commit(async (tx, afterwards) => {
      const { notify } = await cancel(tx, {
        by: actorOf(scope.principal),
        reason: "restore_cancelled",
        before: async () => {
          const row = await lockRestore(tx, scope, restoreId);
          if (row === null || !isOpenRestore(row.status)) throw cannot(row?.status ?? "deleted", "cancelling");
          await steps.restore(tx, scope, row, { to: "cancelling" });
        },
      });
      afterwards(notify);
      const row = await lockRestore(tx, scope, restoreId);
      if (row === null) throw unknownRestore(restoreId);
      return toRestore(row);
    });
  },
});
