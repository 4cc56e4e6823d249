// Where the columns of a command stand: fixed ones in `commands`, the state of an open one in `command_queue`, of an ended one in `commands` too.
// The view commands_now shows all of them for every command.
import type { CommandState } from "../state.ts";
import { type CommandRow, sqlJson, sqlTime } from "./rows.ts";

const FIXED = [
  "command_id",
  "tenant_id",
  "device_id",
  "seq",
  "lane",
  "priority",
  "type",
  "requires_ack",
  "issued_at",
  "expires_at",
  "max_attempts",
  "redeliver_safe",
  "exec_timeout_s",
  "traceparent",
  "created_by",
];

interface Column {
  readonly column: string;
  readonly sqlType: string;
  readonly value: (row: CommandState & Pick<CommandRow, "history">) => unknown;
}

/** What a transition may change, in either table. */
const STATE: readonly Column[] = [
  { column: "available_at", sqlType: "timestamptz", value: (row) => sqlTime(row.availableAt) },
  { column: "attempt", sqlType: "int", value: (row) => row.attempt },
  { column: "exec_deadline_at", sqlType: "timestamptz", value: (row) => sqlTime(row.execDeadlineAt) },
  { column: "channel", sqlType: "text", value: (row) => row.channel },
  { column: "session_epoch", sqlType: "bigint", value: (row) => row.sessionEpoch },
  { column: "node_id", sqlType: "text", value: (row) => row.nodeId },
  { column: "sent_at", sqlType: "timestamptz", value: (row) => sqlTime(row.sentAt) },
  { column: "acked_at", sqlType: "timestamptz", value: (row) => sqlTime(row.ackedAt) },
  { column: "started_at", sqlType: "timestamptz", value: (row) => sqlTime(row.startedAt) },
  { column: "ack_status", sqlType: "text", value: (row) => row.ackStatus },
  { column: "ack_at", sqlType: "timestamptz", value: (row) => sqlTime(row.ackAt) },
  { column: "output", sqlType: "jsonb", value: (row) => sqlJson(row.output) },
  { column: "output_truncated", sqlType: "boolean", value: (row) => row.outputTruncated },
  { column: "progress", sqlType: "jsonb", value: (row) => sqlJson(row.progress) },
  { column: "cancel_requested_at", sqlType: "timestamptz", value: (row) => sqlTime(row.cancelRequestedAt) },
  { column: "cancel_reason", sqlType: "text", value: (row) => row.cancelReason },
  { column: "cancel_prev_status", sqlType: "text", value: (row) => row.cancelPrevStatus },
  { column: "status", sqlType: "text", value: (row) => row.status },
  { column: "history", sqlType: "json", value: (row) => JSON.stringify(row.history) },
];
export const QUEUE_STATE: readonly Column[] = [...STATE, { column: "deadline_at", sqlType: "timestamptz", value: (row) => sqlTime(row.deadlineAt) }];
export const END_STATE: readonly Column[] = [
  ...STATE,
  { column: "finished_at", sqlType: "timestamptz", value: (row) => sqlTime(row.finishedAt) },
  { column: "failure_code", sqlType: "text", value: (row) => row.failureCode },
  { column: "late", sqlType: "boolean", value: (row) => row.late },
  { column: "late_outcome", sqlType: "jsonb", value: (row) => sqlJson(row.lateOutcome) },
];

const from = (alias: string, columns: readonly string[]): string => columns.map((column) => `${alias}.${column}`).join(", ");
const SHOWN = [...FIXED, ...QUEUE_STATE.map(({ column }) => column), "finished_at", "failure_code", "late", "late_outcome"].filter(
  (column) => column !== "history",
);

/** The columns of `commands_now c`, without the payload and the history. */
export const LEAN_COLUMNS = from("c", SHOWN);
/** Without the output too, which may be large. */
export const LIGHT_COLUMNS = LEAN_COLUMNS.replace("c.output,", "null::jsonb as output,");
export const ALL_COLUMNS = `${LEAN_COLUMNS}, c.payload`;

/** The columns of `command_queue q join commands c`. */
export const OPEN_COLUMNS = `${from("c", FIXED)}, ${from(
  "q",
  QUEUE_STATE.map(({ column }) => column),
)}, q.revision, null::timestamptz as finished_at, null::text as failure_code, false as late, null::jsonb as late_outcome`;
/** The columns of `commands c` that have ended. */
export const ENDED_COLUMNS = `${from("c", FIXED)}, ${from(
  "c",
  END_STATE.map(({ column }) => column),
)}, null::timestamptz as deadline_at`;

// Statements over many commands look up each by its key: `offset 0` keeps the planner from joining whole tables, which it prefers while they are small, and the
// plan outlives that time. Changes find the rows of such look-ups by their place (ctid), which other transactions cannot move unnoticed: a row that was changed
// since has another place and is left alone.
/** Joins a command of the queue `q` as `c`. */
export const WITH_COMMAND = "cross join lateral (select * from commands f where f.tenant_id = q.tenant_id and f.command_id = q.command_id offset 0) c";
/** The places in the queue of the rows of `v`. */
export const placesInQueue = (condition = "true"): string =>
  `array(select t.place from v cross join lateral (select o.ctid as place from command_queue o
     where o.tenant_id = v.tenant_id and o.device_id = v.device_id and o.seq = v.seq and ${condition} offset 0) t)`;
/** The places in `commands` of the rows of that relation, which has the columns of their primary key. */
export const placesOfCommands = (relation: string): string =>
  `array(select t.place from ${relation} r cross join lateral (select o.ctid as place from commands o
     where o.tenant_id = r.tenant_id and o.command_id = r.command_id offset 0) t)`;
export const SAME_QUEUED = "q.tenant_id = v.tenant_id and q.device_id = v.device_id and q.seq = v.seq";

/** Open states in which the agent may hold the command: they use up credit. */
export const IN_FLIGHT = `('sent', 'acknowledged', 'running', 'canceling')`;

/** `$4::text[], $5::int[]`, ... from that number on. */
export const arrayParameters = (columns: readonly { readonly sqlType: string }[], first: number): string =>
  columns.map(({ sqlType }, index) => `$${first + index}::${sqlType}[]`).join(", ");
export const assignments = (columns: readonly Pick<Column, "column">[]): string => columns.map(({ column }) => `${column} = v.${column}`).join(", ");
export const namesOf = (columns: readonly Pick<Column, "column">[]): string => columns.map(({ column }) => column).join(", ");
