// Dispatches each incoming frame to its handler, after the checks that need no meaning: size, rate, form, order and frame number.

import { AgentFrame, CLOSE, type Close } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, isAppError, unreachable } from "../../core/errors.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import { secondsToToken, takeToken } from "../../core/structures/token-bucket.ts";
import { UNSUPPORTED_OP } from "./acks.ts";
import type { FrameHandlers } from "./frame-handlers.ts";
import { errorFrame, type InboundFrame, readFrame } from "./frames.ts";
import type { Heartbeats } from "./heartbeat.ts";
import { createScanner } from "./scan.ts";
import { type AgentSession, endSession, isUnproven, noteNews, send, tooManyFaults } from "./session.ts";
import type { SessionRegistry } from "./session-registry.ts";
import type { ChannelSettings } from "./settings.ts";

export interface FrameDispatcherDeps {
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly stats: ChannelStats;
  readonly handlers: FrameHandlers;
  readonly databaseError: (error: unknown, retryAfter?: number) => AppError | null;
  readonly heartbeats: Heartbeats;
  readonly registry: Pick<SessionRegistry, "busy" | "news">;
  readonly onError: (error: unknown, session: AgentSession) => void;
}

/** Seconds after which the agent may retry what failed in the gateway. */
const RETRY_SECONDS = 5;

/** Almost every frame is a heartbeat. */
const [, HeartbeatFrame] = AgentFrame.options;

export const createFrameDispatcher = ({ clock, settings, stats, handlers, heartbeats, registry, databaseError, onError }: FrameDispatcherDeps) => {
  const { busy, news } = registry;
  const scanner = createScanner(HeartbeatFrame);
  const takePlain = heartbeats.takePlain(scanner);
  const rate = { perSecond: settings.inboundPerSecond, burst: settings.inboundBurst };
  const refuse = (session: AgentSession, error: AppError, ref?: string): void => void send(session, errorFrame(error, ref), clock);
  const faults = () => ({ nowMs: clock.elapsed(), settings });

  const protocolFault = (session: AgentSession, error: AppError, ref?: string): void => {
    refuse(session, error, ref);
    if (isUnproven(session) || tooManyFaults(session, "protocolFaults", faults())) endSession(session, CLOSE.protocolError);
  };

  const tooFast = (session: AgentSession, nowMs: number): boolean => {
    if (takeToken(session, rate, nowMs)) return false;
    const retryAfter = secondsToToken(session, rate);
    refuse(session, new AppError("RATE_LIMIT_EXCEEDED", { retryAfter, details: { bucket: "frames", limit: settings.inboundPerSecond, windowSeconds: 1 } }));
    if (tooManyFaults(session, "rateFaults", faults())) endSession(session, CLOSE.rateLimited, retryAfter);
    return true;
  };

  const inOrder = (session: AgentSession, op: AgentFrame["op"]): boolean =>
    session.phase === "opening" ? op === "hello" : op !== "hello" && session.phase !== "proving";

  const refuseFailed =
    (session: AgentSession, ref: string) =>
    (error: unknown): void => {
      const refusal = isAppError(error) ? error : (databaseError(error, RETRY_SECONDS) ?? new AppError("INTERNAL_ERROR", { retryAfter: RETRY_SECONDS }));
      if (refusal !== error) onError(error, session);
      refuse(session, refusal, ref);
    };

  const close = (session: AgentSession, error: AppError, code: Close): void => {
    refuse(session, error);
    endSession(session, code);
  };
  const tooBig = (session: AgentSession): void =>
    close(session, new AppError("PAYLOAD_TOO_LARGE", { details: { maxBytes: settings.maxFrameBytes } }), CLOSE.frameTooBig);
  const outOfOrder = (session: AgentSession, op: string): void =>
    close(session, new AppError("VALIDATION_FAILED", { details: { reason: "wrong_order", op } }), CLOSE.protocolError);

  const dispatch = (session: AgentSession, inbound: InboundFrame): void => {
    const repeated = isRepeat(session, frameNumber((inbound.kind === "frame" ? inbound.frame.id : inbound.id) ?? ""), stats);
    switch (inbound.kind) {
      case "invalid": {
        protocolFault(session, new AppError("VALIDATION_FAILED", { details: inbound.details }), inbound.id);
        break;
      }
      case "unknown": {
        if (isUnproven(session)) outOfOrder(session, inbound.op);
        else send(session, { op: "error", ref: inbound.id, data: { code: UNSUPPORTED_OP, error: `There is no op ${inbound.op}.`, retryable: false } }, clock);
        break;
      }
      case "damaged": {
        if (inOrder(session, "ack")) void handlers.damagedAck(session, inbound.id, inbound.ack).catch(refuseFailed(session, inbound.id));
        else outOfOrder(session, "ack");
        break;
      }
      case "frame": {
        const { frame } = inbound;
        // A repeated heartbeat says nothing new. Agents repeat other frames on purpose: an ack until it is answered.
        if (repeated && frame.op === "heartbeat") break;
        if (inOrder(session, frame.op)) void handlers.handle(session, frame).catch(refuseFailed(session, frame.id));
        else outOfOrder(session, frame.op);
        break;
      }
      default:
        unreachable(inbound);
    }
  };

  /** The short way for a plain heartbeat of a ready session; false for any other frame. */
  const takeHeartbeat = (session: AgentSession, bytes: Uint8Array, nowMs: number): boolean => {
    if (session.phase !== "ready" || !scanner.scan(bytes)) return false;
    const number = scanner.frame();
    if (isRepeat(session, number, stats)) return true;
    try {
      takePlain(session, bytes, nowMs);
    } catch (error) {
      refuseFailed(session, String(number))(error);
    }
    return true;
  };

  const received = (session: AgentSession, bytes: Uint8Array, isBinary: boolean): void => {
    stats.framesIn += 1;
    const nowMs = clock.elapsed();
    session.lastSeenAt = nowMs;
    noteNews(session, news);
    const isTooBig = bytes.length > settings.maxFrameBytes;
    if (isTooBig && (isBinary || isUnproven(session))) tooBig(session);
    else if (isBinary) close(session, new AppError("VALIDATION_FAILED", { details: { reason: "binary_frame" } }), CLOSE.protocolError);
    else if (tooFast(session, nowMs) || (!isTooBig && takeHeartbeat(session, bytes, nowMs))) return;
    else {
      // The frame may change its phase.
      busy.add(session);
      const inbound = readFrame(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8"));
      // An agent that is closed for a long output would come back and send it again forever, so the command queue truncates the output instead.
      if (isTooBig && !isAck(inbound)) tooBig(session);
      else dispatch(session, inbound);
    }
  };

  return {
    received,
    /** A ping or a pong: uses a token like any frame. The library has answered it, and it does not prove that the agent works. */
    control: (session: AgentSession): void => void tooFast(session, clock.elapsed()),
  };
};

const isAck = (inbound: InboundFrame): boolean => inbound.kind === "damaged" || (inbound.kind === "frame" && inbound.frame.op === "ack");

const NUMBER = /^[1-9]\d{0,14}$/;

/** Agents number their frames 1, 2, 3, …; 0 stands for any other id. */
const frameNumber = (id: string): number => (NUMBER.test(id) ? Number(id) : 0);

/** True when the session has seen this number or a higher one. Counts gaps and repeats. */
const isRepeat = (session: AgentSession, number: number, stats: ChannelStats): boolean => {
  if (number === 0) return false;
  if (number <= session.lastFrame) {
    stats.frameRepeats += 1;
    return true;
  }
  stats.frameGaps += number - session.lastFrame - 1;
  session.lastFrame = number;
  return false;
};
