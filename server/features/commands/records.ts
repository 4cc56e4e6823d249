// A command as its callers and its agent see it.
import type { Command, DeliveredCommand } from "../../../protocol/index.ts";
import type { Instant } from "./state.ts";
import type { CommandRow } from "./store/rows.ts";

export const isoTime = (instant: Instant): string => new Date(instant).toISOString();
export const isoOrNull = (instant: Instant | null): string | null => (instant === null || instant === Infinity ? null : isoTime(instant));

export const toCommand = (row: CommandRow): Command => ({
  commandId: row.commandId,
  tenantId: row.tenantId,
  deviceId: row.deviceId,
  type: row.type,
  payload: row.payload,
  requiresAck: row.requiresAck,
  issuedAt: isoTime(row.issuedAt),
  status: row.status,
  lane: row.lane,
  priority: row.priority,
  attempts: row.attempt,
  maxAttempts: row.maxAttempts,
  notBefore: isoTime(row.availableAt),
  expiresAt: isoOrNull(row.expiresAt),
  deadlineAt: isoOrNull(row.deadlineAt),
  executionTimeoutSeconds: row.execTimeoutSeconds,
  sentAt: isoOrNull(row.sentAt),
  acknowledgedAt: isoOrNull(row.ackedAt),
  startedAt: isoOrNull(row.startedAt),
  finishedAt: isoOrNull(row.finishedAt),
  ack: row.ackStatus === null || row.ackAt === null ? null : { status: row.ackStatus, output: row.output, at: isoTime(row.ackAt) },
  outputTruncated: row.outputTruncated,
  progress: row.progress,
  failureCode: row.failureCode,
  cancelRequestedAt: isoOrNull(row.cancelRequestedAt),
  late: row.late,
  createdBy: row.createdBy,
  traceparent: row.traceparent,
});

export const toDelivered = (row: CommandRow): DeliveredCommand => ({
  command: { commandId: row.commandId, type: row.type, issuedAt: isoTime(row.issuedAt), payload: row.payload, requiresAck: row.requiresAck },
  delivery: {
    attempt: row.attempt,
    redelivered: row.attempt > 1,
    seq: row.seq,
    lane: row.lane,
    ackBy: isoTime(row.deadlineAt ?? row.issuedAt),
    expiresAt: isoOrNull(row.expiresAt),
    executionTimeoutSec: row.execTimeoutSeconds,
    ...(row.traceparent === null ? {} : { traceparent: row.traceparent }),
  },
});
