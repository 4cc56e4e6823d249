// The settings of the queue, each with its reason. Tests and operators replace them.
import type { Timings } from "./state.ts";

export interface CommandSettings extends Timings {
  readonly maxOpenPerDevice: number;
  /** Null: no limit. */
  readonly maxOpenPerTenant: number | null;
  readonly maxPayloadBytes: number;
  readonly maxPayloadDepth: number;
  readonly maxOutputBytes: number;
  readonly maxTtlSeconds: number;
  /** Sent to pollers in x-svc-poll-interval. */
  readonly pollIntervalSeconds: number;
  readonly reaperEveryMs: number;
  readonly reaperBatch: number;
  readonly sweepEveryMs: number;
  /** Interval of the sweep while hints get lost and only the sweep delivers. */
  readonly sweepWithoutHintsMs: number;
  /** Interval of sweeps without a lower bound, which find lanes and credit whose release hint was lost. */
  readonly fullSweepEveryMs: number;
  /** Long polls and waiting calls that a node holds at once; it answers further ones without waiting. */
  readonly maxWaits: number;
  /** A waiting call learns of a change on another node at most this late. */
  readonly waitRecheckEveryMs: number;
  /** Pause between two reads that hints of other nodes cause. */
  readonly waitRecheckPauseMs: number;
  /** A command that was sent and may be delivered again is written as sent after this time, unless it is acknowledged before. */
  readonly writeSentAfterMs: number;
  /** For this time after it was due, or expired, a queued command may have been sent without having been written: the reaper and polls leave it alone. */
  readonly sentGraceMs: number;
  /** How long a cancellation waits for the node that holds the device. */
  readonly settleTimeoutMs: number;
  readonly batchSize: number;
  readonly batchConcurrency: number;
  /** Interval between two batches of creations or claims; calls meanwhile share the next one. */
  readonly batchPaceMs: number;
  /** The same for acknowledgements, which are the most frequent and keep no caller waiting. */
  readonly ackPaceMs: number;
  /** Calls that may wait for a batch; further ones get an error. */
  readonly batchWaiting: number;
  /** How long ended commands are kept, with their history and their idempotency keys. Agents remember what they have run for 7 days. */
  readonly keepDays: number;
  readonly retentionEveryMs: number;
  readonly retentionBatch: number;
}

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

export const defaultSettings: CommandSettings = {
  ackTimeoutMs: 20 * SECOND,
  pollLeaseMs: 60 * SECOND,
  redeliveryBackoffMs: [20 * SECOND, 40 * SECOND, 80 * SECOND, 160 * SECOND, 300 * SECOND],
  cancelTimeoutMs: 60 * SECOND,
  cancelOfflineMs: 24 * HOUR,
  stepTimeoutMs: null,
  lateWindowMs: 24 * HOUR,
  maxOpenPerDevice: 100,
  maxOpenPerTenant: 20_000,
  maxPayloadBytes: 65_536,
  maxPayloadDepth: 10,
  maxOutputBytes: 65_536,
  maxTtlSeconds: 2_592_000,
  pollIntervalSeconds: 30,
  reaperEveryMs: 2 * SECOND,
  reaperBatch: 200,
  sweepEveryMs: 5 * SECOND,
  sweepWithoutHintsMs: 2 * SECOND,
  fullSweepEveryMs: 60 * SECOND,
  maxWaits: 10_000,
  waitRecheckEveryMs: SECOND,
  waitRecheckPauseMs: 100,
  writeSentAfterMs: 200,
  sentGraceMs: SECOND,
  settleTimeoutMs: 300,
  batchSize: 500,
  batchConcurrency: 1,
  batchPaceMs: 5,
  ackPaceMs: 20,
  batchWaiting: 20_000,
  keepDays: 30,
  retentionEveryMs: 600 * SECOND,
  retentionBatch: 500,
};
