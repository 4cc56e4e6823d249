// The errors that are thrown on purpose: AppError answers a call, ConfigError ends a start. Anything else is a defect and becomes INTERNAL_ERROR.
import { type Details, ERRORS, type ErrorCode, messageOf } from "../../protocol/index.ts";

export interface AppErrorOptions {
  readonly details?: Details | undefined;
  /** Seconds until a retry makes sense; also sent as Retry-After. */
  readonly retryAfter?: number | undefined;
  /** For the log only. */
  readonly cause?: unknown;
}

/** Every 429 and 503 says when to come back, if only roughly. */
const COME_BACK_SECONDS = 1;

export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: Details | undefined;
  readonly retryAfter: number | undefined;

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    super(messageOf(code, options.details), { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.details = options.details;
    this.retryAfter = options.retryAfter ?? (this.status === 429 || this.status === 503 ? COME_BACK_SECONDS : undefined);
  }

  get status(): number {
    return ERRORS[this.code].status;
  }
}

export const isAppError = (error: unknown): error is AppError => error instanceof AppError;

/** Something that the operator has to set or install; its message says what, so nobody needs its stack. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** For the default arm of a switch over a closed union. */
export const unreachable = (value: never): never => {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
};
