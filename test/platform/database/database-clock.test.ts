// Time on a node is the database's: a node with a wrong clock goes by it from its start on, and one whose clock is set meanwhile does not follow.
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDatabaseClock, type DatabaseClock } from "../../../server/platform/database/database-clock.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";

const HOUR_MS = 3_600_000;
const START = Date.parse("2026-03-04T05:06:07.000Z");

/** The world's time passes by `pass`; a node's clock is wrong by `wrongMs`, and the database's by `databaseWrongMs`. */
let elapsedMs: number;
let wrongMs: number;
let databaseWrongMs: number;
let takesMs: number;
let answers: boolean;
let closing: (() => Promise<void>)[];
beforeEach(() => {
  [elapsedMs, wrongMs, databaseWrongMs, takesMs, answers, closing] = [0, 0, 0, 0, true, []];
});
afterEach(async () => {
  for (const close of closing) await close();
});

const pass = (ms: number): void => {
  elapsedMs += ms;
};
const own = { now: () => new Date(START + elapsedMs + wrongMs), elapsed: () => elapsedMs };
const db = {
  query: async <Row>(): Promise<Row[]> => {
    if (!answers) throw new Error("the database is away");
    pass(takesMs / 2);
    const now = new Date(START + elapsedMs + databaseWrongMs);
    pass(takesMs / 2);
    return [{ now } as Row];
  },
};
const open = async (log = silentLog) => {
  // The period is the real clock's and longer than a test: what asks here is `now`.
  const clock = createDatabaseClock(own, log, HOUR_MS);
  const { close } = await clock.follow(db);
  closing.push(close);
  return clock;
};
const settled = () => new Promise((resolve) => setImmediate(resolve));
/** `now` may ask, which takes time in this world, so what is due is read before. */
const expectTime = (clock: DatabaseClock, offMs = 0): void => {
  const due = START + elapsedMs + offMs;
  expect(clock.now().getTime()).toBe(due);
};

test("a clock that agrees is used as it is, and one that is an hour off is not", async () => {
  [takesMs, wrongMs] = [20, 300];
  expectTime(await open(), 300);
  wrongMs = HOUR_MS;
  const clock = await open();
  expect(clock.offsetMs()).toBe(HOUR_MS);
  expectTime(clock);
  pass(60_000);
  expectTime(clock);
});

test("a clock of 1970 tells the database's time", async () => {
  wrongMs = -START;
  expectTime(await open());
});

test("a clock that is set while the node runs changes nothing, also while the database is away", async () => {
  const clock = await open();
  pass(10_000);
  [wrongMs, answers] = [-HOUR_MS, false];
  expectTime(clock);
  await settled();
  pass(HOUR_MS);
  expectTime(clock);
});

test("after a sleep, in which the milliseconds stood still, it asks at once", async () => {
  const clock = await open();
  // All clocks but the one of milliseconds went on.
  [wrongMs, databaseWrongMs] = [HOUR_MS, HOUR_MS];
  pass(2_000);
  clock.now();
  await settled();
  expectTime(clock, HOUR_MS);
});

test("when the writer changes to one with another clock, its time counts, and answers that came late do not", async () => {
  const clock = await open();
  databaseWrongMs = 5_000;
  wrongMs = 5_000;
  pass(2_000);
  takesMs = 3_000;
  clock.now();
  await settled();
  expectTime(clock);
  takesMs = 10;
  await settled();
  pass(2_000);
  clock.now();
  await settled();
  expectTime(clock, 5_000);
});

test("it warns once from two seconds on, and says when the clock is right again", async () => {
  const said: unknown[] = [];
  const log = { ...silentLog, warn: (fields: object) => void said.push(["warn", fields]), info: (fields: object) => void said.push(["info", fields]) };
  wrongMs = 1_900;
  const clock = await open(log);
  const look = async (): Promise<void> => {
    pass(2_000);
    clock.now();
    await settled();
  };
  await look();
  expect(said).toEqual([]);
  wrongMs = -2_100;
  await look();
  await look();
  expect(said).toEqual([["warn", { offsetMs: -2_100 }]]);
  wrongMs = 600;
  await look();
  expect(said).toEqual([
    ["warn", { offsetMs: -2_100 }],
    ["info", { offsetMs: 600 }],
  ]);
});
