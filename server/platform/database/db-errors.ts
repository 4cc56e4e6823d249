// Translates database errors, from pg and from Prisma, into what they mean for the caller.
import type { Details } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { WorkClass } from "../../core/work.ts";

/** Why the database failed a request that is itself in order. */
export type DatabaseFailure = keyof typeof MEANINGS;

/** Public, so without addresses and secrets. A degraded node keeps its traffic. */
export interface Readiness {
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly message: string;
}

/** What one kind of failure means, for the caller, for the session and for the node. */
export interface Meaning {
  /** SQLSTATEs of PostgreSQL, codes of sockets and of Prisma (P....), names of Prisma's adapter. No code belongs to two rows. */
  readonly codes: RegExp;
  /** For errors without a code. */
  readonly text?: RegExp;
  readonly answer: "DATABASE_BUSY" | "DATABASE_UNAVAILABLE" | "DATABASE_READ_ONLY" | "DATABASE_FULL" | "RATE_LIMIT_EXCEEDED";
  /** Seconds until a repeat makes sense. */
  readonly retryAfter: number;
  /** The fate of the session on which it happened. `all`: the others lead to the same server, so they go as well. */
  readonly session: "kept" | "discarded" | "all";
  /** PostgreSQL certainly wrote nothing. */
  readonly undone: boolean;
  /** A transaction repeats it by itself: two collided and neither waited in vain. */
  readonly repeated: boolean;
  /** The next attempt of the same moment would fail too. */
  readonly lasts: boolean;
  /** The readiness of a node whose writes have failed so lately; failed reads do not count. Null: the probe says enough. */
  readonly readiness: Readiness | null;
}

const degraded = (message: string): Readiness => ({ status: "degraded", message });
const unhealthy = (message: string): Readiness => ({ status: "unhealthy", message });

/** The one place that says what a SQLSTATE means. A code without a row is a defect of ours or a violated constraint: the session stays, the answer is 500. */
export const MEANINGS = {
  /** Two transactions collided and PostgreSQL rolled one of them back. */
  conflict: {
    codes: /^(40000|40001|40P01|P2034|TransactionWriteConflict)$/,
    answer: "DATABASE_BUSY",
    retryAfter: 2,
    session: "kept",
    undone: true,
    repeated: true,
    lasts: false,
    readiness: null,
  },
  lock_timeout: {
    codes: /^55P03$/,
    answer: "DATABASE_BUSY",
    retryAfter: 2,
    session: "kept",
    undone: true,
    repeated: false,
    lasts: false,
    readiness: degraded("answers, but writes wait for locks of others"),
  },
  /** A statement took too long, or somebody canceled it. */
  statement_timeout: {
    codes: /^57014$/,
    answer: "DATABASE_BUSY",
    retryAfter: 2,
    session: "kept",
    undone: true,
    repeated: false,
    lasts: false,
    readiness: degraded("answers, but writes take too long"),
  },
  /** We, or PostgreSQL, ended a transaction that took too long. */
  transaction_timeout: {
    codes: /^25P0[34]$/,
    text: /on an expired transaction/,
    answer: "DATABASE_BUSY",
    retryAfter: 2,
    session: "discarded",
    undone: true,
    repeated: false,
    lasts: true,
    readiness: degraded("answers, but writes take too long"),
  },
  /** No answer came in time: the statement may still run, or the network lost the answer. */
  no_answer: {
    codes: /^(40003|P1002|P1008|SocketTimeout)$/,
    text: /^Query read timeout/,
    answer: "DATABASE_BUSY",
    retryAfter: 2,
    session: "discarded",
    undone: false,
    repeated: false,
    lasts: true,
    readiness: degraded("answers, but not to all writes"),
  },
  /** Our pool or PostgreSQL has no connection left. */
  no_session: {
    codes: /^(53300|53400|P2024|P2037|TooManyConnections)$/,
    text: /^timeout exceeded when trying to connect|Unable to start a transaction in the given time|^no database session is free/,
    answer: "DATABASE_BUSY",
    retryAfter: 2,
    session: "discarded",
    undone: true,
    repeated: false,
    lasts: true,
    readiness: degraded("answers, but has no session for some writes"),
  },
  /** The tenant holds its share of the sessions of this class of work. No SQLSTATE, and no code at all: Prisma would hide the error behind one of its own. */
  tenant_share: {
    codes: /(?!)/,
    text: /^the tenant holds its share of the database sessions/,
    answer: "RATE_LIMIT_EXCEEDED",
    retryAfter: 2,
    session: "kept",
    undone: true,
    repeated: false,
    lasts: true,
    readiness: null,
  },
  out_of_memory: {
    codes: /^(53000|53200)$/,
    answer: "DATABASE_BUSY",
    retryAfter: 5,
    session: "discarded",
    undone: true,
    repeated: false,
    lasts: true,
    readiness: degraded("answers, but is short of memory"),
  },
  /** A standby, a demoted writer, or a writer that was set to read-only; the probe tells which. */
  read_only: {
    codes: /^25006$/,
    answer: "DATABASE_READ_ONLY",
    retryAfter: 2,
    session: "all",
    undone: true,
    repeated: false,
    lasts: true,
    readiness: unhealthy("refuses writes: it is read-only"),
  },
  /** The disk is full, or fails. */
  full: {
    codes: /^(53100|58030)$/,
    answer: "DATABASE_FULL",
    retryAfter: 10,
    session: "kept",
    undone: true,
    repeated: false,
    lasts: true,
    readiness: unhealthy("refuses writes: its disk is full or fails"),
  },
  /** PostgreSQL cannot be reached or accepts no logins. */
  away: {
    // 57P..: shutting down, crashed, starting up, dropped, idle too long. 28... and 3D000: somebody changed our password, or renamed or dropped the database.
    codes:
      /^(08...|57P0[1-5]|28P01|28000|3D000|ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|P1001|P1017|DatabaseNotReachable|ConnectionClosed)$/,
    text: /^(Connection terminated|Connection ended|Client was closed|Client has encountered a connection error|timeout expired|Cannot use a pool after calling end|Server has closed the connection)|is not currently accepting connections$/,
    answer: "DATABASE_UNAVAILABLE",
    retryAfter: 2,
    session: "discarded",
    undone: false,
    repeated: false,
    lasts: true,
    readiness: null,
  },
} as const satisfies Readonly<Record<string, Meaning>>;

const ROWS = Object.entries(MEANINGS) as readonly (readonly [DatabaseFailure, Meaning])[];

/** Null for a defect of ours and for a violated constraint. */
export const failureOf = (error: unknown): DatabaseFailure | null => {
  const found = layers(error);
  return ROWS.find(([, { codes, text: words }]) => found.some(({ code = "", message }) => codes.test(code) || words?.test(message) === true))?.[0] ?? null;
};

/** Null for a defect of ours and for a violated constraint. */
export const meaningOf = (error: unknown): Meaning | null => {
  const failure = failureOf(error);
  return failure === null ? null : MEANINGS[failure];
};

/** The error that the caller gets; null when it is a defect of ours. Agents on a socket are told to wait longer. */
export const databaseError = (error: unknown, retryAfter?: number): AppError | null => {
  const failure = failureOf(error);
  if (failure === null) return null;
  const { answer, retryAfter: usual } = MEANINGS[failure];
  return new AppError(answer, { retryAfter: retryAfter ?? usual, cause: error, details: detailsOf(failure, error) });
};

const detailsOf = (failure: DatabaseFailure, error: unknown): Details | undefined => {
  if (MEANINGS[failure].answer === "DATABASE_BUSY") return { reason: failure };
  return error instanceof TenantShare ? { bucket: `database.${error.workClass}`, limit: error.share, reason: failure } : undefined;
};

export class TenantShare extends Error {
  readonly workClass: WorkClass;
  readonly share: number;
  constructor(workClass: WorkClass, share: number) {
    super("the tenant holds its share of the database sessions");
    this.workClass = workClass;
    this.share = share;
  }
}

/** Every session of the class of work is taken, and none became free in time. */
export const noSession = (): Error => new Error("no database session is free");

/** The call has waited for the database for as long as a call may. Whether its statement runs is unknown. */
export const noAnswer = (): Error => new Error("Query read timeout");

/** The database is away, full or silent, so the next attempt would fail too. The outcome of a lost COMMIT is unknown. */
const DOUBTFUL: ReadonlySet<DatabaseFailure | null> = new Set(["away", "no_answer", "no_session", "read_only"]);
/** Another server of the database may be the one to ask. */
export const isServerDoubtful = (error: unknown): boolean => DOUBTFUL.has(failureOf(error));
export const isUnavailable = (error: unknown): boolean => meaningOf(error)?.lasts === true;

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
export const isUndone = (error: unknown): boolean => meaningOf(error)?.undone === true;

/** The password, the user or the database's name is wrong. */
export const isLoginRefused = (error: unknown): boolean => layers(error).some(({ code = "" }) => LOGIN_REFUSED.has(code));

/** The request is in order: the database is away or rolled the work back. */
export const isTemporary = (error: unknown): boolean => failureOf(error) !== null;

/** One item of a batch may be to blame. Items that fail for the database's sake fail together: each half would wait for the same lock again. */
export const failsAlone = (error: unknown): boolean => !isTemporary(error);

/** The transaction has failed earlier; this only says so. */
export const isAborted = (error: unknown): boolean => typeof error === "object" && error !== null && "code" in error && error.code === "25P02";

/** The rollbacks that a transaction repeats by itself: two collided and neither waited in vain. */
export const isConflict = (error: unknown): boolean => meaningOf(error)?.repeated === true;

const REFERENCED = new Set(["23001", "23503", "P2003", "ForeignKeyConstraintViolation"]);
const LOGIN_REFUSED = new Set(["28P01", "28000", "3D000"]);
const UNIQUE = new Set(["23505", "P2002", "UniqueConstraintViolation"]);

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
