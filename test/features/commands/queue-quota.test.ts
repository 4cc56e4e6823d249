// When the queue counts a tenant's open commands, and that skipping the count never lets a tenant pass its bound.
import { expect, test } from "vitest";
import { createQueueQuota } from "../../../server/features/commands/queue-quota.ts";

/** Creates one command after another, as the store does; returns how often it counted and how many commands there are in the end. */
const createMany = (max: number, open: number, times: number) => {
  const quota = createQueueQuota(max);
  let there = open;
  let counts = 0;
  for (let time = 0; time < times; time += 1) {
    const near = quota.near(["ten"]);
    if (near.length > 0) {
      counts += 1;
      quota.counted(new Map([["ten", there]]), ["ten"]);
      if (there >= max) continue;
    }
    there += 1;
  }
  return { counts, there };
};

test("a tenant far below its bound is counted only now and then", () => {
  expect(createMany(20_000, 100, 1_000)).toEqual({ counts: 1, there: 1_100 });
});

test("a tenant near its bound is counted each time, and one node never passes the bound", () => {
  expect(createMany(20, 10, 100)).toEqual({ counts: 100, there: 20 });
  expect(createMany(20_000, 0, 25_000).there).toBe(20_000);
});

test("a counted batch uses up quota itself, so the next command is counted again", () => {
  const quota = createQueueQuota(32);
  const batch = Array.from({ length: 32 }, () => "ten");
  expect(quota.near(batch)).toEqual(["ten"]);
  quota.counted(new Map([["ten", 0]]), batch);
  expect(quota.near(["ten"])).toEqual(["ten"]);
});

test("a tenant without a bound is never counted", () => {
  expect(createQueueQuota(null).near(["ten"])).toEqual([]);
});
