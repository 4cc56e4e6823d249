// Takes locks for a migration without stopping the service: each attempt waits for a moment only, gives up, lets the queue behind it pass, and tries
// again. A statement that waits for a table's lock stops every later statement on that table, reads too.

import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { type Clock, isoText } from "../../../core/clock.ts";
import type { Waits } from "../../waits.ts";
import { failureOf } from "../db-errors.ts";

/** Shorter than the 2 s that a gateway's own statement waits for a lock, so no call fails behind a migration. */
export const LOCK_TIMEOUT_MS = 1_000;
/** The queue that formed behind one attempt passes in this time. */
const PAUSE_MS = 2_000;
const LOOK_MS = 250;
/** A dump of a big database takes this long; until then the former build goes on serving. */
export const PATIENCE_MS = 1_800_000;

export const isLockTimeout = (error: unknown): boolean => failureOf(error) === "lock_timeout";

export interface LockDeps {
  readonly clock: Pick<Clock, "elapsed">;
  /** A session beside the one that waits, to look who blocks. */
  readonly observer: pg.Client;
  readonly waits: Waits;
  readonly at: string;
  readonly lockTimeoutMs: number;
  readonly patienceMs?: number;
}

export interface LockWait {
  readonly on: string;
  /** The statement begins with this comment, so that the observer finds it, behind a pooler too. */
  readonly marker: string;
}

/** Repeats the attempt until it gets its locks. The attempt limits its own wait and leaves nothing behind when it fails. */
export const untilLocked = <T>({ on, marker }: LockWait, deps: LockDeps, attempt: () => Promise<T>): Promise<T> =>
  deps.waits.during({ on, at: deps.at }, async (why) => {
    const until = deps.clock.elapsed() + (deps.patienceMs ?? PATIENCE_MS);
    const look = createLook(deps.observer, marker, why);
    const timer = setInterval(look, LOOK_MS);
    try {
      for (;;) {
        try {
          return await attempt();
        } catch (error) {
          if (!isLockTimeout(error) || deps.clock.elapsed() >= until) throw error;
        }
        await delay(PAUSE_MS);
      }
    } finally {
      clearInterval(timer);
    }
  });

const createLook = (observer: pg.Client, marker: string, why: (reason: string) => void): (() => void) => {
  let isLooking = false;
  return () => {
    if (isLooking) return;
    isLooking = true;
    blockersOf(observer, marker)
      .then((found) => {
        if (found.length > 0) why(`blocked by ${found.map(describeSession).join(", ")}`);
      })
      .catch(() => undefined)
      .finally(() => {
        isLooking = false;
      });
  };
};

export interface OtherSession {
  readonly pid: number;
  readonly application: string;
  readonly address: string | null;
  readonly state: string | null;
  readonly since: Date | null;
}

export const SESSION_COLUMNS =
  "a.pid, a.application_name as application, host(a.client_addr) as address, a.state, coalesce(a.xact_start, a.state_change) as since";

const blockersOf = async (observer: pg.Client, marker: string): Promise<readonly OtherSession[]> => {
  // The observer's transaction would otherwise see the sessions of its first look for ever.
  await observer.query("select pg_stat_clear_snapshot()");
  // Without parameters: these would leave a portal open, whose snapshot a concurrent index waits for.
  const { rows } = await observer.query<OtherSession>(
    `select distinct ${SESSION_COLUMNS} from pg_stat_activity waiting
     cross join lateral unnest(pg_blocking_pids(waiting.pid)) as blocker(pid) join pg_stat_activity a on a.pid = blocker.pid
     where waiting.pid <> pg_backend_pid() and starts_with(waiting.query, ${observer.escapeLiteral(marker)}) order by a.pid limit 5`,
  );
  return rows;
};

/** Without the session's statement, which may hold data. */
export const describeSession = ({ pid, application, address, state, since }: OtherSession): string =>
  `session ${pid} (${[application === "" ? "unnamed" : application, address ?? "local", state ?? "hidden", ...(since === null ? [] : [`since ${isoText(since)}`])].join(", ")})`;
