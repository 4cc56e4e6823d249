// What every host offers for backups: one function for each command that the gateway orders. The real one works with restic, the simulated one from its seed.
import type { z } from "zod";
import { backupCommands, destinationCommands } from "../../../protocol/records/backups/backup-commands.ts";
import type { ProgressFigures } from "../../agent/index.ts";
import { BackupProblem } from "./problem.ts";

type Commands = typeof backupCommands & typeof destinationCommands;
export const COMMANDS = { ...backupCommands, ...destinationCommands };
export type OrderOf<K extends keyof Commands> = z.output<Commands[K]["payload"]>;
export type OutputOf<K extends keyof Commands> = z.input<Commands[K]["output"]>;

export interface BackupContext {
  readonly commandId: string;
  /** Asks it to end; what it does then counts. */
  readonly signal: AbortSignal;
  readonly progress: (pct: number, message: string, figures?: ProgressFigures) => void;
}

export type BackupEngine = {
  readonly [K in keyof Commands]: (order: OrderOf<K>, context: BackupContext) => Promise<OutputOf<K>>;
} & {
  /** Null: there is no engine on this machine. */
  version(): Promise<string | null>;
};

export const notOffered = (): BackupProblem =>
  new BackupProblem({ stage: "preparing", reason: "DOWNLOAD_NOT_SUPPORTED", message: "this agent has no carrier, which downloads need" });

const EVERY_MS = 5_000;

/** Passes on the first word and then one every five seconds at most. */
export const paced = (progress: BackupContext["progress"], elapsedMs: () => number): BackupContext["progress"] => {
  let saidMs = Number.NEGATIVE_INFINITY;
  let stage: string | undefined;
  return (pct, message, figures) => {
    if (figures?.stage === stage && elapsedMs() - saidMs < EVERY_MS) return;
    [saidMs, stage] = [elapsedMs(), figures?.stage];
    progress(Math.round(pct * 10) / 10, message, figures);
  };
};
