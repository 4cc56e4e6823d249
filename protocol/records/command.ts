// The records of commands: states, the command itself, its delivery to an agent, its timeline.
import { z } from "zod";
import { CommandId, DeviceId, TenantId } from "../kit/ids.ts";

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
  progress: z.object({ pct: z.number().nullable(), message: z.string().nullable() }).nullable(),
  failureCode: z.string().nullable(),
  cancelRequestedAt: Timestamp.nullable(),
  late: z.boolean(),
  createdBy: z.string(),
  traceparent: z.string().nullable(),
});
export type Command = z.infer<typeof Command>;

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
  attempt: z.int(),
  nodeId: z.string().nullable(),
  epoch: z.int().nullable(),
  code: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()).nullable(),
});
export const BlockedBy = z.object({
  kind: z.enum(["none", "offline", "lane", "credit", "window", "agent"]),
  since: Timestamp.nullable(),
  commandId: z.string().optional(),
  explanation: z.string(),
});
