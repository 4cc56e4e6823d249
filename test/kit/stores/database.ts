// A database for one test file: empty or migrated, made in moments, gone with the run's server.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";

/** False where a pooler stands between that knows no prepared statements. */
export const namedStatements = process.env["TEST_POOLER"] === undefined;

/** The address of a fresh, migrated database. */
export const createTestDatabase = (): Promise<string> => create(inject("templateDatabase"));

/** The address of a fresh database without a single table. */
export const createEmptyDatabase = (): Promise<string> => create("template1");

const create = async (template: string): Promise<string> => {
  const name = `test_${randomBytes(6).toString("hex")}`;
  // Copying files costs half the processor time of logging each page.
  await withClient(inject("databaseUrl"), (client) => client.query(`create database ${name} template ${template} strategy file_copy`));
  const url = new URL(inject("pooledUrl"));
  url.pathname = `/${name}`;
  return url.href;
};

/** A plain connection beside the one under test, to inspect and to disturb. */
export const withClient = async <T>(url: string, run: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
};
