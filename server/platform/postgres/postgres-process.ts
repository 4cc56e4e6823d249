// One PostgreSQL server process on one cluster folder: create the cluster, start, find and stop the server. embedded-postgres.ts decides when.
import { once } from "node:events";
import { closeSync } from "node:fs";
import { chown, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startProgram } from "../../../protocol/kit/programs/program.ts";
import { runProgram } from "../../../protocol/kit/programs/run-program.ts";
import { systemTimers, type Timers } from "../../../protocol/kit/timers.ts";
import { ConfigError } from "../../core/errors.ts";
import { lockFile } from "./file-lock.ts";
import type { PostgresLaunch } from "./postgres-user.ts";
import { isPostmasterOf } from "./process-identity.ts";
import { complaintOf, PROGRAM_ENVIRONMENT } from "./system-programs.ts";

export const SUPERUSER = "postgres";

const POLL_MS = 20;
// Crash recovery takes as long as it takes; a minute covers max_wal_size on a slow disk.
const READY_WAIT_MS = 60_000;
// Children of a killed server notice its death within moments; PostgreSQL refuses a new server until then.
const OLD_CHILDREN_WAIT_MS = 15_000;
const FAST_STOP_WAIT_MS = 10_000;
const LOG_KEEP_BYTES = 10_000_000;

/** initdb writes 40 MB and waits for the disk; a slow one takes a minute. It speaks at each step. */
export const INITDB_MS = { withinMs: 300_000, idleMs: 120_000 };
const INITDB_KEPT_BYTES = 65_536;

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  // TCP only: one address works for every process of the machine, and no path is too long for a Unix socket.
  unix_socket_directories: "",
  max_connections: "200",
  shared_buffers: "128MB",
  fsync: "on",
  synchronous_commit: "on",
  // Under load a young cluster creates a WAL file every few seconds; filling it with zeros first delays every commit by 60 ms.
  wal_init_zero: "off",
  // Queue rows change several times within seconds; without frequent vacuums every scan would read their dead versions.
  autovacuum_naptime: "10s",
  // Our statements are short: compiling them or running them in parallel costs more than it gains.
  jit: "off",
  max_parallel_workers_per_gather: "0",
  log_timezone: "UTC",
};

export interface PostgresCluster {
  /** The cluster's folder, owned by the database user. */
  readonly dir: string;
  readonly logFile: string;
  readonly launch: PostgresLaunch;
  readonly initdb: string;
  readonly postgres: string;
  /** On top of ours, for tests. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface Server {
  readonly pid: number;
  readonly port: number;
}

/** Creates the cluster if there is none. A rename puts it in place when it is complete, so the next start repeats one that was killed half-way. */
export const initialise = async (cluster: PostgresCluster, password: string, time: Timers = systemTimers): Promise<void> => {
  const exists = await stat(join(cluster.dir, "PG_VERSION")).then(
    () => true,
    () => false,
  );
  if (exists) return;
  const fresh = `${cluster.dir}.new`;
  const passwordFile = `${cluster.dir}.password`;
  const { owner } = cluster.launch;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { mode: 0o700 });
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  try {
    if (owner) for (const path of [fresh, passwordFile]) await chown(path, owner.uid, owner.gid);
    await runInitdb(cluster, time, [
      "-D",
      fresh,
      "-U",
      SUPERUSER,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      // PostgreSQL's built-in locale: the order of strings does not depend on the machine.
      "--encoding=UTF8",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--locale=C",
    ]);
    await rename(fresh, cluster.dir);
  } finally {
    await rm(passwordFile, { force: true });
  }
};

/** The running server of this cluster, whichever process started it, once it accepts connections. */
export const findServer = async (cluster: PostgresCluster): Promise<Server | undefined> => {
  const deadline = performance.now() + READY_WAIT_MS;
  for (;;) {
    const found = await readPidFile(cluster);
    if (found === undefined || !(await isPostmasterOf(found.pid, cluster.dir))) return undefined;
    if (found.status === "ready") return { pid: found.pid, port: found.port };
    if (performance.now() > deadline) throw new Error(`PostgreSQL ${found.pid} on ${cluster.dir} has been "${found.status}" for more than ${READY_WAIT_MS} ms`);
    await delay(POLL_MS);
  }
};

/** Starts a server where none runs, on `port` if it is free, else on any; `required` for a port that clients already know. */
export const startServer = async (cluster: PostgresCluster, wish: { readonly port: number; readonly required: boolean }): Promise<Server> => {
  // The server inherits the lock and its children with it. PostgreSQL itself trusts in process ids, which mean nothing in another container.
  const lock = await lockFile(`${cluster.dir}.lock`, { waitMs: OLD_CHILDREN_WAIT_MS, late: () => inUse(cluster) });
  try {
    // A killed server leaves this file. Another process may have its pid by now, and PostgreSQL would take that process for a running server.
    await rm(join(cluster.dir, "postmaster.pid"), { force: true });
    return await startLocked(cluster, wish, lock);
  } finally {
    closeSync(lock);
  }
};

const inUse = ({ dir }: PostgresCluster): ConfigError =>
  new ConfigError(
    `Another PostgreSQL server uses ${dir}, and this process cannot see it: it runs in another container that shares the folder. ` +
      `Stop that gateway, give this one a DATA_DIR of its own, or set DATABASE_URL for both.`,
  );

const startLocked = async (cluster: PostgresCluster, wish: { readonly port: number; readonly required: boolean }, lock: number): Promise<Server> => {
  const deadline = performance.now() + OLD_CHILDREN_WAIT_MS;
  let port = wish.port === 0 ? await freePort() : wish.port;
  for (;;) {
    const outcome = await startOnce(cluster, port, lock);
    if ("pid" in outcome) return outcome;
    const retry = /still in use|Address already in use|could not create any TCP\/IP sockets/.test(outcome.complaint);
    if (!retry || performance.now() > deadline) throw new Error(`PostgreSQL on ${cluster.dir} did not start: ${outcome.complaint}`);
    if (/TCP\/IP|Address already/.test(outcome.complaint) && !wish.required) port = await freePort();
    await delay(POLL_MS * 5);
  }
};

/** Fast shutdown: ends the sessions and writes everything to disk. Kills a server that does not obey in time; its WAL restores everything. */
export const stopServer = async (cluster: PostgresCluster, { pid }: Server): Promise<void> => {
  for (const [signal, waitMs] of [
    ["SIGINT", FAST_STOP_WAIT_MS],
    ["SIGKILL", FAST_STOP_WAIT_MS],
  ] as const) {
    if (!(await isPostmasterOf(pid, cluster.dir))) return;
    process.kill(pid, signal);
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline) {
      if (!(await isPostmasterOf(pid, cluster.dir))) return;
      await delay(POLL_MS);
    }
  }
  throw new Error(`PostgreSQL ${pid} on ${cluster.dir} could not be stopped`);
};

const readPidFile = async (cluster: PostgresCluster): Promise<(Server & { readonly status: string }) | undefined> => {
  const lines = (await readFile(join(cluster.dir, "postmaster.pid"), "utf8").catch(() => "")).split("\n").map((line) => line.trim());
  const pid = Number.parseInt(lines[0] ?? "", 10);
  return Number.isInteger(pid) && pid > 1 ? { pid, port: Number.parseInt(lines[3] ?? "", 10), status: lines[7] || "starting" } : undefined;
};

const startOnce = async (cluster: PostgresCluster, port: number, lock: number): Promise<Server | { readonly complaint: string }> => {
  const size = await stat(cluster.logFile).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LOG_KEEP_BYTES) await rename(cluster.logFile, `${cluster.logFile}.1`);
  const log = await open(cluster.logFile, "a", 0o600);
  const since = (await log.stat()).size;
  const settings = Object.entries({ ...SETTINGS, ...cluster.settings, port: String(port) }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const program = asDatabaseUser(cluster.launch, [cluster.postgres, "-D", cluster.dir, ...settings]);
  try {
    // A process group of its own keeps Ctrl-C from the database, which outlives the drain. It logs to a file: a pipe would break when the gateway dies first.
    const { child, ended, end } = startProgram({
      ...program,
      env: PROGRAM_ENVIRONMENT,
      cwd: "/",
      time: systemTimers,
      stdio: ["ignore", log.fd, log.fd, lock],
      outlives: true,
    });
    child.unref();
    const deadline = performance.now() + READY_WAIT_MS;
    for (;;) {
      const found = await readPidFile(cluster);
      if (found?.pid === child.pid && found?.status === "ready") return { pid: found.pid, port: found.port };
      if (performance.now() > deadline) {
        await end();
        return { complaint: `not ready after ${READY_WAIT_MS} ms` };
      }
      const ending = await Promise.race([ended, delay(POLL_MS, null)]);
      if (ending?.error) return { complaint: String(ending.error) };
      if (ending !== null) break;
    }
    return { complaint: (await readFile(cluster.logFile)).subarray(since).toString("utf8").trim().slice(-2_000) };
  } finally {
    await log.close();
  }
};

const runInitdb = async (cluster: PostgresCluster, time: Timers, options: readonly string[]): Promise<void> => {
  const program = asDatabaseUser(cluster.launch, [cluster.initdb, ...options]);
  const result = await runProgram({ ...program, env: PROGRAM_ENVIRONMENT, cwd: "/", time, ...INITDB_MS, maxBytes: INITDB_KEPT_BYTES });
  if (result.outcome !== "ended" || result.code !== 0) throw new Error(`${cluster.initdb} failed: ${complaintOf(result)}`);
};

const asDatabaseUser = ({ owner, prefix }: PostgresLaunch, program: readonly string[]) => {
  const [command = "", ...words] = [...prefix, ...program];
  return { command, words, user: prefix.length > 0 ? undefined : owner };
};

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("the TCP listener has no port");
  return address.port;
};
