// What PostgreSQL writes and keeps: bytes of its log between two moments, and bytes of its tables and indexes.
import type { BenchStage } from "./stage.ts";

export interface LogMark {
  readonly lsn: string;
  readonly checkpoints: number;
}

export const markLog = async (stage: BenchStage): Promise<LogMark> => {
  const [row] = await stage.admin<LogMark>(
    "select pg_current_wal_insert_lsn()::text as lsn, (select num_timed + num_requested from pg_stat_checkpointer)::int as checkpoints",
  );
  if (row === undefined) throw new Error("PostgreSQL does not say where its log is");
  return row;
};

export interface LogUse {
  readonly bytes: number;
  /** Of these, copies of whole pages: the first change of a page after a checkpoint. */
  readonly pageBytes: number;
  readonly checkpoints: number;
}

/** PostgreSQL's own reader of the log, which adds up the records between two positions. */
export const logBetween = async (stage: BenchStage, before: LogMark, after: LogMark): Promise<LogUse> => {
  await stage.admin("create extension if not exists pg_walinspect");
  const [row] = await stage.admin<{ bytes: number; page_bytes: number }>(
    `select pg_wal_lsn_diff($2, $1)::float8 as bytes, (select sum(fpi_size)::float8 from pg_get_wal_stats($1::pg_lsn, $2::pg_lsn)) as page_bytes`,
    [before.lsn, after.lsn],
  );
  return { bytes: row?.bytes ?? Number.NaN, pageBytes: row?.page_bytes ?? Number.NaN, checkpoints: after.checkpoints - before.checkpoints };
};

export type TableSizes = ReadonlyMap<string, number>;

/** The size of each table with its indexes, after a vacuum as autovacuum runs it: dead rows become free space, and only empty pages at the end go. */
export const vacuumedSizes = async (stage: BenchStage): Promise<TableSizes> => {
  await stage.admin("vacuum");
  const rows = await stage.query<{ name: string; bytes: number }>(
    "select relname as name, pg_total_relation_size(relid)::float8 as bytes from pg_stat_user_tables",
  );
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
};

/** Bytes per unit of work by table, the largest first, without tables that have not changed. */
export const growth = (before: TableSizes, after: TableSizes, units: number): readonly { readonly table: string; readonly bytesEach: number }[] =>
  [...after]
    .map(([table, bytes]) => ({ table, bytesEach: (bytes - (before.get(table) ?? 0)) / units }))
    .filter(({ bytesEach }) => bytesEach !== 0)
    .toSorted((a, b) => b.bytesEach - a.bytesEach);
