// The embedded database: a real PostgreSQL that the gateway starts when DATABASE_URL is unset.
// The server belongs to its data folder, not to the process that started it. A process that opens the folder uses the running server or starts one,
// and the last to leave stops it. Each process keeps one session open and counts the sessions of the others: a session ends with its process, however
// that dies, so no list goes stale. After a SIGKILL of the gateway the server keeps running and the next gateway adopts it.
import { createHmac, randomBytes } from "node:crypto";
import { mkdir, readFile, realpath, rename, writeFile } from "node:fs/promises";
import { join as path } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Log } from "../telemetry/log.ts";
import { silentWaits, type Waits } from "../waits.ts";
import { withFileLock } from "./file-lock.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { findServer, initialise, type PostgresCluster, type Server, SUPERUSER, startServer, stopServer } from "./postgres-process.ts";
import { findLaunch } from "./postgres-user.ts";
import { isPostmasterOf } from "./process-identity.ts";

const NAME = "mooring";
const APPLICATION_NAME = "mooring embedded user";
// Another process may be creating the cluster or recovering from a crash.
const LOCK_WAIT_MS = 90_000;
const CONNECT_WAIT_MS = 5_000;
const RESTART_ATTEMPTS = 6;
const RESTART_BACKOFF_MS = 100;
// A server that ran this long counts as recovered; its next death starts the attempts from zero.
const STABLE_AFTER_MS = 60_000;

export interface EmbeddedPostgresOptions {
  /** A folder for this server alone. It holds the cluster, the password (0600), the log and server.json. */
  readonly dataDir: string;
  readonly log: Log;
  readonly waits?: Waits;
  /** PostgreSQL settings on top of ours, for tests. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres {
  /** Address of the application's database, with its unprivileged role. It survives restarts of the server. */
  readonly url: string;
  readonly pid: () => number;
  /** Leaves; the last process to leave stops the server. Safe to call twice. */
  readonly close: () => Promise<void>;
}

export const openEmbeddedPostgres = async ({ dataDir, log, waits = silentWaits, settings = {} }: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> => {
  const place = await openPlace(dataDir, settings, waits);
  let closing: Promise<void> | undefined;
  let recovering: Promise<void> = Promise.resolve();
  let attempts = 0;
  let joinedAt = 0;
  let attendance = await join({ port: 0, required: false });
  const { port } = attendance.server;

  // Under the lock, so that a process that leaves at the same moment sees our session and does not stop the server.
  async function join(wish: { readonly port: number; readonly required: boolean }): Promise<Attendance> {
    const taken = await lockFolder(place, waits, () => attend(place, wish));
    joinedAt = performance.now();
    taken.session.once("end", () => {
      if (closing === undefined) recovering = recover();
    });
    log.info({ pid: taken.server.pid, port: taken.server.port, adopted: taken.adopted }, "embedded PostgreSQL is ready");
    return taken;
  }

  // Our session ended. Either somebody terminated it and the server lives, or the server died and must start again on the port that our clients know.
  async function recover(): Promise<void> {
    if (performance.now() - joinedAt > STABLE_AFTER_MS) attempts = 0;
    if (await isPostmasterOf(attendance.server.pid, place.cluster.dir))
      log.warn({ pid: attendance.server.pid }, "embedded PostgreSQL ended our session; connecting again");
    else log.error({ pid: attendance.server.pid, logFile: place.cluster.logFile }, "embedded PostgreSQL died; starting it again");
    while (closing === undefined) {
      if (attempts >= RESTART_ATTEMPTS) {
        log.error({ attempts, logFile: place.cluster.logFile }, "embedded PostgreSQL keeps dying; giving up");
        return;
      }
      // Only deaths of the server count as attempts, not lost sessions.
      if (!(await isPostmasterOf(attendance.server.pid, place.cluster.dir))) attempts += 1;
      try {
        attendance = await join({ port, required: true });
        return;
      } catch (error) {
        log.error({ attempts, error }, "embedded PostgreSQL did not start again");
        await delay(RESTART_BACKOFF_MS * 2 ** attempts);
      }
    }
  }

  const leave = async (): Promise<void> => {
    await recovering;
    await lockFolder(place, waits, () => leaveServer(place, attendance));
    log.info({ pid: attendance.server.pid }, "this process has left the embedded PostgreSQL");
  };
  return {
    url: `postgresql://${NAME}:${place.rolePassword}@127.0.0.1:${port}/${NAME}`,
    pid: () => attendance.server.pid,
    close: () => (closing ??= leave()),
  };
};

/** The address of the server that runs on this folder now, for a process that must not keep it alive. */
export const runningEmbeddedUrl = async (dataDir: string): Promise<string | undefined> => {
  const root = await realpath(dataDir).catch(() => undefined);
  if (root === undefined) return undefined;
  const { pid, url } = await readNote(root);
  return pid !== undefined && (await isPostmasterOf(pid, path(root, "cluster"))) ? url : undefined;
};

interface Place {
  readonly root: string;
  readonly cluster: PostgresCluster;
  readonly lockFile: string;
  readonly password: string;
  readonly rolePassword: string;
}

/** Our session, which tells other processes that this one uses the server. */
interface Attendance {
  readonly server: Server;
  readonly session: pg.Client;
  readonly adopted: boolean;
}

/** One process at a time creates, starts or leaves the server; while others wait they name that process. */
const lockFolder = <T>({ root, lockFile }: Pick<Place, "root" | "lockFile">, waits: Waits, run: () => Promise<T>): Promise<T> =>
  waits.during({ on: "the embedded PostgreSQL", at: root }, (why) =>
    withFileLock(lockFile, { waitMs: LOCK_WAIT_MS, onHeld: (holder) => why(`process ${holder} holds ${lockFile}`) }, () => {
      why(`the server starts or stops; its log is ${path(root, "postgres.log")}`);
      return run();
    }),
  );

const openPlace = async (dataDir: string, settings: Readonly<Record<string, string>>, waits: Waits): Promise<Place> => {
  await mkdir(dataDir, { recursive: true, mode: 0o755 });
  const root = await realpath(dataDir);
  const lockFile = path(root, "lock");
  const dir = path(root, "cluster");
  const binaries = await postgresBinaries();
  return lockFolder({ root, lockFile }, waits, async () => {
    const launch = await findLaunch({ clusterDir: dir, program: binaries.postgres });
    const password = await ownPassword(path(root, "password"));
    const cluster = { dir, logFile: path(root, "postgres.log"), launch, ...binaries, settings };
    await initialise(cluster, password);
    // Derived, so that we store one secret; one-way, so that the role's address does not reveal the superuser's password.
    const rolePassword = createHmac("sha256", password).update(`role ${NAME}`).digest("base64url");
    return { root, cluster, lockFile, password, rolePassword };
  });
};

const ownPassword = async (file: string): Promise<string> => {
  const kept = await readFile(file, "utf8").catch(() => undefined);
  if (kept) return kept.trim();
  const password = randomBytes(24).toString("base64url");
  await writeFile(`${file}.new`, password, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return password;
};

const attend = async (place: Place, wish: { readonly port: number; readonly required: boolean }): Promise<Attendance> => {
  const found = await findServer(place.cluster);
  const last = wish.required ? wish.port : ((await readNote(place.root)).port ?? 0);
  const server = found ?? (await startServer(place.cluster, { port: last, required: wish.required }));
  const session = await connect(place, server);
  await ensureRoleAndDatabase(session, place.rolePassword);
  const url = `postgresql://${NAME}:${place.rolePassword}@127.0.0.1:${server.port}/${NAME}`;
  await writeFile(path(place.root, "server.json"), `${JSON.stringify({ ...server, url })}\n`, { mode: 0o600 });
  return { server, session, adopted: found !== undefined };
};

const leaveServer = async (place: Place, attendance: Attendance): Promise<void> => {
  const server = await findServer(place.cluster);
  if (server === undefined) return;
  const others = await countOthers(attendance.session).catch(async () => {
    const session = await connect(place, server);
    return countOthers(session).finally(() => session.end());
  });
  await attendance.session.end().catch(() => undefined);
  if (others > 0) return;
  await stopServer(place.cluster, server);
};

const countOthers = async (session: pg.Client): Promise<number> => {
  const text = "select count(*)::int as others from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()";
  const { rows } = await session.query<{ others: number }>(text, [APPLICATION_NAME]);
  return rows[0]?.others ?? 0;
};

const connect = async (place: Place, { port }: Server): Promise<pg.Client> => {
  const session = new pg.Client({
    host: "127.0.0.1",
    port,
    user: SUPERUSER,
    password: place.password,
    database: "postgres",
    application_name: APPLICATION_NAME,
    connectionTimeoutMillis: CONNECT_WAIT_MS,
    query_timeout: CONNECT_WAIT_MS,
    keepAlive: true,
  });
  // Without a listener a lost connection would end the process; the listener of "end" handles it.
  session.on("error", () => undefined);
  await session.connect();
  return session;
};

// The gateway uses an ordinary role that owns its database, so an injected statement has no more rights than that.
const ensureRoleAndDatabase = async (session: pg.Client, rolePassword: string): Promise<void> => {
  const { rows } = await session.query("select 1 from pg_roles where rolname = $1", [NAME]);
  if (rows.length === 0) await session.query(`create role ${NAME} login createdb password ${pg.escapeLiteral(rolePassword)}`);
  const databases = await session.query("select 1 from pg_database where datname = $1", [NAME]);
  if (databases.rows.length === 0) await session.query(`create database ${NAME} owner ${NAME}`);
};

interface Note {
  readonly pid?: number;
  readonly port?: number;
  readonly url?: string;
}

// A hint for other processes, never proof that the server lives. It outlives the server so that the next one takes the same port. An unreadable file counts as empty.
const readNote = async (root: string): Promise<Note> => {
  try {
    const note: unknown = JSON.parse(await readFile(path(root, "server.json"), "utf8"));
    if (typeof note !== "object" || note === null) return {};
    return {
      ...("pid" in note && typeof note.pid === "number" ? { pid: note.pid } : {}),
      ...("port" in note && typeof note.port === "number" ? { port: note.port } : {}),
      ...("url" in note && typeof note.url === "string" ? { url: note.url } : {}),
    };
  } catch {
    return {};
  }
};
