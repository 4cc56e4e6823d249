// Migrations are applied once, wholly or not at all, and say the same as the schema.
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { difference, migrate } from "../../server/platform/migrate.ts";
import { migrationsFolder, schemaFolder } from "../../server/platform/schema-engine.ts";
import { createEmptyDatabase, createTestDatabase, withClient } from "../kit/database.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mooring-migrations-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const names = async (): Promise<string[]> => (await readdir(migrationsFolder())).filter((name) => name !== "migration_lock.toml").sort();

const copyWith = async (name: string, sql: string): Promise<string> => {
  const copy = join(folder, name);
  await cp(migrationsFolder(), copy, { recursive: true });
  await mkdir(join(copy, `99990101000000_${name}`));
  await writeFile(join(copy, `99990101000000_${name}`, "migration.sql"), sql);
  return copy;
};

describe("migrate", () => {
  test("run by three nodes at once, applies each migration once", async () => {
    const url = await createEmptyDatabase();
    const applied = await Promise.all([migrate({ url }), migrate({ url }), migrate({ url })]);
    expect(applied.flat()).toEqual(await names());
    const rows = await withClient(url, async (client) => (await client.query("select migration_name, finished_at from _prisma_migrations")).rows);
    expect(rows).toEqual((await names()).map((name) => ({ migration_name: name, finished_at: expect.any(Date) })));
  });

  test("leaves nothing of a migration that fails, and tells why", async () => {
    const url = await createTestDatabase();
    const broken = await copyWith("broken", "create table half (a int); select * from nowhere;");
    await expect(migrate({ url, folder: broken })).rejects.toThrow(/nowhere/);
    const found = await withClient(url, async (client) => (await client.query("select to_regclass('half') as half")).rows);
    expect(found).toEqual([{ half: null }]);
  });

  test("goes on after a failed migration once its SQL is right", async () => {
    const url = await createTestDatabase();
    const copy = await copyWith("corrected", "select * from nowhere");
    await expect(migrate({ url, folder: copy })).rejects.toThrow(/nowhere/);
    await writeFile(join(copy, "99990101000000_corrected", "migration.sql"), "create table corrected (a int)");
    expect(await migrate({ url, folder: copy })).toEqual(["99990101000000_corrected"]);
  });

  test("knows after a kill between the commit and the report that the migration is in", async () => {
    const url = await createTestDatabase();
    const copy = await copyWith("killed", "create table once (a int)");
    await migrate({ url, folder: copy });
    await withClient(url, (client) =>
      client.query("update _prisma_migrations set finished_at = null, applied_steps_count = 0 where migration_name like '%killed'"),
    );
    expect(await migrate({ url, folder: copy })).toEqual([]);
    expect(await migrate({ url, folder: copy })).toEqual([]);
  });

  test("runs SQL whose strings and functions hold semicolons", async () => {
    const url = await createTestDatabase();
    const sql = "create function answer() returns text language plpgsql as $$ begin return 'a;b'; end $$; -- done; really\n";
    await migrate({ url, folder: await copyWith("semicolons", sql) });
    expect(await withClient(url, async (client) => (await client.query("select answer()")).rows)).toEqual([{ answer: "a;b" }]);
  });
});

describe("the check of schema and migrations", () => {
  test("is quiet about what is committed", async () => {
    expect(await difference({ url: await createTestDatabase() })).toBeUndefined();
  });

  test("turns red when the schema says more than the migrations", async () => {
    const schema = join(folder, "schema");
    await cp(schemaFolder(), schema, { recursive: true });
    const file = join(schema, "devices.prisma");
    await writeFile(file, (await readFile(file, "utf8")).replace("model Device {", "model Device {\n  colour String?"));
    expect(await difference({ url: await createTestDatabase(), schema })).toContain('ADD COLUMN     "colour" TEXT');
  });

  test.each([
    ["is missing", "drop index devices_living_tenant_fingerprint_key"],
    [
      "has another predicate",
      "drop index devices_living_tenant_fingerprint_key; create unique index devices_living_tenant_fingerprint_key on devices(tenant_id, fingerprint) where deleted_at is not null",
    ],
  ])("turns red when a partial index %s", async (_what, sql) => {
    const url = await createTestDatabase();
    await withClient(url, (client) => client.query(sql));
    expect(await difference({ url })).toContain("devices_living_tenant_fingerprint_key");
  });
});
