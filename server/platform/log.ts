// Structured log lines on standard output: fields, not sentences; never bodies, secrets or signatures.
import { pino } from "pino";

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const createLog = (level: string, facts: Readonly<Record<string, string>>): Log =>
  pino({ level, base: facts, timestamp: pino.stdTimeFunctions.isoTime, serializers: { error: pino.stdSerializers.err } });

export const silentLog: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
