// The connect limiter gives each key its burst at once and then its rate, independent of other keys.
import { expect, test } from "vitest";
import { createTestClock } from "../../../server/core/clock.ts";
import { createConnectLimiter } from "../../../server/gateway/channel/rate-limits.ts";

const open = (perMinute = 10, burst = 5, maxKeys = 1_000) => {
  const clock = createTestClock();
  return { ...createConnectLimiter(clock, { perMinute, burst, maxKeys }), advance: clock.advance };
};
const times = (count: number, act: () => number): readonly number[] => Array.from({ length: count }, act);

test("a key gets its burst, then one more each time its rate allows", () => {
  const { take, advance } = open();
  expect(times(7, () => take("a"))).toEqual([0, 0, 0, 0, 0, 6, 6]);
  advance(5_000);
  expect(take("a")).toBe(1);
  advance(1_000);
  expect([take("a"), take("a")]).toEqual([0, 6]);
  expect(take("b")).toBe(0);
});

test("the burst refills completely and never beyond, also at a rate that is no whole number", () => {
  for (const perMinute of [7, 10, 60, 1_100]) {
    const { take, advance } = open(perMinute);
    for (let round = 0; round < 3; round += 1) {
      const answers = times(5, () => take("a"));
      expect(answers, `${perMinute} a minute`).toEqual([0, 0, 0, 0, 0]);
      expect(take("a")).toBeGreaterThan(0);
      advance(10 * 60_000);
    }
  }
});

test("a key at its limit is remembered while other keys arrive", () => {
  const { take, advance } = open();
  times(5, () => take("a"));
  for (let second = 1; second < 6; second += 1) {
    advance(1_000);
    take(`other ${second}`);
    expect(take("a")).toBeGreaterThan(0);
  }
});
