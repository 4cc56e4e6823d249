// PgBouncer in transaction mode in front of a PostgreSQL server: each transaction may get another of few sessions.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connects } from "../../flows/processes.ts";
import { freePort } from "../net/free-port.ts";

/** PgBouncer refuses to run as root. */
const NOBODY = 65_534;

const settings = (server: URL, port: number, { idleSeconds = 2, sessions = 8 }: PgBouncerSettings): string => `[databases]
* = host=${server.hostname} port=${server.port} user=${server.username} password=${server.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${sessions}
max_client_conn = 500
server_idle_timeout = ${idleSeconds}
`;

export interface PgBouncerSettings {
  /** Seconds until an idle session with the server is closed. */
  readonly idleSeconds?: number;
  readonly sessions?: number;
}

export interface PgBouncer {
  /** The address of the same database through the pooler. */
  readonly through: (url: string) => string;
  /** kill -9: every session that it keeps is gone. */
  kill(): Promise<void>;
  /** After `kill`, at the same address. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export const startPgBouncer = async (serverUrl: string, options: PgBouncerSettings = {}): Promise<PgBouncer> => {
  const dir = await mkdtemp(join(tmpdir(), "mooring-pgbouncer-"));
  const port = await freePort();
  const file = join(dir, "pgbouncer.ini");
  await writeFile(file, settings(new URL(serverUrl), port, options));
  await chmod(dir, 0o755);
  const start = async () => {
    const child = spawn("pgbouncer", ["--quiet", file], { stdio: "ignore", ...(process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}) });
    const ended = once(child, "exit");
    const deadline = performance.now() + 10_000;
    while (!(await connects(`http://127.0.0.1:${port}`)))
      if (child.exitCode !== null || performance.now() > deadline) throw new Error(`pgbouncer did not start (exit code ${child.exitCode})`);
    const stop = async (signal: NodeJS.Signals): Promise<void> => {
      child.kill(signal);
      await ended;
    };
    return { stop };
  };
  let running = await start();
  return {
    through: (url) => Object.assign(new URL(url), { port: String(port) }).href,
    kill: () => running.stop("SIGKILL"),
    start: async () => {
      running = await start();
    },
    close: async () => {
      await running.stop("SIGTERM");
      await rm(dir, { recursive: true, force: true });
    },
  };
};
