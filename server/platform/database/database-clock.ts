// The time of the database, which decides deadlines, leases and the windows of signatures on every node. A node whose own clock agrees uses its own, which is
// finer; one whose clock is wrong goes by the last answer of the database and the milliseconds since then, and says how wrong it is.
import { type Clock, WRONG_CLOCK_MS } from "../../core/clock.ts";
import { statement } from "../../core/statements.ts";
import type { Log } from "../telemetry/log.ts";
import type { Db } from "./db.ts";

/** How far the two may differ before the database's counts: more than an answer takes, less than a signature tolerates. */
const AGREE_MS = 500;
const EVERY_MS = 5_000;
/** An answer that took longer says too little about the time. */
const MOST_ROUND_TRIP_MS = 1_000;
/** Answers differ by what they took, and time must not go back by that. */
const SAME_MS = 100;

const READ_TIME = statement<{ readonly now: Date }>("database.readTime", "select clock_timestamp() as now");

export interface DatabaseClock extends Clock {
  /** This node's clock minus the database's, in milliseconds; 0 until the database has answered. */
  offsetMs(): number;
  /** Asks now, and again and again until it is closed. Resolves after the first answer. */
  follow(db: Pick<Db, "query">): Promise<{ close(): Promise<void> }>;
}

export const createDatabaseClock = (own: Clock, log: Log, everyMs: number | null = EVERY_MS): DatabaseClock => {
  let anchor: { readonly wallMs: number; readonly elapsedMs: number } | null = null;
  let ask: (() => void) | null = null;
  let toldWrong = false;

  const estimate = (): number | null => (anchor === null ? null : anchor.wallMs + own.elapsed() - anchor.elapsedMs);
  const offsetMs = (): number => {
    const at = own.now().getTime();
    return at - (estimate() ?? at);
  };
  const tell = (): void => {
    const offset = offsetMs();
    if (Math.abs(offset) > WRONG_CLOCK_MS === toldWrong) return;
    toldWrong = !toldWrong;
    const fields = { offsetMs: Math.round(offset) };
    if (toldWrong) log.warn(fields, "this node's clock is not the database's, which counts; set the clock of the one that is wrong (NTP)");
    else log.info(fields, "this node's clock is the database's again");
  };
  const read = async (db: Pick<Db, "query">): Promise<void> => {
    const beforeMs = own.elapsed();
    const [row] = await db.query(READ_TIME);
    const elapsedMs = (beforeMs + own.elapsed()) / 2;
    if (row === undefined || (anchor !== null && own.elapsed() - beforeMs > MOST_ROUND_TRIP_MS)) return;
    const wallMs = row.now.getTime();
    if (anchor === null || Math.abs(wallMs - (anchor.wallMs + elapsedMs - anchor.elapsedMs)) > SAME_MS) anchor = { wallMs, elapsedMs };
    tell();
  };

  return {
    elapsed: own.elapsed,
    offsetMs,
    now: () => {
      const at = own.now();
      const expected = estimate();
      if (expected === null || Math.abs(at.getTime() - expected) <= AGREE_MS) return at;
      // Somebody may have set the clock, or the machine has slept.
      ask?.();
      return new Date(Math.round(expected));
    },
    follow: async (db) => {
      if (everyMs === null) return { close: async () => undefined };
      await read(db);
      let closed = false;
      let asking: Promise<void> | null = null;
      let lastMs = own.elapsed();
      ask = () => {
        if (asking !== null || closed || own.elapsed() - lastMs < MOST_ROUND_TRIP_MS) return;
        lastMs = own.elapsed();
        // Without an answer the milliseconds since the last one go on.
        asking = read(db)
          .catch(() => undefined)
          .finally(() => {
            asking = null;
          });
      };
      const timer = setInterval(ask, everyMs);
      return {
        close: async () => {
          clearInterval(timer);
          closed = true;
          await asking;
        },
      };
    },
  };
};
