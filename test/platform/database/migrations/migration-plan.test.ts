// `cli migrate --plan` says what a start would do to a database, and changes nothing.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { planLines, planMigrations } from "../../../../server/platform/database/migrations/migration-plan.ts";
import { createEmptyDatabase, createTestDatabase } from "../../../kit/stores/database.ts";

let folder: string;
let sql: pg.Pool;
const SCRIPTS: Readonly<Record<string, string>> = {
  "30000101000000_new_table": 'create table "boxes" ("id" text);\ncreate index "boxes_id" on "boxes" ("id");',
  "30000102000000_column": "-- Safe because it has no default.\nalter table devices add column color text;",
  "30000103000000_index": "-- Runs outside of a transaction.\ncreate index concurrently devices_color on devices (color);",
  "30000104000000_checks":
    "alter table devices alter column color set not null;\nalter table devices add constraint c check (color <> '') not valid;\nupdate devices set color = 'red; blue';",
};
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mooring-plan-"));
  for (const [name, script] of Object.entries(SCRIPTS)) {
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, "migration.sql"), script);
  }
  await writeFile(join(folder, "migration_lock.toml"), "");
  sql = new pg.Pool({ connectionString: await createTestDatabase(), max: 2 });
});
afterAll(async () => {
  await sql.end();
  await rm(folder, { recursive: true, force: true });
});

test("each missing migration has its statements on tables that exist, with lock and size", async () => {
  const { missing, statements } = await planMigrations(sql, folder);
  expect(missing).toEqual(Object.keys(SCRIPTS));
  expect(statements.map(({ migration, table, lock, waits, seconds }) => [migration.slice(15), table, lock, waits, seconds > 0])).toEqual([
    ["column", "devices", "ACCESS EXCLUSIVE", "reads and writes", false],
    ["index", "devices", "SHARE UPDATE EXCLUSIVE", "schema changes", true],
    ["checks", "devices", "ACCESS EXCLUSIVE", "reads and writes", true],
    ["checks", "devices", "ACCESS EXCLUSIVE", "reads and writes", false],
    ["checks", "devices", "ROW EXCLUSIVE", "nothing", true],
  ]);
  const lines = planLines({ missing, statements });
  expect(lines[0]).toBe("30000101000000_new_table: touches no table that exists");
  expect(lines.join("\n")).toMatch(
    / {2}create index concurrently devices_color on devices \(color\)\n {4}devices: \d+ rows, \d+ MiB; lock SHARE UPDATE EXCLUSIVE, for some 1 s; waits for it: schema changes/,
  );
  expect((await sql.query("select to_regclass('boxes') as made")).rows).toEqual([{ made: null }]);
});

test("a migrated database has nothing to do, and an empty one everything, on no table that exists", async () => {
  expect(planLines(await planMigrations(sql))).toEqual(["Nothing to do: the schema is this build's."]);
  const empty = new pg.Pool({ connectionString: await createEmptyDatabase(), max: 1 });
  const { missing, statements } = await planMigrations(empty);
  await empty.end();
  expect([missing.length > 50, statements]).toEqual([true, []]);
});
