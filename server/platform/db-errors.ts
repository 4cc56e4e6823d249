// What a database error means to the caller, whichever of the two doors (pg or Prisma) it came through.

/** The database is away or full, not the request wrong: answer "unavailable, try again" and change nothing. The outcome of a lost COMMIT is unknown. */
export const isUnavailable = (error: unknown): boolean =>
  layers(error).some(({ code, message }) => (code !== undefined && (AWAY.has(code) || code.startsWith("08"))) || AWAY_TEXT.test(message));

/** A row with these values exists. `constraint` is the name of the unique index, as the migrations write it. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean =>
  layers(error).some((layer) => UNIQUE.has(layer.code ?? "") && (constraint === undefined || layers(error).some((other) => other.constraint === constraint)));

/** The database itself undid the work: deadlock, lost race, or a wait that was too long. The same call may succeed when it is made again. */
export const isRetryable = (error: unknown): boolean =>
  isConflict(error) || layers(error).some(({ code }) => code === STATEMENT_CANCELED || code === LOCK_NOT_AVAILABLE);

/** Nothing is wrong with the request: the database is away, or undid the work on its own account. */
export const isTemporary = (error: unknown): boolean => isUnavailable(error) || isRetryable(error);

/** The part of the retryable that a transaction repeats by itself: both sides collided, nothing was waited for in vain. */
export const isConflict = (error: unknown): boolean => layers(error).some(({ code }) => CONFLICT.has(code ?? ""));

const STATEMENT_CANCELED = "57014";
const LOCK_NOT_AVAILABLE = "55P03";
const CONFLICT = new Set(["40001", "40P01", "P2034", "TransactionWriteConflict"]);
const UNIQUE = new Set(["23505", "P2002", "UniqueConstraintViolation"]);

const AWAY = new Set([
  // PostgreSQL: shutting down, crashed, starting up, dropped, too many connections, session ended for idling in a transaction.
  "57P01",
  "57P02",
  "57P03",
  "57P04",
  "53300",
  "25P03",
  // PostgreSQL lets nobody of ours in: password changed under us, database renamed or dropped.
  "28P01",
  "28000",
  "3D000",
  // The socket.
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  // Prisma: unreachable, timed out, closed, pool exhausted, too many connections; and the adapter's names for the same.
  "P1001",
  "P1002",
  "P1008",
  "P1017",
  "P2024",
  "P2037",
  "DatabaseNotReachable",
  "ConnectionClosed",
  "SocketTimeout",
  "TooManyConnections",
]);

// pg and Prisma have no code for these.
const AWAY_TEXT =
  /^(Connection terminated|Connection ended|Client was closed|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired|Query read timeout|Cannot use a pool after calling end|Server has closed the connection)|is not currently accepting connections$|Unable to start a transaction in the given time/;

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
