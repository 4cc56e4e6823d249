// Settings of presence and of the agent registry, each with its reason.
import type { BatchOptions } from "../../platform/database/batch.ts";

export interface DeviceSettings {
  /** Interval of an agent's heartbeats. */
  readonly heartbeatSeconds: number;
  /** A device is offline after this much silence: three heartbeats and ten seconds. */
  readonly offlineAfterMs: number;
  /** A device whose socket broke stays online if it reconnects within this time. */
  readonly closeGraceMs: number;
  /** A paired device that has not connected within this time is offline. */
  readonly neverConnectedMs: number;
  /** Minimum interval of events about duplicates of one identity. */
  readonly duplicateReportEveryMs: number;
  /** How long a poller stays away while another process of its identity holds a socket. */
  readonly duplicatePauseSeconds: number;
  /** The shortest time between two sweeps. */
  readonly sweepEveryMs: number;
  readonly neverConnectedEveryMs: number;
  readonly sweepBatch: number;
  readonly registrySize: number;
  /** A node that misses the hint accepts a removed agent or a revoked secret for up to this long. */
  readonly registryMs: number;
  /** How long a node remembers agents that it let in or lost: longer than their first reconnects are spread over. */
  readonly rememberedMs: number;
  /** Short, because another node may pair an unknown agent at any moment. */
  readonly registryMissMs: number;
  /** How hellos share transactions: all agents of a full node may reconnect at once. */
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
  rememberedMs: 150 * SECOND,
  registryMissMs: 2 * SECOND,
  hellos: { work: "agents", maxSize: 250, maxConcurrent: 2, maxWaiting: 20_000 },
  ...overrides,
});
