// Starts a PostgreSQL server from a given folder of binaries, for the test matrix.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../net/free-port.ts";

/** PostgreSQL refuses to run as root. */
const NOBODY = 65_534;
const STARTS_WITHIN_MS = 20_000;

export interface PostgresServer {
  readonly url: string;
  close(): Promise<void>;
}

export const startPostgres = async (binaries: string, folder: string, settings: Readonly<Record<string, string>>): Promise<PostgresServer> => {
  const as = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  await mkdir(folder, { mode: 0o700 });
  if ("uid" in as) await chown(folder, NOBODY, NOBODY);
  const run = (program: string, args: readonly string[]) =>
    spawn(join(binaries, program), args, { stdio: ["ignore", "ignore", "inherit"], cwd: folder, ...as });
  const [code] = await once(run("initdb", ["-D", folder, "-U", "mooring", "--auth=trust", "--encoding=UTF8", "--locale=C"]), "exit");
  if (code !== 0) throw new Error(`initdb ended with code ${code}`);
  const port = await freePort();
  const options = Object.entries({ ...settings, listen_addresses: "127.0.0.1", unix_socket_directories: "", max_connections: "200" });
  const server = run("postgres", ["-D", folder, "-p", String(port), ...options.flatMap(([name, value]) => ["-c", `${name}=${value}`])]);
  const ended = once(server, "exit");
  const url = `postgres://mooring@127.0.0.1:${port}/postgres`;
  const deadline = performance.now() + STARTS_WITHIN_MS;
  while (!(await answers(url))) if (server.exitCode !== null || performance.now() > deadline) throw new Error(`${binaries}/postgres did not start`);
  return {
    url,
    close: async () => {
      server.kill("SIGINT");
      await ended;
    },
  };
};

const answers = async (connectionString: string): Promise<boolean> => {
  const client = new pg.Client({ connectionString });
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
};
