// The log buffers its lines for a moment: in order, never for long, and without losing any when the process ends.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogBuffer } from "../../../server/platform/telemetry/log-buffering.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const INFO = 30;
const ERROR = 50;

const buffered = () => {
  const written: string[] = [];
  const buffer = createLogBuffer({ write: (text) => written.push(text) });
  const line = (text: string, level = INFO): void => {
    Object.assign(buffer, { lastLevel: level });
    buffer.write(`${text}\n`);
  };
  return { written, line, flush: () => buffer.flush() };
};

test("a lone line is written at once, the lines after it together", () => {
  const { written, line } = buffered();
  for (const text of ["a", "b", "c"]) line(text);
  expect(written).toEqual(["a\n"]);
  vi.advanceTimersByTime(20);
  expect(written).toEqual(["a\n", "b\nc\n"]);
  line("d");
  vi.advanceTimersByTime(20);
  expect(written.slice(2)).toEqual(["d\n"]);
  vi.advanceTimersByTime(40);
  line("e");
  expect(written.slice(3)).toEqual(["e\n"]);
});

test("an error is written at once, after the lines before it", () => {
  const { written, line } = buffered();
  line("a");
  line("b");
  line("c", ERROR);
  expect(written).toEqual(["a\n", "b\nc\n"]);
});

test("no write is longer than a pipe accepts at once, unless a single line is", () => {
  const { written, line } = buffered();
  const texts = Array.from({ length: 500 }, (_, index) => `${index} ${"x".repeat(index % 97)}`);
  for (const text of texts) line(text);
  line("y".repeat(10_000));
  vi.advanceTimersByTime(20);
  expect(written.join("")).toBe(`${texts.join("\n")}\n${"y".repeat(10_000)}\n`);
  expect(written.filter((piece) => piece.length > 4_096)).toEqual([`${"y".repeat(10_000)}\n`]);
  expect(written.length).toBeLessThan(20);
});

const LINES = 300;
const ends = {
  "calls exit": "process.exit(3)",
  "throws an uncaught error": "setImmediate(() => { throw new Error('unheard'); })",
  "has nothing left to do": "",
};

test.each(Object.entries(ends))("a process that %s loses no log line", async (_, end) => {
  vi.useRealTimers();
  const log = fileURLToPath(new URL("../../../server/platform/telemetry/log.ts", import.meta.url));
  const code = `const { createLog } = await import(${JSON.stringify(log)});
    const log = createLog("info", {});
    for (let at = 0; at < ${LINES}; at += 1) log.info({ at }, "line");
    ${end}`;
  const text = await new Promise<string>((resolve) => {
    execFile(process.execPath, ["--import", "tsx", "--input-type=module", "-e", code], (_error, stdout) => resolve(stdout));
  });
  const seen = text
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { at: number }).at);
  expect(seen).toEqual(Array.from({ length: LINES }, (_each, at) => at));
});
