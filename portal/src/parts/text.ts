// The sentences about commands, wherever they are shown.
import type { BlockedBy, Command, CommandSummary, CommandTypeRecord } from "@mooring/client";
import { inWords } from "../../../protocol/kit/words.ts";
import { duration } from "../ui/time.tsx";

const AGENT: Partial<Record<Command["status"], string>> = {
  queued: "Goes out with the agent's next poll",
  sent: "Waiting for the agent to acknowledge it",
  acknowledged: "Waiting for the agent to begin",
  running: "Running on the device",
  canceling: "Waiting for the agent to confirm the cancellation",
};

/** What a command waits for; null when nothing is in its way. */
export const waitingFor = ({ kind }: BlockedBy, { status, attempts }: Pick<Command, "status" | "attempts">): string | null => {
  switch (kind) {
    case "offline":
      return status === "queued" ? "Waiting for the device to connect" : "The device went offline with this command; its word is waited for";
    case "lane":
      return "Waiting for its lane";
    case "credit":
      return "Waiting until the agent takes more commands";
    case "window":
      return attempts > 0 ? `Attempt ${attempts} was not acknowledged; waiting to send it again` : "Held back until its time";
    case "agent":
      return AGENT[status] ?? "Waiting for the agent";
    default:
      return null;
  }
};

const RISKS: Readonly<Record<CommandTypeRecord["risk"], string>> = {
  none: "changes nothing",
  change: "changes the device",
  danger: "dangerous",
};
const riskText = (risk: CommandTypeRecord["risk"]): string => RISKS[risk];

/** Who did something, as people know them. */
export const actorText = ({ id, name }: Pick<CommandSummary["actor"], "id" | "name">): string => name ?? id.replace(/^user:/, "");

/** Such as `ack: received`. */
export const detailText = (detail: Readonly<Record<string, unknown>>): string =>
  Object.entries(detail)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");

const seconds = (value: number): string => duration(1_000 * value);

export const text = {
  commands: "Commands",
  compose: "Send a command",
  steps: "Steps",
  phases: "Time in each state",
  result: "Result",
  noResult: "No result yet.",
  endedWithout: "It ended without a result.",
  truncated: "The agent sent only a part of the output, because all of it was too large.",
  late: "This result came after the gateway had given the command up.",
  trace: "Trace",
  payload: "Payload and delivery",
  waitsFor: "for",
  deadline: "Deadline",
  goesOn: "Goes on",
  lane: (lane: string) => `Lane ${lane} is taken by`,
  ahead: (type: string, status: string) => `${type} (${inWords(status)})`,
  cancel: "Cancel command",
  force: "Force cancel",
  back: "Go back",
  cancelQuestion: (type: string) => `Cancel ${type}?`,
  cancelQueued: "It has not been sent. It is canceled at once.",
  cancelSent: "The agent has it. The gateway asks the agent to stop it and waits for the answer.",
  cancelForce: "The gateway cancels it without waiting for the agent. The agent may still finish the work.",
  sendTo: (name: string) => `Send a command to ${name}`,
  send: "Send",
  type: "Type",
  typeUnknown: "Not a type that this gateway knows. The agent may know it.",
  typeOfGateway: "Only the gateway itself sends this type.",
  typeForbidden: (permission: string) => `Your role lacks ${permission}.`,
  typeFacts: ({ risk, ttlSeconds, executionTimeoutSeconds }: CommandTypeRecord) =>
    `Waits up to ${seconds(ttlSeconds)} for delivery, runs up to ${seconds(executionTimeoutSeconds)}; ${riskText(risk)}.`,
  payloadField: "Payload (JSON)",
  payloadOk: "Valid.",
  offline: "The device is offline.",
  waitsUntil: (ttl: number | undefined) =>
    `The command waits until the device connects${ttl === undefined ? "" : `, at most ${seconds(ttl)}`}. Then it goes out at once.`,
  refused: "The gateway refuses the command while the device is offline.",
  polling: "The device polls. The command goes out with its next poll.",
  ifOffline: "If the device is offline",
  ifOfflineOptions: [
    ["queue", "Wait until it connects"],
    ["fail", "Refuse the command"],
  ],
  danger: (type: string, name: string) => `Yes, run ${type} on ${name}`,
  more: "Lane, priority, deadlines",
  laneField: "Lane",
  laneHint: "Commands in the same lane run one after another.",
  priority: "Priority (0 to 9)",
  ttl: "Time to be delivered, in seconds",
  timeout: "Time to run, in seconds",
  attempts: "Attempts to deliver",
} as const;
