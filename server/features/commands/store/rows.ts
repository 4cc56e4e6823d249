// The columns of a command, their types, and the mapping between row and feature.
import type { Command, CommandId, CommandStatus, DeliveredCommand, DeviceId, TenantId } from "../../../../protocol/index.ts";
import { isUnavailable } from "../../../platform/db-errors.ts";
import type { CommandFacts, CommandProgress, CommandState, Instant } from "../state.ts";

/** Everything the feature knows about a command. */
export interface CommandRow extends CommandFacts {
  readonly commandId: CommandId;
  readonly tenantId: TenantId;
  readonly deviceId: DeviceId;
  readonly seq: number;
  readonly lane: string;
  readonly priority: number;
  readonly type: string;
  readonly issuedAt: Instant;
  readonly traceparent: string | null;
  readonly createdBy: string;
  /** Read only where it is shown or sent; it may be large. */
  readonly payload: Readonly<Record<string, unknown>>;
}

/** PostgreSQL's 'infinity' arrives as a number. */
type DbTime = Date | number;

export interface DbRow {
  readonly command_id: string;
  readonly tenant_id: string;
  readonly device_id: string;
  readonly seq: number;
  readonly lane: string;
  readonly priority: number;
  readonly type: string;
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly requires_ack: boolean;
  readonly issued_at: DbTime;
  readonly status: string;
  readonly deadline_at: DbTime | null;
  readonly available_at: DbTime;
  readonly expires_at: DbTime | null;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly redeliver_safe: boolean;
  readonly exec_timeout_s: number;
  readonly exec_deadline_at: DbTime | null;
  readonly channel: string | null;
  readonly session_epoch: number | null;
  readonly node_id: string | null;
  readonly sent_at: DbTime | null;
  readonly acked_at: DbTime | null;
  readonly started_at: DbTime | null;
  readonly finished_at: DbTime | null;
  readonly ack_status: string | null;
  readonly ack_at: DbTime | null;
  readonly output: unknown;
  readonly output_truncated: boolean;
  readonly progress: CommandProgress | null;
  readonly failure_code: string | null;
  readonly cancel_requested_at: DbTime | null;
  readonly cancel_reason: string | null;
  readonly cancel_prev_status: string | null;
  readonly late: boolean;
  readonly late_outcome: Readonly<Record<string, unknown>> | null;
  readonly traceparent: string | null;
  readonly created_by: string;
  readonly live_epoch?: number | null;
}

// The predicate of the partial index over (device, lane, seq), which serves every query about one device. Queries about open commands of many
// devices say `deadline_at is not null` instead: it means the same and uses their own indexes (prisma/schema/commands.prisma).
export const OPEN = `('queued', 'sent', 'acknowledged', 'running', 'canceling')`;
/** Open states in which the agent may hold the command: they use up credit. */
export const IN_FLIGHT = `('sent', 'acknowledged', 'running', 'canceling')`;

const LEAN = [
  "command_id",
  "tenant_id",
  "device_id",
  "seq",
  "lane",
  "priority",
  "type",
  "requires_ack",
  "issued_at",
  "status",
  "deadline_at",
  "available_at",
  "expires_at",
  "attempt",
  "max_attempts",
  "redeliver_safe",
  "exec_timeout_s",
  "exec_deadline_at",
  "channel",
  "session_epoch",
  "node_id",
  "sent_at",
  "acked_at",
  "started_at",
  "finished_at",
  "ack_status",
  "ack_at",
  "output",
  "output_truncated",
  "progress",
  "failure_code",
  "cancel_requested_at",
  "cancel_reason",
  "cancel_prev_status",
  "late",
  "late_outcome",
  "traceparent",
  "created_by",
]
  .map((column) => `c.${column}`)
  .join(", ");

/** Of `commands c`, without the payload. */
export const LEAN_COLUMNS = LEAN;
/** Without the output too, which may be large. */
export const LIGHT_COLUMNS = LEAN.replace("c.output,", "null::jsonb as output,");
export const ALL_COLUMNS = `${LEAN}, c.payload`;

export const toInstant = (time: DbTime): Instant => (typeof time === "number" ? time : time.getTime());
const maybe = (time: DbTime | null): Instant | null => (time === null ? null : toInstant(time));

// as: this feature alone writes these columns, from values of these types.
export const toRow = (row: DbRow): CommandRow => ({
  commandId: row.command_id as CommandId,
  tenantId: row.tenant_id as TenantId,
  deviceId: row.device_id as DeviceId,
  seq: row.seq,
  lane: row.lane,
  priority: row.priority,
  type: row.type,
  payload: row.payload ?? {},
  requiresAck: row.requires_ack,
  issuedAt: toInstant(row.issued_at),
  status: row.status as CommandStatus,
  deadlineAt: maybe(row.deadline_at),
  availableAt: toInstant(row.available_at),
  expiresAt: maybe(row.expires_at),
  attempt: row.attempt,
  maxAttempts: row.max_attempts,
  redeliverSafe: row.redeliver_safe,
  execTimeoutSeconds: row.exec_timeout_s,
  execDeadlineAt: maybe(row.exec_deadline_at),
  channel: row.channel as CommandState["channel"],
  sessionEpoch: row.session_epoch,
  nodeId: row.node_id,
  sentAt: maybe(row.sent_at),
  ackedAt: maybe(row.acked_at),
  startedAt: maybe(row.started_at),
  finishedAt: maybe(row.finished_at),
  ackStatus: row.ack_status,
  ackAt: maybe(row.ack_at),
  output: row.output,
  outputTruncated: row.output_truncated,
  progress: row.progress,
  failureCode: row.failure_code,
  cancelRequestedAt: maybe(row.cancel_requested_at),
  cancelReason: row.cancel_reason,
  cancelPrevStatus: row.cancel_prev_status as CommandStatus | null,
  late: row.late,
  lateOutcome: row.late_outcome,
  traceparent: row.traceparent,
  createdBy: row.created_by,
  liveEpoch: row.live_epoch ?? null,
});

const toSql = (instant: Instant | null): string | null => (instant === null ? null : instant === Infinity ? "infinity" : new Date(instant).toISOString());
const toJson = (value: unknown): string | null => (value === undefined || value === null ? null : JSON.stringify(value));

/** The changeable columns: their SQL type and their value, for one UNNEST over many rows. */
export const CHANGEABLE: readonly { readonly column: string; readonly sqlType: string; readonly value: (row: CommandState) => unknown }[] = [
  { column: "status", sqlType: "text", value: (row) => row.status },
  { column: "deadline_at", sqlType: "timestamptz", value: (row) => toSql(row.deadlineAt) },
  { column: "available_at", sqlType: "timestamptz", value: (row) => toSql(row.availableAt) },
  { column: "attempt", sqlType: "int", value: (row) => row.attempt },
  { column: "exec_deadline_at", sqlType: "timestamptz", value: (row) => toSql(row.execDeadlineAt) },
  { column: "channel", sqlType: "text", value: (row) => row.channel },
  { column: "session_epoch", sqlType: "bigint", value: (row) => row.sessionEpoch },
  { column: "node_id", sqlType: "text", value: (row) => row.nodeId },
  { column: "sent_at", sqlType: "timestamptz", value: (row) => toSql(row.sentAt) },
  { column: "acked_at", sqlType: "timestamptz", value: (row) => toSql(row.ackedAt) },
  { column: "started_at", sqlType: "timestamptz", value: (row) => toSql(row.startedAt) },
  { column: "finished_at", sqlType: "timestamptz", value: (row) => toSql(row.finishedAt) },
  { column: "ack_status", sqlType: "text", value: (row) => row.ackStatus },
  { column: "ack_at", sqlType: "timestamptz", value: (row) => toSql(row.ackAt) },
  { column: "output", sqlType: "jsonb", value: (row) => toJson(row.output) },
  { column: "output_truncated", sqlType: "boolean", value: (row) => row.outputTruncated },
  { column: "progress", sqlType: "jsonb", value: (row) => toJson(row.progress) },
  { column: "failure_code", sqlType: "text", value: (row) => row.failureCode },
  { column: "cancel_requested_at", sqlType: "timestamptz", value: (row) => toSql(row.cancelRequestedAt) },
  { column: "cancel_reason", sqlType: "text", value: (row) => row.cancelReason },
  { column: "cancel_prev_status", sqlType: "text", value: (row) => row.cancelPrevStatus },
  { column: "late", sqlType: "boolean", value: (row) => row.late },
  { column: "late_outcome", sqlType: "jsonb", value: (row) => toJson(row.lateOutcome) },
];

export const sqlTime = toSql;
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

/** Whether a failed batch is worth running row by row. When the database is away, each row would only fail again. */
export const canSplit = (error: unknown): boolean => !isUnavailable(error);
