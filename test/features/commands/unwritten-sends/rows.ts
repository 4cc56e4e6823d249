// Reads what the database knows of the commands, and what must hold of it given what the agents have got.
import { isDeepStrictEqual } from "node:util";
import { type CommandStatus, isOpen } from "../../../../protocol/index.ts";
import { readSteps, type StoredStep } from "../../../../server/features/commands/steps.ts";
import type { Db } from "../../../../server/platform/database/db.ts";
import type { DeviceRef } from "../kit.ts";
import { SETTINGS } from "./node.ts";
import type { NodeIndex } from "./programs.ts";

interface StoredRow {
  readonly device_id: string;
  readonly command_id: string;
  readonly seq: number;
  readonly lane: string;
  readonly status: CommandStatus;
  readonly failure_code: string | null;
  readonly late: boolean;
  readonly safe: boolean;
  readonly requires_ack: boolean;
  readonly ack_status: string | null;
  readonly has_deadline: boolean;
  readonly due_at: Date;
  readonly history: readonly StoredStep[];
  readonly ends: number;
}
export interface Row extends StoredRow {
  /** The attempts that were written as sent. */
  readonly sentAttempts: readonly number[];
}

const READ = (where: string): string => `
  select c.device_id, c.command_id, c.seq, c.lane, c.status, c.failure_code, c.late, c.redeliver_safe as safe, c.requires_ack, c.ack_status,
         c.deadline_at is not null as has_deadline, c.available_at as due_at, c.history,
         (select count(*) from outbox_events o where o.subject_id = c.command_id) as ends
    from commands_now c where ${where} order by c.device_id, c.seq`;
const withSteps = (row: StoredRow): Row => ({
  ...row,
  sentAttempts: readSteps(row.history).flatMap(({ to, attempt }) => (to === "sent" ? [attempt] : [])),
});

export const readAll = async (db: Db): Promise<readonly Row[]> => (await db.query<StoredRow>(READ("true"))).map(withSteps);
export const readRow = async (db: Db, commandId: string): Promise<Row | null> => {
  const [row] = await db.query<StoredRow>(READ("c.command_id = $1"), [commandId]);
  return row === undefined ? null : withSteps(row);
};

/** How many of them are open and have not gone back to the queue. */
export const openCount = async (db: Db, { deviceId }: DeviceRef, commandIds: readonly string[]): Promise<number> => {
  const rows = (await db.query<StoredRow>(READ("c.device_id = $1 and c.command_id = any($2)"), [deviceId, commandIds])).map(withSteps);
  return rows.filter(({ status, sentAttempts }) => isOpen(status) && (status !== "queued" || sentAttempts.length === 0)).length;
};

/** Waits for work of a node that has no promise of its own. */
export const inDatabase = async (isDone: () => boolean): Promise<void> => {
  for (let turns = 0; !isDone() && turns < 2_000; turns += 1) await new Promise((resolve) => setImmediate(resolve));
};

const SOFT: readonly CommandStatus[] = ["expired", "timed_out", "undeliverable"];

/** What a row must show whatever happened. */
const ofHistory = (row: Row, earlier: Row | undefined): string | null => {
  const { status, history, late } = row;
  if (isOpen(status) !== row.has_deadline) return `is ${status} ${row.has_deadline ? "with" : "without"} a deadline`;
  if (history[0]?.to !== "queued" || history.at(-1)?.to !== status) return `is ${status} and tells ${JSON.stringify(history)}`;
  if (history.some(({ at }, index) => at < (history[index - 1]?.at ?? 0))) return `tells its history out of order: ${JSON.stringify(history)}`;
  const told = isOpen(status) ? 0 : late ? 2 : 1;
  if (row.ends !== told) return `is ${status} and told ${row.ends} events`;
  if (earlier === undefined) return null;
  if (!isDeepStrictEqual(history.slice(0, earlier.history.length), earlier.history))
    return `forgot a part of its history: ${JSON.stringify(earlier.history)}, now ${JSON.stringify(history)}`;
  if (!isOpen(earlier.status) && earlier.status !== status && !(SOFT.includes(earlier.status) && late)) return `was ${earlier.status} and is ${status}`;
  return null;
};

/** A command that ended as if it had never been sent, although the agent has it. */
const ofEnd = (row: Row, handings: readonly Handing[]): string | null => {
  const last = readSteps(row.history).at(-1);
  const neverSent = last?.from === "queued" && ((row.status === "canceled" && row.failure_code === null) || row.failure_code === "EXPIRED_BEFORE_DELIVERY");
  const untold = handings.find(({ commandId, attempt, got, lost }) => commandId === row.command_id && got && !lost && !row.sentAttempts.includes(attempt));
  return neverSent && untold !== undefined ? `is ${row.status} ${row.failure_code}, and the agent has attempt ${untold.attempt}` : null;
};

/** A session hands out each attempt once; a poll hands none out that the socket has just sent. */
const ofHandings = (row: Row, handings: readonly Handing[]): string | null => {
  const mine = handings.filter(({ commandId, lost }) => commandId === row.command_id && !lost);
  for (const [index, each] of mine.entries()) {
    const twin = mine.slice(0, index).find(({ attempt, carrier }) => attempt === each.attempt && (carrier !== "poll" || each.carrier !== "poll"));
    if (twin === undefined) continue;
    const beside = (twin.carrier === "poll") !== (each.carrier === "poll");
    if (!beside) return `was handed out twice as attempt ${each.attempt}, by ${twin.carrier} and ${each.carrier}`;
    // It may have become due again since.
    const sinceDueMs = each.at - row.due_at.getTime();
    if (sinceDueMs >= 0 && sinceDueMs < SETTINGS.sentGraceMs) return `was handed out by ${twin.carrier} and at once by ${each.carrier}`;
  }
  return null;
};

/** A command that a session or a poll gave to the agent. */
export interface Handing {
  readonly commandId: string;
  readonly attempt: number;
  readonly carrier: number | "poll";
  readonly node: NodeIndex;
  readonly at: number;
  /** It reached the agent. */
  readonly got: boolean;
  /** Its node died, or the agent went elsewhere without a word about it, before it was written. */
  lost: boolean;
}

/** The events that one agent has seen, and the rows as they were at the last look. */
export interface Seen {
  readonly breaches: readonly string[];
  readonly handings: readonly Handing[];
  readonly won: ReadonlyMap<string, string>;
  readonly rowsSeen: Map<string, Row>;
}

/** Null, or what is wrong with a device's commands. */
export const firstBreach = ({ breaches, handings, won, rowsSeen }: Seen, rows: readonly Row[], handedBefore: number): string | null => {
  if (breaches[0] !== undefined) return breaches[0];
  const fresh = new Set(handings.slice(handedBefore).flatMap(({ commandId, carrier }) => (carrier === "poll" ? [] : [commandId])));
  for (const row of rows) {
    const before = rows.find((other) => other.lane === row.lane && other.seq < row.seq && isOpen(other.status));
    const lane = fresh.has(row.command_id) && before !== undefined ? `was sent before ${before.command_id} of its lane had ended` : null;
    const word = won.get(row.command_id);
    const end = word !== undefined && row.status !== word ? `is ${row.status} although ${word} was applied` : null;
    const wrong = ofHistory(row, rowsSeen.get(row.command_id)) ?? lane ?? end ?? ofEnd(row, handings) ?? ofHandings(row, handings);
    if (wrong !== null) return `${row.command_id} ${wrong}`;
    rowsSeen.set(row.command_id, row);
  }
  return null;
};
