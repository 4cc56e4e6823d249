// What the channel counts, for the metrics page.
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
  /** `accepted` or the reason of a refusal. */
  readonly connects: Map<string, number>;
  readonly closes: Map<number, number>;
}

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
  connects: new Map(),
  closes: new Map(),
});

export const countUp = <K>(counts: Map<K, number>, key: K): void => void counts.set(key, (counts.get(key) ?? 0) + 1);
