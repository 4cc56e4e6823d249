// Migrates a database to the newest version, safely when several nodes start at once.
import type { MigrationList, SchemaEngine } from "@prisma/schema-engine-wasm";
import type pg from "pg";
import type { Clock } from "../../../core/clock.ts";
import { placeOf, silentWaits, type Waits } from "../../waits.ts";
import { watchTables } from "../audited-tables.ts";
import { createDatabaseHosts } from "../database-hosts.ts";
import { LOCK_TIMEOUT_MS, type LockDeps, untilLocked } from "./lock-waits.ts";
import { withMigrationLock } from "./migration-lock.ts";
import { runScript, scriptFingerprint } from "./migration-scripts.ts";
import {
  EVERYTHING,
  migrationNames,
  migrationsFolder,
  readMigrations,
  readSchema,
  schemaFolder,
  withMigrationPool,
  withSchemaEngine,
} from "./schema-engine.ts";
import { fitSchema, SERVES_FROM, stateServes, unfinishedMigrations } from "./schema-guard.ts";

export interface MigrateOptions {
  readonly url: string;
  /** The folder of migrations; tests set another than the package's own. */
  readonly clock: Pick<Clock, "elapsed">;
  readonly folder?: string;
  readonly waits?: Waits;
  /** How long the database may be away before this fails; by default not at all. */
  readonly connectWithinMs?: number;
  /** How long one attempt of a script waits for a lock; 0 for ever, which a test shows to be wrong. */
  readonly lockTimeoutMs?: number;
  /** The oldest build, by its newest migration, that can serve this schema; tests set another. */
  readonly servesFrom?: string;
  /** Runs under the migration lock, on the migrated database. */
  readonly check?: (sql: pg.Pool) => Promise<void>;
}

/** Applies the missing migrations and returns the names of those that this call applied, oldest first. */
export const migrate = async (options: MigrateOptions): Promise<readonly string[]> => {
  const { clock, url, folder = migrationsFolder(), waits = silentWaits, lockTimeoutMs = LOCK_TIMEOUT_MS } = options;
  const hosts = createDatabaseHosts({ url, applicationName: "mooring migrate", elapsed: clock.elapsed });
  return withMigrationLock({ clock, url, hosts, waits, connectWithinMs: options.connectWithinMs ?? 0 }, (guard) =>
    withMigrationPool(hosts.current(), async (pool) => {
      const locks = { clock, observer: guard, waits, at: placeOf(url), lockTimeoutMs };
      const fit = await fitSchema(pool, await migrationNames(folder));
      const applied = fit === "older" ? await applyMissing(pool, folder, locks) : [];
      if (fit !== "newer")
        await watchTables(pool, (marker, attach) => untilLocked({ on: "the locks of the audited tables", marker }, locks, attach), lockTimeoutMs);
      if (fit === "newer" || (await stateServes(pool, options.servesFrom ?? SERVES_FROM))) await options.check?.(pool);
      return applied;
    }),
  );
};

const applyMissing = async (pool: pg.Pool, folder: string, locks: LockDeps): Promise<readonly string[]> => {
  const migrationsList = await readMigrations(folder);
  const nameOf = (script: string): string =>
    migrationsList.migrationDirectories.find(({ migrationFile: { content } }) => content.tag === "ok" && content.value === script)?.path ?? "unknown";
  return withSchemaEngine(
    pool,
    async (engine) => {
      await settleUnfinished(engine, locks.observer, migrationsList);
      return (await engine.applyMigrations({ migrationsList, filters: EVERYTHING })).appliedMigrationNames;
    },
    (script) => runScript(script, { ...locks, pool, nameOf }),
  );
};

// A migration that was begun and never reported: it failed, or its node was killed. Each script ends by leaving its scriptFingerprint,
// so the database knows whether it is through. Prisma alone could not tell, and would refuse every later start until a person decides.
const settleUnfinished = async (engine: SchemaEngine, guard: pg.Client, migrationsList: MigrationList): Promise<void> => {
  const { rows: tables } = await guard.query<{ note: string | null }>(
    "select obj_description(oid) as note from pg_class where oid = to_regclass('_prisma_migrations')",
  );
  const [table] = tables;
  if (table === undefined) return;
  for (const migrationName of await unfinishedMigrations(guard)) {
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
  const answer = await withMigrationPool(url, (pool) =>
    withSchemaEngine(pool, (engine) =>
      engine.diff({
        from: { tag: "schemaDatasource", files, configDir: schema },
        to: { tag: "schemaDatamodel", files },
        script: true,
        exitCode: true,
        filters: EVERYTHING,
      }),
    ),
  );
  return answer.exitCode === 0 ? undefined : (answer.stdout ?? "unnamed difference");
};
