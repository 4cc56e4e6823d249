// The stage of all benchmarks: a folder, PostgreSQL and Redis on the load's processor, and everything that a benchmark starts. Closing it ends them all.
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { openEmbeddedPostgres } from "../../server/platform/postgres/embedded-postgres.ts";
import { SUPERUSER } from "../../server/platform/postgres/postgres-process.ts";
import { silentLog } from "../../server/platform/telemetry/log.ts";
import { type Child, startChild } from "../kit/net/children.ts";
import { freePort } from "../kit/net/free-port.ts";
import { LOAD_CPU, pin } from "./machine.ts";

const READY_MS = 15_000;
/** Only a profile pays for them, and what counts statements. */
const STATEMENT_STATISTICS = { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track": "top" };

export interface BenchStage {
  readonly folder: string;
  readonly program: string;
  readonly databaseUrl: string;
  readonly postgresPid: number;
  readonly redis: { readonly port: number; readonly url: string; readonly pid: number };
  readonly masterKey: string;
  readonly profile: string | null;
  /** Whether PostgreSQL counts statements. */
  readonly counts: boolean;
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** The same as the superuser: checkpoints, statistics, the log. */
  admin<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Adds a step that runs when the stage closes, the newest first. */
  add(undo: () => unknown): void;
  /** Runs one benchmark on a stage with the same servers; closing that one ends only its own parts. */
  scope<T>(use: (stage: BenchStage) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** The embedded database keeps its superuser's password beside its files. */
const superuserUrl = (url: string, dataDir: string): string => {
  const admin = new URL(url);
  admin.username = SUPERUSER;
  admin.password = readFileSync(join(dataDir, "password"), "utf8").trim();
  return admin.href;
};

const queryWith =
  (pool: pg.Pool) =>
  async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    (await pool.query<Row>(text, [...values])).rows;

const startRedis = async (folder: string): Promise<{ readonly child: Child; readonly port: number }> => {
  const port = await freePort();
  const words = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"];
  const child = startChild({ command: "redis-server", words, env: { PATH: process.env["PATH"] }, cwd: folder });
  await child.waitFor("Ready to accept connections", READY_MS);
  return { child, port };
};

const createUndo = () => {
  const steps: (() => unknown)[] = [];
  return {
    add: (step: () => unknown): void => void steps.push(step),
    run: async (): Promise<void> => {
      for (let step = steps.pop(); step !== undefined; step = steps.pop())
        await Promise.resolve(step()).catch((error: unknown) => process.stderr.write(`  could not be stopped: ${String(error)}\n`));
    },
  };
};

const scoped = (stage: Omit<BenchStage, "add" | "scope" | "close">): BenchStage => {
  const undo = createUndo();
  return {
    ...stage,
    add: undo.add,
    close: undo.run,
    scope: async (use) => {
      const inner = scoped(stage);
      try {
        return await use(inner);
      } finally {
        await inner.close();
      }
    },
  };
};

/** Opens a stage that owns the folder and removes it. */
export const openStage = async (folder: string, program: string, profile: string | null, counts = profile !== null): Promise<BenchStage> => {
  const dataDir = join(folder, "postgres");
  const settings = { shared_buffers: "256MB", max_wal_size: "4GB", ...(counts ? STATEMENT_STATISTICS : {}) };
  const postgres = await openEmbeddedPostgres({ dataDir, log: silentLog, settings });
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
  const adminPool = new pg.Pool({ connectionString: superuserUrl(postgres.url, dataDir), max: 1 });
  const parts: { redis?: Child } = {};
  // Leave nothing behind, however this ends. PostgreSQL has its own process group, so end it explicitly.
  const last = (): void => {
    process.kill(postgres.pid(), "SIGQUIT");
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  };
  process.once("exit", last);
  const base = {
    folder,
    program,
    profile,
    counts,
    databaseUrl: postgres.url,
    postgresPid: postgres.pid(),
    masterKey: randomBytes(32).toString("base64"),
    query: queryWith(pool),
    admin: queryWith(adminPool),
  };
  const close = async (): Promise<void> => {
    await pool.end();
    await adminPool.end();
    await parts.redis?.stop();
    await postgres.close();
    process.removeListener("exit", last);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  try {
    pin(postgres.pid(), LOAD_CPU);
    const redis = await startRedis(folder);
    parts.redis = redis.child;
    pin(redis.child.pid, LOAD_CPU);
    const stage = scoped({ ...base, redis: { port: redis.port, url: `redis://127.0.0.1:${redis.port}`, pid: redis.child.pid } });
    stage.add(close);
    return stage;
  } catch (error) {
    await close();
    throw error;
  }
};

export const createFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "mooring-bench-"));
  // PostgreSQL runs as another user and must be able to enter the folder.
  chmodSync(folder, 0o755);
  return folder;
};
