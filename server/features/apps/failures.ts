// Why an app failed, as records and events tell it: by the agent's word, or by how the command ended. Secrets of the app never appear.
import { type AppFailure, type CommandId, createMasker, type Masker, newestLines, type ReportedApp } from "../../../protocol/index.ts";
import type { Outcome } from "../../core/ports/command-outcomes.ts";

/** The reasons that our own agent and the protocol name. They stay, as a secret may be such a word; an agent may write anything in their place. */
const KNOWN_REASONS: ReadonlySet<string> = new Set([
  ...["AGENT_RESTARTED", "AGENT_TIMEOUT", "CHECKSUM_MISMATCH", "COMPOSE_FAILED", "CONFIG_INVALID", "CRASH_LOOP", "DEPLOY_TIMEOUT", "DISK_FULL"],
  ...["DOWNLOAD_FAILED", "EXITED", "FAILED", "FAILED_BEFORE", "HANDLER_FAILED", "HEALTH_CHECK_FAILED", "IMAGE_NOT_FOUND", "KIND_REFUSED", "LINK_REFUSED"],
  ...["NO_DOCKER", "NO_START", "PORT_NOT_ALLOWED", "PORT_OF_OTHER_APP", "PORT_TAKEN", "RECORD_DAMAGED", "SECRET_MISSING", "SECRETS_UNAVAILABLE"],
  ...["SIGNATURE_INVALID", "SIZE_MISMATCH", "SPAWN_FAILED", "SPEC_INVALID", "STOP_FAILED", "UNKNOWN_PROGRAM", "VARIABLE_RESERVED", "VARIABLE_TWICE"],
]);
export const maskReason = (reason: string, mask: Masker["mask"]): string => (KNOWN_REASONS.has(reason) ? reason : mask(reason).slice(0, MAX_REASON));
const MAX_REASON = 64;

/** By the agent's word. */
export const failureSaid = (
  { stage, reason, message, revision, lines }: NonNullable<ReportedApp["failure"]>,
  commandId: CommandId | null,
  secrets: readonly string[],
): AppFailure => {
  const { mask } = createMasker(secrets);
  return { stage, reason: maskReason(reason, mask), message: mask(message), revision, commandId, lines: newestLines(lines.map(mask)) };
};

const REASONS = new Map<string, readonly [string, string]>(
  Object.entries({
    expired: ["COMMAND_EXPIRED", "The device did not take the command in time."],
    undeliverable: ["COMMAND_UNDELIVERABLE", "The command could not be delivered to the device."],
    canceled: ["COMMAND_CANCELED", "The command was canceled."],
    timed_out: ["COMMAND_TIMED_OUT", "The agent did not end the command in time."],
    rejected: ["COMMAND_REJECTED", "The agent rejected the command."],
    failed: ["COMMAND_FAILED", "The agent could not carry the command out."],
  }),
);
const NOT_AS_ORDERED = ["NOT_AS_ORDERED", "The agent reports another state than the one that was ordered."] as const;

const reasonOf = (outcome: Outcome, isDeploy: boolean): readonly [string, string] => {
  if (outcome.kind === "invalid_output") return ["INVALID_OUTPUT", `The agent's answer does not fit: ${outcome.issues.join("; ").slice(0, 500)}`];
  if (outcome.kind === "succeeded") return NOT_AS_ORDERED;
  const [reason, message] = REASONS.get(outcome.status) ?? NOT_AS_ORDERED;
  // Our codes of these ends say less than the reason; an agent's code says more.
  if (outcome.status === "timed_out") return [isDeploy ? "DEPLOY_TIMEOUT" : reason, message];
  return ["failed", "rejected"].includes(outcome.status) || outcome.code === "DEVICE_RESET" ? [outcome.code ?? reason, message] : [reason, message];
};

/** By how its command ended. */
export const failureByEnd = (outcome: Outcome, revision: number, isDeploy: boolean): AppFailure => {
  const [reason, message] = reasonOf(outcome, isDeploy);
  return { stage: null, reason, message, revision, commandId: outcome.commandId, lines: [] };
};
