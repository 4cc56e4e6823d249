// Whether this node can take one more agent now. A refused agent is told when to come back, at a time of its own. No IO: the simulation of large fleets
// decides by it, too.
import { newBucket, takeToken } from "../../core/structures/token-bucket.ts";
import type { ChannelSettings } from "./settings.ts";

/** The channel keeps it current. */
export interface NodeCondition {
  draining: boolean;
  overloaded: boolean;
}

export interface NodeOccupancy extends Readonly<NodeCondition> {
  readonly connections: number;
}

export interface CapacityRefusal {
  readonly reason: "draining" | "node_overloaded" | "node_full";
  /** Seconds. */
  readonly retryAfter: number;
}

export interface Capacity {
  /** Null: there is room, and one more agent counts as accepted. */
  take(node: NodeOccupancy, nowMs: number): CapacityRefusal | null;
}

/** Refused agents come back spread over this many seconds. */
const SPREAD_SECONDS = 10;

type Limits = Pick<ChannelSettings, "acceptPerSecond" | "acceptBurst" | "warmUpMs" | "maxConnections">;

export const createCapacity = (
  { acceptPerSecond, acceptBurst, warmUpMs, maxConnections }: Limits,
  startedAtMs: number,
  random: () => number = Math.random,
): Capacity => {
  const warm = { perSecond: acceptPerSecond, burst: acceptBurst };
  const cold = { perSecond: acceptPerSecond / 4, burst: acceptBurst / 4 };
  const warmBucket = newBucket(warm, startedAtMs);
  const coldBucket = newBucket(cold, startedAtMs);
  const refuse = (reason: CapacityRefusal["reason"], seconds = SPREAD_SECONDS): CapacityRefusal => ({
    reason,
    retryAfter: 1 + Math.floor(random() * seconds),
  });
  return {
    take: ({ draining, overloaded, connections }, nowMs) => {
      if (draining) return refuse("draining", SPREAD_SECONDS / 2);
      if (overloaded) return refuse("node_overloaded");
      if (connections >= maxConnections) return refuse("node_full");
      const hasToken = nowMs - startedAtMs < warmUpMs ? takeToken(coldBucket, cold, nowMs) : takeToken(warmBucket, warm, nowMs);
      return hasToken ? null : refuse("node_full");
    },
  };
};
