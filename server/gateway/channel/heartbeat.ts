// Heartbeats: kept in the session, answered at once, written later by presence-flush.ts. No frame is more frequent, so nothing here waits, and a plain
// heartbeat is kept and answered as bytes, without allocating an object for it.

import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { ChannelStats } from "../../core/ports/channel-stats.ts";
import { missingAcks } from "./acks.ts";
import { takeFromWindow } from "./rate-limits.ts";
import type { Scanner } from "./scan.ts";
import { bytesOf } from "./scan-values.ts";
import { type AgentSession, type HeartbeatData, type KeptHeartbeat, send } from "./session.ts";
import type { ChannelSettings } from "./settings.ts";
import type { ChannelMeters } from "./stats.ts";

export interface HeartbeatDeps {
  readonly clock: Clock;
  readonly settings: ChannelSettings;
  readonly stats: ChannelStats;
  readonly meters: ChannelMeters;
}

const SPACE = 0x20;
/** Room for the next heartbeats, whose numbers grow. */
const SPARE_BYTES = 24;

const keep = (bytes: Uint8Array, before: AgentSession["heartbeat"]): KeptHeartbeat => {
  const place = before instanceof Uint8Array && before.length >= bytes.length ? before : new Uint8Array(bytes.length + SPARE_BYTES);
  place.set(bytes);
  place.fill(SPACE, bytes.length);
  return place;
};

const read = (heartbeat: HeartbeatData | KeptHeartbeat): HeartbeatData =>
  heartbeat instanceof Uint8Array ? JSON.parse(Buffer.from(heartbeat.buffer).toString("latin1")).data : heartbeat;

/** The metrics to write to the database; null when the heartbeat carried none. */
export const metricsOf = (heartbeat: HeartbeatData | KeptHeartbeat): Readonly<Record<string, unknown>> | null => {
  const { metrics, cpu, memory, disk } = read(heartbeat);
  const all: Record<string, unknown> = { ...metrics };
  if (cpu !== undefined) all["cpu"] = cpu;
  if (memory !== undefined) all["memory"] = memory;
  if (disk !== undefined) all["disk"] = disk;
  return metrics === undefined && Object.keys(all).length === 0 ? null : all;
};

const tooMany = ({ windowLimit, windowMs }: AgentSession, retryAfter: number): AppError =>
  new AppError("RATE_LIMIT_EXCEEDED", { retryAfter, details: { bucket: "heartbeat", limit: windowLimit, windowSeconds: windowMs / 1_000 } });

const NOTHING: readonly string[] = [];

export const createHeartbeat = ({ clock, settings, stats, meters }: HeartbeatDeps) => {
  const timestampAt = createTimestampCache(clock);
  const plainAck = createHeartbeatAck(timestampAt);

  /** Throws when the session exceeds its limit. */
  const begin = (session: AgentSession, nowMs: number): void => {
    const retryAfter = takeFromWindow(session, nowMs);
    if (retryAfter > 0) throw tooMany(session, retryAfter);
    stats.heartbeats += 1;
    session.heartbeatAt = nowMs;
  };

  const answer = (session: AgentSession, id: string, { inFlight }: HeartbeatData, nowMs: number): void => {
    const resend = inFlight === undefined ? NOTHING : missingAcks(session, inFlight, { nowMs, afterMs: settings.resendAfterMs });
    stats.resendsAsked += resend.length;
    const data = { serverTime: timestampAt(nowMs), ...(resend.length === 0 ? {} : { resend: [...resend] }) };
    send(session, { op: "heartbeat_ack", ref: id, data }, clock);
  };

  const take = (session: AgentSession, id: string, data: HeartbeatData, nowMs: number): void => {
    begin(session, nowMs);
    if (data.rttMs !== undefined) meters.heartbeatRtt(data.rttMs / 1_000);
    // A heartbeat without metrics leaves the metrics of an earlier one.
    if (data.metrics !== undefined || data.cpu !== undefined || data.memory !== undefined || data.disk !== undefined) session.heartbeat = data;
    answer(session, id, data, nowMs);
  };

  /** The same for a frame that the scanner has just accepted. */
  const takePlain = ({ frame, fields, value, bits }: Scanner): ((session: AgentSession, bytes: Uint8Array, nowMs: number) => void) => {
    const told = bits("metrics", "cpu", "memory", "disk");
    const listed = bits("inFlight");
    const timed = bits("rttMs");
    return (session, bytes, nowMs) => {
      begin(session, nowMs);
      const found = fields();
      if ((found & timed) !== 0) meters.heartbeatRtt(value("rttMs") / 1_000);
      if ((found & told) !== 0) session.heartbeat = keep(bytes, session.heartbeat);
      if (session.unacknowledged !== null && session.unacknowledged.size > 0 && (found & listed) !== 0) {
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

/** The current time as ISO text, formatted once per millisecond. The caller passes its own monotonic time, so most frames read no clock. */
export const createTimestampCache = (clock: Clock): ((nowMs: number) => string) => {
  let atMs = Number.NaN;
  let text = "";
  return (nowMs) => {
    if (nowMs !== atMs) {
      atMs = nowMs;
      text = clock.now().toISOString();
    }
    return text;
  };
};

const ZERO = 0x30;
const MAX_DIGITS = 15;

const digitsOf = (number: number): number => {
  let digits = 1;
  for (let limit = 10; number >= limit; limit *= 10) digits += 1;
  return digits;
};

const writeDigits = (bytes: Uint8Array, end: number, number: number): void => {
  let rest = number;
  for (let at = end - 1; rest > 0; at -= 1) {
    const tenth = Math.floor(rest / 10);
    bytes[at] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
};

/** A heartbeat_ack for numbers of these lengths, with the positions of the parts that change. */
interface AckTemplate {
  readonly bytes: Uint8Array;
  readonly idEnd: number;
  readonly tsAt: number;
  readonly refEnd: number;
  readonly serverTimeAt: number;
  time: string;
}

const newTemplate = (idDigits: number, refDigits: number, time: string): AckTemplate => {
  const toId = `{"op":"heartbeat_ack","id":"s${"0".repeat(idDigits)}`;
  const toTs = `${toId}","ts":"`;
  const toRef = `${toTs}${time}","ref":"${"0".repeat(refDigits)}`;
  const toServerTime = `${toRef}","data":{"serverTime":"`;
  const bytes = bytesOf(`${toServerTime}${time}"}}`);
  return { bytes, idEnd: toId.length, tsAt: toTs.length, refEnd: toRef.length, serverTimeAt: toServerTime.length, time };
};

const setTime = (template: AckTemplate, time: string): void => {
  template.time = time;
  for (let index = 0; index < time.length; index += 1) {
    const code = time.charCodeAt(index);
    template.bytes[template.tsAt + index] = code;
    template.bytes[template.serverTimeAt + index] = code;
  }
};

/**
 * Writes a heartbeat_ack in place: between two acks only the two numbers change, and the time once a millisecond. The bytes equal what `writeFrame` writes
 * for the session's frame `s{number}` and are valid until the next call. Both numbers are whole and above 0.
 */
export const createHeartbeatAck = (timestampAt: (nowMs: number) => string): ((number: number, ref: number, nowMs: number) => Uint8Array) => {
  const templates: (AckTemplate | undefined)[] = Array.from({ length: (MAX_DIGITS + 1) ** 2 });
  return (number, ref, nowMs) => {
    const time = timestampAt(nowMs);
    const idDigits = digitsOf(number);
    const refDigits = digitsOf(ref);
    const index = idDigits * (MAX_DIGITS + 1) + refDigits;
    const template = templates[index] ?? newTemplate(idDigits, refDigits, time);
    templates[index] = template;
    if (template.time !== time) setTime(template, time);
    writeDigits(template.bytes, template.idEnd, number);
    writeDigits(template.bytes, template.refEnd, ref);
    return template.bytes;
  };
};
