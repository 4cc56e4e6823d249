// The counters of the agent channel: the channel counts, the metrics page reads.
export interface ChannelStats {
  connections: number;
  ready: number;
  framesIn: number;
  /** Frame numbers that never came, and numbers that came twice. */
  frameGaps: number;
  frameRepeats: number;
  /** Commands whose ack the gateway requested again in an answer to a heartbeat. */
  resendsAsked: number;
  pushed: number;
  refusedWrites: number;
  heartbeats: number;
  /** Over all sockets, as of the last tick. */
  bufferedBytes: number;
  droppedFrames: number;
  /** The heartbeat interval that this node requests now. */
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
