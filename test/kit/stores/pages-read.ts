// How many pages of a table and its indexes a transaction reads, by PostgreSQL's own counters.
import type { SqlTx } from "../../../server/core/events.ts";
import type { Db } from "../../../server/platform/database/db.ts";

/** Runs the work in a transaction whose counters are written at its end. */
export const counted = <T>(db: Pick<Db, "sqlTx">, work: (tx: SqlTx) => Promise<T>): Promise<T> =>
  db.sqlTx(async (tx) => {
    await tx.query("select pg_stat_force_next_flush()");
    return work(tx);
  });

/** The pages of the table and of its indexes that were read so far. */
export const pagesRead = async (db: Pick<Db, "query">, table: string): Promise<number> => {
  const [found] = await db.query<{ pages: number }>(
    "select (heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::int as pages from pg_statio_user_tables where relname = $1",
    [table],
  );
  return found?.pages ?? Number.NaN;
};
