// The records of commands: states, the command itself, its delivery to an agent, its timeline.
import { z } from "zod";
import { CommandId, DeviceId, TenantId } from "../kit/ids.ts";
import { Actor } from "./actor.ts";

export const CommandStatus = z.enum([
  "queued",
  "sent",
  "acknowledged",
  "running",
  "canceling",
  "delivered",
  "succeeded",
  "failed",
  "rejected",
  "canceled",
  "expired",
  "timed_out",
  "undeliverable",
]);
export type CommandStatus = z.infer<typeof CommandStatus>;
/** Every command in one of these states has a deadline. All other states are final. */
export const OPEN_STATUSES = ["queued", "sent", "acknowledged", "running", "canceling"] as const satisfies readonly CommandStatus[];
export const isOpen = (status: CommandStatus): boolean => (OPEN_STATUSES as readonly string[]).includes(status);

const Timestamp = z.iso.datetime();
export const CommandPayload = z.record(z.string(), z.unknown());

export const Command = z.object({
  commandId: CommandId,
  tenantId: TenantId,
  deviceId: DeviceId,
  type: z.string(),
  payload: CommandPayload,
  requiresAck: z.boolean(),
  issuedAt: Timestamp,
  status: CommandStatus,
  lane: z.string(),
  priority: z.int(),
  attempts: z.int(),
  maxAttempts: z.int(),
  notBefore: Timestamp,
  expiresAt: Timestamp.nullable(),
  deadlineAt: Timestamp.nullable(),
  executionTimeoutSeconds: z.int(),
  sentAt: Timestamp.nullable(),
  acknowledgedAt: Timestamp.nullable(),
  startedAt: Timestamp.nullable(),
  finishedAt: Timestamp.nullable(),
  ack: z
    .object({ status: z.string(), output: z.unknown(), at: Timestamp })
    .nullable()
    .describe("The agent's last acknowledgement, its status spelled as the agent sent it."),
  outputTruncated: z.boolean(),
  progress: z
    .object({
      pct: z.number().nullable(),
      message: z.string().nullable(),
      stage: z.string().optional(),
      bytesDone: z.number().optional(),
      bytesTotal: z.number().optional(),
    })
    .nullable(),
  failureCode: z.string().nullable(),
  cancelRequestedAt: Timestamp.nullable(),
  late: z.boolean(),
  createdBy: z.string(),
  traceparent: z.string().nullable(),
});
export type Command = z.infer<typeof Command>;

/** A row of a list over many devices: without payload and output, which may be large, and with the names of what it refers to. */
export const CommandSummary = Command.omit({ payload: true, ack: true }).extend({
  deviceName: z.string().nullable().describe("The device's name, or else its hostname."),
  actor: Actor.describe("Who created it."),
});
export type CommandSummary = z.infer<typeof CommandSummary>;

const JsonSchema = z.record(z.string(), z.unknown());
export const CommandTypeRecord = z.object({
  type: z.string(),
  summary: z.string(),
  payload: JsonSchema.describe("JSON Schema of the payload."),
  output: JsonSchema.describe("JSON Schema of the output of a command that succeeded."),
  risk: z.enum(["none", "change", "danger"]).describe("`none`: it changes nothing; `danger`: ask before you send it."),
  ttlSeconds: z.int().describe("Delivery deadline, unless the caller sets another."),
  executionTimeoutSeconds: z.int(),
  redeliverSafe: z.boolean().describe("Running it twice does no harm."),
  lane: z.enum(["app", "host", "none"]).describe("`app`: one at a time per `appId`; `host`: one at a time on the machine; `none`: beside anything."),
  permission: z.string().describe("The permission that it needs."),
  orderedBy: z.enum(["caller", "gateway"]).describe("`gateway`: only the gateway itself orders it."),
});
export type CommandTypeRecord = z.infer<typeof CommandTypeRecord>;

/** What an agent receives, as the `data` of a socket frame or by poll: the command, and the facts of this delivery beside it. */
export const DeliveredCommand = z.object({
  command: z.object({ commandId: CommandId, type: z.string(), issuedAt: Timestamp, payload: CommandPayload, requiresAck: z.boolean() }),
  delivery: z.object({
    attempt: z.int(),
    redelivered: z.boolean(),
    seq: z.int(),
    lane: z.string(),
    ackBy: Timestamp,
    expiresAt: Timestamp.nullable(),
    executionTimeoutSec: z.int(),
    traceparent: z.string().optional(),
  }),
});
export type DeliveredCommand = z.infer<typeof DeliveredCommand>;
// The interface shows a Command flat, so a polled item is flat too, with `delivery` beside its fields.
export const PolledCommand = DeliveredCommand.shape.command.extend({ delivery: DeliveredCommand.shape.delivery });

export const TimelineEntry = z.object({
  at: Timestamp,
  from: CommandStatus.nullable(),
  to: CommandStatus,
  actor: z.string(),
  by: Actor,
  attempt: z.int(),
  nodeId: z.string().nullable(),
  epoch: z.int().nullable(),
  code: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()).nullable(),
});
export const BlockedBy = z.object({
  kind: z.enum(["none", "offline", "lane", "credit", "window", "agent"]),
  since: Timestamp.nullable(),
  until: Timestamp.nullable().describe("When it goes on by itself; `null` if that depends on somebody else."),
  deadlineAt: Timestamp.nullable().describe("When the gateway gives the command up, or sends it again."),
  lane: z.string().optional().describe("The lane that is taken."),
  ahead: z.object({ commandId: CommandId, type: z.string(), status: CommandStatus }).optional().describe("The command before it in its lane."),
  commandId: z.string().optional().describe("The same as `ahead.commandId`."),
  explanation: z.string(),
});
