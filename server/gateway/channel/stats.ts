// Counters and durations of the agent channel, for the metrics page.
import type { ChannelStats } from "../../core/ports/channel-stats.ts";

/** Durations in seconds, observed as they happen. */
export interface ChannelMeters {
  /** From the open socket to `ready`. */
  handshake(seconds: number): void;
  /** From a heartbeat to its answer, as the agent reports it. */
  heartbeatRtt(seconds: number): void;
  /** How far the agent's clock is ahead, as the agent reports it. */
  clockOffset(seconds: number): void;
  presenceFlush(seconds: number): void;
}
const ignore = (): void => undefined;
export const noMeters: ChannelMeters = { handshake: ignore, heartbeatRtt: ignore, clockOffset: ignore, presenceFlush: ignore };

export const newStats = (): ChannelStats => ({
  connections: 0,
  ready: 0,
  framesIn: 0,
  frameGaps: 0,
  frameRepeats: 0,
  resendsAsked: 0,
  pushed: 0,
  refusedWrites: 0,
  heartbeats: 0,
  bufferedBytes: 0,
  droppedFrames: 0,
  heartbeatSeconds: 0,
  overloaded: false,
  staleEvictions: 0,
  connects: new Map(),
  closes: new Map(),
  turnedAway: new Map(),
});

export const countUp = <K>(counts: Map<K, number>, key: K): void => void counts.set(key, (counts.get(key) ?? 0) + 1);
