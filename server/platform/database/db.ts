// The way to PostgreSQL: Prisma for what people read and write, raw SQL for what is hot, one pool of connections under both.
import type pg from "pg";
import type { Clients, Tx } from "../../core/database.ts";
import { nameOfStatement, type Statement } from "../../core/statements.ts";
import type { Log } from "../telemetry/log.ts";
import { within } from "../timeout.ts";
import { isAborted, isConflict, isUniqueViolation } from "./db-errors.ts";
import { arrayText, RAW_TYPES } from "./pg-text-format.ts";
import { BEGIN, commitTransaction, openPool } from "./pool.ts";
import { openPrisma, type PrismaOnConnections } from "./prisma-clients.ts";
import { createClients } from "./tenant-client.ts";

const HEALTH_TIMEOUT_MS = 2_000;
const CLOSE_TIMEOUT_MS = 5_000;
const ATTEMPTS = 3;

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

export interface PoolFigures {
  readonly total: number;
  readonly idle: number;
  /** Calls that wait for a connection. */
  readonly waiting: number;
}

export interface Db extends Sql, Clients {
  poolFigures(): PoolFigures;
  /** Resolves only when PostgreSQL confirmed the COMMIT. `run` is repeated after a deadlock, a lost race or a second row under a unique index, so it must have no effects outside. */
  tx<T>(run: (tx: Transaction) => Promise<T>): Promise<T>;
  /** The same for features whose statements are all raw. */
  sqlTx<T>(run: (tx: SqlTransaction) => Promise<T>): Promise<T>;
  /** Rejects unless PostgreSQL answers soon. */
  healthy(): Promise<void>;
  /** Waits a bounded time for what runs. */
  close(): Promise<void>;
}

export interface DbOptions {
  readonly url: string;
  readonly poolSize: number;
  readonly log: Log;
  /** Shown by PostgreSQL beside each session. */
  readonly applicationName?: string;
  /** False for poolers in transaction mode that know nothing of prepared statements. */
  readonly namedStatements?: boolean;
}

export const openDb = async ({ url, poolSize, log, applicationName = "mooring", namedStatements = true }: DbOptions): Promise<Db> => {
  const pool = openPool({ url, size: poolSize, applicationName, log });
  const prisma = openPrisma(pool);
  const statements = createStatements(namedStatements ? nameOfStatement : () => undefined);
  const tx: Db["tx"] = (run) => repeatingConflicts(() => transaction({ pool, statements, prisma }, run));
  const db: Db = {
    poolFigures: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    ...statements.on(pool),
    ...createClients(prisma.alone),
    tx,
    sqlTx: tx,
    healthy: async () => {
      await within(pool.query("select 1"), HEALTH_TIMEOUT_MS, "the database did not answer");
    },
    close: () =>
      within(
        prisma.close().then(() => pool.end()),
        CLOSE_TIMEOUT_MS,
        "the database sessions did not end",
      ),
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
    }
  }
};

interface TransactionDeps {
  readonly pool: pg.Pool;
  readonly statements: Statements;
  readonly prisma: PrismaOnConnections;
}

const transaction = async <T>({ pool, statements, prisma }: TransactionDeps, run: (tx: Transaction) => Promise<T>): Promise<T> => {
  const client = await pool.connect();
  const seat: Seat = { client };
  const inside = prisma.inside(() => clientOf(seat));
  const deferred: Promise<unknown>[] = [];
  const defer = (work: Promise<unknown>): void => {
    work.catch(() => undefined);
    deferred.push(work);
  };
  let broken: Error | undefined;
  try {
    // Do not wait for BEGIN: the first statement travels with it.
    const begun = client.query(BEGIN);
    begun.catch(() => undefined);
    const result = await run({ ...statements.inside(seat), ...createClients(inside.run), defer });
    await begun;
    const committed = commitTransaction(client);
    seat.client = undefined;
    // Report a failed statement before the failed COMMIT that follows from it.
    await Promise.all([...deferred, committed]);
    return result;
  } catch (last) {
    const [first] = (await Promise.allSettled(deferred)).filter(({ status }) => status === "rejected");
    const told: unknown = first?.status === "rejected" ? first.reason : last;
    // Of statements that were sent together, a later one may be heard first: it only says that the transaction has failed before it.
    const error = isAborted(told) && seat.failure !== undefined ? seat.failure : told;
    await client.query("ROLLBACK").catch((cause: unknown) => (broken = new Error("connection is in an unknown state", { cause })));
    throw error;
  } finally {
    seat.client = undefined;
    inside.end();
    client.release(broken);
  }
};

/** Holds the connection of a transaction until the transaction ends. */
interface Seat {
  client: pg.PoolClient | undefined;
  /** Of the last statement that failed by itself. */
  failure?: unknown;
}

const clientOf = ({ client }: Seat): pg.PoolClient => {
  if (client === undefined) throw new Error("this transaction has ended");
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
  const on = (connection: pg.Pool | pg.PoolClient): Sql => ({
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
