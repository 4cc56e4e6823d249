// No test asserts how long something took, and none pauses to prove that nothing happens: tests count work, prove order, or wait with a bound.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { timedIn } from "./timed-assertions.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TESTS = readdirSync(`${ROOT}test`, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => `test/${name}`)
  .sort();
/** Tests that pause between their own calls, and assert nothing of it. */
const PACED: Readonly<Record<string, string>> = { "test/release/rolling-restart.test.ts": "callers that would otherwise take the whole machine" };
const found = (text: string): readonly string[] => timedIn("example.test.ts", text).map((one) => one.text);

test("no test asserts on measured time or pauses", () => {
  const timed = TESTS.flatMap((file) => timedIn(file, readFileSync(`${ROOT}${file}`, "utf8")).map(({ line, text }) => `${file}:${line} ${text}`));
  expect(timed.filter((one) => !Object.keys(PACED).some((file) => one.startsWith(`${file}:`)))).toEqual([]);
  // Every exception is still needed.
  for (const file of Object.keys(PACED)) expect(timed.filter((one) => one.startsWith(`${file}:`))).toHaveLength(1);
});

describe("an assertion on measured time is found", () => {
  test.each([
    ["a difference", "const start = performance.now(); expect(performance.now() - start).toBeLessThan(1_000);"],
    ["a difference in a variable", "const start = Date.now(); const all = Date.now() - start; expect(all).toBeLessThanOrEqual(9);"],
    ["a least time", "const start = performance.now(); expect(performance.now() - start).toBeGreaterThanOrEqual(999);"],
    ["a sum", "const start = performance.now(); expect(performance.now()).toBeLessThan(start + 5_000);"],
    ["an answer beside the clock", "expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(5_000);"],
    ["the age of an answer", "expect(Date.now() - Date.parse(at)).toBeLessThan(5_000);"],
    ["a least time until a date", "expect(Date.parse(until) - Date.now()).toBeGreaterThan(1_000);"],
    ["a limit counted from before", "const before = Date.now(); expect(Date.parse(until)).toBeLessThan(before + 61_000);"],
    ["a header beside the clock", "expect(Math.abs(reset - (Date.now() / 1_000 + wait))).toBeLessThan(3);"],
    ["a comparison", "const start = performance.now(); expect([code, performance.now() - start < LIMIT]).toEqual(['OK', true]);"],
    ["several", "const all = []; for (const one of calls) all.push(performance.now() - one.at); expect(all.sort((a, b) => a - b)[10]).toBeLessThan(100);"],
    ["moments in a list", "const at = []; ask(() => at.push(performance.now())); expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(199);"],
    ["moments in records", "seen.push({ atMs: performance.now() }); expect(seen[1].atMs - seen[0].atMs).toBeGreaterThanOrEqual(39);"],
    ["a function", "const cut = async () => { const start = performance.now(); return performance.now() - start; }; expect(await cut()).toBeLessThan(9);"],
    ["the moment of an end", "const ended = text().then(() => performance.now()); expect((await ended) - from).toBeLessThan(9);"],
    ["time measured elsewhere", "const { tookMs } = await end(); expect(tookMs).toBeLessThan(9);"],
    ["a list of bindings", "const [memory, begun] = [1, performance.now()]; expect(performance.now() - begun).toBeLessThan(1_000);"],
    ["another clock", "const start = process.hrtime.bigint(); expect(process.hrtime.bigint() - start).toBeLessThan(9n);"],
  ])("%s", (_, text) => expect(found(text)).toHaveLength(1));
});

describe("a pause is found", () => {
  test.each([
    ["by a library", 'import { setTimeout as delay } from "node:timers/promises"; await delay(50);'],
    ["by a promise", "await new Promise((resolve) => setTimeout(resolve, 50));"],
    ["by a promise with a body", "await new Promise<void>((done) => { setTimeout(done, 50); });"],
  ])("%s", (_, text) => expect(found(text)).toHaveLength(1));
});

describe("what counts, proves order or waits with a bound is not found", () => {
  test.each([
    ["a bounded wait", "await withTimeout(node.close(), 4_000, 'the node did not close'); await eventually(() => expect(list).toHaveLength(1), 5_000);"],
    ["order of moments", "const before = Date.now(); const at = Date.parse(answer); const after = Date.now(); expect(at).toBeLessThanOrEqual(after);"],
    ["an answer's own duration", "expect(trace.durationMs).toBeGreaterThanOrEqual(1_000); expect(new Date(end) - new Date(start)).toBeLessThan(9);"],
    ["a hand clock", "expect(time.elapsedMs()).toBeLessThan(60_000);"],
    ["an input from the clock", "const later = await queue({ notBefore: new Date(Date.now() + 60_000) }); expect(later.count).toBeLessThan(3);"],
    ["a limit counted from now", "expect(Date.parse(until) - Date.now()).toBeLessThan(61_000); expect(reset).toBeLessThan(Date.now() / 1_000 + 63);"],
    ["a minimum counted from before", "const before = Date.now(); expect(Date.parse(until)).toBeGreaterThanOrEqual(before + LIMIT_MS);"],
    ["days until a date", "expect(Math.round((Date.parse(until) - Date.now()) / 86_400_000)).toBe(30);"],
    ["a bound of a wait", "const timer = setTimeout(() => finish(false), boundMs);"],
    ["a count", "expect(statements.length).toBeLessThan(4);"],
  ])("%s", (_, text) => expect(found(text)).toEqual([]));
});
