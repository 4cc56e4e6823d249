// Every figure of the queue with its reason. Tests and operators replace them.
import type { Timings } from "./state.ts";

export interface CommandSettings extends Timings {
  readonly maxOpenPerDevice: number;
  /** Null lifts it. */
  readonly maxOpenPerTenant: number | null;
  readonly maxPayloadBytes: number;
  readonly maxPayloadDepth: number;
  readonly maxOutputBytes: number;
  readonly maxTtlSeconds: number;
  /** Told to pollers in x-svc-poll-interval. */
  readonly pollIntervalSeconds: number;
  readonly reaperEveryMs: number;
  readonly reaperBatch: number;
  readonly sweepEveryMs: number;
  /** While hints get lost, the sweep alone delivers. */
  readonly sweepWithoutHintsMs: number;
  /** Between two sweeps without a lower bound, which find lanes and credit whose release reached nobody. */
  readonly fullSweepEveryMs: number;
  /** Long polls and waiting calls that a node holds at once; further ones are answered without waiting. */
  readonly maxWaits: number;
  /** How late a waiting call may hear of what happened on another node. */
  readonly waitRecheckEveryMs: number;
  /** Between two reads of the database that hints of other nodes ask for. */
  readonly waitRecheckPauseMs: number;
  readonly batchSize: number;
  readonly batchConcurrency: number;
  /** Between the beginnings of two batches of creations or claims: what comes meanwhile shares one. */
  readonly batchPaceMs: number;
  /** The same for acknowledgements, which are the most frequent and which nobody waits for. */
  readonly ackPaceMs: number;
  /** Calls that may wait for a batch before the queue says it is full. */
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
  batchSize: 500,
  batchConcurrency: 1,
  batchPaceMs: 5,
  ackPaceMs: 20,
  batchWaiting: 20_000,
  keepDays: 30,
  retentionEveryMs: 600 * SECOND,
  retentionBatch: 500,
};
