// How an agent sends logs: in chunks that the gateway takes, no faster than it takes them, for as long as somebody watches, and without secrets.
import { closeSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type HttpAnswer, NoAnswer, systemTime, type Time } from "../../../agent-sim/agent/index.ts";
import type { Host } from "../../../agent-sim/host/host.ts";
import { toLogLine } from "../../../agent-sim/host/log-line.ts";
import { createLogSender } from "../../../agent-sim/host/log-sender.ts";
import { followLog, tailLog } from "../../../agent-sim/host/processes/log-file.ts";
import { CUT_MARK, LogChunkHead, MAX_CHUNK_BYTES } from "../../../protocol/index.ts";
import { readChunk } from "../../../server/features/apps/logs/chunk.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { createFastTime } from "../clocks.ts";
import { desiredApp } from "./desired.ts";
import { openProcesses, openSimulated, SECRET } from "./harness.ts";

const AT = "2026-11-22T10:00:00.000Z";
const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

const answered = (status: number, data: object = {}, headers = {}): HttpAnswer => ({ status, headers, body: { data } });
type Answering = (attempt: number) => HttpAnswer | Promise<HttpAnswer>;

/** A gateway that reads chunks as the real one does. */
const openSender = (host: Pick<Host, "tail" | "follow">, answer: Answering = () => answered(200, { watched: true }), time: Time = systemTime) => {
  const texts: string[] = [];
  const sender = createLogSender({
    host,
    time,
    call: async (_method, _path, chunk) => {
      texts.push(String(chunk));
      return answer(texts.length);
    },
  });
  ended.push(sender.stop);
  const chunks = () => texts.map(readChunk);
  return { sender, texts, chunks, lines: () => chunks().flatMap((chunk) => chunk.lines.map(({ text }) => text)) };
};

const hostOf = (lines: readonly string[]) => {
  let read = 0;
  let aborted = false;
  return {
    read: () => read,
    aborted: () => aborted,
    tail: async (_appId: string, count: number) => lines.slice(-count),
    follow: (_appId: string, signal: AbortSignal) => {
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      return (async function* () {
        for (const line of lines) {
          read += 1;
          yield line;
        }
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      })();
    },
  };
};
const order = { appId: "app_1", followId: "flw_1", since: null };

/** The bytes that this process has read so far, from files and sockets. */
const bytesRead = (): number => Number(/^rchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);

describe("the end of a log", () => {
  test("is sent in chunks that the gateway takes, the last one marked", async () => {
    const { sender, texts, chunks, lines } = openSender(hostOf(Array.from({ length: 500 }, (_, n) => `${AT} ${n} ${"x".repeat(1_000)}`)));
    expect(await sender.sendTail({ ...order, tail: 400 })).toEqual({ lines: 400 });
    expect(texts.length).toBeGreaterThan(2);
    for (const text of texts) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_CHUNK_BYTES);
    expect(chunks().map(({ n, done, truncated }) => [n, done, truncated])).toEqual(texts.map((_, at) => [at + 1, at === texts.length - 1, false]));
    expect([lines().length, lines()[0]?.slice(0, 4)]).toEqual([400, "100 "]);
  });
  test("of 1 GB is read from its end, a few bytes of it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "big-log-"));
    ended.push(() => rmSync(folder, { recursive: true }));
    const file = openSync(join(folder, "log"), "w");
    ftruncateSync(file, 2 ** 30);
    writeSync(file, `\n${Array.from({ length: 2_000 }, (_, n) => `${AT} line ${n}`).join("\n")}\n`, 2 ** 30);
    closeSync(file);
    const [memory, read] = [process.memoryUsage().arrayBuffers, bytesRead()];
    const lines = tailLog(folder, 1_000);
    expect(bytesRead() - read).toBeLessThan(16_000_000);
    expect(process.memoryUsage().arrayBuffers - memory).toBeLessThan(16_000_000);
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([1_000, `${AT} line 1000`, `${AT} line 1999`]);
    // Two of them lie in the hole, which is one line without end.
    expect(tailLog(folder, 3_000).length).toBe(2_000);
  });
  test("continues in the file before the rotation, and has no half lines", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rotated-log-"));
    ended.push(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "log.1"), `${"ä".repeat(70_000)}\none\ntwo\n`);
    writeFileSync(join(folder, "log"), "three\nunfinished");
    expect(tailLog(folder, 3)).toEqual(["one", "two", "three"]);
    expect(tailLog(folder, 9).map((line) => line.length)).toEqual([70_000, 3, 3, 5]);
    expect(tailLog(folder, 0)).toEqual([]);
    expect(tailLog(join(folder, "none"), 5)).toEqual([]);
  });
  test("is followed from the moment of the call, however late its lines are read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "followed-log-"));
    ended.push(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "log"), "before\n");
    const enough = new AbortController();
    ended.push(() => enough.abort());
    const coming = followLog({ folder, time: systemTime, signal: enough.signal, isOver: () => false })[Symbol.asyncIterator]();
    writeFileSync(join(folder, "log"), "after\n", { flag: "a" });
    expect(await coming.next()).toEqual({ done: false, value: "after" });
  });
  test("with a line that never ends does not stop those who follow", async () => {
    const folder = mkdtempSync(join(tmpdir(), "endless-line-"));
    ended.push(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "log"), "");
    const [enough, lengths] = [new AbortController(), [] as number[]];
    ended.push(() => enough.abort());
    const reading = (async () => {
      for await (const line of followLog({ folder, time: systemTime, signal: enough.signal, isOver: () => false })) lengths.push(line.length);
    })();
    const append = (text: string): void => writeFileSync(join(folder, "log"), text, { flag: "a" });
    await eventually(() => {
      append("go\n");
      expect(lengths.length).toBeGreaterThan(0);
    });
    append(`${"x".repeat(100_000)}\nnext\n`);
    await eventually(() => expect(lengths.at(-1)).toBe(4));
    enough.abort();
    await reading;
    expect(lengths.filter((length) => length > 4).reduce((sum, length) => sum + length, 0)).toBe(100_000);
  });
});

describe("what comes", () => {
  test("is read no faster than the gateway takes it", async () => {
    const host = hostOf(Array.from({ length: 5_000 }, (_, n) => `${AT} ${n} ${"x".repeat(1_000)}`));
    const { sender, texts } = openSender(host, () => new Promise(() => undefined));
    sender.follow({ ...order, seconds: 60 });
    await eventually(() => expect(host.read()).toBeGreaterThan(400));
    expect(texts).toHaveLength(1);
    const read = host.read();
    await eventually(() => expect(host.read()).toBe(read));
    // Half a megabyte of lines.
    expect(read).toBeLessThan(600);
  });
  test("ends when nobody watches, or when the app logs nothing more", async () => {
    const host = hostOf([`${AT} one`]);
    const { sender } = openSender(host, () => answered(200, { watched: false }));
    sender.follow({ ...order, seconds: 60 });
    await eventually(() => expect(host.aborted()).toBe(true));
    const over = openSender({
      ...host,
      follow: async function* () {
        yield `${AT} last`;
      },
    });
    over.sender.follow({ ...order, seconds: 60 });
    await eventually(() => expect(over.chunks().at(-1)).toMatchObject({ done: true }));
    expect(over.lines()).toEqual(["last"]);
  });
  test("ends with its time, and is extended by the same id", async () => {
    const host = hostOf([]);
    const { sender, chunks } = openSender(host, undefined, createFastTime(20));
    sender.follow({ ...order, seconds: 4 });
    sender.follow({ ...order, seconds: 8 });
    await eventually(() => expect(host.aborted()).toBe(true));
    expect(chunks().map(({ n }) => n)).toEqual([1]);
  });
  test("keeps the number of a chunk that it sends again, also when the gateway asks to wait", async () => {
    const { sender, texts, chunks } = openSender(hostOf([`${AT} one`]), (attempt) => {
      if (attempt === 1) throw new NoAnswer("cut off");
      return attempt === 2 ? answered(429, {}, { "retry-after": "0" }) : answered(200, { watched: attempt < 4 });
    });
    sender.follow({ ...order, seconds: 60 });
    await eventually(() => expect(texts.length).toBeGreaterThanOrEqual(3));
    expect(
      chunks()
        .slice(0, 3)
        .map(({ n }) => n),
    ).toEqual([1, 1, 1]);
    expect(new Set(texts.slice(0, 3)).size).toBe(1);
  });
  test("begins with what was missed since a time", async () => {
    const host = { ...hostOf([]), tail: async () => ["2026-11-22T09:00:00.000Z before", `${AT} seen`, "2026-11-22T11:00:00.000Z missed"] };
    const { sender, lines } = openSender(host);
    sender.follow({ ...order, since: AT, seconds: 60 });
    await eventually(() => expect(lines()).toEqual(["missed"]));
  });
  test("is bounded per agent", () => {
    const { sender } = openSender(hostOf([]));
    for (let n = 0; n < 16; n += 1) sender.follow({ ...order, followId: `flw_${n}`, seconds: 60 });
    expect(() => sender.follow({ ...order, followId: "flw_more", seconds: 60 })).toThrow("at most 16");
  });
});

describe("lines", () => {
  test.each([
    ["of a process", `${AT} text`, { at: AT, stream: "stdout", text: "text" }],
    ["of its standard error", `${AT}\ttext`, { at: AT, stream: "stderr", text: "text" }],
    ["of a container", "2026-11-22T10:00:00.123456789Z GET / | 200", { at: "2026-11-22T10:00:00.123Z", stream: "stdout", text: "GET / | 200" }],
    ["without a time", "text", { at: AT, stream: "stdout", text: "text" }],
    ["with a time that is none", "2026-99-99T99:99:99Z text", { at: AT, stream: "stdout", text: "text" }],
  ])("%s are understood", (_, line, expected) => {
    expect(toLogLine(line, Date.parse(AT))).toEqual(expected);
  });
  test("that are too long are cut, with a mark", () => {
    expect(toLogLine(`${AT} ${"x".repeat(20_000)}`, 0).text).toBe(`${"x".repeat(16_384)}${CUT_MARK}`);
  });
});

describe("hosts", () => {
  test("mask a secret before it leaves the device, also one that comes in two writes, and tell the streams apart", async () => {
    const harness = openProcesses();
    ended.push(harness.close);
    const port = await freePort();
    const app = desiredApp(port);
    await harness.host.apply(app);
    const { sender, lines, texts } = openSender(harness.host);
    sender.follow({ ...order, appId: app.appId, seconds: 60 });
    await eventually(() => expect(texts.length).toBeGreaterThan(0));
    await fetch(`http://127.0.0.1:${port}/say?text=${encodeURIComponent(`half ${SECRET} half`)}`);
    await fetch(`http://127.0.0.1:${port}/split?first=${encodeURIComponent(SECRET.slice(0, 9))}&second=${encodeURIComponent(SECRET.slice(9))}`);
    await eventually(() => expect(lines()).toEqual(["half *** half", "***"]));
    await sender.sendTail({ ...order, appId: app.appId, followId: "flw_2", tail: 100 });
    expect(texts.join("\n")).not.toContain("horse");
    await harness.host.apply({ ...app, revision: 2, config: { ...app.config, mode: "exit" } }).catch(() => undefined);
    const tail = openSender(harness.host);
    await tail.sender.sendTail({ ...order, appId: app.appId, tail: 100 });
    expect(tail.chunks().flatMap((chunk) => chunk.lines)).toContainEqual(expect.objectContaining({ stream: "stderr", text: "no reason to live" }));
  });
  test("that are simulated log the same for the same seed", async () => {
    const texts = await Promise.all(
      [1, 2].map(async () => {
        const { host, close } = openSimulated(createFastTime(10));
        ended.push(close);
        const app = { ...desiredApp(8_080), appId: "app_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R" as const };
        await host.apply(app);
        const { sender, lines } = openSender(host);
        sender.follow({ ...order, appId: app.appId, seconds: 60 });
        await eventually(() => expect(lines().length).toBeGreaterThan(1));
        sender.stop();
        return lines().slice(0, 2);
      }),
    );
    expect(texts[0]).toEqual(texts[1]);
    expect(texts[0]?.[0]).toMatch(/^request 1 answered in \d+ ms$/);
  });
});

test("heads have the form that the contract names", () => {
  expect(LogChunkHead.parse({ followId: "flw_1", n: 1 })).toEqual({ followId: "flw_1", n: 1, skipped: 0, done: false, truncated: false });
});
