// The recent-set remembers entries for a promised time, forgets them in the end, and is bounded.
import { expect, test } from "vitest";
import { createRecentSet } from "../../server/core/structures/recent-set.ts";

const open = (keep = 1_000) => {
  let at = 0;
  const recent = createRecentSet<number>({ keepMs: 100, keep, nowMs: () => at });
  return { ...recent, wait: (ms: number) => (at += ms) };
};

test("an entry is known for the promised time, whenever it was set", () => {
  for (const begin of [0, 1, 50, 99, 100]) {
    const recent = open();
    recent.set("first", 0);
    recent.wait(begin);
    recent.set("entry", 1);
    for (let waited = 0; waited < 99; waited += 33) {
      recent.wait(33);
      recent.set(`other ${waited}`, 2);
      expect(recent.get("entry")).toBe(1);
    }
  }
});

test("an entry is forgotten after twice that time once others arrive, and one that is set again stays", () => {
  const recent = open();
  recent.set("entry", 1);
  for (let n = 0; n < 3; n += 1) {
    recent.set("again", 2);
    recent.wait(100);
  }
  expect([recent.get("entry"), recent.get("again")]).toEqual([undefined, 2]);
});

test("the set knows for how long back it is complete", () => {
  const recent = open(10);
  const flood = () => Array.from({ length: 10 }, (_, n) => recent.set(String(n), n));
  recent.wait(50);
  expect(recent.coversMs()).toBe(50);
  flood();
  flood();
  expect(recent.coversMs()).toBe(50);
  recent.wait(5);
  flood();
  expect(recent.coversMs()).toBe(5);
});

test("after a flood the set knows at least the newest entries and at most twice as many", () => {
  const recent = open(10);
  for (let n = 0; n < 95; n += 1) recent.set(String(n), n);
  const known = Array.from({ length: 95 }, (_, n) => n).filter((n) => recent.get(String(n)) !== undefined);
  expect(known.slice(-10)).toEqual([85, 86, 87, 88, 89, 90, 91, 92, 93, 94]);
  expect(known.length).toBeLessThanOrEqual(20);
});
