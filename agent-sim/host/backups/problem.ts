// Why work on a backup failed, in the words of the record.
import type { z } from "zod";
import type { BackupFailureSaid } from "../../../protocol/records/backups/backup.ts";
import { HandlerFailure } from "../../agent/index.ts";
import { HostFailure } from "../host.ts";

type Said = z.input<typeof BackupFailureSaid>;
export type BackupStage =
  | "preparing"
  | "hook"
  | "stopping"
  | "reading"
  | "uploading"
  | "reading_back"
  | "verifying"
  | "restoring"
  | "swapping"
  | "starting"
  | "health"
  | "deleting"
  | "pruning"
  | "testing"
  | "removing";

const MAX_LINES = 20;
const MAX_TEXT = 1_000;

/** The output of the ack that says `failed`; its code is the reason. */
export class BackupProblem extends HandlerFailure {
  readonly said: Said;

  constructor({ lines = [], message, ...said }: Said & { readonly stage: BackupStage }) {
    const whole: Said = { ...said, message: message.slice(0, MAX_TEXT), lines: lines.slice(-MAX_LINES).map((line) => line.slice(0, MAX_TEXT)) };
    super(said.reason, whole);
    this.said = whole;
  }
}

const codeOf = (error: unknown): string | null => (error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null);
const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);

/** What a host or the system refused, as a problem in this stage. Anything else is a defect and passes unchanged. */
export const toBackupProblem = (error: unknown, stage: BackupStage): unknown => {
  if (error instanceof HandlerFailure) return error;
  if (error instanceof HostFailure) return new BackupProblem({ stage, reason: error.reason, message: error.message, lines: [...error.lines] });
  const code = codeOf(error);
  if (code === null || !(error instanceof Error)) return error;
  return new BackupProblem({ stage, reason: FULL.has(code) ? "DISK_FULL" : `SYSTEM_${code}`.slice(0, 64), message: error.message });
};

/** Rejects with the problem in this stage. */
export const inStage = async <T>(stage: BackupStage, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw toBackupProblem(error, stage);
  }
};
