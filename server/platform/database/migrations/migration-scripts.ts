// Runs the script of one migration: as one transaction that gives up when it does not get its locks at once, or, if its first line says so, statement by
// statement outside of a transaction, which CREATE INDEX CONCURRENTLY requires.
import { createHash } from "node:crypto";
import type pg from "pg";
import { type LockDeps, untilLocked } from "./lock-waits.ts";

/** The first line of a script that runs outside of a transaction. */
export const OUTSIDE_TRANSACTION = "-- Runs outside of a transaction.";

/** Each script stores this when it is through, so that migrate.ts can tell after a kill whether the script was. */
export const scriptFingerprint = (script: string): string => createHash("sha256").update(script).digest("hex");
const noteOf = (script: string): string => `comment on table _prisma_migrations is '${scriptFingerprint(script)}'`;
const markerOf = (script: string): string => `/* mooring migration ${scriptFingerprint(script).slice(0, 16)} */`;

export interface ScriptDeps extends LockDeps {
  readonly pool: pg.Pool;
  readonly nameOf: (script: string) => string;
}

export const runScript = async (script: string, deps: ScriptDeps): Promise<void> => {
  const locked = { on: `the locks of migration ${deps.nameOf(script)}`, marker: markerOf(script) };
  const run = (sql: string): Promise<unknown> => untilLocked(locked, deps, () => deps.pool.query(`${locked.marker}${sql}`));
  if (script.startsWith(OUTSIDE_TRANSACTION)) return runOutside(script, deps.pool, run);
  // PostgreSQL runs several statements of one message as one transaction.
  await run(`set local lock_timeout=${deps.lockTimeoutMs};${script}\n;${noteOf(script)}`);
};

/**
 * The statements of a script that runs outside of a transaction. It has no functions and no semicolon inside a string; test/conventions/migrations.test.ts
 * says what it may hold. In other scripts, what has semicolons inside falls apart.
 */
export const statementsOf = (script: string): readonly string[] =>
  script
    .replaceAll(/--.*$/gm, "")
    .split(";")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");

const CREATE_INDEX = /^create\s+(?:unique\s+)?index\s+concurrently\s+"?(\w+)"?\s/i;

const runOutside = async (script: string, pool: pg.Pool, run: (sql: string) => Promise<unknown>): Promise<void> => {
  for (const statement of statementsOf(script)) {
    const index = CREATE_INDEX.exec(statement)?.[1];
    const state = index === undefined ? "absent" : await indexState(pool, index);
    if (state === "valid") continue;
    // A build that was interrupted, or met a duplicate, leaves an index that no query uses but every write pays for.
    if (state === "invalid") await run(`drop index concurrently if exists "${index}"`);
    await run(statement);
  }
  await run(noteOf(script));
};

const indexState = async (pool: pg.Pool, index: string): Promise<"absent" | "valid" | "invalid"> => {
  const { rows } = await pool.query<{ valid: boolean }>("select indisvalid and indisready as valid from pg_index where indexrelid = to_regclass($1)", [
    `"${index}"`,
  ]);
  if (rows[0] === undefined) return "absent";
  return rows[0].valid ? "valid" : "invalid";
};
