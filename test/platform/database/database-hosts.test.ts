// Several servers in DATABASE_URL: sessions lead to the one that takes writes, and follow when another one does.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { urlsOf } from "../../../server/platform/database/database-urls.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { migrate } from "../../../server/platform/database/migrations/migrate.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { createPostgres, type Postgres } from "../../chaos/rig/postgres.ts";
import { eventually } from "../../kit/checks/eventually.ts";

describe("a URL", () => {
  test.each([
    ["postgres://u:p%40@h/db", ["postgres://u:p%40@h/db"]],
    ["postgresql://u@h1:5433,h2/db?sslmode=require", ["postgresql://u@h1:5433/db?sslmode=require", "postgresql://u@h2/db?sslmode=require"]],
    ["postgres://h1,[::1]:1/db?target_session_attrs=read-write&load_balance_hosts=disable", ["postgres://h1/db", "postgres://[::1]:1/db"]],
    ["postgres:///db?host=/run/postgresql", ["postgres:///db?host=/run/postgresql"]],
  ])("%s names its servers", (url, urls) => expect(urlsOf(url)).toEqual(urls));

  test.each([
    ["mysql://h/db", "must be a URL that begins with postgres://"],
    ["postgres://h1,,h2/db", "names a server that is none: nothing"],
    ["postgres://h1:5432,h2:70000/db", "names a server that is none: h2:70000"],
    ["postgres://h1,h2/db?target_session_attrs=standby", "target_session_attrs must be read-write or primary: the gateway writes"],
  ])("%s is refused", (url, why) => expect(() => urlsOf(url)).toThrow(why));
});

describe("two servers", () => {
  let folder: string;
  let servers: readonly Postgres[];
  let db: Db | null;
  const opened = (): Db => db ?? expect.fail("no database is open");

  const on = async (server: Postgres, ...statements: readonly string[]): Promise<void> => {
    const client = new pg.Client(server.url(server.port));
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  };
  /** As a server is that somebody demotes: its sessions stay, and writes fail. */
  const setWriter = async (writer: number): Promise<void> => {
    for (const [index, server] of servers.entries())
      await on(server, `alter system set default_transaction_read_only = ${index === writer ? "off" : "on"}`, "select pg_reload_conf()");
    for (const [index, server] of servers.entries())
      await eventually(() => on(server, `do $$ begin assert current_setting('default_transaction_read_only') = '${index === writer ? "off" : "on"}'; end $$`));
  };
  const bothOf = (first: Postgres | undefined, second: Postgres | undefined): string =>
    `postgresql://rig@127.0.0.1:${first?.port},127.0.0.1:${second?.port}/postgres?target_session_attrs=read-write`;
  const open = async (url: string): Promise<Db> => openDb({ clock: systemClock, url, poolSize: 4, log: silentLog });
  /** On which server a statement ends. */
  const read = async (): Promise<number> => {
    const rows = await opened().query<{ port: number }>("select current_setting('port')::int as port");
    return servers.findIndex(({ port }) => port === rows[0]?.port);
  };
  const write = async (): Promise<number> => {
    const rows = await opened().tx((tx) => tx.query<{ port: number }>("insert into moved (at) values (now()) returning current_setting('port')::int as port"));
    return servers.findIndex(({ port }) => port === rows[0]?.port);
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mooring-hosts-"));
    servers = await Promise.all(
      ["a", "b"].map(async (name) => {
        await mkdir(join(folder, name));
        return createPostgres({ folder: join(folder, name), settings: { fsync: "off" } });
      }),
    );
    for (const server of servers) {
      await server.start();
      await on(server, "create table moved (at timestamptz)");
    }
  }, 60_000);
  afterAll(async () => {
    for (const server of servers) await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(() => setWriter(1));
  afterEach(async () => {
    await db?.close();
    db = null;
  });

  test("sessions lead to the writer, wherever it stands in the list", async () => {
    for (const [first, second] of [servers, servers.toReversed()]) {
      db = await open(bothOf(first, second));
      expect(await write()).toBe(1);
      expect((await opened().condition()).status).toBe("healthy");
      await db.close();
      db = null;
    }
  });

  test("they follow when the writer is demoted while its sessions stay, also to those that only read", async () => {
    db = await open(bothOf(servers[0], servers[1]));
    expect(await write()).toBe(1);
    await setWriter(0);
    await eventually(async () => expect(await write()).toBe(0));
    expect(await read()).toBe(0);
    // A failed write counts for some seconds.
    await eventually(async () => expect((await opened().condition()).status).toBe("healthy"));
  });

  test("the probe alone finds the new writer on a node that only reads", async () => {
    db = await open(bothOf(servers[0], servers[1]));
    await setWriter(0);
    await eventually(async () => {
      expect((await opened().condition()).status).toBe("healthy");
      expect(await read()).toBe(0);
    });
  });

  test("they follow when the writer dies, and while nobody takes writes calls fail and say so", async () => {
    db = await open(bothOf(servers[0], servers[1]));
    expect(await write()).toBe(1);
    await servers[1]?.kill();
    await expect(eventually(write, { boundMs: 3_000 })).rejects.toThrow();
    await expect(opened().condition()).rejects.toThrow();
    await on(servers[0] as Postgres, "alter system set default_transaction_read_only = off", "select pg_reload_conf()");
    await eventually(async () => expect(await write()).toBe(0));
    await servers[1]?.start();
  });

  test("a migration goes to the writer", { timeout: 60_000 }, async () => {
    for (const server of servers) await on(server, "set default_transaction_read_only = off", "create database migrated");
    await migrate({ url: bothOf(servers[0], servers[1]).replace("/postgres?", "/migrated?"), clock: systemClock });
    const tables = async (server: Postgres | undefined): Promise<number> => {
      const client = new pg.Client(server?.url(server.port).replace("/postgres", "/migrated"));
      await client.connect();
      const { rows } = await client.query("select 1 from pg_tables where tablename = 'devices'");
      await client.end();
      return rows.length;
    };
    expect([await tables(servers[0]), await tables(servers[1])]).toEqual([0, 1]);
  });
});
