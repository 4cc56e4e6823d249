// The frame handlers: what a valid frame of an agent does. Errors thrown here become error frames; see frame-dispatcher.ts.
import type { AgentFrame } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { unreachable } from "../../core/errors.ts";
import type { SessionBegun, SocketPresence } from "../../core/ports/agent-sessions.ts";
import { type Acks, expectAck, UNSUPPORTED_OP } from "./acks.ts";
import type { PushCommands } from "./command-push.ts";
import { errorFrame } from "./frames.ts";
import type { Heartbeats } from "./heartbeat.ts";
import type { JudgeHello } from "./hello.ts";
import { type AgentSession, endSession, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";
import type { ChannelMeters } from "./stats.ts";

export interface FrameHandlersDeps {
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly meters: ChannelMeters;
  readonly judge: JudgeHello;
  /** False when a newer session of the device is already registered, or the socket has closed. */
  readonly register: (session: AgentSession, begun: SessionBegun) => boolean;
  readonly heartbeats: Pick<Heartbeats, "take">;
  readonly push: PushCommands;
  readonly acks: Pick<Acks, "ack" | "damagedAck" | "unsupportedOp">;
  readonly presence: Pick<SocketPresence, "goodbye">;
  readonly onError: (error: unknown, session: AgentSession) => void;
}

const HANDOFF = "handoff.v1";
const CANCEL = "cancel.v1";

type Frame<Op extends AgentFrame["op"]> = Extract<AgentFrame, { op: Op }>;

export const createFrameHandlers = ({ clock, settings, meters, judge, register, heartbeats, push, acks, presence, onError }: FrameHandlersDeps) => {
  const hello = async (session: AgentSession, { id, data }: Frame<"hello">): Promise<void> => {
    session.phase = "proving";
    session.phaseAt = clock.elapsed();
    session.instanceId = data.instanceId ?? null;
    session.handsOver = data.capabilities.includes(HANDOFF);
    session.canStop = data.capabilities.includes(CANCEL);
    session.maxInFlight = Math.max(1, Math.min(Math.floor(data.maxInFlight), settings.maxInFlight));
    const verdict = await judge(session, data);
    if ("close" in verdict) {
      if (verdict.error.cause !== undefined) onError(verdict.error.cause, session);
      send(session, errorFrame(verdict.error, id), clock);
      endSession(session, verdict.close, verdict.retryAfterSeconds);
      return;
    }
    const { begun } = verdict;
    if (register(session, begun)) await ready(session, begun, { id, data });
  };

  const ready = async (session: AgentSession, begun: SessionBegun, { id, data }: Pick<Frame<"hello">, "id" | "data">): Promise<void> => {
    const { deviceId } = session;
    const { epoch, queuedCount, reconcile } = begun;
    for (const { commandId, action } of reconcile) if (action === "continue") expectAck(session, commandId, clock.elapsed());
    session.link?.cork(() => {
      send(session, { op: "ready", ref: id, data: { deviceId, epoch, queuedCount, reconcile: [...reconcile] } }, clock);
    });
    meters.handshake((clock.elapsed() - session.openedAt) / 1_000);
    // The agent reports the offset to add to its own clock, the reverse of how far it is ahead.
    if (data.clockOffsetMs !== undefined) meters.clockOffset(-data.clockOffsetMs / 1_000);
    begun.notify();
    await push(session);
  };

  const goodbye = async (session: AgentSession, { data }: Frame<"goodbye">): Promise<void> => {
    session.phase = "leaving";
    session.phaseAt = clock.elapsed();
    // After a handoff the next session has presence, or gets it in a moment.
    if (data.reason === "handoff") return;
    await presence.goodbye({ deviceId: session.deviceId, epoch: session.epoch }, { reason: data.reason, expectBackMs: data.expectBackSec * 1_000 });
  };

  const handle = async (session: AgentSession, frame: AgentFrame): Promise<void> => {
    switch (frame.op) {
      case "hello":
        return hello(session, frame);
      case "heartbeat":
        return heartbeats.take(session, frame.id, frame.data, clock.elapsed());
      case "ack":
        return acks.ack(session, frame.id, frame.data);
      case "goodbye":
        return goodbye(session, frame);
      case "error":
        return frame.data.code === UNSUPPORTED_OP && frame.ref !== undefined ? acks.unsupportedOp(session, frame.ref) : undefined;
      default:
        return unreachable(frame);
    }
  };
  return { handle, damagedAck: acks.damagedAck };
};
export type FrameHandlers = ReturnType<typeof createFrameHandlers>;
