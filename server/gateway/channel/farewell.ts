// How a node lets its agents go: each is told when to come back, spread over a window, then closed in batches.
import { CLOSE } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { endSession, type Session, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";

const isoIn = (clock: Clock, ms: number): string => {
  const at = clock.now();
  at.setTime(at.getTime() + ms);
  return at.toISOString();
};

/** Takes at most the drain window. */
export const closeAll = async (sessions: readonly Session[], settings: ChannelSettings, clock: Clock): Promise<void> => {
  const closeAt = isoIn(clock, settings.drainWindowMs);
  for (const session of sessions) {
    if (session.phase === "ready") session.phase = "draining";
    if (session.phase !== "draining") continue;
    const reconnectAfterMs = Math.round(Math.random() * settings.reconnect.firstWindowMs);
    send(session, { op: "drain", data: { reason: "shutdown", handoff: false, reconnectAfterMs, closeAt } }, clock);
  }
  const batches = Math.ceil(sessions.length / settings.drainBatch);
  const pauseMs = Math.min(settings.drainPauseMs, settings.drainWindowMs / Math.max(1, batches));
  for (let from = 0; from < sessions.length; from += settings.drainBatch) {
    if (from > 0)
      await new Promise((resolve) => {
        setTimeout(resolve, pauseMs);
      });
    for (const session of sessions.slice(from, from + settings.drainBatch)) endSession(session, CLOSE.drain);
  }
};
