// One PostgreSQL for the whole test run, with a migrated template that every test file clones. It ends with the run, however the run ends.

import { existsSync } from "node:fs";
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { contract, type Group } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { migrate } from "../../../server/platform/database/migrations/migrate.ts";
import { openEmbeddedPostgres } from "../../../server/platform/postgres/embedded-postgres.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { type PostgresServer, startPostgres } from "../stores/debian-postgres.ts";
import { startPgBouncer } from "../stores/pgbouncer.ts";
import { guardRun, makeRunFolder, RUN_PREFIX, runFolders } from "./run-mark.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly databaseUrl: string;
    readonly templateDatabase: string;
    /** The address that the code under test uses for the same server; a pooler may stand between. */
    readonly pooledUrl: string;
    /** Where the workers note the types of the events that they emit, one per line. */
    readonly emittedFile: string;
  }
}

const TEMPLATE = "mooring_template";
// Test databases are thrown away, so nothing needs to reach the disk, and hundreds stand beside each other for seconds, so no daemon needs to vacuum them.
const FORGETFUL = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", autovacuum: "off" };

/** `TEST_POSTGRES=/usr/lib/postgresql/15/bin` runs the tests on that server instead of the embedded one. */
const openServer = (dataDir: string): Promise<PostgresServer> => {
  const binaries = process.env["TEST_POSTGRES"];
  return binaries === undefined
    ? openEmbeddedPostgres({ dataDir, log: silentLog, settings: FORGETFUL })
    : startPostgres(binaries, join(dataDir, "cluster"), FORGETFUL);
};

/** Every durable event is emitted in some test by what causes it; otherwise it is dead, or untested. */
const refuseDeadEvents = async (emittedFile: string): Promise<void> => {
  const emitted = new Set((await readFile(emittedFile, "utf8")).split("\n"));
  const declared = Object.values<Group>(contract).flatMap(({ events }) => Object.values(events));
  const dead = declared.filter(({ type, durable }) => durable && !emitted.has(type)).map(({ type }) => type);
  if (dead.length === 0) return;
  // vitest only reports what a teardown throws, and .ci/run looks for such a line.
  process.exitCode = 1;
  process.stdout.write(`failed: the events: no test causes ${dead.join(", ")}\n`);
  throw new Error(`no test causes these events: ${dead.join(", ")}`);
};

const setUp = async (project: TestProject): Promise<() => Promise<void>> => {
  await sweep();
  const dataDir = await makeRunFolder(guardRun());
  await chmod(dataDir, 0o755);
  const emittedFile = join(dataDir, "emitted");
  const server = await openServer(dataDir);
  const pooler = process.env["TEST_POOLER"] === "pgbouncer" ? await startPgBouncer(server.url) : null;
  const tearDown = async (): Promise<void> => {
    await pooler?.close();
    await server.close();
    try {
      if (process.env["TEST_WHOLE_RUN"] !== undefined) await refuseDeadEvents(emittedFile);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  };
  try {
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    await admin.query(`create database ${TEMPLATE}`);
    await admin.end();
    const template = new URL(server.url);
    template.pathname = `/${TEMPLATE}`;
    await migrate({ clock: systemClock, url: template.href });
    await writeFile(emittedFile, "");
    project.provide("emittedFile", emittedFile);
    project.provide("databaseUrl", server.url);
    project.provide("pooledUrl", pooler?.through(server.url) ?? server.url);
    project.provide("templateDatabase", TEMPLATE);
    return tearDown;
  } catch (error) {
    await tearDown();
    throw error;
  }
};

// Where no guard watches (test/kit/setup/run-guard.mjs), a run that was killed cannot clean up, so the next one does. A folder's name holds the pid of its run.
const sweep = async (): Promise<void> => {
  for (const dataDir of runFolders(RUN_PREFIX)) {
    const owner = Number.parseInt(basename(dataDir).slice(RUN_PREFIX.length), 10);
    if (!Number.isInteger(owner) || lives(owner)) continue;
    if (existsSync(join(dataDir, "cluster")))
      await openEmbeddedPostgres({ dataDir, log: silentLog }).then(
        (server) => server.close(),
        () => undefined,
      );
    await rm(dataDir, { recursive: true, force: true });
  }
};

const lives = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

export default setUp;
