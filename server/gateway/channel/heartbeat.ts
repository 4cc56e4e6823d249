// A heartbeat of a ready agent: remembered in the session, answered at once, written behind by beats.ts. The most frequent thing there is,
// so nothing here waits, and its answer is put together by hand.
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { missing } from "./awaited.ts";
import { type HeartbeatData, type Session, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";
import type { Stamp } from "./stamp.ts";
import type { ChannelMeters, ChannelStats } from "./stats.ts";
import { type TurnCounter, takeTurn } from "./tokens.ts";

export interface HeartbeatDeps {
  readonly clock: Clock;
  readonly stamp: Stamp;
  readonly settings: ChannelSettings;
  readonly stats: ChannelStats;
  readonly meters: ChannelMeters;
}

/** What the database keeps of it; null when it told of nothing but life. */
export const metricsOf = ({ metrics, cpu, memory, disk }: HeartbeatData): Readonly<Record<string, unknown>> | null => {
  const all: Record<string, unknown> = { ...metrics };
  if (cpu !== undefined) all["cpu"] = cpu;
  if (memory !== undefined) all["memory"] = memory;
  if (disk !== undefined) all["disk"] = disk;
  return metrics === undefined && Object.keys(all).length === 0 ? null : all;
};

const tooMany = ({ limit, windowMs }: TurnCounter, retryAfter: number): AppError =>
  new AppError("RATE_LIMIT_EXCEEDED", { retryAfter, details: { bucket: "heartbeat", limit, windowSeconds: windowMs / 1_000 } });

const NOTHING: readonly string[] = [];
/** An id that needs no escaping: the answer can be put together by hand, the same as writeFrame would write it. */
const PLAIN = /^[\w.:-]*$/;

export const createHeartbeat =
  ({ clock, stamp, settings, stats, meters }: HeartbeatDeps) =>
  (session: Session, id: string, data: HeartbeatData, nowMs: number): void => {
    if (session.heartbeats !== null) {
      const retryAfter = takeTurn(session.heartbeats, nowMs);
      if (retryAfter > 0) throw tooMany(session.heartbeats, retryAfter);
    }
    stats.heartbeats += 1;
    if (data.rttMs !== undefined) meters.heartbeatRtt(data.rttMs / 1_000);
    // A sign of life alone does not wipe out what an earlier one told.
    if (data.metrics !== undefined || data.cpu !== undefined || data.memory !== undefined || data.disk !== undefined) session.heartbeat = data;
    session.heartbeatAt = nowMs;
    const resend = data.inFlight === undefined ? NOTHING : missing(session, data.inFlight, { nowMs, afterMs: settings.resendAfterMs });
    stats.resendsAsked += resend.length;
    if (resend.length > 0 || !PLAIN.test(id)) {
      send(session, { op: "heartbeat_ack", ref: id, data: { serverTime: stamp(nowMs), ...(resend.length === 0 ? {} : { resend: [...resend] }) } }, clock);
      return;
    }
    session.framesOut += 1;
    const now = stamp(nowMs);
    session.link?.send(`{"op":"heartbeat_ack","id":"s${session.framesOut}","ts":"${now}","ref":"${id}","data":{"serverTime":"${now}"}}`);
  };
export type TakeHeartbeat = ReturnType<typeof createHeartbeat>;
