// One migration at a time: a transaction of a session of its own holds the lock until the migration is over.
// A lock of a session would stay behind in a pooler that gives each transaction another session.
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Clock } from "../../../core/clock.ts";
import { placeOf, type Waits } from "../../waits.ts";
import { type DatabaseHosts, readServerKind } from "../database-hosts.ts";
import { isLoginRefused, isUnavailable } from "../db-errors.ts";
import { describeSession, LOCK_TIMEOUT_MS, type OtherSession, PATIENCE_MS, SESSION_COLUMNS } from "./lock-waits.ts";

/** Our own lock, and the one that `prisma migrate deploy` and earlier builds take, so neither runs beside us. */
const LOCKS = [7_177_001, 72_707_369];
const CONNECT_MS = 5_000;
const ANSWER_MS = 30_000;
const PAUSE_MS = 500;
const APPLICATION_NAME = "mooring migrate";

export interface GuardOptions {
  readonly clock: Pick<Clock, "elapsed">;
  readonly url: string;
  readonly hosts: DatabaseHosts;
  readonly waits: Waits;
  /** How long a database may be away; 0 reports the first failure. */
  readonly connectWithinMs: number;
}

/** As in the moments of a takeover, or while a proxy does not know yet which server takes writes. */
class OnlyReads extends Error {
  override readonly message = "the server only reads";
}

/** Waiting does not help against a wrong password, user or database. */
const mayComeBack = (error: unknown): boolean => error instanceof OnlyReads || (isUnavailable(error) && !isLoginRefused(error));

/** Connects, waiting for a database that is not there yet, and begins the transaction of the lock. */
const beginGuard = ({ clock, url, hosts, waits, connectWithinMs }: GuardOptions): Promise<pg.Client> =>
  waits.during({ on: "the database", at: placeOf(url) }, async (why) => {
    const until = clock.elapsed() + connectWithinMs;
    for (;;) {
      await hosts.settling();
      const guard = new pg.Client({
        connectionString: hosts.current(),
        application_name: APPLICATION_NAME,
        connectionTimeoutMillis: CONNECT_MS,
        query_timeout: ANSWER_MS,
        keepAlive: true,
      });
      // Without a listener a lost guard would end the process; the engine's own statements report the failure.
      guard.on("error", () => undefined);
      try {
        await guard.connect();
        const { standby, read_only: readOnly } = await readServerKind(guard);
        if (standby || readOnly) throw new OnlyReads();
        await begin(guard);
        return guard;
      } catch (error) {
        void guard.end().catch(() => undefined);
        hosts.doubt();
        if (!mayComeBack(error) || clock.elapsed() >= until) throw error;
        why(error instanceof Error ? error.message || String(Reflect.get(error, "code")) : String(error));
      }
      await delay(PAUSE_MS);
    }
  });

const begin = (guard: pg.Client): Promise<unknown> =>
  guard.query(
    `begin;set local lock_timeout=${LOCK_TIMEOUT_MS};set local idle_in_transaction_session_timeout=0;set local transaction_isolation='read committed'`,
  );

const takeLocks = (guard: pg.Client, { clock, url, waits }: GuardOptions): Promise<void> =>
  waits.during({ on: "the migration lock", at: placeOf(url) }, async (why) => {
    const until = clock.elapsed() + PATIENCE_MS;
    for (;;) {
      // Without waiting within a statement: its snapshot would hold up the concurrent index that the lock's holder builds.
      const { rows } = await guard.query<{ taken: boolean }>(`select ${LOCKS.map((lock) => `pg_try_advisory_xact_lock(${lock})`).join(" and ")} as taken`);
      if (rows[0]?.taken === true) return;
      await guard.query("rollback");
      if (clock.elapsed() >= until) throw new Error(`another process has held the migration lock for ${PATIENCE_MS / 60_000} minutes`);
      why(await holders(guard));
      await delay(PAUSE_MS);
      await begin(guard);
    }
  });

const holders = async (guard: pg.Client): Promise<string> => {
  const { rows } = await guard.query<OtherSession>(
    `select distinct ${SESSION_COLUMNS} from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.classid = 0 and l.objid = any($1::int[]::oid[])
     and l.database = (select oid from pg_database where datname = current_database()) order by a.pid limit 5`,
    [LOCKS],
  );
  if (rows.length === 0) return "";
  const idle = rows.find(({ state }) => state === "idle");
  const advice = idle === undefined ? "" : `; idle, so an interrupted migration left the lock in a pooler: select pg_terminate_backend(${idle.pid})`;
  return `held by ${rows.map(describeSession).join(", ")}${advice}`;
};

/** Runs the work while no other process migrates this database. The lock ends with this process, however that dies. */
export const withMigrationLock = async <T>(options: GuardOptions, run: (guard: pg.Client) => Promise<T>): Promise<T> => {
  const guard = await beginGuard(options);
  try {
    await takeLocks(guard, options);
    const result = await run(guard);
    await guard.query("commit");
    return result;
  } finally {
    await guard.end();
  }
};
