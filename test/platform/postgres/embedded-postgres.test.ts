// The embedded database outlives its server and never its last user. test/release/database/embedded-postgres.test.ts kills the processes that opened it.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type EmbeddedPostgres, openEmbeddedPostgres, runningEmbeddedUrl } from "../../../server/platform/postgres/embedded-postgres.ts";
import { isPostmasterOf } from "../../../server/platform/postgres/process-identity.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { withClient } from "../../kit/stores/database.ts";

let dataDir = "";
const opened: EmbeddedPostgres[] = [];
const others: ChildProcess[] = [];

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), `mooring-test-${process.pid}-`));
});
afterEach(async () => {
  for (const other of others.splice(0)) other.kill("SIGKILL");
  // Adopt what a test left running, so that closing stops it.
  if (existsSync(join(dataDir, "cluster", "postmaster.pid"))) await open();
  for (const server of opened.splice(0)) await server.close();
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

const open = async (log = silentLog): Promise<EmbeddedPostgres> => {
  const server = await openEmbeddedPostgres({ dataDir, log });
  opened.push(server);
  return server;
};

const lives = (pid: number): Promise<boolean> => isPostmasterOf(pid, join(dataDir, "cluster"));
const ask = (url: string, text = "select 1 as answer"): Promise<unknown> => withClient(url, async (client) => (await client.query(text)).rows[0]);

describe("a new folder", () => {
  test("everyone who opens a folder shares one server, which stops with its last user and keeps its data", async () => {
    const [first, second] = await Promise.all([open(), open()]);
    expect(second.pid()).toBe(first.pid());
    await ask(first.url, "create table kept (value text)");
    await first.close();
    expect(await ask(second.url)).toEqual({ answer: 1 });
    expect(await runningEmbeddedUrl(dataDir)).toBe(second.url);
    await second.close();
    expect(await lives(second.pid())).toBe(false);
    expect(await runningEmbeddedUrl(dataDir)).toBeUndefined();
    const again = await open();
    expect(again.url).toBe(first.url);
    await ask(again.url, "select value from kept");
  });

  test("the server lets nobody in without the password, and other users of the machine cannot read it", async () => {
    const { url } = await open();
    for (const user of ["mooring", "postgres"]) {
      const stranger = new URL(url);
      stranger.username = user;
      stranger.password = "guessed";
      await expect(ask(stranger.href)).rejects.toThrow(/password authentication failed/);
    }
    for (const file of ["password", "server.json", "postgres.log"]) expect((await stat(join(dataDir, file))).mode & 0o077).toBe(0);
  });

  test("the application connects as an ordinary role", async () => {
    const { url } = await open();
    await expect(ask(url, "copy (select 1) to program 'true'")).rejects.toThrow(/permission denied/);
  });
});

describe("crashes", () => {
  test("a pid file that names another program prevents no start, and that program is left alone", async () => {
    await (await open()).close();
    const stranger = spawn("sleep", ["60"], { stdio: "ignore" });
    others.push(stranger);
    await writeFile(join(dataDir, "cluster", "postmaster.pid"), `${stranger.pid}\n${join(dataDir, "cluster")}\n1\n5432\n\n127.0.0.1\n1 1\nready   \n`);
    const server = await open();
    expect(await ask(server.url)).toEqual({ answer: 1 });
    await server.close();
    expect(stranger.exitCode).toBeNull();
  });

  test("after the server is killed, it is restarted at the same address and the log says so", async () => {
    const told: string[] = [];
    const server = await open({ ...silentLog, error: (_fields, message) => void told.push(message) });
    const before = server.pid();
    process.kill(before, "SIGKILL");
    await eventually(async () => expect(await ask(server.url)).toEqual({ answer: 1 }));
    await eventually(() => expect(server.pid()).not.toBe(before));
    expect(told).toContain("embedded PostgreSQL died; starting it again");
  });
});

test("a user whose session is ended from outside still counts as a user", async () => {
  const [staying, leaving] = [await open(), await open()];
  await asSuperuser((client) => client.query("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null"));
  const seated = "select 1 from pg_stat_activity where application_name = 'mooring embedded user'";
  await eventually(async () => expect((await asSuperuser((client) => client.query(seated))).rowCount).toBe(2));
  await leaving.close();
  expect(await ask(staying.url)).toEqual({ answer: 1 });
});

const asSuperuser = async <T>(run: (client: pg.Client) => Promise<T>): Promise<T> => {
  const url = new URL((await runningEmbeddedUrl(dataDir)) ?? "");
  url.username = "postgres";
  url.password = await readFile(join(dataDir, "password"), "utf8");
  url.pathname = "/postgres";
  return withClient(url.href, run);
};
