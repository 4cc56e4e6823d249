// Errors that we throw on purpose: an AppError becomes the answer to a call, a ConfigError stops the start. Any other error is a defect and becomes INTERNAL_ERROR.
import { type Details, ERRORS, type ErrorCode, messageOf, type SecuritySubject } from "../../protocol/index.ts";

/** Whom a refusal concerns. */
export interface Concerned {
  readonly tenantId: string | null;
  readonly entityType: SecuritySubject;
  readonly entityId: string;
}

export interface AppErrorOptions {
  readonly details?: Details | undefined;
  /** Seconds until a retry makes sense; also sent as Retry-After. */
  readonly retryAfter?: number | undefined;
  /** For the log only. */
  readonly cause?: unknown;
  /** For security events only: an answer never tells. */
  readonly about?: Concerned | undefined;
}

/** The default Retry-After of every 429 and 503. */
const RETRY_AFTER_SECONDS = 1;

export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: Details | undefined;
  readonly retryAfter: number | undefined;
  readonly about: Concerned | undefined;

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    super(messageOf(code, options.details), { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.details = options.details;
    this.about = options.about;
    this.retryAfter = options.retryAfter ?? (this.status === 429 || this.status === 503 ? RETRY_AFTER_SECONDS : undefined);
  }

  get status(): number {
    return ERRORS[this.code].status;
  }
}

export const isAppError = (error: unknown): error is AppError => error instanceof AppError;

/** The operator must set or install something. The message says what, so we print no stack. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** For the default arm of a switch over a closed union. */
export const unreachable = (value: never): never => {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
};
