// One PostgreSQL server process on one cluster folder: make the cluster, start, find again, stop. Who may do so, and when, is decided in embedded-postgres.ts.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Launch } from "./postgres-user.ts";
import { isPostmasterOf } from "./process-identity.ts";

export const SUPERUSER = "postgres";

const POLL_MS = 20;
// Replaying the log after a crash takes as long as it takes; a minute covers max_wal_size on a slow disk.
const READY_WAIT_MS = 60_000;
// Children of a killed server see its death within moments; until then the new one is refused.
const OLD_CHILDREN_WAIT_MS = 15_000;
const FAST_STOP_WAIT_MS = 10_000;
const LOG_KEEP_BYTES = 10_000_000;

// Nothing that the gateway was told, such as its master key, is handed to the database.
const ENVIRONMENT = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  // TCP only: every process of the machine can reach it by one address, and no path is too long for a socket.
  unix_socket_directories: "",
  max_connections: "200",
  shared_buffers: "128MB",
  fsync: "on",
  synchronous_commit: "on",
  // A young cluster makes a new file of its log every few seconds under load; filling it with zeros first holds up every commit for 60 ms.
  wal_init_zero: "off",
  // Rows of the queue change several times within seconds; what is left of them would be read again and again.
  autovacuum_naptime: "10s",
  // Our statements are short: compiling them or spreading them over workers costs more than it gives.
  jit: "off",
  max_parallel_workers_per_gather: "0",
  log_timezone: "UTC",
};

export interface Cluster {
  /** The cluster itself, owned by the database user. */
  readonly dir: string;
  readonly logFile: string;
  readonly launch: Launch;
  readonly initdb: string;
  readonly postgres: string;
  /** On top of ours, for tests. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface Server {
  readonly pid: number;
  readonly port: number;
}

/** Makes the cluster when there is none. It appears under its name only when whole, so a start that was killed half-way is simply repeated. */
export const initialise = async (cluster: Cluster, password: string): Promise<void> => {
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
    await runToEnd(cluster, cluster.initdb, [
      "-D",
      fresh,
      "-U",
      SUPERUSER,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      // Built into PostgreSQL, so the order of strings does not depend on the machine.
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

/** The living server of this cluster, whoever started it, once it takes connections. */
export const findServer = async (cluster: Cluster): Promise<Server | undefined> => {
  const deadline = performance.now() + READY_WAIT_MS;
  for (;;) {
    const found = await readPidFile(cluster);
    if (found === undefined || !(await isPostmasterOf(found.pid, cluster.dir))) return undefined;
    if (found.status === "ready") return { pid: found.pid, port: found.port };
    if (performance.now() > deadline) throw new Error(`PostgreSQL ${found.pid} on ${cluster.dir} is "${found.status}" for more than ${READY_WAIT_MS} ms`);
    await delay(POLL_MS);
  }
};

/** Starts a server where none lives. Takes `port` if it is free, else any; a port that clients already know is `required`. */
export const startServer = async (cluster: Cluster, wish: { readonly port: number; readonly required: boolean }): Promise<Server> => {
  // A file left by a killed server; its number may by now belong to a stranger, which PostgreSQL itself would take for a living server.
  await rm(join(cluster.dir, "postmaster.pid"), { force: true });
  const deadline = performance.now() + OLD_CHILDREN_WAIT_MS;
  let port = wish.port === 0 ? await freePort() : wish.port;
  for (;;) {
    const outcome = await startOnce(cluster, port);
    if ("pid" in outcome) return outcome;
    const retry = /still in use|Address already in use|could not create any TCP\/IP sockets/.test(outcome.complaint);
    if (!retry || performance.now() > deadline) throw new Error(`PostgreSQL on ${cluster.dir} did not start: ${outcome.complaint}`);
    if (/TCP\/IP|Address already/.test(outcome.complaint) && !wish.required) port = await freePort();
    await delay(POLL_MS * 5);
  }
};

/** Fast shutdown: sessions are ended, everything is on disk. One that does not obey in time is killed; its log brings everything back. */
export const stopServer = async (cluster: Cluster, { pid }: Server): Promise<void> => {
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

const readPidFile = async (cluster: Cluster): Promise<(Server & { readonly status: string }) | undefined> => {
  const lines = (await readFile(join(cluster.dir, "postmaster.pid"), "utf8").catch(() => "")).split("\n").map((line) => line.trim());
  const pid = Number.parseInt(lines[0] ?? "", 10);
  return Number.isInteger(pid) && pid > 1 ? { pid, port: Number.parseInt(lines[3] ?? "", 10), status: lines[7] || "starting" } : undefined;
};

const startOnce = async (cluster: Cluster, port: number): Promise<Server | { readonly complaint: string }> => {
  const size = await stat(cluster.logFile).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LOG_KEEP_BYTES) await rename(cluster.logFile, `${cluster.logFile}.1`);
  const log = await open(cluster.logFile, "a", 0o600);
  const since = (await log.stat()).size;
  const settings = Object.entries({ ...SETTINGS, ...cluster.settings, port: String(port) }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const { command, words, user } = asDatabaseUser(cluster.launch, [cluster.postgres, "-D", cluster.dir, ...settings]);
  try {
    // In a session of its own, so that Ctrl-C reaches the gateway only and the database outlives the drain. It writes to a file: a pipe would break when the gateway dies first.
    const child = spawn(command, words, { ...user, env: ENVIRONMENT, cwd: "/", detached: true, stdio: ["ignore", log.fd, log.fd] });
    child.unref();
    const failed = new Promise<string>((resolve) => child.once("error", (error) => resolve(String(error))));
    const deadline = performance.now() + READY_WAIT_MS;
    while (child.exitCode === null && child.signalCode === null) {
      const found = await readPidFile(cluster);
      if (found?.pid === child.pid && found?.status === "ready") return { pid: found.pid, port: found.port };
      if (performance.now() > deadline) {
        child.kill("SIGKILL");
        return { complaint: `not ready after ${READY_WAIT_MS} ms` };
      }
      const error = await Promise.race([failed, delay(POLL_MS)]);
      if (typeof error === "string") return { complaint: error };
    }
    return { complaint: (await readFile(cluster.logFile)).subarray(since).toString("utf8").trim().slice(-2_000) };
  } finally {
    await log.close();
  }
};

const runToEnd = async (cluster: Cluster, program: string, options: readonly string[]): Promise<void> => {
  const { command, words, user } = asDatabaseUser(cluster.launch, [program, ...options]);
  const child = spawn(command, words, { ...user, env: ENVIRONMENT, cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes: Buffer) => (output += bytes.toString("utf8")));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} failed: ${output.trim().slice(-2_000)}`);
};

const asDatabaseUser = ({ owner, prefix }: Launch, program: readonly string[]) => {
  const [command = "", ...words] = [...prefix, ...program];
  return { command, words, user: prefix.length > 0 ? {} : { ...owner } };
};

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("a TCP listener has a port");
  return address.port;
};
