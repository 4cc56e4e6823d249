// Migrates a database to the newest version, safely when several nodes start at once.
import type { MigrationList, SchemaEngine } from "@prisma/schema-engine-wasm";
import pg from "pg";
import { watchTables } from "./audited-tables.ts";
import { EVERYTHING, migrationsFolder, readMigrations, readSchema, schemaFolder, scriptFingerprint, withSchemaEngine } from "./schema-engine.ts";

// Advisory lock of a running migration. Prisma's own lock has another number, so `prisma migrate deploy` still works.
const MIGRATION_LOCK = 7_177_001;
// Long enough for another node's heavy migration; a stuck one fails our start.
const LOCK_WAIT_MS = 120_000;

export interface MigrateOptions {
  readonly url: string;
  /** The folder of migrations; tests set another than the package's own. */
  readonly folder?: string;
}

/**
 * Applies the missing migrations and returns the names of those that this call applied, oldest first.
 * A connection of its own holds the lock: it ends with this process, however that dies, and the next node continues.
 */
export const migrate = async ({ url, folder = migrationsFolder() }: MigrateOptions): Promise<readonly string[]> => {
  const guard = new pg.Client({ connectionString: url, application_name: "mooring migrate", connectionTimeoutMillis: 10_000 });
  // Without a listener a lost guard would end the process; the engine's own statements report the failure.
  guard.on("error", () => undefined);
  await guard.connect();
  try {
    // A transaction holds the lock: a pooler may give each transaction another session, and a session lock would stay behind.
    await guard.query(`begin;set local lock_timeout=${LOCK_WAIT_MS};set local idle_in_transaction_session_timeout=0`);
    await guard.query("select pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    const migrationsList = await readMigrations(folder);
    const applied = await withSchemaEngine(url, async (engine) => {
      await settleUnfinished(engine, guard, migrationsList);
      return (await engine.applyMigrations({ migrationsList, filters: EVERYTHING })).appliedMigrationNames;
    });
    // Ends the transaction of the lock, so that each table below gets one of its own.
    await guard.query("commit");
    await watchTables(guard);
    return applied;
  } finally {
    await guard.end();
  }
};

// A migration that was begun and never reported: it failed, or its node was killed. Each script is one transaction that also leaves its scriptFingerprint,
// so the database knows whether it was committed. Prisma alone could not tell, and would refuse every later start until a person decides.
const settleUnfinished = async (engine: SchemaEngine, guard: pg.Client, migrationsList: MigrationList): Promise<void> => {
  const { rows: tables } = await guard.query<{ note: string | null }>(
    "select obj_description(oid) as note from pg_class where oid = to_regclass('_prisma_migrations')",
  );
  const [table] = tables;
  if (table === undefined) return;
  const text = "select distinct migration_name as name from _prisma_migrations where finished_at is null and rolled_back_at is null";
  const { rows } = await guard.query<{ name: string }>(text);
  for (const { name: migrationName } of rows) {
    const script = migrationsList.migrationDirectories.find(({ path }) => path === migrationName)?.migrationFile.content;
    if (script?.tag === "ok" && scriptFingerprint(script.value) === table.note) await engine.markMigrationApplied({ migrationName, migrationsList });
    else await engine.markMigrationRolledBack({ migrationName });
  }
};

/**
 * The SQL that would bring a migrated database to the schema; undefined when they agree.
 * It reads the database, so an index, a default or a predicate that somebody changed by hand shows too.
 * A Prisma schema cannot express CHECK constraints and storage settings, so those do not show.
 */
export const difference = async ({ url, schema = schemaFolder() }: { readonly url: string; readonly schema?: string }): Promise<string | undefined> => {
  const { files } = await readSchema(schema);
  const answer = await withSchemaEngine(url, (engine) =>
    engine.diff({
      from: { tag: "schemaDatasource", files, configDir: schema },
      to: { tag: "schemaDatamodel", files },
      script: true,
      exitCode: true,
      filters: EVERYTHING,
    }),
  );
  return answer.exitCode === 0 ? undefined : (answer.stdout ?? "unnamed difference");
};
