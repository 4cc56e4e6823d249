// The figures of the agent socket, each with its reason; agent-channel.md 4.5 is their source. Tests and operators hand in others.
import type { OverloadLimits } from "./overload.ts";

export interface ChannelSettings {
  readonly heartbeatSeconds: number;
  readonly heartbeatJitterPct: number;
  /** Once two heartbeats have no answer an agent waits this much longer before it gives the session up. */
  readonly heartbeatGraceMs: number;
  /** As many as one node takes in a second; with more agents than that they beat more seldom. */
  readonly heartbeatsPerSecond: number;
  /** Without any frame for this long the socket is closed with 4002. */
  readonly silenceMs: number;
  readonly helloTimeoutMs: number;
  readonly pollSeconds: number;
  /** Between two polls of an agent whose socket is well. */
  readonly safetyPollSeconds: number;
  readonly sessionMaxAgeMs: number;
  readonly maxFrameBytes: number;
  readonly maxOutputBytes: number;
  readonly maxInFlight: number;
  readonly inboundPerSecond: number;
  readonly inboundBurst: number;
  /** So many faults of one kind within the window end the connection. */
  readonly maxViolations: number;
  readonly violationWindowMs: number;
  /** Pushing goes on below this many buffered bytes. */
  readonly resumeBytes: number;
  readonly slowBytes: number;
  readonly slowMs: number;
  readonly flushEveryMs: number;
  readonly flushChunk: number;
  /** How long a session that was superseded without a word may stand when its agent is quiet. */
  readonly checkEveryMs: number;
  /** How often a session's entry in the directory is renewed, if its agent says anything; well within the entry's lifetime. */
  readonly claimEveryMs: number;
  /** How often the tenants of open sockets are looked at: one that is suspended keeps its sockets no longer than this and a tick. */
  readonly tenantsEveryMs: number;
  readonly tickMs: number;
  /** How long a newcomer waits for word from an older session with the same identity. */
  readonly probeMs: number;
  /** Newcomers that wait for other nodes' word at once; those beyond are let in unasked. */
  readonly probesAtOnce: number;
  readonly goodbyeMs: number;
  /** A command that was sent this long ago and that a heartbeat does not list is asked about. */
  readonly resendAfterMs: number;
  /** When an agent sends an ack again that nobody answered, and the longest pause between two of them. */
  readonly ack: { readonly resendMs: number; readonly capMs: number };
  readonly acceptPerSecond: number;
  readonly acceptBurst: number;
  /** After a start everybody comes back at once; a quarter of the rate lets the caches warm. */
  readonly warmUpMs: number;
  readonly maxConnections: number;
  /** Null lifts it. */
  readonly connectsPerMinute: number | null;
  readonly connectBurst: number;
  /** Upgrades that fail to authenticate, per address and minute; null lifts it. */
  readonly failuresPerMinute: number | null;
  readonly failureBurst: number;
  readonly reconnect: { readonly firstWindowMs: number; readonly baseMs: number; readonly capMs: number; readonly stableAfterSec: number };
  /** A change of the interval is told to so many agents at each look of the clock. */
  readonly configsPerTick: number;
  readonly overload: OverloadLimits;
  /** A node that leaves sends its agents away over this time at least, ... */
  readonly drainWindowMs: number;
  /** ... over this at most, ... */
  readonly drainWindowMaxMs: number;
  /** ... and in between so many a second for each of the other nodes. */
  readonly drainPerSecond: number;
  /** How long an agent that hands over keeps its old session. */
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
  claimEveryMs: 25 * SECOND,
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
const SPARE = 1.5;

/** In how long everybody could come back to the nodes that live, each at its own rate of accepting; never less than the settings say. */
export const reconnectWindowMs = (
  { connections, liveNodes }: { readonly connections: number; readonly liveNodes: number },
  settings: ChannelSettings,
): number => {
  const neededMs = (SPARE * connections * SECOND) / (Math.max(1, liveNodes) * settings.acceptPerSecond);
  return Math.round(Math.max(settings.reconnect.firstWindowMs, Math.min(MAX_WINDOW_MS, neededMs)));
};

/** The limits that the library itself enforces. */
export const SOCKET_LIMITS = { maxPayloadBytes: 262_144, idleTimeoutSeconds: 60, maxBufferedBytes: 1_048_576 } as const;
