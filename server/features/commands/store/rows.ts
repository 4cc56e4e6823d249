// A command as PostgreSQL returns it, and as the feature uses it.
import type { CommandId, CommandStatus, DeviceId, TenantId } from "../../../../protocol/index.ts";
import type { CommandFacts, CommandProgress, CommandState, Instant } from "../state.ts";
import type { StoredStep } from "../steps.ts";

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
  /** Read only where it is shown or continued. */
  readonly history: readonly StoredStep[];
  /** The revision of its row in the queue. */
  readonly revision: number;
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
  readonly history?: readonly StoredStep[];
  readonly revision?: number | null;
}

export const toInstant = (time: DbTime): Instant => (typeof time === "number" ? time : time.getTime());
const maybe = (time: DbTime | null): Instant | null => (time === null ? null : toInstant(time));

const NO_STEPS: readonly StoredStep[] = [];

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
  history: row.history ?? NO_STEPS,
  revision: row.revision ?? 0,
});

export const sqlTime = (instant: Instant | null): string | null =>
  instant === null ? null : instant === Infinity ? "infinity" : new Date(instant).toISOString();
export const sqlJson = (value: unknown): string | null => (value === undefined || value === null ? null : JSON.stringify(value));
