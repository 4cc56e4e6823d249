// Two developer commands for migrations, both on a throw-away database:
// `new NAME` writes the next migration from the schema, `check` fails when schema and migrations disagree.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../server/core/clock.ts";
import { difference, migrate } from "../server/platform/database/migrations/migrate.ts";
import { migrationsFolder } from "../server/platform/database/migrations/schema-engine.ts";
import { openEmbeddedPostgres } from "../server/platform/postgres/embedded-postgres.ts";

const complain = (fields: object, text: string): void => {
  process.stderr.write(`${text} ${JSON.stringify(fields)}\n`);
};

const quiet = (): void => undefined;

const missingSql = async (): Promise<string | undefined> => {
  const dataDir = await mkdtemp(join(tmpdir(), "mooring-migrate-"));
  try {
    const server = await openEmbeddedPostgres({ dataDir, log: { debug: quiet, info: quiet, warn: complain, error: complain }, settings: { fsync: "off" } });
    try {
      await migrate({ clock: systemClock, url: server.url });
      return await difference({ url: server.url });
    } finally {
      await server.close();
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
};

const check = async (): Promise<number> => {
  const sql = await missingSql();
  if (sql === undefined) return 0;
  process.stderr.write(`prisma/schema and prisma/migrations disagree. \`npm run db:migration -- NAME\` would write:\n\n${sql}\n`);
  return 1;
};

const writeNext = async (name: string): Promise<number> => {
  const folder = migrationsFolder();
  await mkdir(folder, { recursive: true });
  // Prisma refuses a folder without this file, which names the dialect.
  await writeFile(join(folder, "migration_lock.toml"), 'provider = "postgresql"\n');
  const sql = (await missingSql()) ?? "-- The schema has not changed; write the SQL by hand.\n";
  const stamp = new Date().toISOString().replaceAll(/[-:T]/g, "").slice(0, 14);
  const file = join(folder, `${stamp}_${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "_")}`, "migration.sql");
  await mkdir(join(file, ".."));
  await writeFile(file, sql);
  process.stdout.write(
    `${file}\nRead it before you commit it: a rename shows as a drop and an add, and you have to write CHECK constraints by hand. test/conventions/migrations.test.ts says what may not lock.\n`,
  );
  return 0;
};

const [chore, name] = process.argv.slice(2);
if (chore === "check") process.exitCode = await check();
else if (chore === "new" && name) process.exitCode = await writeNext(name);
else {
  process.stderr.write("usage: npm run db:check | npm run db:migration -- NAME\n");
  process.exitCode = 2;
}
