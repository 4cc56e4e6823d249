// The settings of the agent channel, with their defaults. Operators and tests override them.
import type { OverloadLimits } from "./overload.ts";

export interface ChannelSettings {
  readonly heartbeatSeconds: number;
  readonly heartbeatJitterPct: number;
  /** An agent waits this much longer after two unanswered heartbeats before it gives up the session. */
  readonly heartbeatGraceMs: number;
  /** The heartbeats per second that one node takes; with more agents the heartbeat interval grows. */
  readonly heartbeatsPerSecond: number;
  /** After this long without a frame the socket closes with 4002. */
  readonly silenceMs: number;
  readonly helloTimeoutMs: number;
  readonly pollSeconds: number;
  /** Between two polls of an agent whose socket works. */
  readonly safetyPollSeconds: number;
  readonly sessionMaxAgeMs: number;
  readonly maxFrameBytes: number;
  readonly maxOutputBytes: number;
  readonly maxInFlight: number;
  readonly inboundPerSecond: number;
  readonly inboundBurst: number;
  /** This many faults of one kind within the window close the socket. */
  readonly maxViolations: number;
  readonly violationWindowMs: number;
  /** Pushing resumes below this many buffered bytes. */
  readonly resumeBytes: number;
  readonly slowBytes: number;
  readonly slowMs: number;
  readonly flushEveryMs: number;
  readonly flushChunk: number;
  /** Between two checks for quiet sessions that were superseded without an eviction. */
  readonly checkEveryMs: number;
  /** Between two renewals of a session's entry among the session owners; far shorter than the entry's lifetime. */
  readonly claimEveryMs: number;
  /** Between two checks for suspended tenants, so a suspension closes sockets after this and a tick at most. */
  readonly tenantsEveryMs: number;
  readonly tickMs: number;
  /** How long a newcomer waits for an older session of its identity to answer a ping. */
  readonly probeMs: number;
  /** Newcomers that wait for other nodes at the same time; any beyond are let in without a probe. */
  readonly probesAtOnce: number;
  readonly goodbyeMs: number;
  /** The gateway asks for the ack of a command that was sent this long ago and that a heartbeat does not list. */
  readonly resendAfterMs: number;
  /** When an agent sends an unanswered ack again, and the longest pause between two attempts. */
  readonly ack: { readonly resendMs: number; readonly capMs: number };
  readonly acceptPerSecond: number;
  readonly acceptBurst: number;
  /** After a start all agents come back at once; a quarter of the accept rate lets the caches warm up. */
  readonly warmUpMs: number;
  readonly maxConnections: number;
  /** Null means no limit. */
  readonly connectsPerMinute: number | null;
  readonly connectBurst: number;
  /** Upgrades that fail to authenticate, per address and minute; null means no limit. */
  readonly failuresPerMinute: number | null;
  readonly failureBurst: number;
  readonly reconnect: { readonly firstWindowMs: number; readonly baseMs: number; readonly capMs: number; readonly stableAfterSec: number };
  /** The number of agents that each tick tells of a changed heartbeat interval. */
  readonly configsPerTick: number;
  readonly overload: OverloadLimits;
  /** The drain window is at least this long, ... */
  readonly drainWindowMs: number;
  /** ... at most this long, ... */
  readonly drainWindowMaxMs: number;
  /** ... and in between sends this many agents per second to each of the other nodes. */
  readonly drainPerSecond: number;
  /** How long an agent that hands over may keep its old session. */
  readonly handoffMs: number;
}

const SECOND = 1_000;
export const OVERLOAD_LIMITS: OverloadLimits = { loopDelayMs: 200, lateForMs: 10 * SECOND, claimWaitMs: 5 * SECOND, calmForMs: 20 * SECOND };

export const channelSettings = (heartbeatSeconds = 30, overrides: Partial<ChannelSettings> = {}): ChannelSettings => ({
  heartbeatSeconds,
  heartbeatJitterPct: 10,
  heartbeatGraceMs: 10 * SECOND,
  heartbeatsPerSecond: 5_000,
  silenceMs: (3 * heartbeatSeconds + 10) * SECOND,
  helloTimeoutMs: 10 * SECOND,
  pollSeconds: 30,
  safetyPollSeconds: 900,
  sessionMaxAgeMs: 86_400 * SECOND,
  maxFrameBytes: 131_072,
  maxOutputBytes: 65_536,
  maxInFlight: 32,
  inboundPerSecond: 20,
  inboundBurst: 60,
  maxViolations: 3,
  violationWindowMs: 60 * SECOND,
  resumeBytes: 65_536,
  slowBytes: 524_288,
  slowMs: 10 * SECOND,
  flushEveryMs: SECOND,
  flushChunk: 1_000,
  checkEveryMs: 5 * SECOND,
  claimEveryMs: 50 * SECOND,
  tenantsEveryMs: 3 * SECOND,
  tickMs: SECOND,
  probeMs: 2 * SECOND,
  probesAtOnce: 256,
  goodbyeMs: 10 * SECOND,
  resendAfterMs: 20 * SECOND,
  ack: { resendMs: 15 * SECOND, capMs: 300 * SECOND },
  acceptPerSecond: 200,
  acceptBurst: 400,
  warmUpMs: 10 * SECOND,
  maxConnections: 20_000,
  connectsPerMinute: 10,
  connectBurst: 5,
  failuresPerMinute: 60,
  failureBurst: 30,
  reconnect: { firstWindowMs: 5 * SECOND, baseMs: SECOND, capMs: 300 * SECOND, stableAfterSec: 60 },
  configsPerTick: 500,
  overload: OVERLOAD_LIMITS,
  drainWindowMs: 10 * SECOND,
  drainWindowMaxMs: 120 * SECOND,
  drainPerSecond: 100,
  handoffMs: 20 * SECOND,
  ...overrides,
});

const MAX_WINDOW_MS = 120_000;
const MARGIN = 1.5;

/** The time in which all agents could come back to the live nodes at their accept rate; never shorter than the settings say. */
export const reconnectWindowMs = (
  { connections, liveNodes }: { readonly connections: number; readonly liveNodes: number },
  settings: ChannelSettings,
): number => {
  const neededMs = (MARGIN * connections * SECOND) / (Math.max(1, liveNodes) * settings.acceptPerSecond);
  return Math.round(Math.max(settings.reconnect.firstWindowMs, Math.min(MAX_WINDOW_MS, neededMs)));
};

/** Limits that the socket library enforces. */
export const SOCKET_LIMITS = { maxPayloadBytes: 262_144, idleTimeoutSeconds: 60, maxBufferedBytes: 1_048_576 } as const;
