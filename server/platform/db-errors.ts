// What a database error means to the caller, whichever of the two doors (pg or Prisma) it came through.
import { AppError } from "../core/errors.ts";

/** Why the database did not serve a request that nothing is wrong with. */
export type DatabaseTrouble =
  /** Both sides collided and PostgreSQL undid one of them. */
  | "conflict"
  | "lock_timeout"
  | "statement_timeout"
  /** Our side ended a transaction that took too long. */
  | "transaction_timeout"
  /** Nothing came back in time: the statement may still run, or the network swallowed its answer. */
  | "no_answer"
  /** All sessions are in use: ours, or those that PostgreSQL grants. */
  | "no_session"
  /** It cannot be reached or lets nobody in. */
  | "away";

/** Null for an error that is not the database's: a defect, or a violated constraint. */
export const troubleOf = (error: unknown): DatabaseTrouble | null => {
  const found = layers(error);
  return SIGNS.find(({ codes, text: words }) => found.some(({ code = "", message }) => codes.test(code) || words?.test(message) === true))?.trouble ?? null;
};

const RETRY_AFTER_SECONDS = 2;

/** The answer to a caller whose request met this error; null when the error is a defect. */
export const databaseError = (error: unknown, retryAfter = RETRY_AFTER_SECONDS): AppError | null => {
  const trouble = troubleOf(error);
  if (trouble === null) return null;
  const options = { retryAfter, cause: error };
  return trouble === "away" ? new AppError("DATABASE_UNAVAILABLE", options) : new AppError("DATABASE_BUSY", { ...options, details: { reason: trouble } });
};

/** The database is away, full or silent: whatever is tried next would wait in vain, too. The outcome of a lost COMMIT is unknown. */
export const isUnavailable = (error: unknown): boolean => isTemporary(error) && !isUndone(error);

/** A row with these values exists. `constraint` is the name of the unique index, as the migrations write it. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean =>
  layers(error).some((layer) => UNIQUE.has(layer.code ?? "") && (constraint === undefined || layers(error).some((other) => other.constraint === constraint)));

/** The database itself undid the work: deadlock, lost race, or a wait that was too long. The same call may succeed when it is made again. */
export const isUndone = (error: unknown): boolean => UNDONE.has(troubleOf(error));

/** Nothing is wrong with the request: the database is away, or undid the work on its own account. */
export const isTemporary = (error: unknown): boolean => troubleOf(error) !== null;

/** The part of the retryable that a transaction repeats by itself: both sides collided, nothing was waited for in vain. */
export const isConflict = (error: unknown): boolean => troubleOf(error) === "conflict";

const UNDONE: ReadonlySet<DatabaseTrouble | null> = new Set(["conflict", "lock_timeout", "statement_timeout"] as const);
const UNIQUE = new Set(["23505", "P2002", "UniqueConstraintViolation"]);

interface Sign {
  readonly trouble: DatabaseTrouble;
  readonly codes: RegExp;
  /** pg and Prisma have no code for these. */
  readonly text?: RegExp;
}

// PostgreSQL's codes, the socket's, Prisma's (P....) and the names that Prisma's adapter gives. The first that fits counts.
const SIGNS: readonly Sign[] = [
  { trouble: "conflict", codes: /^(40001|40P01|P2034|TransactionWriteConflict)$/ },
  { trouble: "lock_timeout", codes: /^55P03$/ },
  { trouble: "statement_timeout", codes: /^57014$/ },
  { trouble: "transaction_timeout", codes: /^25P03$/, text: /on an expired transaction/ },
  { trouble: "no_answer", codes: /^(P1002|P1008|SocketTimeout)$/, text: /^Query read timeout/ },
  {
    trouble: "no_session",
    codes: /^(53300|P2024|P2037|TooManyConnections)$/,
    text: /^timeout exceeded when trying to connect|Unable to start a transaction in the given time/,
  },
  {
    trouble: "away",
    // 57P..: shutting down, crashed, starting up, dropped. 28... and 3D000: password changed under us, database renamed or dropped.
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

// Prisma wraps the driver's error in its own, some under `cause`, some under `meta.driverAdapterError`; Node gathers refused addresses under `errors`.
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
