// The rig's direct access to the database: for controls that break a guarantee, and for rows that no API shows.
import { Client, type QueryResultRow } from "pg";
import type { Postgres } from "./postgres.ts";
import { spoil } from "./sabotage.ts";

export interface SqlConnection {
  query<Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** Opens one connection, so that a scenario can hold a transaction on it. */
export const openSql = async ({ url, port }: Postgres): Promise<SqlConnection> => {
  const client = new Client({ connectionString: url(port), application_name: "rig" });
  // A killed database ends the connection; the next query reports it.
  client.on("error", () => undefined);
  await client.connect();
  return {
    query: async <Row extends QueryResultRow>(text: string, values: readonly unknown[] = []) => (await client.query<Row>(text, [...values])).rows,
    close: () => client.end(),
  };
};

export const withSql = async <T>(postgres: Postgres, use: (sql: SqlConnection) => Promise<T>): Promise<T> => {
  const sql = await openSql(postgres);
  try {
    return await use(sql);
  } finally {
    await sql.close();
  }
};

/** Without values the text may contain several statements. */
export const ask = <Row extends QueryResultRow>(postgres: Postgres, text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
  withSql(postgres, (sql) => sql.query<Row>(text, values));

/** Adds a trigger that runs these statements on each written row of the table; they may change `new`. */
export const meddle = (sql: SqlConnection, table: string, when: "insert" | "update" | "insert or update", body: string): Promise<unknown> =>
  sql.query(spoil(table, when, body));
