// What the channel counts and measures, for the metrics page.
export interface ChannelStats {
  connections: number;
  ready: number;
  framesIn: number;
  /** Numbers that never came, and such as came twice. */
  frameGaps: number;
  frameRepeats: number;
  /** Commands that heartbeats were asked about. */
  resendsAsked: number;
  pushed: number;
  refusedWrites: number;
  heartbeats: number;
  /** Over all sockets, at the last look of the clock. */
  bufferedBytes: number;
  droppedFrames: number;
  /** How often agents are asked to beat now. */
  heartbeatSeconds: number;
  overloaded: boolean;
  /** Sockets of sessions that the database knew to be replaced while no hint had said so. */
  staleEvictions: number;
  /** `accepted` or the reason of a refusal. */
  readonly connects: Map<string, number>;
  readonly closes: Map<number, number>;
  /** Upgrades refused to protect the node, by what was exhausted. */
  readonly turnedAway: Map<string, number>;
}

/** Durations, told as they happen; in seconds. */
export interface ChannelMeters {
  /** From the open socket to ready. */
  handshake(seconds: number): void;
  /** From a heartbeat to its answer, as the agent reports it. */
  heartbeatRtt(seconds: number): void;
  /** By how much the agent's clock is ahead, as it reports it. */
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
