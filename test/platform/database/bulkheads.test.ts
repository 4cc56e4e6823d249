// Bulkheads: a class of work never waits for another, a tenant never holds more than its share, and only that tenant is refused.
import { describe, expect, test } from "vitest";
import { contract, type Operation } from "../../../protocol/index.ts";
import { classOf, currentWork, keepingClass, runAs, WORK_CLASSES, Work, type WorkClass } from "../../../server/core/work.ts";
import { createBulkheads, divided } from "../../../server/platform/database/bulkheads.ts";
import { databaseError } from "../../../server/platform/database/db-errors.ts";

const SIZES = { agents: 2, writes: 2, lists: 4, jobs: 1 };
const bulkheads = () => createBulkheads({ sizes: SIZES, tenantPercent: 50 });
const workOf = (workClass: WorkClass, tenantId: string | null = null, budgetMs = 60_000): Work => {
  const work = new Work(workClass, budgetMs);
  work.tenantId = tenantId;
  return work;
};
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
const outcome = (entering: Promise<unknown>): Promise<unknown> =>
  entering.then(
    () => "entered",
    (error: unknown) => databaseError(error)?.code,
  );

describe("places", () => {
  test("a class that is full leaves every other class its own places", async () => {
    for (const full of WORK_CLASSES) {
      const { enter } = bulkheads();
      await Promise.all(times(SIZES[full], () => enter(workOf(full))));
      expect(await outcome(enter(workOf(full, null, 1)))).toBe("DATABASE_BUSY");
      const others = WORK_CLASSES.filter((each) => each !== full);
      for (const other of others)
        expect(await Promise.all(times(SIZES[other], () => outcome(enter(workOf(other)))))).toEqual(times(SIZES[other], () => "entered"));
    }
  });

  test("a tenant gets its share and is refused beyond it, while another tenant gets the rest", async () => {
    const { enter, figures } = bulkheads();
    expect(await Promise.all(times(2, () => outcome(enter(workOf("lists", "ten_1")))))).toEqual(["entered", "entered"]);
    expect(await outcome(enter(workOf("lists", "ten_1", 1)))).toBe("RATE_LIMIT_EXCEEDED");
    expect(await Promise.all(times(2, () => outcome(enter(workOf("lists", "ten_2")))))).toEqual(["entered", "entered"]);
    // Its share of another class is its own matter.
    expect(await outcome(enter(workOf("writes", "ten_1")))).toBe("entered");
    expect(new Map(figures()).get("lists")).toEqual({ taken: 4, waiting: 0, refused: 1 });
  });

  test("a place that becomes free goes to the first who may have it, past the waiting calls of a tenant with its share", async () => {
    const { enter } = bulkheads();
    const [first] = await Promise.all(times(2, () => enter(workOf("lists", "ten_1"))));
    const [other] = await Promise.all(times(2, () => enter(workOf("lists", "ten_2"))));
    const order: string[] = [];
    const waiting = ["ten_1", "ten_3"].map((tenantId) => enter(workOf("lists", tenantId)).then(() => order.push(tenantId)));
    other?.();
    await waiting[1];
    expect(order).toEqual(["ten_3"]);
    first?.();
    await waiting[0];
    expect(order).toEqual(["ten_3", "ten_1"]);
  });

  test("a queue has a bound for each tenant", async () => {
    const { enter, figures } = bulkheads();
    await Promise.all(times(2, () => enter(workOf("lists", "ten_1"))));
    const more = times(150, () => outcome(enter(workOf("lists", "ten_1", 60_000))));
    expect(await Promise.race(more)).toBe("RATE_LIMIT_EXCEEDED");
    expect(new Map(figures()).get("lists")).toMatchObject({ waiting: 100, refused: 50 });
  });

  test("the classes share all sessions of a node, each has one at least, and what is set counts", () => {
    for (let size = 4; size <= 200; size += 1) {
      const sizes = Object.values(divided(size));
      expect([size, sizes.reduce((sum, each) => sum + each, 0), Math.min(...sizes) >= 1]).toEqual([size, size, true]);
    }
    expect(divided(20, { lists: 11 })).toEqual({ agents: 6, writes: 6, lists: 11, jobs: 4 });
  });
});

describe("work", () => {
  test("every operation has a class by its contract: agents' calls, people's reads, people's changes", () => {
    const operations = Object.values(contract).flatMap<Operation>(({ operations: all }) => Object.values(all));
    const found = new Set<WorkClass>();
    for (const op of operations)
      for (const auth of op.auth) {
        const workClass = classOf(op, auth === "agent");
        found.add(workClass);
        const expected = auth === "agent" ? "agents" : op.kind === "mutation" ? "writes" : "lists";
        expect([op.summary, auth, workClass]).toEqual([op.summary, auth, expected]);
      }
    expect([...found].sort()).toEqual(["agents", "lists", "writes"]);
  });

  test("an answer in pieces is made in the class of its call, after the call has ended", async () => {
    const seen: unknown[] = [];
    async function* pieces() {
      for (const piece of [1, 2]) {
        await Promise.resolve();
        seen.push([currentWork().workClass, currentWork().tenantId, currentWork().isBounded]);
        yield piece;
      }
    }
    const work = workOf("lists", "ten_1");
    const kept = runAs(work, () => keepingClass(pieces())) as AsyncIterable<number>; // as: it was one
    work.end();
    for await (const piece of kept) seen.push(piece);
    expect(seen).toEqual([["lists", "ten_1", false], 1, ["lists", "ten_1", false], 2]);
  });

  test("only the time in which work waits for the database counts, and what runs side by side counts once", async () => {
    const work = workOf("writes", null, 1_000);
    expect(work.leftMs()).toBe(1_000);
    const gates = times(2, () => {
      let open = (): void => undefined;
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      return { open, waiting: work.waits(opened) };
    });
    expect(work.leftMs()).toBeLessThanOrEqual(1_000);
    for (const { open } of gates) open();
    await Promise.all(gates.map(({ waiting }) => waiting));
    const left = work.leftMs();
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(work.leftMs()).toBe(left);
    work.end();
    expect([work.workClass, work.isBounded]).toEqual(["jobs", false]);
  });
});
