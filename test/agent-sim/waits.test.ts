// What a start that has to wait tells the person who watches it.
import { expect, test } from "vitest";
import { createRunAbort, pause, sayWhileWaiting } from "../../agent-sim/agent/index.ts";
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

test("a whole fleet may wait for the end of its run, and Node warns only of many waits for an ordinary signal", async () => {
  const warned: string[] = [];
  const warn = ({ name }: Error): void => void warned.push(name);
  const waitOn = async (ending: AbortController): Promise<readonly string[]> => {
    warned.length = 0;
    const waits = Array.from({ length: 30 }, () => pause(createHandTime(), 1_000, ending.signal));
    ending.abort();
    await Promise.all(waits);
    await new Promise((resolve) => process.nextTick(resolve));
    return [...warned];
  };
  process.on("warning", warn);
  try {
    expect(await waitOn(new AbortController())).toEqual(["MaxListenersExceededWarning"]);
    expect(await waitOn(createRunAbort())).toEqual([]);
  } finally {
    process.off("warning", warn);
  }
});
