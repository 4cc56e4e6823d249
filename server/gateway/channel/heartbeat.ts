// A heartbeat of a ready agent: remembered in the session, answered at once, written behind by beats.ts. The most frequent thing there is,
// so nothing here waits, and a plain one is kept and answered as bytes, without an object made for it.
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { missing } from "./awaited.ts";
import { createHeartbeatAck } from "./heartbeat-ack.ts";
import type { Scanner } from "./scan.ts";
import { type HeartbeatData, type Session, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";
import type { Stamp } from "./stamp.ts";
import type { ChannelMeters, ChannelStats } from "./stats.ts";
import { takeTurn } from "./tokens.ts";

export interface HeartbeatDeps {
  readonly clock: Clock;
  readonly stamp: Stamp;
  readonly settings: ChannelSettings;
  readonly stats: ChannelStats;
  readonly meters: ChannelMeters;
}

/** The frame of a plain heartbeat, with spaces behind it. */
export type KeptBeat = Uint8Array<ArrayBuffer>;

const SPACE = 0x20;
/** So that the frames that follow fit in, though their numbers grow. */
const ROOM = 24;

const keep = (bytes: Uint8Array, before: Session["heartbeat"]): KeptBeat => {
  const place = before instanceof Uint8Array && before.length >= bytes.length ? before : new Uint8Array(bytes.length + ROOM);
  place.set(bytes);
  place.fill(SPACE, bytes.length);
  return place;
};

const read = (beat: HeartbeatData | KeptBeat): HeartbeatData =>
  beat instanceof Uint8Array ? JSON.parse(Buffer.from(beat.buffer).toString("latin1")).data : beat;

/** What the database keeps of it; null when it told of nothing but life. */
export const metricsOf = (beat: HeartbeatData | KeptBeat): Readonly<Record<string, unknown>> | null => {
  const { metrics, cpu, memory, disk } = read(beat);
  const all: Record<string, unknown> = { ...metrics };
  if (cpu !== undefined) all["cpu"] = cpu;
  if (memory !== undefined) all["memory"] = memory;
  if (disk !== undefined) all["disk"] = disk;
  return metrics === undefined && Object.keys(all).length === 0 ? null : all;
};

const NOTHING: readonly string[] = [];

export const createHeartbeat = ({ clock, stamp, settings, stats, meters }: HeartbeatDeps) => {
  const plainAck = createHeartbeatAck(stamp);

  /** Throws when there were too many. */
  const begin = (session: Session, nowMs: number): void => {
    const retryAfter = takeTurn(session, nowMs);
    if (retryAfter > 0) throw tooMany(session, retryAfter);
    stats.heartbeats += 1;
    session.heartbeatAt = nowMs;
  };

  const answer = (session: Session, id: string, { inFlight }: HeartbeatData, nowMs: number): void => {
    const resend = inFlight === undefined ? NOTHING : missing(session, inFlight, { nowMs, afterMs: settings.resendAfterMs });
    stats.resendsAsked += resend.length;
    send(session, { op: "heartbeat_ack", ref: id, data: { serverTime: stamp(nowMs), ...(resend.length === 0 ? {} : { resend: [...resend] }) } }, clock);
  };

  const take = (session: Session, id: string, data: HeartbeatData, nowMs: number): void => {
    begin(session, nowMs);
    if (data.rttMs !== undefined) meters.heartbeatRtt(data.rttMs / 1_000);
    // A sign of life alone does not wipe out what an earlier one told.
    if (data.metrics !== undefined || data.cpu !== undefined || data.memory !== undefined || data.disk !== undefined) session.heartbeat = data;
    answer(session, id, data, nowMs);
  };

  /** The same for a frame that the scanner has just taken. */
  const takePlain = ({ frame, fields, value, bits }: Scanner): ((session: Session, bytes: Uint8Array, nowMs: number) => void) => {
    const told = bits("metrics", "cpu", "memory", "disk");
    const listed = bits("inFlight");
    const timed = bits("rttMs");
    return (session, bytes, nowMs) => {
      begin(session, nowMs);
      const found = fields();
      if ((found & timed) !== 0) meters.heartbeatRtt(value("rttMs") / 1_000);
      if ((found & told) !== 0) session.heartbeat = keep(bytes, session.heartbeat);
      if (session.awaited !== null && session.awaited.size > 0 && (found & listed) !== 0) {
        answer(session, String(frame()), read(keep(bytes, null)), nowMs);
        return;
      }
      session.framesOut += 1;
      session.link?.sendText(plainAck(session.framesOut, frame(), nowMs));
    };
  };

  return { take, takePlain };
};
export type Heartbeats = ReturnType<typeof createHeartbeat>;

const tooMany = ({ turns, turnWindowMs }: Session, retryAfter: number): AppError =>
  new AppError("RATE_LIMIT_EXCEEDED", { retryAfter, details: { bucket: "heartbeat", limit: turns, windowSeconds: turnWindowMs / 1_000 } });
