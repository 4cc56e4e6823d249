// What each frame of a ready agent does. Errors thrown here become error frames; see inbound.ts.
import type { z } from "zod";
import type { AgentFrame, SocketAck } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { CommandDelivery } from "../../core/delivery.ts";
import { isAppError, unreachable } from "../../core/errors.ts";
import type { SessionBegun, SocketPresence } from "../../core/sessions.ts";
import { expectWord, heard } from "./awaited.ts";
import { type Cancels, UNSUPPORTED_OP } from "./cancels.ts";
import { type DamagedAck, errorFrame } from "./frames.ts";
import type { Heartbeats } from "./heartbeat.ts";
import type { JudgeHello } from "./hello.ts";
import type { Pump } from "./pump.ts";
import { endSession, type Session, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";
import type { ChannelMeters } from "./stats.ts";

export interface ActsDeps {
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly meters: ChannelMeters;
  readonly judge: JudgeHello;
  readonly delivery: Pick<CommandDelivery, "ack">;
  readonly cancels: Pick<Cancels, "unsupported">;
  /** Nothing is wrong with what was asked: the same may be done a little later. */
  readonly isTemporary: (error: unknown) => boolean;
  readonly presence: Pick<SocketPresence, "goodbye">;
  readonly pump: Pump;
  readonly heartbeats: Pick<Heartbeats, "take">;
  /** A hello was good: the session takes its place. False when a newer one stands there already or the socket is gone. */
  readonly enter: (session: Session, begun: SessionBegun) => boolean;
  readonly onError: (error: unknown, session: Session) => void;
}

const HANDOFF = "handoff.v1";
const CANCEL = "cancel.v1";

type Frame<Op extends AgentFrame["op"]> = Extract<AgentFrame, { op: Op }>;

export const createActs = (deps: ActsDeps) => {
  const { clock, settings, meters, delivery, presence, pump, heartbeats, onError } = deps;

  const hello = async (session: Session, { id, data }: Frame<"hello">): Promise<void> => {
    session.phase = "proving";
    session.phaseAt = clock.elapsed();
    session.instanceId = data.instanceId ?? null;
    session.handsOver = data.capabilities.includes(HANDOFF);
    session.canStop = data.capabilities.includes(CANCEL);
    session.maxInFlight = Math.max(1, Math.min(Math.floor(data.maxInFlight), settings.maxInFlight));
    const verdict = await deps.judge(session, data);
    if ("close" in verdict) {
      if (verdict.error.cause !== undefined) onError(verdict.error.cause, session);
      send(session, errorFrame(verdict.error, id), clock);
      endSession(session, verdict.close, verdict.retryAfterSeconds);
      return;
    }
    const { begun } = verdict;
    if (!deps.enter(session, begun)) return;
    for (const { commandId, action } of begun.reconcile) if (action === "continue") expectWord(session, commandId, clock.elapsed());
    session.link?.cork(() => {
      send(
        session,
        {
          op: "ready",
          ref: id,
          data: { deviceId: session.deviceId, epoch: begun.epoch, queuedCount: begun.queuedCount, reconcile: [...begun.reconcile] },
        },
        clock,
      );
    });
    meters.handshake((clock.elapsed() - session.openedAt) / 1_000);
    // The agent names what to add to its own clock.
    if (data.clockOffsetMs !== undefined) meters.clockOffset(-data.clockOffsetMs / 1_000);
    begun.notify();
    await pump(session);
  };

  const settle = async (session: Session, id: string, data: z.output<typeof SocketAck> | DamagedAck, refused: string | null): Promise<void> => {
    const { tenantId, deviceId } = session;
    // Resolves after the commit. When it fails there is no ack_ok, and the agent sends its word again.
    const result = await delivery.ack({ tenantId, deviceId }, data, refused);
    heard(session, result);
    send(session, { op: "ack_ok", ref: id, data: result }, clock);
  };

  /** What the database does not take at any time is not asked for again: the word is kept without it. */
  const ack = async (session: Session, { id, data }: Frame<"ack">): Promise<void> => {
    try {
      await settle(session, id, data, null);
    } catch (error) {
      if (isAppError(error) || deps.isTemporary(error)) throw error;
      onError(error, session);
      const { commandId, status, output } = data;
      await settle(session, id, { commandId, status, outputTruncated: output !== undefined }, "INTERNAL_ERROR");
    }
  };

  const goodbye = async (session: Session, { data }: Frame<"goodbye">): Promise<void> => {
    session.phase = "leaving";
    session.phaseAt = clock.elapsed();
    // The session that takes over has presence already, or will have it in a moment.
    if (data.reason === "handoff") return;
    await presence.goodbye({ deviceId: session.deviceId, epoch: session.epoch }, { reason: data.reason, expectBackMs: data.expectBackSec * 1_000 });
  };

  const act = async (session: Session, frame: AgentFrame): Promise<void> => {
    switch (frame.op) {
      case "hello":
        return hello(session, frame);
      case "heartbeat":
        return heartbeats.take(session, frame.id, frame.data, clock.elapsed());
      case "ack":
        return ack(session, frame);
      case "goodbye":
        return goodbye(session, frame);
      case "error":
        return frame.data.code === UNSUPPORTED_OP && frame.ref !== undefined ? deps.cancels.unsupported(session, frame.ref) : undefined;
      default:
        return unreachable(frame);
    }
  };
  /** Of an ack that came damaged the word counts. */
  const refuseAck = (session: Session, id: string, damaged: DamagedAck): Promise<void> => settle(session, id, damaged, "VALIDATION_FAILED");
  return { act, refuseAck };
};
export type Acts = ReturnType<typeof createActs>;
