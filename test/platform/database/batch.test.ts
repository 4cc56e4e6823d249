// Batches: which calls share one, that a bad call fails alone, and when calls are refused.
import { expect, test, vi } from "vitest";
import { currentWork, runAs, Work } from "../../../server/core/work.ts";
import { createBatch } from "../../../server/platform/database/batch.ts";
import { failureOf, MEANINGS } from "../../../server/platform/database/db-errors.ts";
import { SQL_STATES } from "../../kit/sql-states.ts";

const bounds = { work: "jobs", maxSize: 100, maxConcurrent: 1, maxWaiting: 100 } as const;

test("calls of one event loop turn form one batch, and calls that arrive while it runs form the next", async () => {
  const batches: number[][] = [];
  let release: (() => void) | undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const double = createBatch(async (items: readonly number[]) => {
    batches.push([...items]);
    if (batches.length === 1) await gate;
    return items.map((item) => item * 2);
  }, bounds);
  const first = [double(1), double(2)];
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  const later = [double(3), double(4), double(5)];
  release?.();
  expect(await Promise.all([...first, ...later])).toEqual([2, 4, 6, 8, 10]);
  expect(batches).toEqual([
    [1, 2],
    [3, 4, 5],
  ]);
});

test("batches never exceed their maximum size or concurrency", async () => {
  let running = 0;
  let most = 0;
  const sizes: number[] = [];
  const call = createBatch(
    async (items: readonly number[]) => {
      most = Math.max(most, ++running);
      sizes.push(items.length);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      running -= 1;
      return items;
    },
    { ...bounds, maxSize: 3, maxConcurrent: 2 },
  );
  await Promise.all(Array.from({ length: 10 }, (_, index) => call(index)));
  expect(most).toBe(2);
  expect(Math.max(...sizes)).toBe(3);
});

test("calls that each take long come in smaller batches, so that none fails as a whole again and again, and in large ones later", async () => {
  const clock = vi.spyOn(performance, "now");
  let [nowMs, eachMs] = [0, 50];
  clock.mockImplementation(() => nowMs);
  const sizes: number[] = [];
  const call = createBatch(
    async (items: readonly number[]) => {
      sizes.push(items.length);
      nowMs += items.length * eachMs;
      // As a transaction that takes too long.
      if (items.length * eachMs > 5_000) throw Object.assign(new Error("terminating connection"), { code: "25P03" });
      return items;
    },
    { ...bounds, maxSize: 500, maxWaiting: 10_000 },
  );
  const all = () => Promise.allSettled(Array.from({ length: 1_000 }, (_, index) => call(index)));
  try {
    expect((await all()).filter(({ status }) => status === "rejected").length).toBe(500);
    expect([sizes[0], Math.max(...sizes.slice(1))]).toEqual([500, 50]);
    eachMs = 1;
    sizes.length = 0;
    expect((await all()).every(({ status }) => status === "fulfilled")).toBe(true);
    expect(Math.max(...sizes)).toBeGreaterThan(100);
  } finally {
    clock.mockRestore();
  }
});

test("a bad item fails alone", async () => {
  const call = createBatch(async (items: readonly number[]) => {
    if (items.includes(2)) throw new Error("bad 2");
    return items;
  }, bounds);
  const results = await Promise.allSettled([call(1), call(2), call(3)]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("a failed batch is bisected, so only its bad items fail", async () => {
  let flushes = 0;
  const call = createBatch(async (items: readonly number[]) => {
    flushes += 1;
    if (items.includes(17) || items.includes(71)) throw new Error("bad");
    return items;
  }, bounds);
  const results = await Promise.allSettled(Array.from({ length: 100 }, (_, item) => call(item)));
  expect(results.flatMap(({ status }, item) => (status === "rejected" ? [item] : []))).toEqual([17, 71]);
  expect(results.every((result, item) => result.status === "rejected" || result.value === item)).toBe(true);
  expect(flushes).toBeLessThan(32);
});

test("a failure that no item caused fails the whole batch without a retry", async () => {
  let flushes = 0;
  const call = createBatch(
    async (_: readonly number[]): Promise<readonly number[]> => {
      flushes += 1;
      throw new Error("away");
    },
    { ...bounds, neverSplit: true },
  );
  expect((await Promise.allSettled([call(1), call(2)])).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(flushes).toBe(1);
});

test("a batch that met a failure of the database runs once: its halves would wait for the same lock", async () => {
  for (const code of SQL_STATES.filter((state) => Object.values(MEANINGS).some(({ codes }) => codes.test(state)))) {
    let flushes = 0;
    const call = createBatch(async (_: readonly number[]): Promise<readonly number[]> => {
      flushes += 1;
      throw Object.assign(new Error("refused"), { code });
    }, bounds);
    const settled = await Promise.allSettled(Array.from({ length: 8 }, (_, item) => call(item)));
    expect({ code, flushes, failed: settled.filter(({ status }) => status === "rejected").length }).toEqual({ code, flushes: 1, failed: 8 });
  }
});

test("a call that has used up its time leaves the queue, and its item never runs", async () => {
  const ran: number[] = [];
  let release: (() => void) | undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const call = createBatch(async (items: readonly number[]) => {
    ran.push(...items);
    await gate;
    return items;
  }, bounds);
  const first = call(1);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  const late = runAs(new Work("writes", 10), () => call(2));
  expect(failureOf(await late.catch((error: unknown) => error))).toBe("no_answer");
  release?.();
  expect([await first, await call(3), ran]).toEqual([1, 3, [1, 3]]);
});

test("a batch runs as work of its own class, whoever joined it first", async () => {
  const seen: unknown[] = [];
  const call = createBatch(
    async (items: readonly number[]) => {
      const { workClass, tenantId } = currentWork();
      seen.push({ workClass, tenantId });
      return items;
    },
    { ...bounds, work: "agents" },
  );
  const work = new Work("lists", 1_000);
  work.tenantId = "ten_1";
  await runAs(work, () => call(1));
  expect(seen).toEqual([{ workClass: "agents", tenantId: null }]);
});

test("calls beyond the bound are refused, and accepted again once the queue has emptied", async () => {
  const call = createBatch(async (items: readonly number[]) => items, { ...bounds, maxWaiting: 2 });
  const results = await Promise.allSettled([call(1), call(2), call(3)]);
  expect(results[2]).toMatchObject({ status: "rejected", reason: { code: "SERVICE_UNAVAILABLE", retryAfter: 1 } });
  expect(await call(4)).toBe(4);
});

test("calls soon after a batch of several wait for the pace and share the next batch", async () => {
  const sizes: number[] = [];
  const call = createBatch(
    async (items: readonly number[]) => {
      sizes.push(items.length);
      return items;
    },
    { ...bounds, paceMs: 500 },
  );
  await Promise.all([call(1), call(2)]);
  const later: Promise<number>[] = [];
  for (let item = 0; item < 5; item += 1) {
    later.push(call(item));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  await Promise.all(later);
  expect(sizes).toEqual([2, 5]);
});

test("sequential calls do not wait for the pace", async () => {
  const call = createBatch(async (items: readonly number[]) => items, { ...bounds, paceMs: 3_600_000 });
  for (let lone = 0; lone < 3; lone += 1) expect(await call(lone)).toBe(lone);
});

test("a full batch does not wait for the pace", async () => {
  const sizes: number[] = [];
  const call = createBatch(
    async (items: readonly number[]) => {
      sizes.push(items.length);
      return items;
    },
    { ...bounds, maxSize: 2, paceMs: 3_600_000 },
  );
  await Promise.all([1, 2, 3, 4].map(call));
  expect(sizes).toEqual([2, 2]);
});
