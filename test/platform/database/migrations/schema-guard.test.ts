// A build serves its own schema and those that releases around it leave, and touches no other.

import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../../server/core/clock.ts";
import { migrate } from "../../../../server/platform/database/migrations/migrate.ts";
import { migrationsFolder, readMigrations } from "../../../../server/platform/database/migrations/schema-engine.ts";
import { SERVES_FROM } from "../../../../server/platform/database/migrations/schema-guard.ts";
import { createEmptyDatabase, createTestDatabase, withClient } from "../../../kit/stores/database.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mooring-schema-guard-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A build with one migration more. */
const laterBuild = async (name: string): Promise<string> => {
  const copy = join(folder, name);
  await cp(migrationsFolder(), copy, { recursive: true });
  await mkdir(join(copy, name));
  await writeFile(join(copy, name, "migration.sql"), "create table later_table (a int)");
  return copy;
};
const newestOwn = async (): Promise<string> => (await readMigrations(migrationsFolder())).migrationDirectories.at(-1)?.path ?? "";

test("a build serves the schema of a later release that lets it, and checks the master key there, too", async () => {
  const url = await createTestDatabase();
  const later = await laterBuild("99990101000000_next_release");
  expect(await migrate({ clock: systemClock, url, folder: later, servesFrom: await newestOwn() })).toEqual(["99990101000000_next_release"]);
  let checks = 0;
  const check = async (): Promise<void> => {
    checks += 1;
  };
  expect(await migrate({ clock: systemClock, url, check })).toEqual([]);
  expect(checks).toBe(1);
  // The older build changes nothing that the later one has stated.
  const stated = await withClient(url, async (client) => (await client.query("select serves_from from installation")).rows);
  expect(stated).toEqual([{ serves_from: await newestOwn() }]);
});

test("a build refuses the schema of a release that is too new, and says which build it needs", async () => {
  const url = await createTestDatabase();
  const later = await laterBuild("99990202000000_two_releases_on");
  await migrate({ clock: systemClock, url, folder: later, servesFrom: "99990202000000_two_releases_on" });
  await expect(migrate({ clock: systemClock, url })).rejects.toThrow(
    /a newer release has migrated the database.*Start a build with 99990202000000_two_releases_on or later, or restore the backup/,
  );
});

test("a build refuses a database with a migration between its own that it does not know", async () => {
  const url = await createTestDatabase();
  await migrate({ clock: systemClock, url, folder: await laterBuild("20260101000000_branch") });
  await expect(migrate({ clock: systemClock, url })).rejects.toThrow(/20260101000000_branch.*belongs to another build/);
});

test("a build refuses a database of another application, and leaves it alone", async () => {
  const url = await createEmptyDatabase();
  await withClient(url, (client) => client.query("create table invoices (a int)"));
  await expect(migrate({ clock: systemClock, url })).rejects.toThrow(/belongs to another application: it has tables, such as invoices/);
  const tables = await withClient(url, async (client) => (await client.query("select relname from pg_class where relnamespace = 'public'::regnamespace")).rows);
  expect(tables).toEqual([{ relname: "invoices" }]);
});

test("the oldest build that the schema serves is one of this build's migrations", async () => {
  const own = (await readMigrations(migrationsFolder())).migrationDirectories.map(({ path }) => path);
  expect(own).toContain(SERVES_FROM);
});
