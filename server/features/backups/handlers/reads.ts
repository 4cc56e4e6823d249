// Reads of backups and restores.

import type { contract } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import { pageWithActors, withActor } from "../../../core/people/actors.ts";
import type { SystemScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import { type BackupRow, type RestoreRow, toBackup, toRestore } from "../store/backup-row.ts";
import { findBackup, pageOfBackups } from "../store/backups.ts";
import { findRestore, pageOfRestores } from "../store/restores.ts";

type H = Handlers<typeof contract.backups>;
export interface BackupReadsDeps extends Pick<FeatureKit, "db" | "until"> {
  readonly isKnown: (db: Clients, scope: SystemScope, deviceId: string) => Promise<boolean>;
}
export const unknownBackup = (backupId: string): AppError => new AppError("BACKUP_NOT_FOUND", { details: { backupId } });
export const unknownRestore = (restoreId: string): AppError => new AppError("RESTORE_NOT_FOUND", { details: { restoreId } });

type Reads = Pick<H, "list" | "listOfDevice" | "listOfTenant" | "get" | "wait" | "listRestores" | "getRestore" | "waitRestore">;
export const createBackupReads = ({ db, until, isKnown }: BackupReadsDeps): Reads => {
  const find = async (scope: SystemScope, backupId: string): Promise<BackupRow> => {
    const row = await findBackup(db, scope, backupId);
    if (row === null) throw unknownBackup(backupId);
    return row;
  };
  const findOne = async (scope: SystemScope, restoreId: string): Promise<RestoreRow> => {
    const row = await findRestore(db, scope, restoreId);
    if (row === null) throw unknownRestore(restoreId);
    return row;
  };
  const page = async (scope: SystemScope, query: Parameters<typeof pageOfBackups>[2]) => {
    const { items, ...rest } = await pageOfBackups(db, scope, query);
    return pageWithActors(db, scope, { ...rest, items: items.map(toBackup) });
  };
  return {
    list: ({ scope }, query) => page(scope, query),
    listOfDevice: async ({ scope }, query) => {
      const { deviceId } = query;
      if (!(await isKnown(db, scope, deviceId))) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
      return page(scope, query);
    },
    listOfTenant: ({ scope, fail }, { tenantId, ...query }) => {
      if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
      return page(scope, query);
    },
    get: async ({ scope }, { backupId }) => withActor(db, scope, toBackup(await find(scope, backupId))),
    wait: async ({ scope, signal }, { backupId, status, timeout: seconds }) => {
      await find(scope, backupId);
      const read = () => find(scope, backupId);
      return withActor(db, scope, toBackup(await until(scope, { subjectId: backupId, seconds, signal, read, isDone: (row) => status.includes(row.status) })));
    },
    listRestores: async ({ scope }, query) => {
      const { items, ...rest } = await pageOfRestores(db, scope, query);
      return pageWithActors(db, scope, { ...rest, items: items.map(toRestore) });
    },
    getRestore: async ({ scope }, { restoreId }) => withActor(db, scope, toRestore(await findOne(scope, restoreId))),
    waitRestore: async ({ scope, signal }, { restoreId, status, timeout: seconds }) => {
      await findOne(scope, restoreId);
      const read = () => findOne(scope, restoreId);
      return withActor(db, scope, toRestore(await until(scope, { subjectId: restoreId, seconds, signal, read, isDone: (row) => status.includes(row.status) })));
    },
  };
};
