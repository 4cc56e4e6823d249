// Sessions with PostgreSQL. A session says nothing at its start but what every pooler passes on, and time limits travel with each transaction,
// so PgBouncer may hand each transaction another session.
import { connect } from "node:net";
import pg from "pg";
import type { Log } from "../telemetry/log.ts";

// Our statements take milliseconds. One that takes seconds is blocked, and its caller has given up.
const STATEMENT_TIMEOUT_MS = 5_000;
const LOCK_TIMEOUT_MS = 2_000;
export const IDLE_IN_TRANSACTION_MS = 10_000;
// The server's limits do not help when the network loses its answer, so the client stops waiting a little later.
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 3_000;
// Covers both the wait for a free session and the opening of a new one.
export const CONNECT_TIMEOUT_MS = 5_000;
const CANCEL_TIMEOUT_MS = 2_000;

/** Bounds the statements of a transaction. Sent in one message with its BEGIN, so it costs no round trip. */
const TIME_LIMITS = `SET LOCAL statement_timeout=${STATEMENT_TIMEOUT_MS};SET LOCAL lock_timeout=${LOCK_TIMEOUT_MS};SET LOCAL idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_MS}`;
export const BEGIN = `BEGIN;${TIME_LIMITS}`;

/** Prisma writes times without a zone and trusts the session to be in UTC. The driver has no setting for it; test/platform/db.test.ts notices when this stops working. */
class Session extends pg.Client {
  getStartupConf(): object {
    const inherited = (pg.Client.prototype as unknown as { getStartupConf(this: Session): object }).getStartupConf.call(this);
    return { ...inherited, TimeZone: "UTC" };
  }
}

export interface PoolOptions {
  readonly url: string;
  readonly size: number;
  readonly applicationName: string;
  readonly log: Log;
}

export const openPool = ({ url, size, applicationName, log }: PoolOptions): pg.Pool => {
  const pool = new pg.Pool({
    Client: Session,
    connectionString: url,
    max: size,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    keepAlive: true,
    // Statements that do not wait for each other travel together; PostgreSQL still runs them one after another.
    pipeline: true,
  });
  // A session may be ended from outside at any time. Without a listener on each, that would end the process; the statement under way is told anyway.
  pool.on("error", (error) => log.warn({ error }, "PostgreSQL ended an idle session"));
  pool.on("connect", (client) => client.on("error", () => undefined));
  // Prisma runs its single statements through this method, too.
  pool.query = ((config: pg.QueryConfig | string, values?: unknown[]) => runAlone(pool, config, values)) as typeof pool.query;
  return pool;
};

/** A read waits for no row, so it goes without the messages around it. Behind a table that a migration locks, this side's own limit ends it. */
const READ = /^\s*(?:select|with)\b(?!.*\b(?:insert|delete|merge|update|share)\b)/is;

/** One statement outside of a transaction. What may wait for a lock gets a transaction of its own, for the limits. */
const runAlone = async (pool: pg.Pool, config: pg.QueryConfig | string, values: unknown[] | undefined): Promise<pg.QueryResult> => {
  const client = await pool.connect();
  const isRead = READ.test(typeof config === "string" ? config : config.text);
  let broken: Error | undefined;
  try {
    return await (isRead ? client.query(config, values) : runLimited(client, config, values));
  } catch (error) {
    // An error of PostgreSQL's leaves a session that is as good as before; after any other nobody knows.
    if (!(error instanceof pg.DatabaseError)) broken = error as Error;
    if (broken !== undefined && isRead) cancel(client);
    throw error;
  } finally {
    client.release(broken);
  }
};

const runLimited = async (client: pg.PoolClient, config: pg.QueryConfig | string, values: unknown[] | undefined): Promise<pg.QueryResult> => {
  const begun = client.query(BEGIN);
  const answered = client.query(config, values);
  const committed = commitTransaction(client);
  // What failed first says why; the others only follow from it.
  const outcomes = await Promise.allSettled([begun, answered, committed]);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  return answered;
};

// PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK and no error. A caller ignored the error of a statement: report it.
export const commitTransaction = async (client: pg.PoolClient): Promise<void> => {
  const { command } = await client.query("COMMIT");
  if (command !== "COMMIT") throw new Error("a statement of this transaction failed and its error was ignored; nothing was written");
};

const CANCEL_REQUEST = 80_877_102;

/** A read that nobody waits for any more would run on: the server notices a closed connection only when it writes to it. */
const cancel = (client: pg.PoolClient): void => {
  const { processID, secretKey, host, port } = client as unknown as { processID?: number; secretKey?: number; host: string; port: number };
  if (processID === undefined || typeof secretKey !== "number") return;
  const request = Buffer.alloc(16);
  [16, CANCEL_REQUEST, processID].forEach((word, index) => void request.writeInt32BE(word, index * 4));
  request.writeInt32BE(secretKey, 12);
  const socket = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy());
  socket.on("error", () => undefined);
  socket.end(request);
};
