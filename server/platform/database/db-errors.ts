// Translates database errors, from pg and from Prisma, into what they mean for the caller.
import { AppError } from "../../core/errors.ts";

/** Why the database failed a request that is itself in order. */
export type DatabaseFailure =
  /** Two transactions collided and PostgreSQL rolled one of them back. */
  | "conflict"
  | "lock_timeout"
  | "statement_timeout"
  /** We ended a transaction that took too long. */
  | "transaction_timeout"
  /** No answer came in time: the statement may still run, or the network lost the answer. */
  | "no_answer"
  /** Our pool or PostgreSQL has no connection left. */
  | "no_session"
  /** PostgreSQL cannot be reached or accepts no logins. */
  | "away";

/** Null for a defect of ours and for a violated constraint. */
export const failureOf = (error: unknown): DatabaseFailure | null => {
  const found = layers(error);
  return SIGNS.find(({ codes, text: words }) => found.some(({ code = "", message }) => codes.test(code) || words?.test(message) === true))?.failure ?? null;
};

const RETRY_AFTER_SECONDS = 2;

/** The error that the caller gets; null when it is a defect of ours. */
export const databaseError = (error: unknown, retryAfter = RETRY_AFTER_SECONDS): AppError | null => {
  const failure = failureOf(error);
  if (failure === null) return null;
  const options = { retryAfter, cause: error };
  return failure === "away" ? new AppError("DATABASE_UNAVAILABLE", options) : new AppError("DATABASE_BUSY", { ...options, details: { reason: failure } });
};

/** The database is away, full or silent, so the next attempt would fail too. The outcome of a lost COMMIT is unknown. */
export const isUnavailable = (error: unknown): boolean => isTemporary(error) && !isUndone(error);

/** A row with these values exists. `constraint` is the name of the unique index in the migrations. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean =>
  layers(error).some((layer) => UNIQUE.has(layer.code ?? "") && (constraint === undefined || layers(error).some((other) => other.constraint === constraint)));

/** The unique index that a second row violates, by its name in the migrations; null for every other failure. */
export const violatedIndex = (error: unknown): string | null => {
  const found = isUniqueViolation(error) ? layers(error).find(({ constraint }) => constraint !== undefined) : undefined;
  return found?.constraint ?? null;
};

/** Null where Prisma found no row to change or delete. */
export const orNull = <T>(work: Promise<T>): Promise<T | null> =>
  work.catch((error: unknown) => {
    if (field(error, "code") === "P2025") return null;
    throw error;
  });

/** Null where rows of other tables still point to what should be deleted. */
export const unlessReferenced = <T>(work: Promise<T>): Promise<T | null> =>
  work.catch((error: unknown) => {
    if (layers(error).some(({ code = "" }) => REFERENCED.has(code))) return null;
    throw error;
  });

/** PostgreSQL rolled the work back: a deadlock, a lost race or a wait that took too long. The same call may succeed the next time. */
export const isUndone = (error: unknown): boolean => ROLLED_BACK.has(failureOf(error));

/** The request is in order: the database is away or rolled the work back. */
export const isTemporary = (error: unknown): boolean => failureOf(error) !== null;

/** The transaction has failed earlier; this only says so. */
export const isAborted = (error: unknown): boolean => typeof error === "object" && error !== null && "code" in error && error.code === "25P02";

/** Of the rollbacks, those that a transaction repeats by itself: two collided and neither waited in vain. */
export const isConflict = (error: unknown): boolean => failureOf(error) === "conflict";

const ROLLED_BACK: ReadonlySet<DatabaseFailure | null> = new Set(["conflict", "lock_timeout", "statement_timeout"] as const);
const REFERENCED = new Set(["23001", "23503", "P2003", "ForeignKeyConstraintViolation"]);
const UNIQUE = new Set(["23505", "P2002", "UniqueConstraintViolation"]);

interface Sign {
  readonly failure: DatabaseFailure;
  readonly codes: RegExp;
  /** For errors without a code. */
  readonly text?: RegExp;
}

// Codes of PostgreSQL, of sockets and of Prisma (P....), and the error names of Prisma's adapter. The first match counts.
const SIGNS: readonly Sign[] = [
  { failure: "conflict", codes: /^(40001|40P01|P2034|TransactionWriteConflict)$/ },
  { failure: "lock_timeout", codes: /^55P03$/ },
  { failure: "statement_timeout", codes: /^57014$/ },
  { failure: "transaction_timeout", codes: /^25P03$/, text: /on an expired transaction/ },
  { failure: "no_answer", codes: /^(P1002|P1008|SocketTimeout)$/, text: /^Query read timeout/ },
  {
    failure: "no_session",
    codes: /^(53300|P2024|P2037|TooManyConnections)$/,
    text: /^timeout exceeded when trying to connect|Unable to start a transaction in the given time/,
  },
  {
    failure: "away",
    // 57P..: shutting down, crashed, starting up, dropped. 28... and 3D000: somebody changed our password, or renamed or dropped the database.
    codes:
      /^(08...|57P0[1-4]|28P01|28000|3D000|ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|P1001|P1017|DatabaseNotReachable|ConnectionClosed)$/,
    text: /^(Connection terminated|Connection ended|Client was closed|Client has encountered a connection error|timeout expired|Cannot use a pool after calling end|Server has closed the connection)|is not currently accepting connections$/,
  },
];

interface Layer {
  readonly code: string | undefined;
  readonly message: string;
  readonly constraint: string | undefined;
}

const MAX_LAYERS = 12;

// Prisma wraps the driver's error, sometimes as `cause`, sometimes as `meta.driverAdapterError`; Node lists refused addresses under `errors`.
const layers = (error: unknown): readonly Layer[] => {
  const found: Layer[] = [];
  const queue: unknown[] = [error];
  while (queue.length > 0 && found.length < MAX_LAYERS) {
    const part = queue.shift();
    if (typeof part !== "object" || part === null) continue;
    const message = text(part, "message") ?? text(part, "originalMessage") ?? "";
    const constraint = text(part, "constraint") ?? text(field(part, "constraint"), "index");
    for (const name of ["code", "originalCode", "kind"]) found.push({ code: text(part, name), message, constraint });
    const gathered = field(part, "errors");
    queue.push(field(part, "cause"), field(field(part, "meta"), "driverAdapterError"), ...(Array.isArray(gathered) ? gathered : []));
  }
  return found;
};

const field = (part: unknown, name: string): unknown => (typeof part === "object" && part !== null ? Reflect.get(part, name) : undefined);

const text = (part: unknown, name: string): string | undefined => {
  const value = field(part, name);
  return typeof value === "string" ? value : undefined;
};
