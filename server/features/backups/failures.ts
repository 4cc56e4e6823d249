// Why a backup or a restore failed: by the agent's word, or by how its command ended.
import { type BackupFailure, BackupFailureSaid } from "../../../protocol/index.ts";
import type { Outcome } from "../../core/ports/command-outcomes.ts";

export type SaidFailure = BackupFailure & { readonly previousData: "kept" | "none" | null };

const ENDS: ReadonlyMap<string, readonly [string, string]> = new Map(
  Object.entries({
    expired: ["COMMAND_EXPIRED", "The device did not take the command in time."],
    undeliverable: ["COMMAND_UNDELIVERABLE", "The command could not be delivered to the device."],
    canceled: ["COMMAND_CANCELED", "The command was canceled."],
    timed_out: ["COMMAND_TIMED_OUT", "The agent did not end the command in time."],
    rejected: ["COMMAND_REJECTED", "The agent rejected the command."],
    failed: ["COMMAND_FAILED", "The agent could not carry the command out."],
  } as const),
);
const UNKNOWN = ["COMMAND_FAILED", "The agent could not carry the command out."] as const;
const MAX_ISSUES = 500;

const byEnd = (outcome: Outcome): SaidFailure => {
  const rest = { stage: null, lines: [], previousData: null };
  if (outcome.kind === "succeeded") return { ...rest, reason: "COMMAND_FAILED", message: "The agent reports a success that is none." };
  if (outcome.kind === "invalid_output")
    return { ...rest, reason: "INVALID_OUTPUT", message: `The agent's answer does not fit: ${outcome.issues.join("; ").slice(0, MAX_ISSUES)}` };
  const [reason, message] = ENDS.get(outcome.status) ?? UNKNOWN;
  const isAgents = outcome.status === "failed" || outcome.status === "rejected";
  return { ...rest, reason: isAgents ? (outcome.code ?? reason) : reason, message };
};

export const backupFailureOf = (outcome: Outcome): SaidFailure => {
  if (outcome.kind !== "unsuccessful") return byEnd(outcome);
  const { success, data } = BackupFailureSaid.safeParse(outcome.output);
  if (!success) return byEnd(outcome);
  const { previousData = null, ...failure } = data;
  return { ...failure, previousData };
};
