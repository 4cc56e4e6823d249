// The rig's own hand in the database, past the gateways: for controls that break a guarantee, and for looking at rows that no API shows.
import { Client, type QueryResultRow } from "pg";
import type { Postgres } from "./postgres.ts";
import { spoil } from "./sabotage.ts";

export interface Sql {
  query<Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** One connection, so that a transaction may be held on it. */
export const openSql = async ({ url, port }: Postgres): Promise<Sql> => {
  const client = new Client({ connectionString: url(port), application_name: "rig" });
  // A database that is killed takes the connection along; whoever asks next hears of it.
  client.on("error", () => undefined);
  await client.connect();
  return {
    query: async <Row extends QueryResultRow>(text: string, values: readonly unknown[] = []) => (await client.query<Row>(text, [...values])).rows,
    close: () => client.end(),
  };
};

export const withSql = async <T>(postgres: Postgres, use: (sql: Sql) => Promise<T>): Promise<T> => {
  const sql = await openSql(postgres);
  try {
    return await use(sql);
  } finally {
    await sql.close();
  }
};

/** Without values the text may hold several statements. */
export const ask = <Row extends QueryResultRow>(postgres: Postgres, text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
  withSql(postgres, (sql) => sql.query<Row>(text, values));

/** From now on each row of the table that is written goes through these statements first, which may change `new`. */
export const meddle = (sql: Sql, table: string, when: "insert" | "update" | "insert or update", body: string): Promise<unknown> =>
  sql.query(spoil(table, when, body));
