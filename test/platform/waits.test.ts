// A start that waits says so: after two seconds, every ten seconds, and once it goes on.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createTestClock } from "../../server/core/clock.ts";
import { createWaits, placeOf } from "../../server/platform/waits.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const rig = () => {
  const clock = createTestClock(new Date("2026-01-01T00:00:00.000Z"));
  const lines: string[] = [];
  const waits = createWaits({ clock, say: (line) => void lines.push(line) });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await vi.advanceTimersByTimeAsync(ms);
  };
  return { waits, lines, pass };
};

test("a wait says what it waits for, where, since when and why", async () => {
  const { waits, lines, pass } = rig();
  let resolve: (value: string) => void = () => undefined;
  const promise = new Promise<string>((end) => {
    resolve = end;
  });
  const waiting = waits.during({ on: "the database", at: "db.example:5432" }, (why) => {
    why("connection refused");
    return promise;
  });
  await pass(1_999);
  expect(lines).toEqual([]);
  await pass(1);
  expect(lines).toEqual(["waiting for the database at db.example:5432 since 2026-01-01T00:00:00.000Z, for 2 s: connection refused"]);
  await pass(10_000);
  await pass(10_000);
  expect(lines.map((line) => /for (\d+) s/.exec(line)?.[1])).toEqual(["2", "12", "22"]);
  resolve("there");
  expect(await waiting).toBe("there");
  expect(lines.at(-1)).toBe("the wait for the database at db.example:5432 ended after 22 s");
  await pass(60_000);
  expect(lines).toHaveLength(4);
});

test("a wait shorter than two seconds says nothing", async () => {
  const { waits, lines, pass } = rig();
  await waits.during({ on: "a lock", at: "here" }, async () => undefined);
  await pass(60_000);
  expect(lines).toEqual([]);
});

test("a wait that fails passes its error on and says nothing more", async () => {
  const { waits, lines, pass } = rig();
  await expect(waits.during({ on: "a lock", at: "here" }, () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  await pass(60_000);
  expect(lines).toEqual([]);
});

test("a place names host and port, and no credentials", () => {
  expect(placeOf("postgres://user:hunter2@db.example:5432/mooring")).toBe("db.example:5432");
});
