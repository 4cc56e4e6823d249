// The guarantees of every rate limiter. An implementation brings a limiter and a way to let time pass.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { RateBucket, RateLimiter } from "../../server/core/ports/rate-limiter.ts";

export interface LimiterUnderTest {
  readonly limiter: RateLimiter;
  now(): Date;
  advance(ms: number): Promise<void> | void;
}

const bucket = (given: Partial<RateBucket> = {}): RateBucket => ({ name: "standard", key: `caller-${randomUUID()}`, limit: 100, windowSeconds: 60, ...given });

const hits = async (limiter: RateLimiter, buckets: readonly RateBucket[], count: number): Promise<number> => {
  const verdicts = await Promise.all(Array.from({ length: count }, () => limiter.take(buckets)));
  return verdicts.filter((verdict) => verdict.allowed).length;
};

export const rateLimiterSuite = (open: () => Promise<LimiterUnderTest> | LimiterUnderTest): void => {
  test("with a limit of 100 the 101st call is refused", async () => {
    const { limiter } = await open();
    const standard = bucket();
    for (let hit = 1; hit <= 100; hit += 1) expect(await limiter.take([standard])).toMatchObject({ allowed: true, limit: 100, remaining: 100 - hit });
    expect(await limiter.take([standard])).toMatchObject({ allowed: false, bucket: "standard", limit: 100, remaining: 0 });
  });

  test("with a limit of 100 exactly 100 of 300 calls at once pass", async () => {
    const { limiter } = await open();
    expect(await hits(limiter, [bucket()], 300)).toBe(100);
  });

  test("a window starts with the first call, ends after its length, and the next call starts a new one", async () => {
    const { limiter, now, advance } = await open();
    const few = bucket({ limit: 2 });
    const start = now().getTime();
    expect((await limiter.take([few])).resetAt.getTime()).toBe(start + 60_000);
    await advance(59_000);
    expect(await limiter.take([few])).toMatchObject({ allowed: true, remaining: 0, retryAfterSeconds: 1 });
    expect(await limiter.take([few])).toMatchObject({ allowed: false, retryAfterSeconds: 1 });
    await advance(1_000);
    const fresh = await limiter.take([few]);
    expect(fresh).toMatchObject({ allowed: true, remaining: 1, retryAfterSeconds: 60 });
    expect(fresh.resetAt.getTime()).toBe(start + 120_000);
  });

  test("each key and each bucket of a key counts separately", async () => {
    const { limiter } = await open();
    const one = bucket({ limit: 1 });
    await limiter.take([one]);
    expect(await limiter.take([bucket({ limit: 1 })])).toMatchObject({ allowed: true });
    expect(await limiter.take([{ ...one, name: "other" }])).toMatchObject({ allowed: true });
    expect(await limiter.take([one])).toMatchObject({ allowed: false });
  });

  test("a refused call consumes nothing in any of its buckets", async () => {
    const { limiter } = await open();
    const [wide, narrow] = [bucket({ name: "wide", limit: 10 }), bucket({ name: "narrow", limit: 1 })];
    await limiter.take([wide, narrow]);
    for (let hit = 0; hit < 20; hit += 1) expect(await limiter.take([wide, narrow])).toMatchObject({ allowed: false, bucket: "narrow" });
    expect(await limiter.peek([wide])).toMatchObject([{ bucket: "wide", remaining: 9 }]);
  });

  test("a refused call starts no window", async () => {
    const { limiter, advance } = await open();
    const [spent, fresh] = [bucket({ name: "spent", limit: 1, windowSeconds: 300 }), bucket({ name: "fresh", limit: 1 })];
    await limiter.take([spent]);
    await limiter.take([spent, fresh]);
    await advance(30_000);
    expect(await limiter.take([fresh])).toMatchObject({ allowed: true, retryAfterSeconds: 60 });
  });

  test("an allowed call reports the bucket with the least left, a refused one the bucket that opens last", async () => {
    const { limiter, advance } = await open();
    const [short, long] = [bucket({ name: "short", limit: 2 }), bucket({ name: "long", limit: 2, windowSeconds: 600 })];
    expect(await limiter.take([short, bucket({ name: "big", limit: 50 })])).toMatchObject({ bucket: "short", remaining: 1 });
    await limiter.take([long]);
    await advance(1_000);
    await limiter.take([short, long]);
    expect(await limiter.take([short, long])).toMatchObject({ allowed: false, bucket: "long", retryAfterSeconds: 599 });
  });

  test("a call that costs more than the rest is refused, and one that costs exactly the rest passes", async () => {
    const { limiter } = await open();
    const ten = bucket({ limit: 10 });
    expect(await limiter.take([ten], 7)).toMatchObject({ allowed: true, remaining: 3 });
    expect(await limiter.take([ten], 4)).toMatchObject({ allowed: false, remaining: 3 });
    expect(await limiter.take([ten], 3)).toMatchObject({ allowed: true, remaining: 0 });
  });

  test("a peek is free and starts no window", async () => {
    const { limiter, now, advance } = await open();
    const one = bucket({ limit: 1 });
    expect(await limiter.peek([one])).toMatchObject([{ bucket: "standard", limit: 1, remaining: 1, windowSeconds: 60 }]);
    await advance(30_000);
    expect((await limiter.take([one])).resetAt.getTime()).toBe(now().getTime() + 60_000);
    expect(await limiter.peek([one])).toMatchObject([{ remaining: 0 }]);
  });

  test("a call without buckets throws", async () => {
    const { limiter } = await open();
    await expect(limiter.take([])).rejects.toThrow("no bucket");
  });
};
