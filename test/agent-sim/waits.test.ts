// What a start that has to wait tells the person who watches it.
import { expect, test } from "vitest";
import { sayWhileWaiting } from "../../agent-sim/agent/index.ts";
import { createHandTime } from "./clocks.ts";

const WAIT = "waiting for the gateway at http://127.0.0.1:1 since 2026-01-02T00:00:00.000Z";

test("a wait of two seconds says what it waits for, where, since when and why, again every ten seconds, and when it is over", async () => {
  const time = createHandTime();
  const lines: string[] = [];
  let end = (_: string): void => undefined;
  let because = (_: string): void => undefined;
  const wait = {
    on: "the gateway",
    at: "http://127.0.0.1:1",
    work: (why: (reason: string) => void) =>
      new Promise<string>((resolve) => {
        because = why;
        end = resolve;
      }),
  };
  const result = sayWhileWaiting(wait, time, (line) => lines.push(line));
  time.advance(1_999);
  expect(lines).toEqual([]);
  time.advance(1);
  because("connect ECONNREFUSED");
  time.advance(10_000);
  time.advance(10_000);
  expect(lines).toEqual([`${WAIT}, for 2 s`, `${WAIT}, for 12 s: connect ECONNREFUSED`, `${WAIT}, for 22 s: connect ECONNREFUSED`]);
  end("done");
  expect(await result).toBe("done");
  expect(lines.at(-1)).toBe("the wait for the gateway at http://127.0.0.1:1 ended after 22 s");
  time.advance(60_000);
  expect(lines).toHaveLength(4);
});

test("a short wait says nothing", async () => {
  const time = createHandTime();
  const lines: string[] = [];
  await sayWhileWaiting({ on: "the gateway", at: "here", work: async () => undefined }, time, (line) => lines.push(line));
  time.advance(60_000);
  expect(lines).toEqual([]);
});
