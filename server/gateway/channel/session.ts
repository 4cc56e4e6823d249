// The session of an agent: the state of one socket from the upgrade to its close, and the few operations on it.

import type { z } from "zod";
import { type AgentId, CLOSE, type Close, closeReason, type DeviceId, type SocketHeartbeat, type TenantId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { AppError } from "../../core/errors.ts";
import { newSecret } from "../../core/ids.ts";
import type { RateBucket } from "../../core/ports/rate-limiter.ts";
import type { TokenBucket } from "../../core/structures/token-bucket.ts";
import type { SendResult, SocketLink } from "../uws/socket.ts";
import { type OutboundFrame, writeFrame } from "./frames.ts";
import type { FixedWindow } from "./rate-limits.ts";
import type { ChannelSettings } from "./settings.ts";

/** opening: waits for hello · proving: checks hello · ready · leaving: the agent said goodbye · draining: the node shuts down. */
export type Phase = "opening" | "proving" | "ready" | "leaving" | "draining" | "closed";

export type HeartbeatData = z.output<typeof SocketHeartbeat>;

/** The bytes of a plain heartbeat frame, padded with spaces. */
export type KeptHeartbeat = Uint8Array<ArrayBuffer>;

/** The nonce that a hello must sign. */
export interface Challenge {
  readonly agentId: AgentId;
  readonly nonce: string;
  /** The version of the upgrade's own signature. */
  readonly signatureVersion: 1 | 2;
  /** The other nodes are still being asked whether they have seen that signature: null if not, or the refusal. */
  readonly replayed: Promise<AppError | null> | null;
}

/** When the command was sent, and how often the gateway has asked for its ack. */
export interface Unacknowledged {
  readonly sinceMs: number;
  readonly asked: number;
}

/**
 * A node holds one of these per socket, so every field costs memory; none holds a secret. The fields that each heartbeat touches come first, side by
 * side. Times are whole milliseconds of the monotonic clock.
 */
export interface AgentSession extends TokenBucket, FixedWindow {
  link: SocketLink | null;
  phase: Phase;
  lastSeenAt: number;
  /** The next presence flush has something to write; set by `noteNews`. */
  seen: boolean;
  framesOut: number;
  /** The highest frame number received. */
  lastFrame: number;
  heartbeatAt: number | null;
  /** The last heartbeat that carried metrics; parsed when presence is flushed. */
  heartbeat: HeartbeatData | KeptHeartbeat | null;
  /** Commands that were sent and have no final ack yet; null until the first. */
  unacknowledged: Map<string, Unacknowledged> | null;
  readonly id: string;
  readonly tenantId: TenantId;
  readonly deviceId: DeviceId;
  /** The agent's address at the upgrade. */
  readonly ip: string;
  /** The first hello uses it up. */
  challenge: Challenge | null;
  readonly maxAgeMs: number;
  /** When the session entered its phase; see `dueClose`. */
  phaseAt: number;
  openedAt: number;
  epoch: number;
  instanceId: string | null;
  maxInFlight: number;
  /** The agent has `handoff.v1`: it can open its next session while this one lives. */
  handsOver: boolean;
  /** The agent has `cancel.v1`. */
  canStop: boolean;
  /** Command ids by the id of the `cancel` frame that named them; null until the first. */
  cancels: Map<string, string> | null;
  /** The heartbeat interval that the agent was last told, and when. */
  heartbeatSeconds: number;
  toldAt: number;
  /** After this much silence the session closes and the device counts as offline. */
  patienceMs: number;
  /** When this node last renewed its entry among the session owners. */
  claimedAt: number;
  protocolFaults: readonly number[];
  rateFaults: readonly number[];
  /** A push loop runs for this session. */
  pushing: boolean;
  /** Since when its claim has waited for the database. */
  claimingSince: number | null;
  /** Commands may be due: the push loop claims once more. */
  wanted: boolean;
  /** The last claim left commands in the queue, so freed credit is worth another claim. */
  left: boolean;
  /** The socket's buffer is full; pushing waits until it drains. */
  paused: boolean;
  slowSince: number | null;
  /** The second for which it waits in the wheel of quiet sessions. */
  lookAt: number | null;
  /** The ping that duplicate probes wait for. */
  probe: { readonly answer: Promise<boolean>; readonly settle: (alive: boolean) => void } | null;
}

export interface NewSession {
  readonly id: string;
  readonly agent: { readonly agentId: AgentId; readonly deviceId: DeviceId; readonly tenantId: TenantId };
  readonly ip: string;
  readonly signatureVersion: 1 | 2;
  readonly replayed?: Challenge["replayed"];
  readonly heartbeatLimit: RateBucket | null;
}

const NONE: readonly number[] = [];

export const newSession = (
  { id, agent, ip, signatureVersion, replayed = null, heartbeatLimit }: NewSession,
  settings: ChannelSettings,
  nowMs: number,
): AgentSession => ({
  link: null,
  phase: "opening",
  lastSeenAt: nowMs,
  seen: false,
  framesOut: 0,
  lastFrame: 0,
  heartbeatAt: null,
  heartbeat: null,
  unacknowledged: null,
  milliTokens: settings.inboundBurst * 1_000,
  filledAt: nowMs,
  windowLimit: heartbeatLimit?.limit ?? null,
  windowMs: (heartbeatLimit?.windowSeconds ?? 0) * 1_000,
  windowCount: 0,
  windowEndsAt: 0,
  id,
  tenantId: agent.tenantId,
  deviceId: agent.deviceId,
  ip,
  challenge: { agentId: agent.agentId, nonce: newSecret(), signatureVersion, replayed },
  // Jitter of 10 %, so agents that connected together do not expire together.
  maxAgeMs: Math.round(settings.sessionMaxAgeMs * (0.9 + Math.random() * 0.2)),
  phaseAt: nowMs,
  openedAt: nowMs,
  epoch: 0,
  instanceId: null,
  maxInFlight: 0,
  handsOver: false,
  canStop: false,
  cancels: null,
  heartbeatSeconds: settings.heartbeatSeconds,
  toldAt: nowMs,
  patienceMs: settings.silenceMs,
  claimedAt: nowMs,
  protocolFaults: NONE,
  rateFaults: NONE,
  pushing: false,
  claimingSince: null,
  wanted: false,
  left: true,
  paused: false,
  slowSince: null,
  lookAt: null,
  probe: null,
});

export const send = (session: AgentSession, frame: OutboundFrame, clock: Clock): SendResult => {
  session.framesOut += 1;
  return session.link?.send(writeFrame(frame, `s${session.framesOut}`, clock.now())) ?? "closed";
};

/** Queues the session for the next presence flush. */
export const noteNews = (session: AgentSession, news: AgentSession[]): void => {
  if (session.seen) return;
  session.seen = true;
  news.push(session);
};

/** A random whole number in the range, so agents that are told to wait at the same moment come back apart. */
export const secondsWithin = ([least, most]: readonly [least: number, most: number]): number => least + Math.floor(Math.random() * (most - least + 1));

/** The close's usual wait applies where the caller names none. */
export const endSession = (session: AgentSession, close: Close, waitSeconds = "waitSec" in close ? secondsWithin(close.waitSec) : undefined): void =>
  session.link?.end(close.code, closeReason(close, waitSeconds));

/** Counts a fault; true once the window holds too many. */
export const tooManyFaults = (
  session: AgentSession,
  kind: "protocolFaults" | "rateFaults",
  at: { readonly nowMs: number; readonly settings: ChannelSettings },
): boolean => {
  const { maxViolations, violationWindowMs } = at.settings;
  session[kind] = [...session[kind].filter((time) => at.nowMs - time < violationWindowMs), at.nowMs].slice(-maxViolations);
  return session[kind].length >= maxViolations;
};

/** Hello has not been accepted yet. */
export const isUnproven = ({ phase }: AgentSession): boolean => phase === "opening" || phase === "proving";

/** This node writes the device's presence for it, also while the node drains it. */
export const holdsPresence = ({ phase }: AgentSession): boolean => phase === "ready" || phase === "draining";

export const canPush = ({ phase, paused, link }: AgentSession): boolean => phase === "ready" && !paused && link !== null && !link.closed;

/** Nothing but its silence or its age can end it: no phase that soon ends, nothing that waits for the socket or the database. */
export const isQuiet = ({ phase, slowSince, wanted, pushing, link }: AgentSession): boolean =>
  phase === "ready" && slowSince === null && !wanted && !pushing && link?.bufferedBytes() === 0;

/** When silence or age end a quiet session. */
export const quietUntil = ({ lastSeenAt, patienceMs, openedAt, maxAgeMs }: AgentSession): number => Math.min(lastSeenAt + patienceMs, openedAt + maxAgeMs);

/** The close that time alone makes due, or null. */
export const dueClose = (session: AgentSession, settings: ChannelSettings, nowMs: number): Close | null => {
  switch (session.phase) {
    case "opening":
      return nowMs - session.phaseAt >= settings.helloTimeoutMs ? CLOSE.helloTimeout : null;
    // Only the database can be this late, and its own timeouts are much shorter.
    case "proving":
      return nowMs - session.phaseAt >= 3 * settings.helloTimeoutMs ? CLOSE.tryLater : null;
    case "leaving":
      return nowMs - session.phaseAt >= settings.goodbyeMs ? CLOSE.normal : null;
    // The agent has not handed over in time.
    case "draining":
      return nowMs - session.phaseAt >= settings.handoffMs ? CLOSE.drain : null;
    case "closed":
      return null;
    case "ready":
      break;
  }
  if (nowMs - session.lastSeenAt >= session.patienceMs) return CLOSE.heartbeatTimeout;
  if (nowMs - session.openedAt >= session.maxAgeMs) return CLOSE.sessionExpired;
  return session.slowSince !== null && nowMs - session.slowSince >= settings.slowMs ? CLOSE.slowConsumer : null;
};
