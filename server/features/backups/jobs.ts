// Background work of backups: ends what no agent speaks of any more, frees the space of deleted ones, and forgets their records.

import type { BackupDestinationId, TenantId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { isAppError } from "../../core/errors.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { CancelOrdered } from "../apps/index.ts";
import type { Repositories } from "../backup-destinations/index.ts";
import type { BackupOrders } from "./orders.ts";
import type { BackupOutcomes } from "./outcomes.ts";
import { isOpenBackup, isOpenRestore } from "./states.ts";
import { findBackup, findStalledBackups, forgetDeleted, lockBackup, type StalledRow } from "./store/backups.ts";
import { findRestore, findStalledRestores, lockRestore } from "./store/restores.ts";

const SILENT_SECONDS = 30 * 60;
const AT_ONCE = 50;
const PRUNE_AT_ONCE = 20;
const KEPT_DAYS = 30;
const PRUNE_EVERY_DAYS = 7;

export interface BackupJobsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly orders: BackupOrders;
  readonly outcomes: Pick<BackupOutcomes, "fail" | "failRestore">;
  readonly cancelOrdered: CancelOrdered;
  readonly repositories: () => Repositories;
}

const STALLED = { stage: null, reason: "BACKUP_STALLED", message: "The agent has said nothing for 30 minutes.", lines: [] };

export const createBackupJobs = ({ db, clock, orders, outcomes, cancelOrdered, repositories }: BackupJobsDeps): readonly Job[] => {
  const end = async ({ tenant_id, id }: StalledRow, isBackup: boolean): Promise<void> => {
    const scope = { tenantId: tenant_id as TenantId }; // as: a row's tenant
    const seen = isBackup ? await findBackup(db, scope, id) : await findRestore(db, scope, id);
    if (seen === null) return;
    const mark = async (tx: Tx): Promise<void> => {
      if (isBackup) {
        const row = await lockBackup(tx, scope, id);
        if (row !== null && isOpenBackup(row.status)) await outcomes.fail(tx, scope, row, STALLED);
        return;
      }
      const row = await lockRestore(tx, scope, id);
      if (row !== null && isOpenRestore(row.status)) await outcomes.failRestore(tx, scope, row, { ...STALLED, previousData: null });
    };
    const { deviceId, commandId } = seen;
    if (commandId === null) return db.tx(mark);
    const cancel = await cancelOrdered(scope, { tenantId: scope.tenantId, deviceId, commandId });
    const { notify } = await db.tx((tx) => cancel(tx, { by: "system", reason: STALLED.reason, before: () => mark(tx) }));
    notify();
  };

  return [
    {
      name: "backups.stalled",
      everyMs: 60_000,
      run: async () => {
        const before = secondsFromNow(-SILENT_SECONDS, clock.now());
        const backups = await findStalledBackups(db, before, AT_ONCE);
        const restores = await findStalledRestores(db, before, AT_ONCE);
        for (const row of backups) await end(row, true);
        for (const row of restores) await end(row, false);
        return backups.length === AT_ONCE || restores.length === AT_ONCE;
      },
    },
    {
      name: "backups.prune",
      everyMs: 600_000,
      // A few at a time spread the load over devices and over the gateway's disk.
      run: () =>
        db.tx(async (tx) => {
          const now = clock.now();
          const due = await repositories().takePrunable(tx, secondsFromNow(-PRUNE_EVERY_DAYS * DAY_SECONDS, now), PRUNE_AT_ONCE);
          for (const { tenant_id, repository_id, device_id, destination_id } of due) {
            const scope = { tenantId: tenant_id as TenantId }; // as: a row's ids
            await repositories().save(tx, scope, repository_id, { pruneStartedAt: now });
            try {
              const key = `${repository_id}:${now.getTime()}`;
              await orders.prune(tx, scope, { deviceId: device_id, destinationId: destination_id as BackupDestinationId, key });
            } catch (error) {
              // Its queue is full, or the device has gone: next week.
              if (!isAppError(error)) throw error;
            }
          }
          return due.length === PRUNE_AT_ONCE;
        }),
    },
    { name: "backups.forget", everyMs: 3_600_000, run: () => forgetDeleted(db, secondsFromNow(-KEPT_DAYS * DAY_SECONDS, clock.now())) },
  ];
};
