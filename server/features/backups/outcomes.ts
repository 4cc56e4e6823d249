// What follows from an agent's word about backups and restores: while it works, and when the command has ended, in whichever way.
import type { BackupStatus, contract, RestoreStatus } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import type { Emit } from "../../core/events.ts";
import type { CommandNews, Outcome, OutcomeHandlers, ProgressHandler } from "../../core/ports/command-outcomes.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Backing } from "../apps/index.ts";
import type { Repositories } from "../backup-destinations/index.ts";
import { backupFailureOf } from "./failures.ts";
import type { BackupOrders } from "./orders.ts";
import { isAhead, isOpenBackup, isOpenRestore } from "./states.ts";
import type { BackupSteps } from "./steps.ts";
import type { BackupRow, RestoreRow } from "./store/backup-row.ts";
import { hearBackup, lockBackup } from "./store/backups.ts";
import { findOpenRestore, hearRestore, lockRestore } from "./store/restores.ts";
import { createUpkeep } from "./upkeep.ts";

/** Moves the run of a policy with its backup, in the same transaction. */
export type FollowBackup = (tx: Tx, scope: SystemScope, backup: BackupRow) => Promise<void>;

export interface BackupOutcomesDeps {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly steps: BackupSteps;
  readonly orders: BackupOrders;
  readonly apps: () => Backing;
  readonly repositories: () => Repositories;
  readonly follow: FollowBackup;
  /** Starts it after its safety backup, or lets it fail with the reason. */
  readonly startRestore: (tx: Tx, scope: SystemScope, row: RestoreRow) => Promise<RestoreRow>;
}

const UNREACHABLE: ReadonlySet<string> = new Set(["REPOSITORY_MISSING", "REPOSITORY_UNREACHABLE", "REPOSITORY_DAMAGED", "STORAGE_LIMIT"]);

export interface BackupOutcomes {
  readonly outcomes: OutcomeHandlers<typeof contract.backups>;
  readonly progress: Readonly<Record<"create" | "restore", ProgressHandler>>;
  /** Ends a backup that has failed, however. It is locked. */
  fail(tx: Tx, scope: SystemScope, row: BackupRow, failure: NonNullable<BackupRow["failure"]>): Promise<void>;
  failRestore(tx: Tx, scope: SystemScope, row: RestoreRow, failure: NonNullable<RestoreRow["failure"]>): Promise<void>;
}

export const createBackupOutcomes = ({ clock, emit, steps, orders, repositories, follow, startRestore }: BackupOutcomesDeps): BackupOutcomes => {
  const toProgress = ({ percent, bytesDone, bytesTotal }: CommandNews) => ({ percent, bytesDone, bytesTotal, at: clock.now().toISOString() });

  /** A restore waits for this backup of the target's present data. */
  const followSafety = async (tx: Tx, scope: SystemScope, backup: BackupRow): Promise<void> => {
    if (backup.trigger !== "pre_restore") return;
    const waiting = await findOpenRestore(tx, scope, { safetyBackupId: backup.backupId });
    const restore = waiting === null ? null : await lockRestore(tx, scope, waiting.restoreId);
    if (restore === null || !isOpenRestore(restore.status)) return;
    if (restore.status === "cancelling") {
      await steps.restore(tx, scope, restore, { to: "cancelled" });
      return;
    }
    if (backup.status === "completed") {
      await startRestore(tx, scope, restore);
      return;
    }
    const { reason = "COMMAND_FAILED", lines = [] } = backup.failure ?? {};
    const message = `The safety backup did not succeed (${reason}), so nothing was changed. Repeat the restore, or skip that backup.`;
    await failRestore(tx, scope, restore, { stage: "safety_backup", reason: "SAFETY_BACKUP_FAILED", message, lines, previousData: "kept" });
  };
  const ended = async (tx: Tx, scope: SystemScope, backup: BackupRow): Promise<void> => {
    await follow(tx, scope, backup);
    await followSafety(tx, scope, backup);
  };
  const began = async (tx: Tx, scope: SystemScope, row: BackupRow): Promise<BackupRow> =>
    row.status === "pending" ? steps.backup(tx, scope, row, { to: "in_progress" }) : row;

  const fail: BackupOutcomes["fail"] = async (tx, scope, row, failure) => {
    const saved = await steps.backup(tx, scope, row, { to: "failed", patch: { failure, progress: null } });
    if (saved.destinationId !== null && UNREACHABLE.has(failure.reason))
      await repositories().heard(tx, scope, { destinationId: saved.destinationId, deviceId: saved.deviceId }, failure);
    await ended(tx, scope, saved);
  };
  const failRestore: BackupOutcomes["failRestore"] = async (tx, scope, row, failure) => {
    await steps.restore(tx, scope, row, { to: "failed", patch: { failure, progress: null } });
  };

  const unsuccessful = async (tx: Tx, row: BackupRow, outcome: Outcome): Promise<void> => {
    const { scope } = outcome;
    if (outcome.kind !== "unsuccessful" || outcome.status !== "canceled") {
      const { previousData: _, ...failure } = backupFailureOf(outcome);
      return fail(tx, scope, row, failure);
    }
    const cancelling = row.status === "in_progress" ? await steps.backup(tx, scope, row, { to: "cancelling" }) : row;
    return ended(tx, scope, await steps.backup(tx, scope, cancelling, { to: "cancelled", patch: { progress: null } }));
  };
  const create: BackupOutcomes["outcomes"]["create"] = async (tx, outcome) => {
    const { scope, payload } = outcome;
    const row = await lockBackup(tx, scope, payload.backupId);
    if (row === null) return;
    if (!isOpenBackup(row.status)) {
      // It came too late for its record, which has ended otherwise.
      if (outcome.kind === "succeeded" && row.checksum === null) await orders.removeStray(tx, scope, row, outcome.output.snapshotId);
      return;
    }
    if (outcome.kind !== "succeeded") return unsuccessful(tx, row, outcome);
    const { snapshotId, size, addedBytes, files, warnings, partial, consistency, downtimeSeconds } = outcome.output;
    const to: BackupStatus = partial ? "partially_failed" : "completed";
    const saved = await steps.backup(tx, scope, await began(tx, scope, row), {
      to,
      patch: {
        consistency,
        downtimeSeconds,
        warnings,
        progress: null,
        failure: null,
        checksum: `sha256:${snapshotId}`,
        size: BigInt(size),
        addedBytes: BigInt(addedBytes),
        files: BigInt(files),
      },
    });
    if (saved.destinationId !== null) {
      const at = { destinationId: saved.destinationId, deviceId: saved.deviceId };
      const repository = await repositories().repository(tx, scope, at);
      if (!(await repositories().isCounted(tx, scope, saved.destinationId))) await repositories().add(tx, scope, repository.repositoryId, addedBytes);
      await repositories().markInitialized(tx, scope, repository.repositoryId, clock.now());
      await repositories().heard(tx, scope, at, null);
    }
    await ended(tx, scope, saved);
  };

  const restore: BackupOutcomes["outcomes"]["restore"] = async (tx, outcome) => {
    const { scope, payload } = outcome;
    const row = await lockRestore(tx, scope, payload.restoreId);
    if (row === null || !isOpenRestore(row.status)) return;
    if (outcome.kind === "succeeded") {
      const { files, bytes, plan } = outcome.output;
      await steps.restore(tx, scope, row, { to: "completed", patch: { files: BigInt(files), bytes: BigInt(bytes), plan: plan ?? null, progress: null } });
      return;
    }
    if (outcome.kind === "unsuccessful" && outcome.status === "canceled") {
      const cancelling = row.status === "cancelling" || row.status === "verifying" ? row : await steps.restore(tx, scope, row, { to: "cancelling" });
      if (cancelling.status === "cancelling") {
        await steps.restore(tx, scope, cancelling, { to: "cancelled", patch: { progress: null } });
        return;
      }
    }
    await failRestore(tx, scope, row, backupFailureOf(outcome));
  };

  return {
    fail,
    failRestore,
    // The link says how it ends: a device that does not offer the backup has no stream for it.
    outcomes: { create, restore, download: async () => undefined, ...createUpkeep({ clock, emit, steps, repositories }) },
    progress: {
      create: async (tx, said) => {
        const row = await findByCommand(tx, said);
        if (row === null) return;
        if (row.status === "pending") await steps.backup(tx, said.scope, row, { to: "in_progress", patch: { progress: toProgress(said) } });
        else if (isOpenBackup(row.status)) await hearBackup(tx, said.scope, row.backupId, { progress: toProgress(said), heardAt: clock.now() });
      },
      restore: async (tx, said) => {
        const row = await findRestoreByCommand(tx, said);
        if (row === null || !isOpenRestore(row.status)) return;
        const to: RestoreStatus = said.stage === "validating" || said.stage === "verifying" ? said.stage : "in_progress";
        if (isAhead(row.status, to)) await steps.restore(tx, said.scope, row, { to, patch: { progress: toProgress(said) } });
        else await hearRestore(tx, said.scope, row.restoreId, { progress: toProgress(said), heardAt: clock.now() });
      },
    },
  };
};

const findByCommand = async (tx: Tx, { scope, commandId }: CommandNews): Promise<BackupRow | null> => {
  const row = await tx.for({ tenantId: scope.tenantId }).backup.findFirst({ where: { commandId }, select: { backupId: true } });
  return row === null ? null : lockBackup(tx, scope, row.backupId);
};
const findRestoreByCommand = async (tx: Tx, { scope, commandId }: CommandNews): Promise<RestoreRow | null> => {
  const row = await tx.for({ tenantId: scope.tenantId }).restore.findFirst({ where: { commandId }, select: { restoreId: true } });
  return row === null ? null : lockRestore(tx, scope, row.restoreId);
};
