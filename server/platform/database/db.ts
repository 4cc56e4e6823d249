// The way to PostgreSQL: Prisma for what people read and write, raw SQL for what is hot, one pool of connections under both.
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import type { Clock } from "../../core/clock.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { nameOfStatement, type Statement } from "../../core/statements.ts";
import { currentWork, type Work } from "../../core/work.ts";
import type { Log } from "../telemetry/log.ts";
import { withTimeout } from "../timeout.ts";
import { type Bulkheads, createBulkheads, createOneBulkhead } from "./bulkheads.ts";
import { createDatabaseHosts } from "./database-hosts.ts";
import { createCondition } from "./db-condition.ts";
import { failsAlone, isAborted, isConflict, isUniqueViolation, meaningOf, noAnswer, type Readiness } from "./db-errors.ts";
import { holdingSession } from "./nested-sessions.ts";
import { arrayText, RAW_TYPES } from "./pg-text-format.ts";
import { beginOf, commitTransaction, type Failed, openPool, type PoolFigures, type SessionPool } from "./pool.ts";
import { openPrisma, type PrismaOnConnections } from "./prisma-clients.ts";
import { type DbSnapshot, withSnapshot } from "./snapshot.ts";
import { snapshotSession } from "./snapshot-session.ts";
import { createClients } from "./tenant-client.ts";

const CLOSE_TIMEOUT_MS = 5_000;
const ATTEMPTS = 3;
/** Time for the other side of a deadlock to wake. A repeat at once could take back the row that the other side waits for, and both would be stuck again. */
const REPEAT_AFTER_MS = 20;

/**
 * Raw, parameterised SQL. Rows come as: timestamptz → Date, int8 and int8[] → number (an error beyond 2^53), jsonb → parsed, bytea → Buffer.
 * Values go as: an array → a PostgreSQL array (so UNNEST($1::text[]) works), Date → timestamptz, Buffer → bytea; JSON goes as text: $1::jsonb.
 * The row type is the caller's promise about its own statement.
 */
export interface Sql {
  query<Row>(text: Statement<Row> | string, values?: readonly unknown[]): Promise<Row[]>;
  /** For statements without RETURNING: how many rows they changed. */
  execute(text: Statement<never> | string, values?: readonly unknown[]): Promise<number>;
}

/** One transaction of raw SQL. Statements run one after another, in the order in which they were given. Dead once the transaction has ended. */
export interface SqlTransaction extends Sql {
  /**
   * For statements that have been given and decide nothing more: COMMIT travels with them instead of waiting for their answers. They are waited
   * for, and their errors told, before the transaction's result is. The work must have given its statements already.
   */
  defer(work: Promise<unknown>): void;
}

/** The same with Prisma on its connection, which costs nothing until it is used. */
export interface Transaction extends SqlTransaction, Tx {
  execute: Sql["execute"];
  query: Sql["query"];
  defer: SqlTransaction["defer"];
}

export interface Db extends Sql, Clients, Pick<Tx, "failsAlone"> {
  poolFigures(): PoolFigures;
  /** Resolves only when PostgreSQL confirmed the COMMIT. `run` is repeated after a deadlock, a lost race or a second row under a unique index, so it must have no effects outside. */
  tx<T>(run: (tx: Transaction) => Promise<T>): Promise<T>;
  /** The same for features whose statements are all raw. */
  sqlTx<T>(run: (tx: SqlTransaction) => Promise<T>): Promise<T>;
  /** Reads of one moment, on a session beside the pool. Nothing of `run` is repeated. */
  snapshot<T>(run: (snapshot: DbSnapshot) => Promise<T>): Promise<T>;
  /** Whether it serves writes. Rejects unless PostgreSQL answers soon. */
  condition(): Promise<Readiness>;
  /** Waits a bounded time for what runs. */
  close(): Promise<void>;
}

export interface DbOptions {
  readonly clock: Clock;
  readonly url: string;
  readonly poolSize: number;
  /** Absent: all work shares all sessions. Their sum replaces `poolSize`. */
  readonly bulkheads?: Bulkheads;
  /** Time limit of a statement of class `lists`. */
  readonly listMs?: number;
  /** For tests. */
  readonly sessionLifeSeconds?: number;
  readonly log: Log;
  /** Shown by PostgreSQL beside each session. */
  readonly applicationName?: string;
  /** False for poolers in transaction mode that know nothing of prepared statements. */
  readonly namedStatements?: boolean;
}

const LIST_MS = 3_000;

const sumOf = ({ sizes }: Bulkheads): number => Object.values(sizes).reduce((sum, size) => sum + size, 0);

export const openDb = async ({
  clock,
  url,
  poolSize,
  bulkheads,
  listMs = LIST_MS,
  sessionLifeSeconds,
  log,
  applicationName = "mooring",
  namedStatements = true,
}: DbOptions): Promise<Db> => {
  const hosts = createDatabaseHosts({ url, applicationName, elapsed: clock.elapsed, log, onMoved: () => pool.replaceAll() });
  const condition = createCondition({ clock, hosts, applicationName, log, onChange: () => pool.replaceAll() });
  const pool = openPool({
    hosts,
    listMs,
    sessionLifeSeconds,
    applicationName,
    log,
    onFailure: condition.noteFailure,
    size: bulkheads === undefined ? poolSize : sumOf(bulkheads),
    bulkheads: bulkheads === undefined ? createOneBulkhead(poolSize) : createBulkheads(bulkheads),
  });
  const prisma = openPrisma(pool);
  const statements = createStatements(namedStatements ? nameOfStatement : () => undefined);
  const parts = { pool, statements, prisma, listMs };
  const tx: Db["tx"] = (run) => {
    const session = snapshotSession();
    if (session !== undefined) return inSnapshot(parts, session, run);
    return currentWork().waits(repeatingConflicts(() => transaction(parts, run)));
  };
  const db: Db = {
    poolFigures: pool.figures,
    ...statements.on(pool),
    ...createClients(prisma.alone),
    failsAlone,
    tx,
    sqlTx: tx,
    snapshot: (run) => withSnapshot({ hosts, applicationName }, run),
    condition: condition.read,
    close: async () => {
      const ended = Promise.all([pool.end(), condition.close()]).finally(() => prisma.close());
      await withTimeout(ended, CLOSE_TIMEOUT_MS, "the database sessions did not end");
    },
  };
  try {
    await Promise.all([pool.query("select 1"), prisma.warm()]);
  } catch (error) {
    await db.close();
    throw error;
  }
  return db;
};

const repeatingConflicts = async <T>(run: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      // Both prove that PostgreSQL wrote nothing. Less certain errors, above all a lost COMMIT, go to the caller. Who looked for a row before inserting
      // it, and lost the race, finds the row the next time, and refuses in its own words.
      if (attempt >= ATTEMPTS || !(isConflict(error) || isUniqueViolation(error))) throw error;
      await delay(REPEAT_AFTER_MS * attempt);
    }
  }
};

interface TransactionDeps {
  readonly listMs: number;
  readonly pool: SessionPool;
  readonly statements: Statements;
  readonly prisma: PrismaOnConnections;
}

const transaction = async <T>({ pool, statements, prisma, listMs }: TransactionDeps, run: (tx: Transaction) => Promise<T>): Promise<T> => {
  const taken = await pool.take();
  const { client, work } = taken;
  const seat: Seat = { client, work };
  const inside = prisma.inside(() => clientOf(seat));
  const deferred: Promise<unknown>[] = [];
  const failures: unknown[] = [];
  const defer = (work: Promise<unknown>): void => {
    work.catch((error: unknown) => void failures.push(error));
    deferred.push(work);
  };
  let failed: Failed | undefined;
  let committing = false;
  try {
    // Do not wait for BEGIN: the first statement travels with it.
    const begun = client.query(beginOf(work, listMs));
    begun.catch(() => undefined);
    const result = await holdingSession(work, () => run({ ...statements.inside(seat), ...createClients(inside.run), defer, failsAlone }));
    await begun;
    if (deferred.length > 0) {
      // A tick comes after all that waits for no answer, so a statement that could not be sent is known, and COMMIT does not keep the others without it.
      await new Promise((resolve) => process.nextTick(resolve));
      if (failures.length > 0) throw failures[0];
    }
    if (work.leftMs() <= 0) throw noAnswer();
    committing = true;
    const committed = commitTransaction(client);
    seat.client = undefined;
    // Report a failed statement before the failed COMMIT that follows from it.
    await Promise.all([...deferred, committed]);
    return result;
  } catch (last) {
    const [first] = (await Promise.allSettled(deferred)).filter(({ status }) => status === "rejected");
    const told: unknown = first?.status === "rejected" ? first.reason : last;
    // If statements were sent together, a later one may be heard first: it only says that the transaction has failed before it.
    const error = isAborted(told) && seat.failure !== undefined ? seat.failure : told;
    failed = { error, committing, rolledBack: await rollBack(client, error) };
    throw error;
  } finally {
    seat.client = undefined;
    inside.end();
    taken.release(failed);
  }
};

/** A transaction within a snapshot is a part of it, so it reads what all others there read. */
const inSnapshot = async <T>(
  { statements, prisma }: Pick<TransactionDeps, "statements" | "prisma">,
  client: pg.PoolClient,
  run: (tx: Transaction) => Promise<T>,
): Promise<T> => {
  const seat: Seat = { client, work: currentWork() };
  const inside = prisma.inside(() => clientOf(seat));
  const deferred: Promise<unknown>[] = [];
  try {
    const result = await run({ ...statements.inside(seat), ...createClients(inside.run), defer: (work) => void deferred.push(work), failsAlone });
    await Promise.all(deferred);
    return result;
  } finally {
    seat.client = undefined;
    inside.end();
  }
};

/** Whether ROLLBACK was answered. A session that goes anyway need not be asked: its end rolls back as well, and waits for nothing. */
const rollBack = async (client: pg.PoolClient, error: unknown): Promise<boolean> => {
  const meaning = meaningOf(error);
  if (meaning !== null && meaning.session !== "kept") return false;
  return client.query("ROLLBACK").then(
    () => true,
    () => false,
  );
};

/** Holds the connection of a transaction until the transaction ends. */
interface Seat {
  client: pg.PoolClient | undefined;
  readonly work: Work;
  /** The error of the last statement that failed by itself. */
  failure?: unknown;
}

const clientOf = ({ client, work }: Seat): pg.PoolClient => {
  if (client === undefined) throw new Error("this transaction has ended");
  if (work.leftMs() <= 0) throw noAnswer();
  return client;
};

/** Returns the name of a statement, or undefined to send it without one. */
type NameOf = (text: string) => string | undefined;

const createStatements = (nameOf: NameOf) => {
  const asked = (text: string, values: readonly unknown[]): pg.QueryConfig => {
    const name = nameOf(text);
    return {
      text,
      values: values.map((value) => (Array.isArray(value) ? arrayText(value) : value)),
      types: RAW_TYPES,
      ...(name === undefined ? {} : { name }),
    };
  };
  const on = (connection: Pick<SessionPool, "query"> | pg.PoolClient): Sql => ({
    query: async <Row>(text: string, values: readonly unknown[] = []) => (await connection.query(asked(text, values))).rows as Row[],
    execute: async (text, values = []) => (await connection.query(asked(text, values))).rowCount ?? 0,
  });
  const inside = (seat: Seat): Sql => {
    const client = () => on(clientOf(seat));
    const noting = async <T>(answer: Promise<T>): Promise<T> => {
      try {
        return await answer;
      } catch (error) {
        if (!isAborted(error)) seat.failure = error;
        throw error;
      }
    };
    return { query: async (text, values) => noting(client().query(text, values)), execute: async (text, values) => noting(client().execute(text, values)) };
  };
  return { on, inside };
};
type Statements = ReturnType<typeof createStatements>;
