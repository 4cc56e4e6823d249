// Counters and durations of the agent channel, for the metrics page.
export interface ChannelStats {
  connections: number;
  ready: number;
  framesIn: number;
  /** Frame numbers that never came, and numbers that came twice. */
  frameGaps: number;
  frameRepeats: number;
  /** Commands whose ack the gateway asked for again in answers to heartbeats. */
  resendsAsked: number;
  pushed: number;
  refusedWrites: number;
  heartbeats: number;
  /** Over all sockets, as of the last tick. */
  bufferedBytes: number;
  droppedFrames: number;
  /** The heartbeat interval that this node asks for now. */
  heartbeatSeconds: number;
  overloaded: boolean;
  /** Sockets that a newer session had replaced without an eviction reaching this node. */
  staleEvictions: number;
  /** `accepted` or the reason of a refusal. */
  readonly connects: Map<string, number>;
  readonly closes: Map<number, number>;
  /** Upgrades refused to protect the node, by the limit they met. */
  readonly turnedAway: Map<string, number>;
}

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
