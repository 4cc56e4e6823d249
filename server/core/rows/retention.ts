// Retention of rows by their time, in batches. Each batch begins at the time that the one before reached: deleted rows stay in an index until a vacuum, which
// an open dump holds back for hours, and no batch walks over those of earlier ones.
import type { SqlTx } from "../events.ts";
import type { Statement } from "../statements.ts";

export interface ExpiryBatch {
  /** Rows with an earlier time were looked at before. */
  readonly since: Date;
  readonly limit: number;
}

export interface ExpiryStep {
  readonly looked: number;
  /** The latest time among them; null if there were none. */
  readonly last: Date | null;
}

export interface ExpiredRows {
  readonly table: string;
  readonly time: string;
  /** SQL: rows with an earlier time go. Further parameters begin with $3. */
  readonly before: string;
  /** SQL: the columns that an index has in front of the time. */
  readonly of?: string;
}

/** The text of a statement that deletes the oldest rows from a time ($1) on, at most so many ($2), and answers with an `ExpiryStep`. */
export const deleteByTime = ({ table, time, before, of = "true" }: ExpiredRows): string =>
  `with old as materialized (
     select ctid as place, ${time} as at from ${table} where ${of} and ${time} >= $1::timestamptz and ${time} < ${before} order by ${time} limit $2),
   gone as (delete from ${table} where ctid = any(array(select place from old)) returning 1)
   select count(*)::int as looked, max(at) as last from old`;

const BEGINNING = new Date(0);

/** Runs one batch; true when there may be more. A round that has come to its end begins again with the oldest rows. */
export const inRounds = (limit: number, deleteBatch: (batch: ExpiryBatch) => Promise<ExpiryStep>) => {
  let since = BEGINNING;
  return async (): Promise<boolean> => {
    const { looked, last } = await deleteBatch({ since, limit });
    const isOver = looked < limit || last === null;
    since = isOver ? BEGINNING : last;
    return !isOver;
  };
};

/** Runs a statement whose first two parameters are those of `deleteByTime`. */
export const runExpiry = async (
  sql: Pick<SqlTx, "query">,
  text: Statement<ExpiryStep>,
  { since, limit }: ExpiryBatch,
  more: readonly unknown[] = [],
): Promise<ExpiryStep> => (await sql.query(text, [since, limit, ...more]))[0] ?? { looked: 0, last: null };
