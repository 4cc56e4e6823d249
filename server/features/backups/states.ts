// The states of backups and restores and the changes between them. A change that is not listed here does not happen.
import type { BackupStatus, RestoreStatus } from "../../../protocol/index.ts";
import { createStateMachine } from "../../core/structures/state-machine.ts";

const NEXT_OF_BACKUP: Readonly<Record<BackupStatus, readonly BackupStatus[]>> = {
  pending: ["in_progress", "failed", "cancelled"],
  in_progress: ["completed", "partially_failed", "failed", "cancelling"],
  cancelling: ["cancelled", "completed", "partially_failed", "failed"],
  completed: ["deleting"],
  partially_failed: ["deleting"],
  // Back, if the deletion failed.
  deleting: ["deleted", "completed", "partially_failed"],
  failed: ["deleted"],
  cancelled: ["deleted"],
  deleted: [],
};
const NEXT_OF_RESTORE: Readonly<Record<RestoreStatus, readonly RestoreStatus[]>> = {
  pending: ["validating", "cancelling", "failed"],
  validating: ["in_progress", "cancelling", "failed"],
  in_progress: ["verifying", "cancelling", "failed"],
  verifying: ["completed", "failed"],
  // The agent may have been faster.
  cancelling: ["cancelled", "completed", "failed"],
  completed: [],
  failed: [],
  cancelled: [],
};

const same = <S extends string>(next: Readonly<Record<S, unknown>>) => Object.fromEntries(Object.keys(next).map((state) => [state, state])) as Record<S, S>;

export const { move: moveBackup, can: canMoveBackup } = createStateMachine<BackupStatus, BackupStatus>(NEXT_OF_BACKUP, same(NEXT_OF_BACKUP));
export const { move: moveRestore, can: canMoveRestore } = createStateMachine<RestoreStatus, RestoreStatus>(NEXT_OF_RESTORE, same(NEXT_OF_RESTORE));

/** An agent works on it, or will. */
export const OPEN_BACKUPS = ["pending", "in_progress", "cancelling"] as const satisfies readonly BackupStatus[];
export const OPEN_RESTORES = ["pending", "validating", "in_progress", "verifying", "cancelling"] as const satisfies readonly RestoreStatus[];
const isIn = <S extends string>(states: readonly S[], state: string): state is S => (states as readonly string[]).includes(state);
export const isOpenBackup = (status: BackupStatus): boolean => isIn(OPEN_BACKUPS, status);
export const isOpenRestore = (status: RestoreStatus): boolean => isIn(OPEN_RESTORES, status);
/** There is a snapshot to restore. */
export const isKept = (status: BackupStatus): boolean => status === "completed" || status === "partially_failed";

const WAY: readonly RestoreStatus[] = ["pending", "validating", "in_progress", "verifying", "completed"];
/** Whether the restore gets on to this state, perhaps past others that the agent did not tell of. */
export const isAhead = (from: RestoreStatus, to: RestoreStatus): boolean => {
  const at = WAY.indexOf(from);
  return at >= 0 && WAY.indexOf(to) > at;
};
