// The one door to PostgreSQL: Prisma for what is read by people, raw SQL for what is hot, one pool of connections under both.
import { AsyncLocalStorage } from "node:async_hooks";
import { PrismaPg } from "@prisma/adapter-pg";
import type { SqlDriverAdapterFactory } from "@prisma/driver-adapter-utils";
import pg from "pg";
import { type Prisma, PrismaClient } from "../../prisma/generated/client.ts";
import { isConflict } from "./db-errors.ts";
import type { Log } from "./log.ts";
import type { PoolFigures } from "./metrics-base.ts";
import { BEGIN, CONNECT_TIMEOUT_MS, commit, IDLE_IN_TRANSACTION_MS, LIMITS, openPool } from "./pool.ts";
import { createStatementNames } from "./statements.ts";
import { within } from "./time-bound.ts";
import { arrayText, RAW_TYPES } from "./wire.ts";

const HEALTH_TIMEOUT_MS = 2_000;
const CLOSE_TIMEOUT_MS = 5_000;
const ATTEMPTS = 3;

/**
 * Raw, parameterised SQL. Rows come as: timestamptz → Date, int8 and int8[] → number (an error beyond 2^53), jsonb → parsed, bytea → Buffer.
 * Values go as: an array → a PostgreSQL array (so UNNEST($1::text[]) works), Date → timestamptz, Buffer → bytea; JSON goes as text: $1::jsonb.
 * The row type is the caller's promise about its own statement.
 */
export interface Sql {
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** For statements without RETURNING: how many rows they changed. */
  execute(text: string, values?: readonly unknown[]): Promise<number>;
}

/** One transaction through both doors; both see each other's uncommitted rows. Statements run one after another, in the order in which they were given. Dead once the transaction has ended. */
export interface Tx extends Sql {
  readonly prisma: Prisma.TransactionClient;
}

/** One transaction of raw SQL. */
export interface SqlTransaction extends Sql {
  /**
   * For statements that have been given and decide nothing more: COMMIT travels with them instead of waiting for their answers. They are waited
   * for, and their errors told, before the transaction's result is. The work must have given its statements already.
   */
  defer(work: Promise<unknown>): void;
}

export interface Db extends Sql {
  readonly prisma: PrismaClient;
  poolFigures(): PoolFigures;
  /** Prisma and raw SQL in one transaction. Resolves only when PostgreSQL confirmed the COMMIT. `run` is repeated after a deadlock or a lost race, so it must have no effects outside. */
  tx<T>(run: (tx: Tx) => Promise<T>): Promise<T>;
  /** The same for raw SQL alone, without Prisma's overhead. */
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
  const prisma = new PrismaClient({ adapter: sharingTransactions(pool), transactionOptions: { maxWait: CONNECT_TIMEOUT_MS, timeout: IDLE_IN_TRANSACTION_MS } });
  const statements = createStatements(namedStatements ? createStatementNames() : () => undefined);
  const db: Db = {
    prisma,
    poolFigures: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    ...statements.on(pool),
    tx: (run) => repeatingConflicts(() => prismaTransaction({ prisma, statements }, run)),
    sqlTx: (run) => repeatingConflicts(() => rawTransaction({ pool, statements }, run)),
    healthy: async () => {
      await within(pool.query("select 1"), HEALTH_TIMEOUT_MS, "the database did not answer");
    },
    close: () =>
      within(
        prisma.$disconnect().then(() => pool.end()),
        CLOSE_TIMEOUT_MS,
        "the database sessions did not end",
      ),
  };
  try {
    await pool.query("select 1");
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
      // A conflict is PostgreSQL's word that nothing was written. Anything less certain, a lost COMMIT above all, is the caller's to hear.
      if (attempt >= ATTEMPTS || !isConflict(error)) throw error;
    }
  }
};

const rawTransaction = async <T>(
  { pool, statements }: { readonly pool: pg.Pool; readonly statements: Statements },
  run: (tx: SqlTransaction) => Promise<T>,
): Promise<T> => {
  const client = await pool.connect();
  const seat: Seat = { client };
  const deferred: Promise<unknown>[] = [];
  const defer = (work: Promise<unknown>): void => {
    work.catch(() => undefined);
    deferred.push(work);
  };
  let broken: Error | undefined;
  try {
    // The first statement follows on its heels: it need not come back to say that nothing stands against it.
    const begun = client.query(BEGIN);
    begun.catch(() => undefined);
    const result = await run({ ...statements.inside(seat), defer });
    await begun;
    const committed = commit(client);
    seat.client = undefined;
    // What failed says why; that nothing was committed only follows from it.
    await Promise.all([...deferred, committed]);
    return result;
  } catch (last) {
    const [first] = (await Promise.allSettled(deferred)).filter(({ status }) => status === "rejected");
    const error: unknown = first?.status === "rejected" ? first.reason : last;
    await client.query("ROLLBACK").catch((cause: unknown) => (broken = new Error("connection is in an unknown state", { cause })));
    throw error;
  } finally {
    seat.client = undefined;
    client.release(broken);
  }
};

/** The connection a transaction sits on, until it ends. */
interface Seat {
  client: pg.PoolClient | undefined;
}

// Prisma hides the connection of its interactive transactions. Its adapter opens it within our call, so the call's context carries it out.
const seats = new AsyncLocalStorage<Seat>();

const prismaTransaction = async <T>(
  { prisma, statements }: { readonly prisma: PrismaClient; readonly statements: Statements },
  run: (tx: Tx) => Promise<T>,
): Promise<T> => {
  const seat: Seat = { client: undefined };
  try {
    return await seats.run(seat, () => prisma.$transaction((inner) => run({ prisma: inner, ...statements.inside(seat) })));
  } finally {
    seat.client = undefined;
  }
};

const sharingTransactions = (pool: pg.Pool): SqlDriverAdapterFactory => {
  const factory = new PrismaPg(pool);
  const connect = factory.connect.bind(factory);
  factory.connect = async () => {
    const adapter = await connect();
    const startTransaction = adapter.startTransaction.bind(adapter);
    adapter.startTransaction = async (isolationLevel) => {
      const transaction = await startTransaction(isolationLevel);
      const client = connectionOf(transaction);
      // Travels with the first statement. Its failure is that statement's, too.
      client.query(LIMITS).catch(() => undefined);
      const seat = seats.getStore();
      // A transaction that a room opens within ours has a connection of its own and must not take our seat.
      if (seat !== undefined && seat.client === undefined) seat.client = client;
      const executeRaw = transaction.executeRaw.bind(transaction);
      transaction.executeRaw = async (query) => {
        // Commit, rollback or Prisma's own timeout: from here on the connection belongs to the pool again.
        const ending = query.sql === "COMMIT" || query.sql === "ROLLBACK";
        if (ending && seat?.client === client) seat.client = undefined;
        if (query.sql !== "COMMIT") return executeRaw(query);
        await commit(client);
        return 0;
      };
      return transaction;
    };
    return adapter;
  };
  return factory;
};

// The adapter keeps its connection in a field that its types hide; test/platform/db.test.ts notices when that changes.
const connectionOf = (transaction: object): pg.PoolClient => {
  const client: unknown = Reflect.get(transaction, "client");
  if (!(client instanceof pg.Client)) throw new Error("@prisma/adapter-pg no longer keeps its connection in `client`");
  return client as pg.PoolClient;
};

/** A statement's name; undefined for one that is sent without. */
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
    const client = (): pg.PoolClient => {
      if (seat.client === undefined) throw new Error("this transaction has ended");
      return seat.client;
    };
    return { query: async (text, values) => on(client()).query(text, values), execute: async (text, values) => on(client()).execute(text, values) };
  };
  return { on, inside };
};
type Statements = ReturnType<typeof createStatements>;
