// What follows from an agent's word about the upkeep of backups: their verification and deletion, and the freed space of a repository.
import { contract } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Emit } from "../../core/events.ts";
import { happened } from "../../core/events.ts";
import type { OutcomeHandlers } from "../../core/ports/command-outcomes.ts";
import type { Repositories } from "../backup-destinations/index.ts";
import { backupFailureOf } from "./failures.ts";
import type { BackupSteps } from "./steps.ts";
import { deletedBy, lockBackup, saveBackup } from "./store/backups.ts";

const MAX_DELETED = 100;
type Upkeep = Pick<OutcomeHandlers<typeof contract.backups>, "verify" | "delete" | "prune">;

export interface UpkeepDeps {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly steps: BackupSteps;
  readonly repositories: () => Repositories;
}

export const createUpkeep = ({ clock, emit, steps, repositories }: UpkeepDeps): Upkeep => {
  const verify: OutcomeHandlers<typeof contract.backups>["verify"] = async (tx, outcome) => {
    const { scope, payload, commandId } = outcome;
    const row = await lockBackup(tx, scope, payload.backupId);
    if (row === null || row.commandId !== commandId || row.verification.status !== "verifying") return;
    const verifiedAt = clock.now().toISOString();
    if (outcome.kind === "succeeded") {
      const verification = { ...row.verification, status: "verified" as const, verifiedAt, failure: null };
      await steps.tell(tx, scope, await saveBackup(tx, scope, row.backupId, { verification }), "verified");
      return;
    }
    // Only the agent's word says that the backup is bad; a command that did not reach it says nothing.
    const isJudged = outcome.kind === "unsuccessful" && outcome.status === "failed";
    const { previousData: _, ...failure } = backupFailureOf(outcome);
    const status = isJudged ? "failed" : "unverified";
    const saved = await saveBackup(tx, scope, row.backupId, {
      verification: { ...row.verification, status, verifiedAt: isJudged ? verifiedAt : null, failure },
    });
    await steps.tellFailure(tx, scope, saved, { event: "verificationFailed", failure });
  };

  const remove: OutcomeHandlers<typeof contract.backups>["delete"] = async (tx, outcome) => {
    const { scope, commandId, deviceId, payload } = outcome;
    const gone = outcome.kind === "succeeded" ? new Set([...outcome.output.deleted, ...outcome.output.missing]) : new Set<string>();
    for (const { backupId } of await deletedBy(tx, scope, commandId, MAX_DELETED)) {
      const row = await lockBackup(tx, scope, backupId);
      if (row === null || row.status !== "deleting") continue;
      if (gone.has(row.checksum?.replace(/^sha256:/, "") ?? "")) {
        await steps.backup(tx, scope, row, { to: "deleted" });
        continue;
      }
      const { previousData: _, ...failure } = backupFailureOf(outcome);
      const back = row.deletedFrom === "partially_failed" ? "partially_failed" : "completed";
      const kept = await saveBackup(tx, scope, backupId, { status: back, deletedFrom: null, failure });
      await steps.tellFailure(tx, scope, kept, { event: "deletionFailed", failure });
    }
    if (gone.size === 0) return;
    const { repositoryId } = await repositories().repository(tx, scope, { destinationId: payload.destinationId, deviceId });
    await repositories().save(tx, scope, repositoryId, { lastDeletedAt: clock.now() });
  };

  const prune: OutcomeHandlers<typeof contract.backups>["prune"] = async (tx, outcome) => {
    const { scope, deviceId, payload } = outcome;
    const { destinationId } = payload;
    const { repositoryId } = await repositories().repository(tx, scope, { destinationId, deviceId });
    const now = clock.now();
    if (outcome.kind === "succeeded") {
      const { freedBytes } = outcome.output;
      await repositories().save(tx, scope, repositoryId, { lastPrunedAt: now, pruneFailedAt: null });
      if (!(await repositories().isCounted(tx, scope, destinationId))) await repositories().add(tx, scope, repositoryId, -freedBytes);
      await emit(tx, [happened(scope, contract.backups.events.pruned, destinationId, { destinationId, deviceId, freedBytes })]);
      return;
    }
    const { previousData: _, ...failure } = backupFailureOf(outcome);
    await repositories().save(tx, scope, repositoryId, { pruneFailedAt: now });
    await emit(tx, [happened(scope, contract.backups.events.pruneFailed, destinationId, { destinationId, deviceId, failure })]);
  };

  return { verify, delete: remove, prune };
};
