// The figures of presence and the agent registry, each with its reason; agent-channel.md 4.5 is their source.
import type { BatchOptions } from "../../platform/batch.ts";
import { isUnavailable } from "../../platform/db-errors.ts";

export interface DeviceSettings {
  /** How often agents are asked to beat. */
  readonly heartbeatSeconds: number;
  /** Silence that makes a device offline: three beats and ten seconds. */
  readonly offlineAfterMs: number;
  /** A socket that broke may come back in this time without the device being called offline. */
  readonly closeGraceMs: number;
  /** A paired device that never came. */
  readonly neverConnectedMs: number;
  /** Between two events about living duplicates of one identity. */
  readonly duplicateReportEveryMs: number;
  /** How long a poller stays away while another process of its identity holds a socket. */
  readonly duplicatePauseSeconds: number;
  readonly sweepEveryMs: number;
  readonly neverConnectedEveryMs: number;
  readonly sweepBatch: number;
  readonly registrySize: number;
  /** The longest that a removed agent or a revoked secret may pass on a node that no hint of it has reached. */
  readonly registryMs: number;
  /** An unknown id is asked for again soon: it may have been paired on another node a moment ago. */
  readonly registryMissMs: number;
  /** How hellos share transactions: everybody of a full node may come back at once. */
  readonly hellos: BatchOptions;
}

const SECOND = 1_000;

export const deviceSettings = (heartbeatSeconds = 30, overrides: Partial<DeviceSettings> = {}): DeviceSettings => ({
  heartbeatSeconds,
  offlineAfterMs: (3 * heartbeatSeconds + 10) * SECOND,
  closeGraceMs: 15 * SECOND,
  neverConnectedMs: 86_400 * SECOND,
  duplicateReportEveryMs: 3_600 * SECOND,
  duplicatePauseSeconds: 900,
  sweepEveryMs: 2 * SECOND,
  neverConnectedEveryMs: 600 * SECOND,
  sweepBatch: 500,
  registrySize: 50_000,
  registryMs: 5 * SECOND,
  registryMissMs: 2 * SECOND,
  hellos: { maxSize: 250, maxConcurrent: 2, maxWaiting: 20_000, splitOn: (error) => !isUnavailable(error) },
  ...overrides,
});
