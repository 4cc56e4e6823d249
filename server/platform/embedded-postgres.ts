// The database nobody has to install: a real PostgreSQL started beside the gateway when no DATABASE_URL is given.
// The server belongs to its data folder, not to the process that started it. Whoever opens the folder uses the living server or starts one,
// and the last to leave stops it. Who is there is asked of PostgreSQL itself: every user keeps one session open, which ends with its process
// however that dies, so there is no list to go stale. A gateway killed hard leaves the server running, and the next one finds it warm.
import { createHmac, randomBytes } from "node:crypto";
import { mkdir, readFile, realpath, rename, writeFile } from "node:fs/promises";
import { join as path } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { withFileLock } from "./file-lock.ts";
import type { Log } from "./log.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { type Cluster, findServer, initialise, type Server, SUPERUSER, startServer, stopServer } from "./postgres-process.ts";
import { findLaunch } from "./postgres-user.ts";
import { isPostmasterOf } from "./process-identity.ts";

const NAME = "mooring";
const ATTENDANCE = "mooring embedded user";
// Another process may just be making the cluster or replaying a crash.
const LOCK_WAIT_MS = 90_000;
const CONNECT_WAIT_MS = 5_000;
const RESTART_ATTEMPTS = 6;
const RESTART_BACKOFF_MS = 100;
// A server that lived this long counts as well again, and its next death starts a new row of attempts.
const STABLE_AFTER_MS = 60_000;

export interface EmbeddedPostgresOptions {
  /** A folder for this server alone. It holds the cluster, the password (0600), the log and server.json. */
  readonly dataDir: string;
  readonly log: Log;
  /** PostgreSQL settings on top of ours, for tests. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres {
  /** The application's database and its ordinary, unprivileged role. Stays the same over restarts of the server. */
  readonly url: string;
  readonly pid: () => number;
  /** Leaves; the last one to leave stops the server. Safe to call twice. */
  readonly close: () => Promise<void>;
}

export const openEmbeddedPostgres = async ({ dataDir, log, settings = {} }: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> => {
  const place = await openPlace(dataDir, settings);
  let closing: Promise<void> | undefined;
  let recovering: Promise<void> = Promise.resolve();
  let attempts = 0;
  let joinedAt = 0;
  let seat = await join({ port: 0, required: false });
  const { port } = seat.server;

  // Alone with the folder: finds or starts the server and sits down, so that nobody who leaves meanwhile takes it for empty.
  async function join(wish: { readonly port: number; readonly required: boolean }): Promise<Seat> {
    const taken = await withFileLock(place.lockFile, LOCK_WAIT_MS, () => sitDown(place, wish));
    joinedAt = performance.now();
    taken.session.once("end", () => {
      if (closing === undefined) recovering = recover();
    });
    log.info({ pid: taken.server.pid, port: taken.server.port, adopted: taken.adopted }, "embedded PostgreSQL is ready");
    return taken;
  }

  // Our session ended: either somebody ended it, and the server lives, or the server died and is started again on the port our clients know.
  async function recover(): Promise<void> {
    if (performance.now() - joinedAt > STABLE_AFTER_MS) attempts = 0;
    if (await isPostmasterOf(seat.server.pid, place.cluster.dir)) log.warn({ pid: seat.server.pid }, "embedded PostgreSQL ended our session; joining again");
    else log.error({ pid: seat.server.pid, logFile: place.cluster.logFile }, "embedded PostgreSQL died; starting it again");
    while (closing === undefined) {
      if (attempts >= RESTART_ATTEMPTS) {
        log.error({ attempts, logFile: place.cluster.logFile }, "embedded PostgreSQL does not stay up; giving up");
        return;
      }
      // A lost session is no fault of the server's; only deaths count.
      if (!(await isPostmasterOf(seat.server.pid, place.cluster.dir))) attempts += 1;
      try {
        seat = await join({ port, required: true });
        return;
      } catch (error) {
        log.error({ attempts, error }, "embedded PostgreSQL could not be started again");
        await delay(RESTART_BACKOFF_MS * 2 ** attempts);
      }
    }
  }

  const leave = async (): Promise<void> => {
    await recovering;
    await withFileLock(place.lockFile, LOCK_WAIT_MS, () => standUp(place, seat));
    log.info({ pid: seat.server.pid }, "embedded PostgreSQL left");
  };
  return {
    url: `postgresql://${NAME}:${place.rolePassword}@127.0.0.1:${port}/${NAME}`,
    pid: () => seat.server.pid,
    close: () => (closing ??= leave()),
  };
};

/** The address of a server that runs on this folder now, for a process that only wants to look and not to keep it alive. */
export const runningEmbeddedUrl = async (dataDir: string): Promise<string | undefined> => {
  const root = await realpath(dataDir).catch(() => undefined);
  if (root === undefined) return undefined;
  const { pid, url } = await readNote(root);
  return pid !== undefined && (await isPostmasterOf(pid, path(root, "cluster"))) ? url : undefined;
};

interface Place {
  readonly root: string;
  readonly cluster: Cluster;
  readonly lockFile: string;
  readonly password: string;
  readonly rolePassword: string;
}

/** A place at the server: the session that says we are here. */
interface Seat {
  readonly server: Server;
  readonly session: pg.Client;
  readonly adopted: boolean;
}

const openPlace = async (dataDir: string, settings: Readonly<Record<string, string>>): Promise<Place> => {
  await mkdir(dataDir, { recursive: true, mode: 0o755 });
  const root = await realpath(dataDir);
  const lockFile = path(root, "lock");
  const dir = path(root, "cluster");
  const binaries = await postgresBinaries();
  return withFileLock(lockFile, LOCK_WAIT_MS, async () => {
    const launch = await findLaunch({ clusterDir: dir, program: binaries.postgres });
    const password = await ownPassword(path(root, "password"));
    const cluster = { dir, logFile: path(root, "postgres.log"), launch, ...binaries, settings };
    await initialise(cluster, password);
    // Derived, so that one secret is kept, and one-way, so that the role's address does not give the superuser away.
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

const sitDown = async (place: Place, wish: { readonly port: number; readonly required: boolean }): Promise<Seat> => {
  const found = await findServer(place.cluster);
  const last = wish.required ? wish.port : ((await readNote(place.root)).port ?? 0);
  const server = found ?? (await startServer(place.cluster, { port: last, required: wish.required }));
  const session = await connect(place, server);
  await ensureRoleAndDatabase(session, place.rolePassword);
  const url = `postgresql://${NAME}:${place.rolePassword}@127.0.0.1:${server.port}/${NAME}`;
  await writeFile(path(place.root, "server.json"), `${JSON.stringify({ ...server, url })}\n`, { mode: 0o600 });
  return { server, session, adopted: found !== undefined };
};

const standUp = async (place: Place, seat: Seat): Promise<void> => {
  const server = await findServer(place.cluster);
  if (server === undefined) return;
  const others = await othersSeated(seat.session).catch(async () => {
    const session = await connect(place, server);
    return othersSeated(session).finally(() => session.end());
  });
  await seat.session.end().catch(() => undefined);
  if (others > 0) return;
  await stopServer(place.cluster, server);
};

const othersSeated = async (session: pg.Client): Promise<number> => {
  const text = "select count(*)::int as others from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()";
  const { rows } = await session.query<{ others: number }>(text, [ATTENDANCE]);
  return rows[0]?.others ?? 0;
};

const connect = async (place: Place, { port }: Server): Promise<pg.Client> => {
  const session = new pg.Client({
    host: "127.0.0.1",
    port,
    user: SUPERUSER,
    password: place.password,
    database: "postgres",
    application_name: ATTENDANCE,
    connectionTimeoutMillis: CONNECT_WAIT_MS,
    query_timeout: CONNECT_WAIT_MS,
    keepAlive: true,
  });
  // Without a listener a cut session would end the process; what follows a cut is decided on "end".
  session.on("error", () => undefined);
  await session.connect();
  return session;
};

// The gateway works as an ordinary role that owns its database: what it cannot do, an injected statement cannot either.
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

// A note for other processes, and it outlives the server so that the next one takes the same port, never the truth about what lives; half a note is no note.
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
