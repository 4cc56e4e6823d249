// What one request did, as its log line, its span and the metrics tell it. Transports and pipeline fill it in.
import type { AppError } from "../../core/errors.ts";

/** One operation that was called; a batch has several in one request. */
export interface CallRecord {
  readonly operation: string;
  readonly transport: string;
  readonly status: number;
  readonly code: string | null;
  /** The word in `details.reason` of a refusal. */
  readonly reason?: string | null;
  readonly durationMs: number;
  readonly requestId: string;
  readonly tenantId: string | null;
  readonly actor: string;
  /** The device that the input names, or that called. */
  readonly deviceId?: string | null;
  /** The cause of a defect or an outage. */
  readonly cause?: unknown;
}

const WORD = /^[a-z][a-z0-9_]{0,63}$/;
/** Some errors have a sentence there, which may repeat what a caller sent. */
export const refusalReasonOf = (error: AppError | null): string | null => {
  const reason = error?.details?.["reason"];
  return typeof reason === "string" && WORD.test(reason) ? reason : null;
};

/** What the log tells of a request beside its answer. */
export interface Notes {
  readonly calls: CallRecord[];
  /** The refusal of a request that never became a call. */
  refusal: AppError | null;
}

export const newNotes = (): Notes => ({ calls: [], refusal: null });
