// How many visits a tunnel takes: open ones of an address, open ones of all visitors, and requests in a minute. Each node counts its own.

import type { Clock } from "../../../core/clock.ts";
import type { EdgeError } from "../../../core/ports/edge.ts";
import { createBoundedCache } from "../../../core/structures/bounded-cache.ts";
import { newBucket, type Rate, secondsToToken, type TokenBucket, takeToken } from "../../../core/structures/token-bucket.ts";
import type { TunnelRow } from "../store.ts";
import { TOO_MANY, TUNNEL_FULL, tooFast } from "./failures.ts";

const OPEN_PER_ADDRESS = 32;
const MAX_BUCKETS = 10_000;
/** A tenth of a minute's requests may come at once. */
const BURST_SHARE = 10;

interface Counted extends TokenBucket {
  readonly perMinute: number;
}

export interface VisitLimits {
  /** Null: the visit may begin, and is open until `until` says so. Else why not. */
  take(tunnel: TunnelRow, ip: string, until: (done: () => void) => void): EdgeError | null;
}

export const createVisitLimits = (clock: Pick<Clock, "elapsed">): VisitLimits => {
  const open = new Map<string, number>();
  const buckets = createBoundedCache<Counted>(MAX_BUCKETS);

  const add = (name: string, change: 1 | -1): void => {
    const count = (open.get(name) ?? 0) + change;
    if (count === 0) open.delete(name);
    else open.set(name, count);
  };
  /** 0: it fits, else the seconds until one does. */
  const secondsToWait = ({ tunnelId, requestsPerMinute: perMinute }: TunnelRow): number => {
    if (perMinute === null) return 0;
    const rate: Rate = { perSecond: perMinute / 60, burst: Math.max(1, Math.ceil(perMinute / BURST_SHARE)) };
    const now = clock.elapsed();
    const known = buckets.get(tunnelId);
    const bucket = known?.perMinute === perMinute ? known : { ...newBucket(rate, now), perMinute };
    if (bucket !== known) buckets.set(tunnelId, bucket);
    return takeToken(bucket, rate, now) ? 0 : secondsToToken(bucket, rate);
  };

  return {
    take: (tunnel, ip, until) => {
      const { tunnelId, maxConnections } = tunnel;
      const names = [tunnelId, `${tunnelId}|${ip}`] as const;
      const [all = 0, own = 0] = names.map((name) => open.get(name) ?? 0);
      if (own >= OPEN_PER_ADDRESS) return TOO_MANY;
      if (maxConnections !== null && all >= maxConnections) return TUNNEL_FULL;
      const seconds = secondsToWait(tunnel);
      if (seconds > 0) return tooFast(seconds);
      for (const name of names) add(name, 1);
      until(() => {
        for (const name of names) add(name, -1);
      });
      return null;
    },
  };
};
