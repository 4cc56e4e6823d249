// A migration neither stops the service while it waits for its locks, nor hangs without saying who blocks it.

import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../../server/core/clock.ts";
import { createOneBulkhead } from "../../../../server/platform/database/bulkheads.ts";
import { createDatabaseHosts } from "../../../../server/platform/database/database-hosts.ts";
import { type MigrateOptions, migrate } from "../../../../server/platform/database/migrations/migrate.ts";
import { migrationsFolder } from "../../../../server/platform/database/migrations/schema-engine.ts";
import { openPool } from "../../../../server/platform/database/pool.ts";
import { silentLog } from "../../../../server/platform/telemetry/log.ts";
import type { Waits } from "../../../../server/platform/waits.ts";
import { eventually } from "../../../kit/checks/eventually.ts";
import { createEmptyDatabase, createTestDatabase, withClient } from "../../../kit/stores/database.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mooring-migration-locks-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const copyWith = async (name: string, sql: string): Promise<string> => {
  const copy = join(folder, name);
  await cp(migrationsFolder(), copy, { recursive: true });
  await mkdir(join(copy, `99990101000000_${name}`));
  await writeFile(join(copy, `99990101000000_${name}`, "migration.sql"), sql);
  return copy;
};

/** Notes each reason for a wait, without the time that a line takes. */
const notingWaits = (): Waits & { readonly reasons: string[] } => {
  const reasons: string[] = [];
  return { reasons, during: ({ on }, work) => work((reason) => void reasons.push(`${on}: ${reason}`)) };
};

/** As a dump does: a transaction that has read the table and stays open. */
const holdTable = async (url: string, table: string, hold: () => Promise<void>, statement = `select count(*) from ${table}`): Promise<void> => {
  const dump = new pg.Client({ connectionString: url, application_name: "pg_dump" });
  await dump.connect();
  try {
    await dump.query("begin isolation level repeatable read");
    await dump.query(statement);
    await hold();
    await dump.query("commit");
  } finally {
    await dump.end();
  }
};

/** Writes beside a migration that waits for a dump, until it has waited for `rounds` looks; returns how many writes failed and what the migration said. */
const besideDump = async (name: string, options: Partial<MigrateOptions> & { readonly writes: number }) => {
  const url = await createTestDatabase();
  const copy = await copyWith(name, `alter table tenant_settings_probe add column ${name} text`);
  await withClient(url, (client) => client.query("create table tenant_settings_probe (a int)"));
  const pool = openPool({
    hosts: createDatabaseHosts({ url, applicationName: "test", elapsed: systemClock.elapsed }),
    size: 4,
    bulkheads: createOneBulkhead(4),
    listMs: 3_000,
    applicationName: "writer",
    log: silentLog,
    onFailure: () => undefined,
  });
  const waits = notingWaits();
  let migrated: Promise<readonly string[]> = Promise.resolve([]);
  let failed = 0;
  try {
    await holdTable(url, "tenant_settings_probe", async () => {
      migrated = migrate({ clock: systemClock, url, folder: copy, waits, ...options });
      await eventually(() => expect(waits.reasons.join()).toContain("pg_dump"));
      for (let write = 0; write < options.writes; write += 1) await pool.query("insert into tenant_settings_probe values (1)").catch(() => (failed += 1));
    });
    return { applied: await migrated, failed, reasons: waits.reasons };
  } finally {
    await pool.end();
  }
};

describe.concurrent("beside a dump", () => {
  test("no write waits for longer than it may, the migration names the dump, and goes on after it", async () => {
    const { applied, failed, reasons } = await besideDump("beside", { writes: 1_000 });
    expect({ applied, failed }).toEqual({ applied: ["99990101000000_beside"], failed: 0 });
    expect(reasons.at(-1)).toMatch(/^the locks of migration 99990101000000_beside: blocked by session \d+ \(pg_dump, /);
  });

  test("without a limit of its own a migration would fail them, so the test above can", async () => {
    const { failed } = await besideDump("unlimited", { writes: 2, lockTimeoutMs: 0 });
    expect(failed).toBe(2);
  });
});

describe.concurrent("another migration", () => {
  test("is named by its session until it ends", async () => {
    const url = await createTestDatabase();
    const waits = notingWaits();
    await withClient(url, async (other) => {
      await other.query("begin; select pg_advisory_xact_lock(7177001)");
      const migrated = migrate({ clock: systemClock, url, waits });
      await eventually(() => expect(waits.reasons.join()).toMatch(/the migration lock: held by session \d+ \(unnamed, .*idle in transaction/));
      await other.query("commit");
      expect(await migrated).toEqual([]);
    });
  });

  test("that an earlier build left behind in a pooler is named with what ends it", async () => {
    const url = await createTestDatabase();
    const waits = notingWaits();
    await withClient(url, async (stranded) => {
      await stranded.query("select pg_advisory_lock(72707369)");
      const migrated = migrate({ clock: systemClock, url, waits });
      await eventually(() => expect(waits.reasons.join()).toMatch(/select pg_terminate_backend\(\d+\)/));
      const [, pid] = /pg_terminate_backend\((\d+)\)/.exec(waits.reasons.join()) ?? [];
      await withClient(url, (client) => client.query("select pg_terminate_backend($1)", [pid]));
      expect(await migrated).toEqual([]);
    });
  });
});

describe.concurrent("a script outside of a transaction", () => {
  const CONCURRENT = "-- Runs outside of a transaction.\n-- Finds rows by b; not before.\ncreate index concurrently probe_b on probe (b);\n";
  const indexes = (url: string) =>
    withClient(
      url,
      async (client) =>
        (await client.query("select indexrelid::regclass::text as name, indisvalid as valid from pg_index where indrelid = 'probe'::regclass order by 1")).rows,
    );
  const withProbe = async (): Promise<string> => {
    const url = await createTestDatabase();
    await withClient(url, (client) => client.query("create table probe (a int, b int); insert into probe select n, n from generate_series(1, 1000) n"));
    return url;
  };

  test("builds an index while a transaction that has written the table stays open, and that one goes on writing", async () => {
    const url = await withProbe();
    const copy = await copyWith("concurrent", CONCURRENT);
    const waits = notingWaits();
    let migrated: Promise<readonly string[]> = Promise.resolve([]);
    const hold = async (): Promise<void> => {
      migrated = migrate({ clock: systemClock, url, folder: copy, waits });
      await eventually(() => expect(waits.reasons.join()).toContain("pg_dump"));
      await withClient(url, (client) => client.query("set lock_timeout = 1000; insert into probe values (1001, 1001)"));
    };
    // The build goes on to wait for old snapshots after it has been observed: the observer must not hold one.
    await holdTable(url, "probe", hold, "insert into probe values (1002, 1002)");
    expect(await migrated).toEqual(["99990101000000_concurrent"]);
    expect(await indexes(url)).toEqual([{ name: "probe_b", valid: true }]);
  });

  test("replaces an index that an interrupted build has left", async () => {
    const url = await withProbe();
    const unique = CONCURRENT.replace("create index", "create unique index");
    const copy = await copyWith("interrupted", unique);
    await withClient(url, (client) => client.query("insert into probe values (0, 1)"));
    await expect(migrate({ clock: systemClock, url, folder: copy })).rejects.toThrow(/Unique constraint failed/);
    expect(await indexes(url)).toEqual([{ name: "probe_b", valid: false }]);
    await withClient(url, (client) => client.query("delete from probe where a = 0"));
    expect(await migrate({ clock: systemClock, url, folder: copy })).toEqual(["99990101000000_interrupted"]);
    expect(await indexes(url)).toEqual([{ name: "probe_b", valid: true }]);
  });

  test("keeps an index that is there already, and is not run again after a kill at its end", async () => {
    const url = await withProbe();
    const copy = await copyWith("again", CONCURRENT);
    await withClient(url, (client) => client.query("create index probe_b on probe (b)"));
    expect(await migrate({ clock: systemClock, url, folder: copy })).toEqual(["99990101000000_again"]);
    await withClient(url, (client) =>
      client.query("update _prisma_migrations set finished_at = null, applied_steps_count = 0 where migration_name like '%again'"),
    );
    expect(await migrate({ clock: systemClock, url, folder: copy })).toEqual([]);
  });
});

describe.concurrent("a database that is away", () => {
  test("is waited for, and its reason is named", async () => {
    const url = await createEmptyDatabase();
    const name = new URL(url).pathname.slice(1);
    const admin = Object.assign(new URL(url), { pathname: "/postgres" }).href;
    const waits = notingWaits();
    const allow = (allowed: boolean) => withClient(admin, (client) => client.query(`alter database ${name} allow_connections ${allowed}`));
    await allow(false);
    const migrated = migrate({ clock: systemClock, url, waits, connectWithinMs: 600_000 });
    await eventually(() => expect(waits.reasons.join()).toMatch(/the database: .*not currently accepting connections/));
    await allow(true);
    expect(await migrated).not.toEqual([]);
  });

  test("is waited for while it only reads, as a standby does behind a proxy that has not looked yet", async () => {
    const url = await createEmptyDatabase();
    const name = new URL(url).pathname.slice(1);
    const waits = notingWaits();
    await withClient(url, (client) => client.query(`alter database ${name} set default_transaction_read_only = on`));
    await expect(migrate({ clock: systemClock, url })).rejects.toThrow("the server only reads");
    const migrated = migrate({ clock: systemClock, url, waits, connectWithinMs: 600_000 });
    await eventually(() => expect(waits.reasons).toContain("the database: the server only reads"));
    await withClient(url, (client) => client.query(`begin read write; alter database ${name} reset default_transaction_read_only; commit`));
    expect(await migrated).not.toEqual([]);
  });

  test("is not waited for when it refuses the password", async () => {
    const url = Object.assign(new URL(await createEmptyDatabase()), { password: "wrong" }).href;
    await expect(migrate({ clock: systemClock, url, connectWithinMs: 600_000 })).rejects.toMatchObject({ code: "28P01" });
  });
});
