// One connection of an agent: plain facts that the hub's loops read, and the few things that can be done to it.
import type { z } from "zod";
import { type AgentId, CLOSE, type Close, closeReason, type DeviceId, type SocketHeartbeat, type TenantId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { newSecret } from "../../core/ids.ts";
import type { RateBucket } from "../../core/rate-limiter.ts";
import type { SocketLink } from "../uws/socket.ts";
import type { Awaited } from "./awaited.ts";
import { type Outbound, writeFrame } from "./frames.ts";
import type { KeptBeat } from "./heartbeat.ts";
import type { ChannelSettings } from "./settings.ts";
import type { TokenBucket, TurnCounter } from "./tokens.ts";

/** opening: hello is awaited · proving: hello is judged · ready · leaving: the agent said goodbye · draining: the node goes. */
export type Phase = "opening" | "proving" | "ready" | "leaving" | "draining" | "closed";

export type HeartbeatData = z.output<typeof SocketHeartbeat>;

/** What a hello has to prove. */
export interface Challenge {
  readonly agentId: AgentId;
  /** What it has to sign. */
  readonly nonce: string;
  /** Of the upgrade. */
  readonly signatureVersion: 1 | 2;
}

/** One for each open socket, so every field counts, and no secret is kept. What each heartbeat touches stands first, side by side; times are whole milliseconds of the monotonic clock. */
export interface Session extends TokenBucket, TurnCounter {
  link: SocketLink | null;
  phase: Phase;
  lastSeenAt: number;
  /** News since the last flush of presence. */
  seen: boolean;
  framesOut: number;
  /** Highest number of a frame that came in. */
  lastFrame: number;
  heartbeatAt: number | null;
  /** As the last heartbeat told it; read when it is written. */
  heartbeat: HeartbeatData | KeptBeat | null;
  /** Commands of which this session has not heard the end. */
  awaited: Map<string, Awaited> | null;
  readonly id: string;
  readonly tenantId: TenantId;
  readonly deviceId: DeviceId;
  /** Good for one hello, and gone with it. */
  challenge: Challenge | null;
  readonly maxAgeMs: number;
  /** Of the last change of phase that the hub's clock watches. */
  phaseAt: number;
  openedAt: number;
  epoch: number;
  instanceId: string | null;
  maxInFlight: number;
  /** The agent has `handoff.v1`: it can open its next session while this one lives. */
  handsOver: boolean;
  /** The agent has `cancel.v1`. */
  canStop: boolean;
  /** Commands by the frames that asked the agent to stop them; null until the first. */
  cancels: Map<string, string> | null;
  /** How often the agent was last asked to beat, and when it was told. */
  heartbeatSeconds: number;
  toldAt: number;
  /** Silence that ends the session, and makes the device offline. */
  patienceMs: number;
  /** When the directory was last told whose it is. */
  claimedAt: number;
  protocolFaults: readonly number[];
  rateFaults: readonly number[];
  pumping: boolean;
  /** Since when a claim of its waits for the database. */
  claimingSince: number | null;
  wanted: boolean;
  /** The last claim left something queued; what is freed then is worth another. */
  left: boolean;
  paused: boolean;
  slowSince: number | null;
  /** Whoever waits to learn whether this session still answers. */
  probe: { readonly answer: Promise<boolean>; readonly settle: (alive: boolean) => void } | null;
}

export interface SessionFacts {
  readonly id: string;
  readonly agent: { readonly agentId: AgentId; readonly deviceId: DeviceId; readonly tenantId: TenantId };
  readonly signatureVersion: 1 | 2;
  readonly heartbeatLimit: RateBucket | null;
}

const NONE: readonly number[] = [];

export const newSession = ({ id, agent, signatureVersion, heartbeatLimit }: SessionFacts, settings: ChannelSettings, nowMs: number): Session => ({
  link: null,
  phase: "opening",
  lastSeenAt: nowMs,
  seen: false,
  framesOut: 0,
  lastFrame: 0,
  heartbeatAt: null,
  heartbeat: null,
  awaited: null,
  milliTokens: settings.inboundBurst * 1_000,
  filledAt: nowMs,
  turns: heartbeatLimit?.limit ?? null,
  turnWindowMs: (heartbeatLimit?.windowSeconds ?? 0) * 1_000,
  turnsTaken: 0,
  turnsEndAt: 0,
  id,
  tenantId: agent.tenantId,
  deviceId: agent.deviceId,
  challenge: { agentId: agent.agentId, nonce: newSecret(), signatureVersion },
  // Spread by a tenth, so that those who came together do not leave together.
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
  pumping: false,
  claimingSince: null,
  wanted: false,
  left: true,
  paused: false,
  slowSince: null,
  probe: null,
});

export const send = (session: Session, frame: Outbound, clock: Clock) => {
  session.framesOut += 1;
  return session.link?.send(writeFrame(frame, `s${session.framesOut}`, clock.now())) ?? "closed";
};

/** A whole number out of a range, so that agents that are told to wait at the same moment come back apart. */
export const secondsWithin = ([least, most]: readonly [least: number, most: number]): number => least + Math.floor(Math.random() * (most - least + 1));

/** Without a wait of its own the close's usual one is told, where it has one. */
export const endSession = (session: Session, close: Close, waitSeconds = "waitSec" in close ? secondsWithin(close.waitSec) : undefined): void =>
  session.link?.end(close.code, closeReason(close, waitSeconds));

/** Counts a fault; true when there were too many within the window. */
export const tooManyFaults = (
  session: Session,
  kind: "protocolFaults" | "rateFaults",
  at: { readonly nowMs: number; readonly settings: ChannelSettings },
): boolean => {
  const { maxViolations, violationWindowMs } = at.settings;
  session[kind] = [...session[kind].filter((time) => at.nowMs - time < violationWindowMs), at.nowMs].slice(-maxViolations);
  return session[kind].length >= maxViolations;
};

/** May commands be pushed to it now? */
export const canPush = ({ phase, paused, link }: Session): boolean => phase === "ready" && !paused && link !== null && !link.closed;

/** What the clock has to say about a session: the close that is due, or null. */
export const dueClose = (session: Session, settings: ChannelSettings, nowMs: number): Close | null => {
  switch (session.phase) {
    case "opening":
      return nowMs - session.phaseAt >= settings.helloTimeoutMs ? CLOSE.helloTimeout : null;
    // Judging a hello waits for the database; its own timeouts end it long before this.
    case "proving":
      return nowMs - session.phaseAt >= 3 * settings.helloTimeoutMs ? CLOSE.tryLater : null;
    case "leaving":
      return nowMs - session.phaseAt >= settings.goodbyeMs ? CLOSE.normal : null;
    // Whoever did not hand over in time.
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
