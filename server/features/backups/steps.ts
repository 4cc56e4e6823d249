// The one way in which a backup or a restore changes its state: the row and its event, in the caller's transaction.
import { type BackupFailure, type BackupStatus, contract, type RestoreStatus } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { type DurableEvent, type Emit, type Happened, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import { canMoveRestore, isAhead, isOpenBackup, isOpenRestore, moveBackup, moveRestore } from "./states.ts";
import type { BackupPatch, BackupRow, RestorePatch, RestoreRow } from "./store/backup-row.ts";
import { saveBackup } from "./store/backups.ts";
import { saveRestore } from "./store/restores.ts";

const events = contract.backups.events;
type BackupEvent = typeof events.created;
type FailedEvent = typeof events.failed;

const figure = (value: bigint | null): number | null => (value === null ? null : Number(value));
const backupData = (row: BackupRow, previous: BackupStatus | null) => {
  const { backupId, deviceId, appId, policyId, destinationId, name, type, trigger, status, size } = row;
  return { backupId, deviceId, appId, policyId, destinationId, name, type, trigger, status, previous, size: figure(size) };
};
const restoreData = (row: RestoreRow, previous: RestoreStatus | null) => {
  const { restoreId, backupId, deviceId, targetAppId, restoreType, dryRun, status } = row;
  return { restoreId, backupId, deviceId, appId: targetAppId, restoreType, dryRun, status, previous };
};

const OF_STATUS: Readonly<Partial<Record<BackupStatus, (typeof events)[keyof typeof events]>>> = {
  pending: events.created,
  in_progress: events.started,
  cancelling: events.changed,
  completed: events.completed,
  partially_failed: events.partiallyFailed,
  cancelled: events.cancelled,
  deleting: events.deleting,
  deleted: events.deleted,
};
const OF_RESTORE: Readonly<Partial<Record<RestoreStatus, (typeof events)[keyof typeof events]>>> = {
  pending: events.restoreCreated,
  validating: events.restoreChanged,
  in_progress: events.restoreStarted,
  verifying: events.restoreChanged,
  cancelling: events.restoreChanged,
  completed: events.restoreCompleted,
  cancelled: events.restoreCancelled,
};

export interface BackupSteps {
  /** Throws INVALID_STATE_TRANSITION unless the states list the change. The backup is locked. */
  backup(tx: Tx, scope: SystemScope, row: BackupRow, step: { readonly to: BackupStatus; readonly patch?: BackupPatch }): Promise<BackupRow>;
  restore(tx: Tx, scope: SystemScope, row: RestoreRow, step: { readonly to: RestoreStatus; readonly patch?: RestorePatch }): Promise<RestoreRow>;
  /** Tells of a backup in the same state. */
  tell(tx: Tx, scope: SystemScope, row: BackupRow, event: "changed" | "verifying" | "verified" | "expired" | "created"): Promise<void>;
  tellFailure(
    tx: Tx,
    scope: SystemScope,
    row: BackupRow,
    told: { readonly event: "verificationFailed" | "deletionFailed"; readonly failure: BackupFailure },
  ): Promise<void>;
  tellRestore(tx: Tx, scope: SystemScope, row: RestoreRow): Promise<void>;
}

export const createBackupSteps = ({ clock, emit }: { readonly clock: Clock; readonly emit: Emit }): BackupSteps => {
  // as: a union of events, each with its own payload
  const send = (tx: Tx, event: Happened<DurableEvent>) => emit(tx, [event]);
  const emitBackup = (tx: Tx, scope: SystemScope, row: BackupRow, previous: BackupStatus | null): Promise<void> => {
    const data = backupData(row, previous);
    if (row.status === "failed" && row.failure !== null)
      return send(tx, happened(scope, events.failed as FailedEvent, row.backupId, { ...data, failure: row.failure }));
    const event = OF_STATUS[row.status];
    return event === undefined ? Promise.resolve() : send(tx, happened(scope, event as BackupEvent, row.backupId, data));
  };
  const emitRestore = (tx: Tx, scope: SystemScope, row: RestoreRow, previous: RestoreStatus | null): Promise<void> => {
    const data = restoreData(row, previous);
    if (row.status === "failed" && row.failure !== null) {
      const { previousData: _, ...failure } = row.failure;
      return send(tx, happened(scope, events.restoreFailed, row.restoreId, { ...data, failure }));
    }
    const event = OF_RESTORE[row.status];
    return event === undefined ? Promise.resolve() : send(tx, happened(scope, event as typeof events.restoreCreated, row.restoreId, data));
  };

  return {
    backup: async (tx, scope, row, { to, patch = {} }) => {
      const status = moveBackup(row.status, to);
      const at = clock.now();
      const saved = await saveBackup(tx, scope, row.backupId, {
        ...patch,
        status,
        heardAt: isOpenBackup(status) ? at : null,
        ...(to === "in_progress" ? { startedAt: row.startedAt ?? at } : {}),
        ...(!isOpenBackup(status) && isOpenBackup(row.status) ? { completedAt: at } : {}),
      });
      await emitBackup(tx, scope, saved, row.status);
      return saved;
    },
    restore: async (tx, scope, row, { to, patch = {} }) => {
      // An agent need not tell of each step; one that it passed over has been, too.
      const status = isAhead(row.status, to) || !canMoveRestore(row.status, to) ? walked(row.status, to) : moveRestore(row.status, to);
      const at = clock.now();
      const saved = await saveRestore(tx, scope, row.restoreId, {
        ...patch,
        status,
        heardAt: isOpenRestore(status) ? at : null,
        ...(row.startedAt === null && row.status === "pending" && isOpenRestore(status) ? { startedAt: at } : {}),
        ...(isOpenRestore(status) ? {} : { completedAt: at }),
      });
      await emitRestore(tx, scope, saved, row.status);
      return saved;
    },
    tell: (tx, scope, row, event) => send(tx, happened(scope, events[event] as BackupEvent, row.backupId, backupData(row, row.status))),
    tellFailure: (tx, scope, row, { event, failure }) =>
      send(tx, happened(scope, events[event] as unknown as FailedEvent, row.backupId, { ...backupData(row, row.status), failure })),
    tellRestore: (tx, scope, row) => emitRestore(tx, scope, row, null),
  };
};

const walked = (from: RestoreStatus, to: RestoreStatus): RestoreStatus => (isAhead(from, to) ? to : moveRestore(from, to));
