// The short cache in front of look-ups: one load answers all who ask at once, and no answer outlives a change.
import { expect, test } from "vitest";
import { systemClock } from "../../server/core/clock.ts";
import { createCached } from "../../server/core/structures/cached.ts";

interface Value {
  readonly of: string;
  readonly load: number;
}

/** A look-up whose loads end when the test says so. */
const open = () => {
  const loads: { readonly key: string; readonly end: (value: Value | null) => void; readonly fail: (error: Error) => void }[] = [];
  const cached = createCached<Value>({
    load: (key) => new Promise((resolve, reject) => void loads.push({ key, end: resolve, fail: reject })),
    clock: systemClock,
    ttlMs: 60_000,
  });
  const answer = (index: number): void => loads[index]?.end({ of: loads[index].key, load: index });
  return { cached, loads, answer };
};

test("fifty look-ups of one key at once share one load, and another key has its own", async () => {
  const { cached, loads, answer } = open();
  const asked = Array.from({ length: 50 }, () => cached.get("a"));
  const other = cached.get("b");
  expect(loads.map(({ key }) => key)).toEqual(["a", "b"]);
  answer(0);
  answer(1);
  expect(new Set(await Promise.all(asked))).toEqual(new Set([{ of: "a", load: 0 }]));
  expect(await other).toEqual({ of: "b", load: 1 });
  expect(await cached.get("a")).toEqual({ of: "a", load: 0 });
  expect(loads).toHaveLength(2);
});

test("a failed load rejects every caller that shares it and is not cached", async () => {
  const { cached, loads, answer } = open();
  const asked = [cached.get("a"), cached.get("a")];
  loads[0]?.fail(new Error("away"));
  expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  const again = cached.get("a");
  answer(1);
  expect(await again).toEqual({ of: "a", load: 1 });
});

test("an absent value is not cached", async () => {
  const { cached, loads, answer } = open();
  const absent = cached.get("a");
  loads[0]?.end(null);
  expect(await absent).toBeNull();
  const again = cached.get("a");
  answer(1);
  expect(await again).toEqual({ of: "a", load: 1 });
});

test.each([
  ["forget", (cached: ReturnType<typeof open>["cached"]) => cached.forget(["a"])],
  ["forgetAll", (cached: ReturnType<typeof open>["cached"]) => cached.forgetAll()],
])("after %s during a load, later callers get a new load and the old value is not cached, whichever load ends first", async (_, change) => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const { cached, loads, answer } = open();
    const before = cached.get("a");
    change(cached);
    const after = cached.get("a");
    for (const index of order) answer(index);
    expect(await before).toEqual({ of: "a", load: 0 });
    expect(await after).toEqual({ of: "a", load: 1 });
    expect(await cached.get("a")).toEqual({ of: "a", load: 1 });
    expect(loads).toHaveLength(2);
  }
});

test("of more than it may keep, a cache forgets what nobody has asked for the longest", async () => {
  let loads = 0;
  const load = (key: string): Promise<Value> => {
    loads += 1;
    return Promise.resolve({ of: key, load: loads });
  };
  const cached = createCached<Value>({ load, clock: systemClock, ttlMs: 60_000, maxEntries: 2 });
  for (const key of ["a", "b", "a", "c", "a", "b"]) await cached.get(key);
  expect(loads).toBe(4);
  expect([cached.peek("a"), cached.peek("b"), cached.peek("c")]).toEqual([{ of: "a", load: 1 }, { of: "b", load: 4 }, null]);
});

test("a change of one key does not stop another key's load from being cached", async () => {
  const { cached, loads, answer } = open();
  const asked = cached.get("a");
  cached.forget(["b"]);
  answer(0);
  await asked;
  await cached.get("a");
  expect(loads).toHaveLength(1);
});
