// A snapshot of the database: reads over a longer time that all see one moment. It has a session of its own beside the pool, which ends with it.
// What runs within the snapshot reads there without knowing it, so an export calls the same handlers as everybody.
import type pg from "pg";
import type { DatabaseHosts } from "./database-hosts.ts";
import { DatabaseSession } from "./pool.ts";
import { withinSnapshot } from "./snapshot-session.ts";

/** A page takes milliseconds. */
const PAGE_TIMEOUT_MS = 15_000;
/** Between two pages the exporter compresses and stores what it has read. */
const SILENT_MS = 30_000;
const CONNECT_MS = 5_000;

/** No change gets through, whatever a handler tries. */
const BEGIN = `BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;SET LOCAL statement_timeout=${PAGE_TIMEOUT_MS};SET LOCAL idle_in_transaction_session_timeout=${SILENT_MS}`;

export interface DbSnapshot {
  /** What `work` reads, it reads here; what it would write fails. */
  read<T>(work: () => Promise<T>): Promise<T>;
  /** False: another session has the lock of this name. It lasts as long as the snapshot. */
  lock(name: string): Promise<boolean>;
}

export interface SnapshotOptions {
  readonly hosts: DatabaseHosts;
  readonly applicationName: string;
}

export const withSnapshot = async <T>({ hosts, applicationName }: SnapshotOptions, run: (snapshot: DbSnapshot) => Promise<T>): Promise<T> => {
  await hosts.settling();
  const session = new DatabaseSession({
    connectionString: hosts.current(),
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
  });
  // Its end is told by the next statement.
  session.on("error", () => undefined);
  session.answerWithinMs = () => PAGE_TIMEOUT_MS + CONNECT_MS;
  await session.connect();
  try {
    await session.query(BEGIN);
    return await run({
      read: (work) => withinSnapshot(session as unknown as pg.PoolClient, work), // as: nobody within releases it
      lock: async (name) => {
        const { rows } = await session.query<{ mine: boolean }>("select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as mine", [name]);
        return rows[0]?.mine === true;
      },
    });
  } finally {
    await session.end().catch(() => undefined);
  }
};
