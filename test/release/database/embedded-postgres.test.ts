// The embedded database survives the death of the process that opened it, which may run in another container. What one process sees of it is the subject of
// test/platform/postgres/embedded-postgres.test.ts.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type EmbeddedPostgres, openEmbeddedPostgres } from "../../../server/platform/postgres/embedded-postgres.ts";
import { isPostmasterOf } from "../../../server/platform/postgres/process-identity.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { inAnotherContainer } from "../../kit/net/pid-namespace.ts";
import { withClient } from "../../kit/stores/database.ts";

let dataDir = "";
const opened: EmbeddedPostgres[] = [];
const owners: ChildProcess[] = [];

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), `mooring-test-${process.pid}-`));
});
afterEach(async () => {
  for (const owner of owners.splice(0)) owner.kill("SIGKILL");
  // Adopt what a test left running, so that closing stops it.
  if (existsSync(join(dataDir, "cluster", "postmaster.pid"))) await open();
  for (const server of opened.splice(0)) await server.close();
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

const open = async (): Promise<EmbeddedPostgres> => {
  const server = await openEmbeddedPostgres({ dataDir, log: silentLog });
  opened.push(server);
  return server;
};

const ownerOf = (folder: string): readonly [string, readonly string[]] => [process.execPath, ["--import", "tsx", "test/kit/stores/embedded-owner.ts", folder]];

const openElsewhere = async ([command, words] = ownerOf(dataDir)): Promise<{ process: ChildProcess; pid: number; url: string }> => {
  const child = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"] });
  owners.push(child);
  const [line] = await once(child.stdout, "data");
  const [pid = "", url = ""] = String(line).trim().split(" ");
  return { process: child, pid: Number(pid), url };
};

const killHard = async (child: ChildProcess): Promise<void> => {
  child.kill("SIGKILL");
  await once(child, "exit");
};

const lives = (pid: number): Promise<boolean> => isPostmasterOf(pid, join(dataDir, "cluster"));
const dead = (pid: number): Promise<void> => eventually(async () => expect(await lives(pid)).toBe(false));
const ask = (url: string, text = "select 1 as answer"): Promise<unknown> => withClient(url, async (client) => (await client.query(text)).rows[0]);

describe("another container on the same folder", () => {
  test("is refused while the server of the first one runs, harms nothing, and takes over once that has ended", async () => {
    const first = await openElsewhere(inAnotherContainer(...ownerOf(dataDir)));
    await ask(first.url, "create table shared (value text)");
    await expect(open()).rejects.toThrow(/uses .*cluster.* in another container/);
    await ask(first.url, "insert into shared values ('kept')");
    await killHard(first.process);
    expect(await ask((await open()).url, "select value from shared")).toEqual({ value: "kept" });
  }, 60_000);
});

describe("crashes", () => {
  test("after its owner is killed, a server is adopted by the next user and stops with that one", async () => {
    const orphan = await openElsewhere();
    await killHard(orphan.process);
    const adopted = await open();
    expect(adopted.pid()).toBe(orphan.pid);
    expect(adopted.url).toBe(orphan.url);
    await adopted.close();
    expect(await lives(orphan.pid)).toBe(false);
  });

  test("after owner and server are killed, the stale pid file does not prevent a new start", async () => {
    const lost = await openElsewhere();
    await killHard(lost.process);
    process.kill(lost.pid, "SIGKILL");
    await dead(lost.pid);
    const fresh = await open();
    expect(fresh.pid()).not.toBe(lost.pid);
    expect(await ask(fresh.url)).toEqual({ answer: 1 });
  });
});
