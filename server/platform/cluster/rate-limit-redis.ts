// Rate limits over all nodes: one script per call, on Redis's own clock, so that node clocks do not matter.
// While Redis is away each node counts for itself against its share of every limit; a missing Redis lifts no limit, not even that of pairing.
import type { Clock } from "../../core/clock.ts";
import type { BucketState, RateBucket, RateLimiter } from "../../core/ports/rate-limiter.ts";
import { createMemoryRateLimiter, judge } from "./rate-limit.ts";
import { type Redis, script } from "./redis.ts";
import { limitKey } from "./redis-keys.ts";
import { bySlot } from "./redis-slots.ts";

export interface RedisRateLimiterDeps {
  readonly redis: Redis;
  readonly clock: Clock;
  /** How many nodes share a limit while they cannot count together; at least 1. */
  readonly liveNodes: () => number;
  /** A test's clock instead of Redis's. */
  readonly nowMs?: () => number;
}

export interface RedisRateLimiter extends RateLimiter {
  /** Calls that this node judged alone. */
  readonly degraded: number;
}

// Answers {now, used, endsAt, used, endsAt, ...} as it was before the call; an absent window is {0, 0}. A cost of 0 only looks.
const TAKE = script(`
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local cost = tonumber(ARGV[2])
local answer = { now }
local allowed = cost > 0
for i, key in ipairs(KEYS) do
  local window = redis.call('HMGET', key, 'used', 'ends')
  local used, ends = tonumber(window[1]) or 0, tonumber(window[2]) or 0
  if ends <= now then used, ends = 0, 0 end
  if tonumber(ARGV[1 + 2 * i]) - used < cost then allowed = false end
  answer[2 * i], answer[2 * i + 1] = used, ends
end
if allowed then
  for i, key in ipairs(KEYS) do
    if answer[2 * i + 1] > 0 then
      redis.call('HINCRBY', key, 'used', cost)
    else
      local length = tonumber(ARGV[2 + 2 * i])
      redis.call('HSET', key, 'used', cost, 'ends', string.format('%.0f', now + length))
      redis.call('PEXPIRE', key, length)
    end
  end
end
return answer`);

const numbers = (reply: unknown): readonly number[] => {
  if (!Array.isArray(reply)) throw new Error("the limiter's script answered no list");
  return reply.map(Number);
};

const toState = ({ name, limit, windowSeconds }: RateBucket, { used, endsAt, now }: { used: number; endsAt: number; now: number }): BucketState => ({
  bucket: name,
  limit,
  windowSeconds,
  remaining: Math.max(0, limit - used),
  resetAt: new Date(endsAt === 0 ? now + windowSeconds * 1_000 : endsAt),
});

/** With its key in Redis, which is a digest. */
interface Keyed {
  readonly bucket: RateBucket;
  readonly key: string;
}
const keyedOf = (buckets: readonly RateBucket[]): readonly Keyed[] => buckets.map((bucket) => ({ bucket, key: limitKey(bucket.name, bucket.key) }));

interface Answer {
  readonly now: Date;
  readonly states: readonly BucketState[];
}

export const createRedisRateLimiter = ({ redis, clock, liveNodes, nowMs }: RedisRateLimiterDeps): RedisRateLimiter => {
  const local = createMemoryRateLimiter({ clock });
  let degraded = 0;

  /** Null unless Redis has judged by all buckets. */
  const ask = async (keyed: readonly Keyed[], cost: number): Promise<Answer | null> => {
    const windows = await bySlot({ redis, keyOf: ({ key }) => key }, keyed, async (some, keys) => {
      const limits = some.flatMap(({ bucket: { limit, windowSeconds } }) => [limit, windowSeconds * 1_000]);
      const [now = 0, ...found] = numbers(await redis.run(TAKE, keys, [nowMs?.() ?? 0, cost, ...limits]));
      return some.map(({ bucket }, at) => ({ now, state: toState(bucket, { used: found[2 * at] ?? 0, endsAt: found[2 * at + 1] ?? 0, now }) }));
    });
    const whole = windows.filter((window) => window !== null);
    if (whole.length < windows.length) return null;
    return { now: new Date(Math.max(...whole.map(({ now }) => now))), states: whole.map(({ state }) => state) };
  };
  // Several slots cannot be judged at once, so all are looked at before any counts. Calls that pass this together may count in one bucket and be refused by
  // another: such a call counts although it was refused, and none passes that should not.
  const lookThenTake = async (keyed: readonly Keyed[], cost: number): Promise<Answer | null> => {
    const slots = new Set(keyed.map(({ key }) => redis.slotOf(key)));
    if (slots.size === 1) return ask(keyed, cost);
    const seen = await ask(keyed, 0);
    return seen === null || !judge(seen.states, cost, seen.now).allowed ? seen : ask(keyed, cost);
  };
  const share = (buckets: readonly RateBucket[]): readonly RateBucket[] => {
    const nodes = Math.max(1, liveNodes());
    return buckets.map((bucket) => ({ ...bucket, limit: Math.ceil(bucket.limit / nodes) }));
  };
  const alone = <T>(judged: T): T => {
    degraded += 1;
    return judged;
  };

  return {
    take: async (buckets, cost = 1) => {
      if (buckets.length === 0) throw new Error("there is no bucket to judge by");
      const answer = await lookThenTake(keyedOf(buckets), cost);
      if (answer === null) return alone(await local.take(share(buckets), cost));
      const verdict = judge(answer.states, cost, answer.now);
      // Counts here too, so that an outage of Redis gives nobody a fresh limit.
      if (verdict.allowed) await local.take(share(buckets), cost);
      return verdict;
    },
    peek: async (buckets) => {
      if (buckets.length === 0) return [];
      const answer = await ask(keyedOf(buckets), 0);
      return answer === null ? alone(await local.peek(share(buckets))) : answer.states;
    },
    get degraded() {
      return degraded;
    },
  };
};
