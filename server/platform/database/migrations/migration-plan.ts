// What a start of this build would do to the database: the missing migrations, and for each statement on a table that exists its lock, who waits for it, and
// how long it may take on a table of this size. It changes nothing.
import type pg from "pg";
import { statementsOf } from "./migration-scripts.ts";
import { migrationsFolder, readMigrations } from "./schema-engine.ts";
import { appliedMigrations } from "./schema-guard.ts";

export interface PlannedStatement {
  readonly migration: string;
  /** Its first line. */
  readonly statement: string;
  readonly table: string;
  readonly lock: string;
  /** What waits while the lock is held. */
  readonly waits: "nothing" | "schema changes" | "writes" | "reads and writes";
  readonly rows: number;
  readonly bytes: number;
  /** A guess from the table's size; 0 for what reads no rows. */
  readonly seconds: number;
}

export interface MigrationPlan {
  readonly missing: readonly string[];
  readonly statements: readonly PlannedStatement[];
}

interface Form {
  readonly pattern: RegExp;
  readonly lock: string;
  readonly waits: PlannedStatement["waits"];
  /** How many bytes of the table it passes in a second. Null: it touches no rows. */
  readonly pace: number | null;
}

const READ = 200_000_000;
const BUILT = 30_000_000;
const WRITTEN = 10_000_000;
const TABLE = String.raw`(?:only\s+)?(?:if exists\s+)?"?(?<table>\w+)"?`;
const form = (pattern: string, lock: string, waits: Form["waits"], pace: number | null): Form => ({ pattern: new RegExp(pattern, "i"), lock, waits, pace });
const altered = (what: string): string => String.raw`^alter\s+table\s+${TABLE}[\s\S]*\b${what}`;
/** The first that fits counts. */
const FORMS: readonly Form[] = [
  form(String.raw`^create\s+(?:unique\s+)?index\s+concurrently[\s\S]*?\bon\s+${TABLE}`, "SHARE UPDATE EXCLUSIVE", "schema changes", BUILT),
  form(String.raw`^create\s+(?:unique\s+)?index[\s\S]*?\bon\s+${TABLE}`, "SHARE", "writes", BUILT),
  form(altered(String.raw`validate\s+constraint`), "SHARE UPDATE EXCLUSIVE", "schema changes", READ),
  form(altered(String.raw`alter\s+(?:column\s+)?"?\w+"?\s+(?:set\s+data\s+)?type\b`), "ACCESS EXCLUSIVE", "reads and writes", BUILT),
  form(altered(String.raw`set\s+not\s+null`), "ACCESS EXCLUSIVE", "reads and writes", READ),
  form(altered(String.raw`add\s+constraint(?![\s\S]*\bnot\s+valid)`), "ACCESS EXCLUSIVE", "reads and writes", READ),
  form(String.raw`^alter\s+table\s+${TABLE}`, "ACCESS EXCLUSIVE", "reads and writes", null),
  form(String.raw`^(?:drop|truncate)\s+(?:table\s+)?${TABLE}`, "ACCESS EXCLUSIVE", "reads and writes", null),
  form(String.raw`^create\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger[\s\S]*?\bon\s+${TABLE}`, "SHARE ROW EXCLUSIVE", "writes", null),
  form(String.raw`^(?:update|delete\s+from)\s+${TABLE}`, "ROW EXCLUSIVE", "nothing", WRITTEN),
];
const CREATED = /^create\s+(?:unlogged\s+)?table\s+(?:if not exists\s+)?"?(\w+)"?/i;

interface Size {
  readonly rows: number;
  readonly bytes: number;
}
const sizesOf = async (sql: Pick<pg.Pool, "query">): Promise<ReadonlyMap<string, Size>> => {
  const { rows } = await sql.query<{ name: string; rows: number; bytes: number }>(
    `select relname as name, greatest(reltuples, 0)::float8 as rows, pg_table_size(oid)::float8 as bytes
       from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace`,
  );
  return new Map(rows.map(({ name, rows: count, bytes }) => [name, { rows: Math.round(count), bytes }]));
};

export const planMigrations = async (sql: Pick<pg.Pool, "query">, folder = migrationsFolder()): Promise<MigrationPlan> => {
  const [applied, sizes, { migrationDirectories }] = await Promise.all([appliedMigrations(sql), sizesOf(sql), readMigrations(folder)]);
  const missing = migrationDirectories.filter(({ path }) => !applied.includes(path));
  const statements: PlannedStatement[] = [];
  for (const { path: migration, migrationFile } of missing) {
    const { content } = migrationFile;
    if (content.tag === "error") throw new Error(content.value);
    // No form fits the pieces of a function's body.
    for (const statement of statementsOf(content.value)) {
      const found = CREATED.test(statement) ? undefined : FORMS.find(({ pattern }) => pattern.test(statement));
      const table = found?.pattern.exec(statement)?.groups?.["table"] ?? "";
      const size = sizes.get(table);
      if (found === undefined || size === undefined) continue;
      const { lock, waits, pace } = found;
      const [firstLine = ""] = statement.split("\n");
      statements.push({ migration, statement: firstLine, table, lock, waits, ...size, seconds: pace === null ? 0 : Math.ceil(size.bytes / pace) });
    }
  }
  return { missing: missing.map(({ path }) => path), statements };
};

/** For people. */
export const planLines = ({ missing, statements }: MigrationPlan): readonly string[] => {
  if (missing.length === 0) return ["Nothing to do: the schema is this build's."];
  return missing.flatMap((migration) => {
    const parts = statements.filter((statement) => statement.migration === migration);
    const lines = parts.map(
      ({ statement, table, lock, waits, rows, bytes, seconds }) =>
        `  ${statement}\n    ${table}: ${rows} rows, ${Math.ceil(bytes / 1_048_576)} MiB; lock ${lock}, for ${seconds === 0 ? "a moment" : `some ${seconds} s`}; waits for it: ${waits}`,
    );
    return [`${migration}${parts.length === 0 ? ": touches no table that exists" : ""}`, ...lines];
  });
};
