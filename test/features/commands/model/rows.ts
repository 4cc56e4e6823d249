// Reads the tables: compares each row with the model's, and checks what must hold of rows, history and events whatever the model says.
import type { CommandStatus } from "../../../../protocol/index.ts";
import type { StoredStep } from "../../../../server/features/commands/steps.ts";
import type { Db } from "../../../../server/platform/database/db.ts";
import type { Held, Queue } from "./queue.ts";

type Time = Date | number | null;
export interface Row {
  readonly device_id: string;
  readonly command_id: string;
  readonly seq: number;
  readonly lane: string;
  readonly status: CommandStatus;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly available_at: Time;
  readonly deadline_at: Time;
  readonly channel: string | null;
  readonly session_epoch: number | null;
  readonly failure_code: string | null;
  readonly late: boolean;
  readonly kept: boolean;
  readonly exec_deadline_at: Time;
  readonly cancel_prev_status: string | null;
  readonly story?: readonly StoredStep[];
  readonly ends?: readonly string[] | null;
}

export const readConnected = async (db: Db): Promise<ReadonlySet<string>> =>
  new Set((await db.query<{ device_id: string }>(`select device_id from device_presence where connectivity = 'realtime'`)).map(({ device_id }) => device_id));

const HISTORIES = `
  left join (select subject_id, array_agg(type order by position) as ends from outbox_events group by 1) o on o.subject_id = c.command_id`;

/** The rows of all devices, with their histories and durable events on request. */
export const readRows = async (db: Db, withHistories: boolean): Promise<ReadonlyMap<string, readonly Row[]>> => {
  const rows = await db.query<Row>(
    `select c.device_id, c.command_id, c.seq, c.lane, c.status, c.attempt, c.max_attempts, c.available_at, c.deadline_at, c.channel, c.session_epoch,
            c.failure_code, c.late, c.late_outcome is not null as kept, c.exec_deadline_at, c.cancel_prev_status ${withHistories ? ", c.history as story, o.ends" : ""}
       from commands_now c ${withHistories ? HISTORIES : ""} order by c.device_id, c.seq`,
  );
  const perDevice = new Map<string, Row[]>();
  for (const row of rows) perDevice.set(row.device_id, [...(perDevice.get(row.device_id) ?? []), row]);
  return perDevice;
};

const instant = (time: Time): number | null => (time instanceof Date ? time.getTime() : time);
const carrierOf = (row: Row): Held["carrier"] => (row.channel === "poll" ? "poll" : row.session_epoch);

/** Null, or the first difference. */
export const firstDifference = (queue: Queue, rows: readonly Row[]): string | null => {
  if (rows.length !== queue.commands.length) return `${rows.length} rows, the model has ${queue.commands.length}`;
  for (const [index, row] of rows.entries()) {
    const held = queue.commands[index];
    if (held === undefined) return "a row more than the model has";
    // A fact counts only in the states that use it.
    const isSent = held.status === "sent" || row.status === "sent";
    const [isWorking, isCanceling] = [["acknowledged", "running", "canceling"].includes(row.status), row.status === "canceling"];
    const isQueued = held.status === "queued" || row.status === "queued";
    const real = [
      row.command_id,
      row.status,
      row.attempt,
      instant(row.deadline_at),
      row.failure_code,
      row.late,
      row.kept,
      isSent ? carrierOf(row) : null,
      isQueued ? instant(row.available_at) : null,
      isWorking ? instant(row.exec_deadline_at) : null,
      isCanceling ? row.cancel_prev_status : null,
    ];
    const model = [
      held.id,
      held.status,
      held.attempts,
      held.deadline,
      held.code,
      held.late,
      held.outcomeKept,
      isSent ? held.carrier : null,
      isQueued ? held.due : null,
      isWorking ? held.workUntil : null,
      isCanceling ? held.before : null,
    ];
    const at = real.findIndex((value, column) => value !== model[column]);
    if (at >= 0) return `command ${row.seq}: ${FACTS[at]} is ${show(real[at])}, the model says ${show(model[at])} (${row.status} / ${held.status})`;
  }
  return null;
};
const FACTS = ["id", "status", "attempts", "deadline", "code", "late", "kept outcome", "carrier", "due time", "end of work", "state before the cancel"];
const show = (value: unknown): string => (typeof value === "number" && value > 1e12 && Number.isFinite(value) ? new Date(value).toISOString() : String(value));

const SOFT: readonly CommandStatus[] = ["expired", "timed_out", "undeliverable"];
const OPEN: readonly CommandStatus[] = ["queued", "sent", "acknowledged", "running", "canceling"];

/** Null, or the promise that the rows break, given their state before. */
export const firstBreach = (earlier: readonly Row[], rows: readonly Row[]): string | null => {
  const was = new Map(earlier.map((row) => [row.command_id, row]));
  return rows.map((row) => breach(row, was.get(row.command_id), rows)).find((found) => found !== null) ?? null;
};

const breach = (row: Row, earlier: Row | undefined, all: readonly Row[]): string | null => {
  const isOpen = OPEN.includes(row.status);
  if (isOpen !== (row.deadline_at !== null)) return `command ${row.seq} is ${row.status} ${isOpen ? "without" : "with"} a deadline`;
  if (row.attempt < 0 || row.attempt > row.max_attempts) return `command ${row.seq} had ${row.attempt} of ${row.max_attempts} attempts`;
  if (earlier !== undefined && !OPEN.includes(earlier.status) && earlier.status !== row.status && !(SOFT.includes(earlier.status) && row.late))
    return `command ${row.seq} was ${earlier.status} and is ${row.status}`;
  if (row.status === "sent" && row.channel === "ws" && all.some((other) => other.lane === row.lane && other.seq < row.seq && OPEN.includes(other.status)))
    return `command ${row.seq} was sent before its lane was free`;
  return row.story === undefined ? null : (storyGap(row, row.story) ?? eventGap(row));
};

/** The timeline begins with the queue and ends with the row's status. */
const storyGap = ({ seq, status }: Row, story: NonNullable<Row["story"]>): string | null => {
  const gap = story.findIndex(({ at }, index) => at < (story[index - 1]?.at ?? 0));
  if (gap >= 0 || story[0]?.to !== "queued") return `the history of command ${seq} is out of order: ${JSON.stringify(story)}`;
  return story.at(-1)?.to === status ? null : `the history of command ${seq} ends in ${story.at(-1)?.to}, the row in ${status}`;
};

/** One durable event per end, and one for a late result. */
const eventGap = ({ seq, status, ends, late }: Row): string | null => {
  const expected = OPEN.includes(status) ? 0 : late ? 2 : 1;
  const told = ends?.length ?? 0;
  if (told !== expected) return `command ${seq} is ${status} and told ${told} events: ${ends?.join(", ")}`;
  return !late || ends?.[1] === "command.late_result" ? null : `command ${seq} told ${ends?.join(", ")}`;
};
