// How safe a commit is on this server: what is lost if a standby takes over, or if the host crashes.
import { statement } from "../../core/statements.ts";
import type { Log } from "../telemetry/log.ts";
import type { Db } from "./db.ts";

/** A gauge stays small, whatever is connected. */
const MOST_STANDBYS = 20;

export interface StandbyFigures {
  /** Its `application_name`. */
  readonly standby: string;
  /** Whether a commit waits for it. "unknown" without the right to see it, `pg_read_all_stats`. */
  readonly mode: "synchronous" | "asynchronous" | "unknown";
  /** Write-ahead log that it does not have on disk, so lost if it took over now. NaN if unknown. */
  readonly lagBytes: number;
}

const LIST_STANDBYS = statement<{ readonly standby: string; readonly sync_state: string | null; readonly lag: number | null }>(
  "database.listStandbys",
  `select coalesce(application_name, '') as standby, sync_state, greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn), 0)::float8 as lag
     from pg_stat_replication where state is null or state in ('streaming', 'catchup') order by pid limit $1`,
);

const modeOf = (syncState: string | null): StandbyFigures["mode"] => {
  if (syncState === null) return "unknown";
  return syncState === "sync" || syncState === "quorum" ? "synchronous" : "asynchronous";
};

/** The standbys that are connected to the server. Rejects on a server that is a standby itself. */
export const readStandbys = async (db: Pick<Db, "query">): Promise<readonly StandbyFigures[]> =>
  (await db.query(LIST_STANDBYS, [MOST_STANDBYS])).map(({ standby, sync_state, lag }) => ({ standby, mode: modeOf(sync_state), lagBytes: lag ?? Number.NaN }));

const READ_SETTINGS = statement<{ readonly name: string }>(
  "database.unsafeSettings",
  "select name from pg_settings where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name",
);

/** The settings of the server that let a crash take back what the gateway has confirmed. */
export const readUnsafeSettings = async (db: Pick<Db, "query">): Promise<readonly string[]> => (await db.query(READ_SETTINGS)).map(({ name }) => name);

/** Names them at the start. */
export const warnOfUnsafeSettings = async (db: Pick<Db, "query">, log: Log): Promise<void> => {
  const off = await readUnsafeSettings(db);
  if (off.length > 0) log.warn({ off }, "a crash of the database can lose what the gateway has confirmed: turn these settings of PostgreSQL on");
};
