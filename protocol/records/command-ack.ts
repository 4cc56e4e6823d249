// The agent's acknowledgement of a command, by socket or REST, and the gateway's answer.
import { z } from "zod";
import { CommandStatus } from "./command.ts";

/** `status` takes the words below and their usual synonyms, in upper or lower case. Any other word gets the result `refused`. */
export const Ack = z.object({
  status: z.string().min(1).max(32),
  output: z.unknown().optional(),
  code: z.string().max(64).optional(),
  progress: z
    .object({
      pct: z.number().min(0).max(100).optional(),
      message: z.string().max(500).optional(),
      stage: z.string().max(32).optional(),
      bytesDone: z.number().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
      bytesTotal: z.number().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
    })
    .optional(),
  startedAt: z.string().max(40).optional(),
  finishedAt: z.string().max(40).optional(),
  outputTruncated: z.boolean().optional(),
});
export type Ack = z.infer<typeof Ack>;

/** Every result means: stop resending. `refused`: part of the ack was unusable, `code` says why; a known status still counts. */
export const AckResult = z.object({
  commandId: z.string(),
  status: CommandStatus.nullable(),
  result: z.enum(["applied", "duplicate", "conflict", "unknown", "refused"]),
  code: z.string().optional().describe("Why the ack was refused."),
});
export type AckResult = z.infer<typeof AckResult>;

export const ACK_STATUSES = ["received", "running", "succeeded", "failed", "rejected", "canceled", "cancel_rejected"] as const;
export type AckStatus = (typeof ACK_STATUSES)[number];
const SYNONYMS: ReadonlyMap<string, AckStatus> = new Map(
  Object.entries({
    acknowledged: "received",
    accepted: "received",
    delivered: "received",
    ack: "received",
    in_progress: "running",
    started: "running",
    processing: "running",
    success: "succeeded",
    completed: "succeeded",
    complete: "succeeded",
    ok: "succeeded",
    done: "succeeded",
    finished: "succeeded",
    error: "failed",
    failure: "failed",
    timeout: "failed",
    timed_out: "failed",
    unsupported: "rejected",
    invalid: "rejected",
    cancelled: "canceled",
  } as const),
);
/** The canonical status for the word that an agent sent, or null. */
export const toAckStatus = (raw: string): AckStatus | null => {
  const word = raw.toLowerCase();
  return ACK_STATUSES.find((status) => status === word) ?? SYNONYMS.get(word) ?? null;
};
