// Lines of one cause: the first in full, the others as a count, and every other line as it was.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Log } from "../../../server/platform/telemetry/log.ts";
import { foldFailures } from "../../../server/platform/telemetry/log-folding.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const recording = () => {
  const lines: (readonly [string, object, string])[] = [];
  const at = (level: string) => (fields: object, message: string) => void lines.push([level, fields, message]);
  const log: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { lines, log: foldFailures(log, 10_000) };
};
const readOnly = Object.assign(new Error("cannot execute INSERT in a read-only transaction"), { code: "25006" });

test("3,228 failures of one cause leave one line with the error and one with their number, and each request keeps its line", () => {
  const { lines, log } = recording();
  for (let call = 0; call < 3_228; call += 1) log.error({ requestId: `req_${call}`, status: 503, error: readOnly }, "call failed");
  for (let run = 0; run < 50; run += 1) log.error({ job: "outbox", error: readOnly }, "job failed");
  vi.advanceTimersByTime(10_000);
  const loud = lines.filter(([level]) => level !== "info");
  expect(loud).toEqual([
    ["error", { requestId: "req_0", status: 503, error: readOnly }, "call failed"],
    ["warn", { failure: "read_only", count: 3_277, seconds: 10 }, "the database went on failing in the same way"],
  ]);
  expect(lines.filter(([level]) => level === "info")).toHaveLength(3_227);
  expect(lines[1]).toEqual(["info", { requestId: "req_1", status: 503, failure: "read_only" }, "call failed"]);
});

test("another cause, a defect and the same cause after a quiet period are told in full", () => {
  const { lines, log } = recording();
  const defect = new Error("a defect");
  log.warn({ error: readOnly }, "first");
  log.warn({ error: Object.assign(new Error("full"), { code: "53100" }) }, "another cause");
  for (let n = 0; n < 2; n += 1) log.error({ error: defect }, "a defect");
  vi.advanceTimersByTime(20_000);
  log.warn({ error: readOnly }, "again");
  expect(lines.map(([, , message]) => message)).toEqual(["first", "another cause", "a defect", "a defect", "again"]);
});
