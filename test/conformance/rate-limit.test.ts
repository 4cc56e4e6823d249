// The in-memory limiter keeps the guarantees of all limiters and stays small.
import { describe, expect, test } from "vitest";
import { createTestClock } from "../../server/core/clock.ts";
import { createMemoryRateLimiter } from "../../server/platform/cluster/rate-limit.ts";
import { rateLimiterSuite } from "./rate-limit.ts";

describe("memory limiter", () => {
  rateLimiterSuite(() => {
    const clock = createTestClock();
    return { limiter: createMemoryRateLimiter({ clock }), now: clock.now, advance: clock.advance };
  });

  const hit = (key: string) => [{ name: "ip", key, limit: 5, windowSeconds: 60 }];

  test("the limiter forgets ended windows while new ones start", async () => {
    const clock = createTestClock();
    const limiter = createMemoryRateLimiter({ clock });
    for (let minute = 0; minute < 20; minute += 1) {
      for (let caller = 0; caller < 1_000; caller += 1) await limiter.take(hit(`${minute}-${caller}`));
      clock.advance(60_000);
    }
    expect(limiter.size).toBeLessThan(3_000);
  });

  test("a flood of callers inside one window cannot grow the limiter beyond its bound", async () => {
    const limiter = createMemoryRateLimiter({ clock: createTestClock(), maxCounters: 100 });
    for (let caller = 0; caller < 1_000; caller += 1) await limiter.take(hit(String(caller)));
    expect(limiter.size).toBe(100);
    expect(await limiter.peek(hit("999"))).toMatchObject([{ remaining: 4 }]);
  });
});
