// Tells at start whether this build and the schema of the database fit: its own, an older one that it migrates, a newer one that it can serve, or a
// foreign one that it must not touch.
import type pg from "pg";
import { ConfigError } from "../../../core/errors.ts";

/**
 * Builds whose newest migration is older than this cannot serve the schema of this build. With each release, set it to the newest migration of the
 * release before, which this one must let go on.
 */
export const SERVES_FROM = "20261128075134_export_links";

type Queryable = Pick<pg.Pool, "query">;

/** `older`: migrations are missing, or one was begun and never reported. `newer`: a later release has migrated the database, and lets this build serve. */
export type Fit = "older" | "same" | "newer";

export const fitSchema = async (sql: Queryable, own: readonly string[]): Promise<Fit> => {
  const applied = await appliedMigrations(sql);
  const known = new Set(own);
  const unknown = applied.filter((name) => !known.has(name));
  const [newest = ""] = own.slice(-1);
  const [first] = unknown;
  const missing = own.filter((name) => !applied.includes(name));
  if (first === undefined) return missing.length > 0 || (await unfinishedMigrations(sql)).length > 0 ? "older" : "same";
  if (first < newest || missing.length > 0)
    throw new ConfigError(
      `the database has a migration that this build does not know (${first}), so it belongs to another build. Start that build, or name another database`,
    );
  const from = await servesFrom(sql);
  if (from !== "" && newest >= from) return "newer";
  throw new ConfigError(
    `a newer release has migrated the database (to ${unknown.at(-1)}); this build ends with ${newest} and cannot serve it. Start a build with ${from === "" ? first : from} or later, or restore the backup from before the upgrade`,
  );
};

/** Refuses the database of another application. */
export const appliedMigrations = async (sql: Queryable): Promise<readonly string[]> => {
  const { rows: tables } = await sql.query<{ known: boolean; foreign: string | null }>(
    `select to_regclass('_prisma_migrations') is not null as known, (
       select min(c.relname) from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
       and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')) as foreign`,
  );
  if (tables[0]?.known !== true) {
    if (tables[0]?.foreign != null)
      throw new ConfigError(
        `the database belongs to another application: it has tables, such as ${tables[0].foreign}, and no migrations. Name an empty database`,
      );
    return [];
  }
  const { rows } = await sql.query<{ name: string }>(
    "select distinct migration_name as name from _prisma_migrations where finished_at is not null and rolled_back_at is null order by 1",
  );
  return rows.map(({ name }) => name);
};

/** Begun and never reported: they failed, or their node was killed. */
export const unfinishedMigrations = async (sql: Queryable): Promise<readonly string[]> => {
  const text = "select distinct migration_name as name from _prisma_migrations where finished_at is null and rolled_back_at is null";
  return (await sql.query<{ name: string }>(text)).rows.map(({ name }) => name);
};

const hasInstallation = async (sql: Queryable): Promise<boolean> => {
  const { rows } = await sql.query<{ known: boolean }>("select to_regclass('installation') is not null as known");
  return rows[0]?.known === true;
};

const servesFrom = async (sql: Queryable): Promise<string> => {
  if (!(await hasInstallation(sql))) return "";
  const { rows } = await sql.query<{ from: string }>("select serves_from as from from installation where id = 1");
  return rows[0]?.from ?? "";
};

/** For the builds that start after this one, older ones too. Migrations of a test may know no such table. */
export const stateServes = async (sql: Queryable, from: string): Promise<boolean> => {
  if (!(await hasInstallation(sql))) return false;
  await sql.query(
    "insert into installation (id, serves_from) values (1, $1) on conflict (id) do update set serves_from = $1 where installation.serves_from is distinct from $1",
    [from],
  );
  return true;
};
