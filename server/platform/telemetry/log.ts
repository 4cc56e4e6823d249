// Structured log lines on standard output: fields, not sentences; never bodies, secrets or signatures.
import { pino } from "pino";
import { createLogBuffer, type LogBuffer } from "./log-buffering.ts";

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The process's own log also has the level that wakes somebody. */
export interface ProcessLog extends Log {
  fatal(fields: object, message: string): void;
}

interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: LoggedError;
}

const MAX_CAUSES = 5;

/** By name, because errors of libraries carry along what they were made of: rows, parameters, addresses with passwords. */
const toLogged = (error: unknown, depth = 0): LoggedError => {
  if (!(error instanceof Error)) return { type: typeof error, message: depth === 0 && typeof error === "string" ? error : "not an error" };
  const { name, message, stack, cause } = error;
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return {
    type: name,
    message,
    ...(code === undefined ? {} : { code }),
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined || depth >= MAX_CAUSES ? {} : { cause: toLogged(cause, depth + 1) }),
  };
};

let standardOutput: LogBuffer | null = null;

/** All logs of a process share its output and so one buffer. Unless somebody kills the process, no line stays behind when it ends. */
const toStandardOutput = (): LogBuffer => {
  if (standardOutput !== null) return standardOutput;
  const buffer = createLogBuffer(pino.destination({ dest: 1, sync: true }));
  process.on("exit", () => buffer.flush());
  standardOutput = buffer;
  return buffer;
};

export const createLog = (level: string, facts: Readonly<Record<string, string>>): ProcessLog =>
  pino({ level, base: facts, timestamp: pino.stdTimeFunctions.isoTime, serializers: { error: (error: unknown) => toLogged(error) } }, toStandardOutput());

export const silentLog: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
