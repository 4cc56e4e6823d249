// The frames of the agent socket: JSON text, {op, id, ts?, ref?, data}. Both sides ignore unknown fields.
// protocol/README.md explains them to people who write an agent in another language.
import { z } from "zod";
import { Heartbeat } from "../groups/devices.ts";
import { ClockOffsetMs } from "../kit/bounds.ts";
import { DeliveredCommand } from "../records/command.ts";
import { Ack, AckResult } from "../records/command-ack.ts";

export const SUBPROTOCOL = "mooring-agent.v1";
export const CONNECT_PATHS = ["/v1/agent/connect", "/api/v1/agent/connect"] as const;

/**
 * What an agent can do beyond the minimum; the gateway expects nothing that an agent does not announce. journal: it remembers commands across restarts;
 * inflight: `hello` lists every command that it holds, so an unlisted one is lost; cancel: it can stop commands; signature: it signs every request with v2.
 */
export const CAPABILITIES = ["journal.v1", "inflight.v1", "cancel.v1", "handoff.v1", "progress.v1", "signature.v2"] as const;

const Timestamp = z.iso.datetime({ offset: true });
const MessageId = z.string().min(1).max(64);
const frame = <const Op extends string, D extends z.ZodType>(op: Op, data: D) =>
  z.object({ op: z.literal(op), id: MessageId, ts: z.string().max(40).optional(), ref: MessageId.optional(), data });

export const InFlight = z.object({ commandId: z.string().min(1).max(64), status: z.string().max(32) });
// Optional fields came later: an older gateway does not send them, and the agent keeps its default.
export const HeartbeatPlan = z.object({ intervalSec: z.number(), jitterPct: z.number(), graceMs: z.int().optional() });
export const AckPlan = z.object({ resendMs: z.int(), capMs: z.int() });
export const ChannelLimits = z.object({ maxFrameBytes: z.int(), maxOutputBytes: z.int(), maxInFlight: z.int(), inboundPerSec: z.number() });
export const ReconnectPlan = z.object({ firstWindowMs: z.int(), baseMs: z.int(), capMs: z.int(), stableAfterSec: z.int() });
export const PollPlan = z.object({ intervalSec: z.number(), safetySec: z.number().optional() });

export const Welcome = z.object({
  protocol: z.literal(SUBPROTOCOL),
  sessionId: z.string(),
  nonce: z.string(),
  serverTime: Timestamp,
  capabilities: z.array(z.string()),
  heartbeat: HeartbeatPlan,
  ack: AckPlan.optional(),
  limits: ChannelLimits,
  reconnect: ReconnectPlan,
  poll: PollPlan,
  sessionMaxAgeSec: z.int(),
});
export const Ready = z.object({
  deviceId: z.string(),
  epoch: z.int(),
  queuedCount: z.int(),
  reconcile: z.array(z.object({ commandId: z.string(), action: z.enum(["continue", "stop", "forget"]) })),
});
export const CancelOrder = z.object({ commandId: z.string(), reason: z.string().optional(), deadline: Timestamp });
export const HeartbeatAck = z.object({ serverTime: Timestamp, resend: z.array(z.string()).optional() });
export const Drain = z.object({ reason: z.string(), handoff: z.boolean(), reconnectAfterMs: z.int(), closeAt: Timestamp });
export const FrameError = z.object({
  code: z.string(),
  error: z.string(),
  retryable: z.boolean(),
  retryAfter: z.number().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
});
export const ConfigChange = z.object({ heartbeat: HeartbeatPlan, limits: ChannelLimits, reconnect: ReconnectPlan, poll: PollPlan }).partial();

export const ServerFrame = z.discriminatedUnion("op", [
  frame("welcome", Welcome),
  frame("ready", Ready),
  frame("command", DeliveredCommand),
  frame("cancel", CancelOrder),
  frame("ack_ok", AckResult),
  frame("heartbeat_ack", HeartbeatAck),
  frame("config", ConfigChange),
  frame("drain", Drain),
  frame("error", FrameError),
]);
export type ServerFrame = z.infer<typeof ServerFrame>;

/** proof.signature = hex HMAC-SHA256(secret, nonce + proof.timestamp): a v1 signature with the nonce as the body. */
export const Hello = z.object({
  proof: z.object({ timestamp: z.string().max(40), signature: z.string().max(64) }),
  agentVersion: z.string().max(64).optional(),
  instanceId: z.string().min(1).max(64).optional(),
  bootId: z.string().max(64).optional(),
  fingerprint: z.string().max(256).optional(),
  hostname: z.string().max(253).optional(),
  os: z.string().max(64).optional(),
  arch: z.string().max(64).optional(),
  capabilities: z.array(z.string().max(64)).max(64).default([]),
  /** The gateway rounds it down and clamps it to 1..32. */
  maxInFlight: z.number().default(8),
  /** Every command in the journal without an `ack_ok`, finished ones included. */
  inFlight: z.array(InFlight).max(200).default([]),
  handoffFrom: z.string().max(64).optional(),
  clockOffsetMs: ClockOffsetMs.optional(),
});
export type Hello = z.infer<typeof Hello>;

export const Goodbye = z.object({
  reason: z.enum(["shutdown", "restart", "reboot", "upgrade", "handoff"]),
  expectBackSec: z.int().min(0).max(3600).default(0),
});
export const SocketHeartbeat = Heartbeat.safeExtend({
  inFlight: z.array(z.string().max(64)).max(200).optional(),
  /** Round trip of the previous heartbeat. */
  rttMs: z.number().min(0).max(600_000).optional(),
});
export const SocketAck = Ack.extend({ commandId: z.string().min(1).max(64) });

export const AgentFrame = z.discriminatedUnion("op", [
  frame("hello", Hello),
  frame("heartbeat", SocketHeartbeat),
  frame("ack", SocketAck),
  frame("goodbye", Goodbye),
  frame("error", FrameError.partial()),
]);
export type AgentFrame = z.infer<typeof AgentFrame>;

/** The frame without its data's schema: enough to answer an unknown op or invalid data by the frame's id. */
export const Envelope = z.object({
  op: z.string().min(1).max(32),
  id: MessageId,
  ts: z.string().max(40).optional(),
  ref: MessageId.optional(),
  data: z.record(z.string(), z.unknown()).default({}),
});
export type Envelope = z.infer<typeof Envelope>;
