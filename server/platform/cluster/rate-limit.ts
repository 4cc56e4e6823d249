// Rate limits: fixed windows that start with the first hit, so that 100 pass and the 101st is refused, always.
import type { Clock } from "../../core/clock.ts";
import type { BucketState, RateBucket, RateLimiter, RateLimitVerdict } from "../../core/ports/rate-limiter.ts";

const opensLater = (a: BucketState, b: BucketState): BucketState => (b.resetAt.getTime() > a.resetAt.getTime() ? b : a);
const tighter = (a: BucketState, b: BucketState): BucketState => (b.remaining === a.remaining ? opensLater(a, b) : b.remaining < a.remaining ? b : a);

/** Picks the verdict from the state of every bucket before the call. Pure, shared by all implementations. */
export const judge = (states: readonly BucketState[], cost: number, now: Date): RateLimitVerdict => {
  let refusing: BucketState | null = null;
  let tightest: BucketState | null = null;
  for (const state of states)
    if (state.remaining < cost) refusing = refusing === null ? state : opensLater(refusing, state);
    else tightest = tightest === null ? state : tighter(tightest, state);
  const telling = refusing ?? tightest;
  if (telling === null) throw new Error("there is no bucket to judge by");
  const { bucket, limit, windowSeconds, resetAt } = telling;
  const allowed = refusing === null;
  const remaining = allowed ? telling.remaining - cost : telling.remaining;
  const retryAfterSeconds = Math.max(1, Math.ceil((resetAt.getTime() - now.getTime()) / 1_000));
  return { bucket, limit, windowSeconds, resetAt, allowed, remaining, retryAfterSeconds };
};

interface Counter {
  used: number;
  /** On the monotonic clock: a corrected wall clock neither opens nor prolongs a window. */
  readonly endsAtMs: number;
}

export interface MemoryRateLimiterOptions {
  readonly clock: Clock;
  /** Beyond this many counters the oldest window is forgotten. */
  readonly maxCounters?: number;
}

// Checks two counters per new one: the sweep stays ahead of growth, and no call pays for all of it.
const SWEPT_PER_NEW_COUNTER = 2;

/** For one node. `size` is for tests and metrics. */
export const createMemoryRateLimiter = ({ clock, maxCounters = 200_000 }: MemoryRateLimiterOptions): RateLimiter & { readonly size: number } => {
  const counters = new Map<string, Counter>();
  const idOf = ({ name, key }: RateBucket) => `${name}|${key}`;
  let sweeping = counters.entries();

  const sweep = (elapsedMs: number): void => {
    for (let step = 0; step < SWEPT_PER_NEW_COUNTER; step += 1) {
      const { value, done } = sweeping.next();
      if (done === true) sweeping = counters.entries();
      else if (value[1].endsAtMs <= elapsedMs) counters.delete(value[0]);
    }
  };
  const living = (bucket: RateBucket, elapsedMs: number): Counter | null => {
    const counter = counters.get(idOf(bucket));
    return counter !== undefined && counter.endsAtMs > elapsedMs ? counter : null;
  };
  const stateOf = (bucket: RateBucket, counter: Counter | null, { elapsedMs, now }: { readonly elapsedMs: number; readonly now: Date }): BucketState => {
    const leftMs = counter === null ? bucket.windowSeconds * 1_000 : counter.endsAtMs - elapsedMs;
    const { name, limit, windowSeconds } = bucket;
    return { bucket: name, limit, windowSeconds, remaining: Math.max(0, limit - (counter?.used ?? 0)), resetAt: new Date(now.getTime() + leftMs) };
  };
  const open = (bucket: RateBucket, cost: number, elapsedMs: number): void => {
    // Deleted first, so that the map stays in the order in which windows started.
    counters.delete(idOf(bucket));
    sweep(elapsedMs);
    const oldest = counters.size >= maxCounters ? counters.keys().next().value : undefined;
    if (oldest !== undefined) counters.delete(oldest);
    counters.set(idOf(bucket), { used: cost, endsAtMs: elapsedMs + bucket.windowSeconds * 1_000 });
  };

  return {
    take: async (buckets, cost = 1) => {
      const at = { elapsedMs: clock.elapsed(), now: clock.now() };
      const found = buckets.map((bucket) => living(bucket, at.elapsedMs));
      const states = buckets.map((bucket, index) => stateOf(bucket, found[index] ?? null, at));
      const verdict = judge(states, cost, at.now);
      if (!verdict.allowed) return verdict;
      for (const [index, bucket] of buckets.entries()) {
        const counter = found[index] ?? living(bucket, at.elapsedMs);
        if (counter === null) open(bucket, cost, at.elapsedMs);
        else counter.used += cost;
      }
      return verdict;
    },
    peek: async (buckets) => {
      const at = { elapsedMs: clock.elapsed(), now: clock.now() };
      return buckets.map((bucket) => stateOf(bucket, living(bucket, at.elapsedMs), at));
    },
    get size() {
      return counters.size;
    },
  };
};
