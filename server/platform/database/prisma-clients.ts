// Prisma on our own connections. Prisma accepts no connection and does not reveal the one it uses, so its statements could not share a transaction
// with raw SQL. Here its driver adapter gets pools that never connect and hand out the connection of the running transaction.
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import { type Prisma, PrismaClient } from "../../../prisma/generated/client.ts";
import { CONNECT_TIMEOUT_MS, IDLE_IN_TRANSACTION_MS, type SessionPool } from "./pool.ts";

/** Runs one operation on a Prisma client: the one of a transaction, or the one for single statements. */
export type RunOperation = (operation: (prisma: Prisma.TransactionClient) => PromiseLike<unknown>) => Promise<unknown>;

export interface PrismaOnConnections {
  /** Each operation is one statement, on any connection of the pool. */
  readonly alone: RunOperation;
  /** For one transaction. `connection` throws once that has ended. */
  inside(connection: () => pg.PoolClient): { readonly run: RunOperation; end(): void };
  /** Loads the query compiler: a quarter of a second of work, which the first request would wait for. */
  warm(): Promise<void>;
  close(): void;
}

type Query = SessionPool["query"];

/** A client for single statements, and one for transactions. */
interface PrismaPair {
  readonly single: PrismaClient;
  readonly transactions: ReturnType<typeof createTransactions>;
  /** Where single statements go from now on. */
  lead(query: Query): void;
}

const refuse = (): Promise<never> => Promise.reject(new Error("Connection ended: the database is closed"));
/** Pairs whose database is closed. The next one of this process gets them, since a new client compiles every query anew. */
const free: PrismaPair[] = [];

const createPair = (): PrismaPair => {
  let query: Query = refuse;
  const connect = async () => Promise.reject(new Error("this operation takes several statements: run it in a transaction"));
  const single = clientOn(poolOf(((config: pg.QueryConfig | string, values?: unknown[]) => query(config, values)) as pg.Pool["query"], connect)); // as: Prisma's adapter uses this form alone
  return {
    single,
    transactions: createTransactions(),
    lead: (to) => {
      query = to;
    },
  };
};

export const openPrisma = (pool: Pick<SessionPool, "query">): PrismaOnConnections => {
  const pair = free.pop() ?? createPair();
  const { single, transactions } = pair;
  pair.lead(pool.query);
  let isClosed = false;
  return {
    alone: (operation) => (isClosed ? refuse() : Promise.resolve(operation(single))),
    inside: (connection) => {
      let opened: Promise<Opened> | undefined;
      return {
        run: async (operation) => {
          opened ??= transactions.open(connection);
          return operation((await opened).client);
        },
        end: () => {
          opened?.then(
            ({ close }) => close(),
            () => undefined,
          );
        },
      };
    },
    warm: async () => {
      await Promise.all([single.$connect(), transactions.client.$connect()]);
    },
    close: () => {
      if (isClosed) return;
      isClosed = true;
      pair.lead(refuse);
      free.push(pair);
    },
  };
};

const clientOn = (pool: pg.Pool): PrismaClient =>
  new PrismaClient({ adapter: new PrismaPg(pool), transactionOptions: { maxWait: CONNECT_TIMEOUT_MS, timeout: IDLE_IN_TRANSACTION_MS } });

/** Prisma's adapter accepts nothing but a pool. This one has no connections of its own. */
const poolOf = (query: pg.Pool["query"], connect: () => Promise<pg.PoolClient>): pg.Pool => Object.assign(new pg.Pool(), { query, connect });

interface Opened {
  readonly client: Prisma.TransactionClient;
  close(): void;
}

/** One Prisma client for all transactions, since each client compiles every query anew. */
const createTransactions = () => {
  let next: { readonly connection: () => pg.PoolClient; taken(): void } | undefined;
  const take = async (): Promise<pg.PoolClient> => {
    if (next === undefined) throw new Error("nobody has handed over a connection");
    const { connection, taken } = next;
    next = undefined;
    taken();
    return withoutControl(connection);
  };
  const client = clientOn(poolOf((() => Promise.reject(new Error("outside of a transaction"))) as pg.Pool["query"], take));
  // One at a time, so that nobody takes the connection of another.
  let turn: Promise<void> = Promise.resolve();
  const open = (connection: () => pg.PoolClient): Promise<Opened> =>
    new Promise((resolve, reject) => {
      const handOver = (): Promise<void> =>
        new Promise((taken) => {
          next = { connection, taken };
          client
            .$transaction((inner) => new Promise<void>((close) => resolve({ client: inner, close })))
            .catch(reject)
            .finally(taken);
        });
      turn = turn.then(handOver);
    });
  return { client, open };
};

const CONTROL = new Set(["BEGIN", "COMMIT", "ROLLBACK"]);

/** What Prisma does with a connection, except that the transaction on it begins and ends without Prisma. */
const withoutControl = (connection: () => pg.PoolClient): pg.PoolClient => {
  const nothing = (): void => undefined;
  const query = async (config: pg.QueryConfig) => (CONTROL.has(config.text) ? { fields: [], rows: [], rowCount: 0 } : connection().query(config));
  return { query, on: nothing, removeListener: nothing, release: nothing } as unknown as pg.PoolClient;
};
