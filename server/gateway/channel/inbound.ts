// What comes in on a socket: size, rate, form and order are checked before any meaning.
import { AgentFrame, CLOSE, type Close } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError, isAppError, unreachable } from "../../core/errors.ts";
import type { Acts } from "./acts.ts";
import { UNSUPPORTED_OP } from "./cancels.ts";
import { errorFrame, type Inbound, readFrame } from "./frames.ts";
import type { Heartbeats } from "./heartbeat.ts";
import { createScanner } from "./scan.ts";
import { isRepeat, numberOf } from "./sequence.ts";
import { endSession, type Session, send, tooManyFaults } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";
import type { ChannelStats } from "./stats.ts";
import { secondsToToken, takeToken } from "./tokens.ts";

export interface InboundDeps {
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly stats: ChannelStats;
  readonly acts: Acts;
  readonly databaseError: (error: unknown, retryAfter?: number) => AppError | null;
  readonly heartbeats: Heartbeats;
  readonly onError: (error: unknown, session: Session) => void;
}

/** What failed on our side is worth another try after so long. */
const AGAIN_SECONDS = 5;

/** Heartbeats come many times as often as everything else together. */
const [, HeartbeatFrame] = AgentFrame.options;

export const createInbound = ({ clock, settings, stats, acts, heartbeats, databaseError, onError }: InboundDeps) => {
  const scanner = createScanner(HeartbeatFrame);
  const takePlain = heartbeats.takePlain(scanner);
  const rate = { perSecond: settings.inboundPerSecond, burst: settings.inboundBurst };
  const refuse = (session: Session, error: AppError, ref?: string): void => void send(session, errorFrame(error, ref), clock);
  const faults = () => ({ nowMs: clock.elapsed(), settings });

  const protocolFault = (session: Session, error: AppError, ref?: string): void => {
    refuse(session, error, ref);
    if (isEarly(session) || tooManyFaults(session, "protocolFaults", faults())) endSession(session, CLOSE.protocolError);
  };

  const tooFast = (session: Session, nowMs: number): boolean => {
    if (takeToken(session, rate, nowMs)) return false;
    const retryAfter = secondsToToken(session, rate);
    refuse(session, new AppError("RATE_LIMIT_EXCEEDED", { retryAfter, details: { bucket: "frames", limit: settings.inboundPerSecond, windowSeconds: 1 } }));
    if (tooManyFaults(session, "rateFaults", faults())) endSession(session, CLOSE.rateLimited, retryAfter);
    return true;
  };

  const inOrder = (session: Session, op: AgentFrame["op"]): boolean =>
    session.phase === "opening" ? op === "hello" : op !== "hello" && session.phase !== "proving";

  const settle =
    (session: Session, ref: string) =>
    (error: unknown): void => {
      const refusal = isAppError(error) ? error : (databaseError(error, AGAIN_SECONDS) ?? new AppError("INTERNAL_ERROR", { retryAfter: AGAIN_SECONDS }));
      if (refusal !== error) onError(error, session);
      refuse(session, refusal, ref);
    };

  const close = (session: Session, error: AppError, code: Close): void => {
    refuse(session, error);
    endSession(session, code);
  };
  const tooBig = (session: Session): void =>
    close(session, new AppError("PAYLOAD_TOO_LARGE", { details: { maxBytes: settings.maxFrameBytes } }), CLOSE.frameTooBig);
  const outOfOrder = (session: Session, op: string): void =>
    close(session, new AppError("VALIDATION_FAILED", { details: { reason: "wrong_order", op } }), CLOSE.protocolError);

  const read = (session: Session, inbound: Inbound): void => {
    const repeated = isRepeat(session, numberOf((inbound.kind === "frame" ? inbound.frame.id : inbound.id) ?? ""), stats);
    switch (inbound.kind) {
      case "invalid": {
        protocolFault(session, new AppError("VALIDATION_FAILED", { details: inbound.details }), inbound.id);
        break;
      }
      case "unknown": {
        if (isEarly(session)) outOfOrder(session, inbound.op);
        else send(session, { op: "error", ref: inbound.id, data: { code: UNSUPPORTED_OP, error: `There is no op ${inbound.op}.`, retryable: false } }, clock);
        break;
      }
      case "damaged": {
        if (inOrder(session, "ack")) void acts.refuseAck(session, inbound.id, inbound.ack).catch(settle(session, inbound.id));
        else outOfOrder(session, "ack");
        break;
      }
      case "frame": {
        const { frame } = inbound;
        // It says nothing that has not been said. Everything else may be repeated: acks are, until they are answered.
        if (repeated && frame.op === "heartbeat") break;
        if (inOrder(session, frame.op)) void acts.act(session, frame).catch(settle(session, frame.id));
        else outOfOrder(session, frame.op);
        break;
      }
      default:
        unreachable(inbound);
    }
  };

  /** False when it is not a plain heartbeat of a ready session, for which there is a shorter way. */
  const beat = (session: Session, bytes: Uint8Array, nowMs: number): boolean => {
    if (session.phase !== "ready" || !scanner.scan(bytes)) return false;
    const number = scanner.frame();
    if (isRepeat(session, number, stats)) return true;
    try {
      takePlain(session, bytes, nowMs);
    } catch (error) {
      settle(session, String(number))(error);
    }
    return true;
  };

  const received = (session: Session, bytes: Uint8Array, isBinary: boolean): void => {
    stats.framesIn += 1;
    const nowMs = clock.elapsed();
    session.lastSeenAt = nowMs;
    session.seen = true;
    const isTooBig = bytes.length > settings.maxFrameBytes;
    if (isTooBig && (isBinary || isEarly(session))) tooBig(session);
    else if (isBinary) close(session, new AppError("VALIDATION_FAILED", { details: { reason: "binary_frame" } }), CLOSE.protocolError);
    else if (tooFast(session, nowMs) || (!isTooBig && beat(session, bytes, nowMs))) return;
    else {
      const inbound = readFrame(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8"));
      // An agent that is cut off for a result would send it again for ever: too long an output is shortened instead.
      if (isTooBig && !isAck(inbound)) tooBig(session);
      else read(session, inbound);
    }
  };

  return {
    received,
    /** A ping or a pong. The library has answered it already, and it is no sign of life of the agent; it takes its token like any frame. */
    control: (session: Session): void => void tooFast(session, clock.elapsed()),
  };
};

const isEarly = ({ phase }: Session): boolean => phase === "opening" || phase === "proving";
const isAck = (inbound: Inbound): boolean => inbound.kind === "damaged" || (inbound.kind === "frame" && inbound.frame.op === "ack");
