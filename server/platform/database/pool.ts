// Sessions with PostgreSQL. A session says nothing at its start but what every pooler passes on, and time limits travel with each transaction,
// so PgBouncer may hand each transaction another session.
import pg from "pg";
import { currentWork, type Work } from "../../core/work.ts";
import type { Log } from "../telemetry/log.ts";
import type { ClassFigures, createBulkheads } from "./bulkheads.ts";
import type { DatabaseHosts } from "./database-hosts.ts";
import { failureOf, isServerDoubtful, meaningOf, noAnswer } from "./db-errors.ts";
import { demandDriver, startupOf } from "./driver.ts";
import { requireNotNested } from "./nested-sessions.ts";
import { cancelStatement } from "./pool-cancel.ts";
import { snapshotSession } from "./snapshot-session.ts";

// Our statements take milliseconds. One that takes seconds is blocked, and its caller has given up.
const STATEMENT_TIMEOUT_MS = 5_000;
const LOCK_TIMEOUT_MS = 2_000;
export const IDLE_IN_TRANSACTION_MS = 10_000;
// The server's limits do not help when the network loses its answer, so the client stops waiting a little later.
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 3_000;
/** For the opening of a session. */
export const CONNECT_TIMEOUT_MS = 5_000;
/** After a change of the writer behind a proxy, no session leads to the former one for longer than this, however busy it is. */
const SESSION_LIFE_SECONDS = 1_800;
/** Even a call that has used up its time is told within this. */
const LAST_WORD_MS = 250;
/** Timers of equal length share one list, so limits come in steps. */
const STEP_MS = 50;

const inSteps = (ms: number): number => Math.max(LAST_WORD_MS, Math.ceil(ms / STEP_MS) * STEP_MS);

export interface PoolOptions {
  readonly hosts: DatabaseHosts;
  readonly size: number;
  readonly bulkheads: ReturnType<typeof createBulkheads>;
  /** The time limit of a statement of class `lists`. */
  readonly listMs: number;
  /** A session is replaced at this age; half an hour unless told. */
  readonly sessionLifeSeconds?: number | undefined;
  readonly applicationName: string;
  readonly log: Log;
  /** Hears of each failure of a statement or transaction. */
  readonly onFailure: (error: unknown, work: Work) => void;
}

export interface Failed {
  readonly error: unknown;
  /** ROLLBACK was answered, so the session is as good as before. */
  readonly rolledBack?: boolean;
  /** COMMIT is on its way. Canceling it could give up a wait for the synchronous standby. */
  readonly committing?: boolean;
}

/** A session in the hands of one piece of work. */
export interface TakenSession {
  readonly client: pg.PoolClient;
  readonly work: Work;
  /** Call it once. */
  release(failed?: Failed): void;
}

export interface PoolFigures {
  readonly total: number;
  readonly idle: number;
  /** Calls that wait for a session. */
  readonly waiting: number;
  readonly classes: readonly (readonly [string, ClassFigures])[];
}

export interface SessionPool {
  take(): Promise<TakenSession>;
  /** One statement outside of a transaction. Prisma runs its single statements through this, too. */
  query(config: pg.QueryConfig | string, values?: unknown[]): Promise<pg.QueryResult>;
  figures(): PoolFigures;
  /** Replaces every session: they may lead to a server that is no longer the writer. Those in use end with what they do. */
  replaceAll(): void;
  end(): Promise<void>;
}

/** Prisma writes times without a zone and trusts the session to be in UTC. The driver has no setting for it; test/platform/database/db.test.ts notices when this stops working. */
export class DatabaseSession extends pg.Client {
  /** The time limit of the next statement's answer. */
  answerWithinMs: () => number = () => ANSWER_TIMEOUT_MS;

  constructor(config?: pg.ClientConfig) {
    super(config);
    demandDriver(this);
    // The driver reads it for each statement, so a call's time limit costs no second timer.
    Object.defineProperty(this.connectionParameters, "query_timeout", { get: () => this.answerWithinMs() });
  }

  getStartupConf(): object {
    return { ...startupOf(this), TimeZone: "UTC" };
  }
}

/** Each leads to the server that takes writes when it is opened. */
const sessionsTo = (hosts: DatabaseHosts): typeof DatabaseSession =>
  class extends DatabaseSession {
    constructor(config?: pg.ClientConfig) {
      super({ ...config, connectionString: hosts.current() });
    }
  };

/** Begins a transaction and bounds its statements, in one message, so that the limits cost no round trip. */
export const beginOf = (work: Work, listMs: number): string => {
  const leftMs = work.leftMs();
  const statementMs = inSteps(Math.min(work.workClass === "lists" ? listMs : STATEMENT_TIMEOUT_MS, leftMs));
  const lockMs = inSteps(Math.min(LOCK_TIMEOUT_MS, leftMs));
  return `BEGIN;SET LOCAL statement_timeout=${statementMs};SET LOCAL lock_timeout=${lockMs};SET LOCAL idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_MS}`;
};

/** PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK and no error. A caller ignored the error of a statement: report it. */
export const commitTransaction = async (client: pg.PoolClient): Promise<void> => {
  const { command } = await client.query("COMMIT");
  if (command !== "COMMIT") throw new Error("a statement of this transaction failed and its error was ignored; nothing was written");
};

export const openPool = ({
  hosts,
  size,
  bulkheads,
  listMs,
  sessionLifeSeconds = SESSION_LIFE_SECONDS,
  applicationName,
  log,
  onFailure,
}: PoolOptions): SessionPool => {
  const pool = new pg.Pool({
    Client: sessionsTo(hosts),
    max: size,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    maxLifetimeSeconds: sessionLifeSeconds,
    keepAlive: true,
    // Statements that do not wait for each other travel together; PostgreSQL still runs them one after another.
    pipeline: true,
  });
  // Sessions of an older generation may lead to a server that is no longer the writer.
  let generation = 0;
  const born = new WeakMap<pg.ClientBase, number>();
  const isStale = (client: pg.ClientBase): boolean => born.get(client) !== generation;
  // A session may be ended from outside at any time. Without a listener on each, that would end the process; the statement under way is told anyway.
  pool.on("error", (error) => log.warn({ error }, "PostgreSQL ended an idle session"));
  pool.on("connect", (client) => {
    born.set(client, generation);
    client.on("error", () => undefined);
  });

  const replaceAll = (): void => {
    generation += 1;
    for (let idle = pool.idleCount; idle > 0; idle -= 1)
      void pool.connect().then(
        (client) => client.release(isStale(client)),
        () => undefined,
      );
  };

  const connect = (work: Work): Promise<pg.PoolClient> => {
    const settling = hosts.settling();
    return settling === null ? dial(work) : settling.then(() => dial(work));
  };
  /** A free session is there at once; a new one may take as long as the call has left. */
  const dial = (work: Work): Promise<pg.PoolClient> => {
    const connecting = pool.connect();
    const leftMs = work.leftMs();
    if (pool.idleCount > 0 || leftMs >= CONNECT_TIMEOUT_MS) return connecting;
    return new Promise((resolve, reject) => {
      let late = false;
      const giveUp = (): void => {
        late = true;
        reject(noAnswer());
      };
      const timer = setTimeout(giveUp, inSteps(leftMs));
      connecting.then(
        (client) => {
          clearTimeout(timer);
          if (late) client.release();
          else resolve(client);
        },
        (error: unknown) => {
          clearTimeout(timer);
          reject(error);
        },
      );
    });
  };

  const fresh = async (work: Work): Promise<pg.PoolClient> => {
    for (;;) {
      const client = await connect(work);
      if (!isStale(client)) return client;
      client.release(true);
    }
  };

  /** Returns whether the session is to be discarded. */
  const judge = ({ client, work }: Pick<TakenSession, "client" | "work">, { error, rolledBack = false, committing = false }: Failed): boolean => {
    onFailure(error, work);
    const meaning = meaningOf(error);
    if (meaning?.session === "all" && !isStale(client)) replaceAll();
    if (isServerDoubtful(error)) hosts.doubt();
    if (rolledBack) return false;
    // Nobody waits for its statement any more, and the server would notice a closed connection only when it writes to it.
    if (failureOf(error) === "no_answer" && !committing) cancelStatement(client);
    // An error of PostgreSQL's leaves a session that is as good as before; after any other nobody knows.
    return meaning === null ? !(error instanceof pg.DatabaseError) : meaning.session !== "kept";
  };

  const take: SessionPool["take"] = async () => {
    const work = currentWork();
    requireNotNested(work);
    const leave = await bulkheads.enter(work);
    try {
      const client = await fresh(work);
      if (client instanceof DatabaseSession) client.answerWithinMs = () => inSteps(Math.min(ANSWER_TIMEOUT_MS, work.leftMs()));
      return {
        client,
        work,
        release: (failed) => {
          const isBroken = failed !== undefined && judge({ client, work }, failed);
          client.release(isBroken || isStale(client));
          leave();
        },
      };
    } catch (error) {
      leave();
      if (isServerDoubtful(error)) hosts.doubt();
      onFailure(error, work);
      throw error;
    }
  };

  const alone = async (config: pg.QueryConfig | string, values: unknown[] | undefined): Promise<pg.QueryResult> => {
    const snapshot = snapshotSession();
    if (snapshot !== undefined) return snapshot.query(config, values);
    const isRead = READ.test(typeof config === "string" ? config : config.text);
    const taken = await take();
    const { client, work } = taken;
    try {
      if (isRead && work.workClass === "lists" && client instanceof DatabaseSession) client.answerWithinMs = () => inSteps(Math.min(listMs, work.leftMs()));
      const result = await (isRead ? client.query(config, values) : limited(client, beginOf(work, listMs), () => client.query(config, values)));
      taken.release();
      return result;
    } catch (error) {
      taken.release({ error, committing: !isRead });
      throw error;
    }
  };

  return {
    take,
    query: (config, values) => currentWork().waits(alone(config, values)),
    figures: () => {
      const classes = bulkheads.figures();
      return { total: pool.totalCount, idle: pool.idleCount, waiting: classes.reduce((sum, [, { waiting }]) => sum + waiting, 0), classes };
    },
    replaceAll,
    end: () => pool.end(),
  };
};

/** A read waits for no row, so it goes without the messages around it. Behind a table that a migration locks, this side's own limit ends it. */
const READ = /^\s*(?:select|with)\b(?!.*\b(?:insert|delete|merge|update|share)\b)/is;

/** What may wait for a lock gets a transaction of its own, for the limits. */
const limited = async (client: pg.PoolClient, begin: string, run: () => Promise<pg.QueryResult>): Promise<pg.QueryResult> => {
  const begun = client.query(begin);
  const answered = run();
  const committed = commitTransaction(client);
  // What failed first says why; the others only follow from it.
  const outcomes = await Promise.allSettled([begun, answered, committed]);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  return answered;
};
