// When a tenant's open commands are counted, and that not counting lets nobody far beyond the bound.
import { expect, test } from "vitest";
import { createHeadroom } from "../../server/features/commands/headroom.ts";

/** One creation after another, as a store would do it; says how often it counted and how many there are in the end. */
const createMany = (max: number, open: number, times: number) => {
  const headroom = createHeadroom(max);
  let there = open;
  let counts = 0;
  for (let time = 0; time < times; time += 1) {
    const near = headroom.near(["ten"]);
    if (near.length > 0) {
      counts += 1;
      headroom.counted(new Map([["ten", there]]), ["ten"]);
      if (there >= max) continue;
    }
    there += 1;
  }
  return { counts, there };
};

test("far below its bound a tenant is counted now and then", () => {
  expect(createMany(20_000, 100, 1_000)).toEqual({ counts: 1, there: 1_100 });
});

test("near its bound it is counted each time, and one node never passes it", () => {
  expect(createMany(20, 10, 100)).toEqual({ counts: 100, there: 20 });
  expect(createMany(20_000, 0, 25_000).there).toBe(20_000);
});

test("a batch that was counted takes its own room too", () => {
  const headroom = createHeadroom(32);
  const batch = Array.from({ length: 32 }, () => "ten");
  expect(headroom.near(batch)).toEqual(["ten"]);
  headroom.counted(new Map([["ten", 0]]), batch);
  expect(headroom.near(["ten"])).toEqual(["ten"]);
});

test("without a bound nothing is counted", () => {
  expect(createHeadroom(null).near(["ten"])).toEqual([]);
});
