// The chaos rig itself: the checker notices each kind of broken promise and accepts an honest history, and the proxy misbehaves as told.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createRandom } from "../../../agent-sim/agent/index.ts";
import { ROOT } from "../../flows/processes.ts";
import { identityOf, reapLeftovers } from "../../kit/setup/workspace.ts";
import { checkHistory, type Fact, lateDeliveries, VIOLATIONS, type Violation, yesInGap } from "../check/checker.ts";
import { losingCommits } from "../check/commits.ts";
import type { Line } from "../check/history.ts";
import { formerReleaseIn } from "./former-release.ts";
import { frameFilter, readTextFrame } from "./frames.ts";
import { createProxy } from "./proxy.ts";

const DEVICE = "dev_a";
const queue = (id: string, phase: "ok" | "fail" | "info", commandId?: string): Line => ({
  op: "queue",
  phase,
  id,
  actor: DEVICE,
  tMs: 0,
  ...(commandId === undefined ? {} : { commandId }),
});
const deliver = (id: string, seq: number, target = DEVICE): Line => ({ op: "deliver", phase: "info", id, actor: DEVICE, tMs: 0, target, lane: "app", seq });
const execute = (id: string): Line => ({ op: "execute", phase: "ok", id, actor: DEVICE, tMs: 0 });
const fact = (commandId: string, request: string | null, status: Fact["status"] = "succeeded"): Fact => ({
  commandId,
  deviceId: DEVICE,
  status,
  failureCode: null,
  request,
});
const honest = [queue("r1", "ok", "c1"), queue("r2", "ok", "c2"), deliver("c1", 1), deliver("c2", 2), execute("c1"), execute("c2")];
const facts = [fact("c1", "r1"), fact("c2", "r2")];
const brokenBy = (lines: readonly Line[], truth: readonly Fact[]): readonly Violation[] => {
  const { violations } = checkHistory(lines, truth);
  return VIOLATIONS.filter((kind) => violations[kind].length > 0);
};

describe("checker", () => {
  test("the checker accepts an honest history", () => {
    expect(brokenBy(honest, facts)).toEqual([]);
    expect(checkHistory(honest, facts)).toMatchObject({ accepted: 2, okOnce: 2, okMultiDelivered: 0 });
  });
  const cases: readonly [Violation, readonly Line[], readonly Fact[]][] = [
    ["ok-lost", honest, facts.slice(1)],
    ["ok-unfinished", honest, [fact("c1", "r1"), fact("c2", "r2", "sent")]],
    ["never-ran", honest.filter((line) => line.op !== "execute" || line.id !== "c2"), facts],
    ["ghost", honest, [...facts, fact("c3", "never asked", "queued")]],
    ["ghost", [...honest, queue("r3", "fail")], [...facts, fact("c3", "r3", "queued")]],
    ["wrong-device", [...honest, deliver("c9", 9, "dev_b")], facts],
    ["reordered", [queue("r1", "ok", "c1"), queue("r2", "ok", "c2"), deliver("c2", 2), deliver("c1", 1), execute("c1"), execute("c2")], facts],
    ["executed-twice", [...honest, execute("c1")], facts],
    ["queued-twice", [...honest, execute("c3")], [...facts, fact("c3", "r2")]],
  ];
  test.for(cases)("the checker reports %s", ([kind, lines, truth]) => {
    expect(brokenBy(lines, truth)).toEqual([kind]);
  });
  test("the checker accepts a redelivery, and an unanswered request with either outcome", () => {
    const lines = [...honest, deliver("c1", 1), queue("r3", "info"), queue("r4", "info")];
    const verdict = checkHistory(lines, [...facts, fact("c3", "r3", "failed")]);
    expect(VIOLATIONS.filter((kind) => verdict.violations[kind].length > 0)).toEqual([]);
    expect(verdict).toMatchObject({ okOnce: 1, okMultiDelivered: 1, unknownApplied: 1, unknownNotApplied: 1 });
  });
});

describe("checker of times", () => {
  const at = (line: Line, tMs: number): Line => ({ ...line, tMs });
  test("the checker counts commands that arrive late or never", () => {
    const lines = [at(queue("r1", "ok", "c1"), 100), at(deliver("c1", 1), 1_050), at(queue("r2", "ok", "c2"), 100), at(deliver("c2", 2), 1_200)];
    expect(lateDeliveries([...lines, queue("r3", "ok", "c3")], 1_000)).toEqual({ late: 2, longestMs: 1_100 });
    expect(lateDeliveries(lines.slice(0, 2), 1_000)).toEqual({ late: 0, longestMs: 950 });
  });
  test("the checker reports a 2xx inside a gap and accepts one in transit", () => {
    const gaps = [{ fromMs: 1_000, toMs: 2_000 }];
    expect(yesInGap([at(queue("r1", "ok", "c1"), 1_500)], gaps)).toBe(1);
    expect(
      yesInGap(
        [900, 1_050, 2_100].map((tMs) => at(queue("r1", "ok", "c1"), tMs)),
        gaps,
      ),
    ).toBe(0);
    expect(yesInGap([at(queue("r1", "info"), 1_500)], gaps)).toBe(0);
  });
  test("the checker finds a command without an id by its request and reports it if it is missing", () => {
    expect(brokenBy([queue("r1", "ok"), execute("c1")], [fact("c1", "r1")])).toEqual([]);
    expect(brokenBy([queue("r1", "ok")], [])).toEqual(["ok-lost"]);
  });
});

describe("leftovers of a dead run", () => {
  const idle = () => spawn(process.execPath, ["-e", "setInterval(() => 0, 1000)"], { stdio: "ignore" });
  const note = (root: string, lines: readonly string[]): string => {
    const folder = join(root, "mooring-chaos-test");
    mkdirSync(folder);
    appendFileSync(join(folder, "processes"), `${lines.join("\n")}\n`);
    return folder;
  };
  const roots: string[] = [];
  const makeRoot = (): string => {
    const root = mkdtempSync(join(tmpdir(), "reaping-"));
    roots.push(root);
    return root;
  };
  afterEach(() => {
    for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
  });

  test("leftover processes are ended by pid and start time, and a later process with the same pid lives on", async () => {
    const [left, stranger] = [idle(), idle()];
    const root = makeRoot();
    try {
      const folder = note(root, ["1@0", identityOf(left.pid ?? 0) ?? "", `${stranger.pid}@0`]);
      const ended = once(left, "exit");
      expect(reapLeftovers(root)).toBe(1);
      expect(await ended).toEqual([null, "SIGKILL"]);
      expect(identityOf(stranger.pid ?? 0)).not.toBeNull();
      expect(existsSync(folder)).toBe(false);
    } finally {
      stranger.kill("SIGKILL");
      left.kill("SIGKILL");
    }
  });
  test("the folder of a run that starts at this moment is left alone", () => {
    const root = makeRoot();
    const folder = join(root, "mooring-chaos-test");
    mkdirSync(folder);
    expect(reapLeftovers(root)).toBe(0);
    appendFileSync(join(folder, "processes"), "");
    expect([reapLeftovers(root), existsSync(folder)]).toEqual([0, true]);
  });
  test("processes of a living run are left alone", () => {
    const child = idle();
    const root = makeRoot();
    try {
      const folder = note(root, [identityOf(process.pid) ?? "", identityOf(child.pid ?? 0) ?? ""]);
      expect(reapLeftovers(root)).toBe(0);
      expect(identityOf(child.pid ?? 0)).not.toBeNull();
      expect(existsSync(folder)).toBe(true);
    } finally {
      child.kill("SIGKILL");
    }
  });
});

/** A masked text message, as a client sends it. */
const masked = (text: string): Buffer => {
  const [payload, mask] = [Buffer.from(text), Buffer.from([1, 2, 3, 4])];
  const length = payload.length < 126 ? Buffer.from([0x80 | payload.length]) : Buffer.from([0x80 | 126, payload.length >> 8, payload.length & 0xff]);
  return Buffer.concat([Buffer.from([0x81]), length, mask, payload.map((byte, n) => byte ^ (mask[n & 3] ?? 0))]);
};

describe("frame filter", () => {
  test("the frame reader reads a masked frame and waits for an incomplete one", () => {
    const text = "x".repeat(300);
    expect(readTextFrame(masked(text))?.text).toBe(text);
    expect(readTextFrame(masked(text).subarray(0, 200))).toBeNull();
  });
  test("the frame filter drops single messages and passes everything else, even byte by byte", () => {
    const sieve = frameFilter((_, text) => !text.includes("ack"))();
    const head = Buffer.from("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
    const all = Buffer.concat([head, masked("hello"), masked("ack 1"), masked("bye")]);
    const out = Buffer.concat([...all].map((byte) => sieve("up", Buffer.from([byte]))));
    expect(out).toEqual(Buffer.concat([head, masked("hello"), masked("bye")]));
  });
  test("the frame filter passes plain HTTP unchanged", () => {
    const sieve = frameFilter(() => false)();
    const request = Buffer.from("POST /ack HTTP/1.1\r\n\r\nack");
    expect(sieve("up", request)).toEqual(request);
  });
});

test("an answer to COMMIT is lost as a whole, once the transaction has ended", () => {
  let cuts = 0;
  const commit = Buffer.from("Q\0\0\0\x0bCOMMIT\0", "latin1");
  const inTransaction = Buffer.from("Z\0\0\0\x05T", "latin1");
  const committed = Buffer.from("C\0\0\0\x0bCOMMIT\0Z\0\0\0\x05I", "latin1");
  const [honest, losing] = [false, true].map((loses) => losingCommits(() => loses)(() => (cuts += 1)));
  for (const byte of commit)
    expect([honest?.("up", Buffer.from([byte])), losing?.("up", Buffer.from([byte]))]).toEqual([Buffer.from([byte]), Buffer.from([byte])]);
  expect([honest?.("down", committed), cuts]).toEqual([committed, 0]);
  expect([losing?.("down", inTransaction).length, cuts]).toEqual([0, 0]);
  expect([losing?.("down", committed).length, cuts]).toEqual([0, 1]);
});

test("the proxy silently holds bytes back, releases them, resets, abandons and refuses connections", async () => {
  const echo = createServer((socket) => socket.on("error", () => undefined).pipe(socket)).listen(0, "127.0.0.1");
  await once(echo, "listening");
  const address = echo.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const proxy = await createProxy({ targets: () => [port], random: createRandom(1) });
  try {
    const client = connect(proxy.port, "127.0.0.1").setEncoding("utf8");
    client.on("error", () => undefined);
    client.write("one");
    expect(await once(client, "data")).toEqual(["one"]);
    proxy.set({ hold: ["down"] });
    const heard = once(client, "data");
    client.write("two");
    expect(await Promise.race([heard, new Promise((resolve) => setImmediate(() => setImmediate(() => resolve("silence"))))])).toBe("silence");
    proxy.calm();
    expect(await heard).toEqual(["two"]);
    const closed = new Promise((resolve) => client.once("close", resolve));
    expect(proxy.reset()).toBe(1);
    await closed;
    const abandoned = connect(proxy.port, "127.0.0.1").setEncoding("utf8");
    abandoned.on("error", () => undefined);
    abandoned.write("one");
    expect(await once(abandoned, "data")).toEqual(["one"]);
    expect(proxy.abandon()).toBe(1);
    abandoned.write("two");
    const newer = connect(proxy.port, "127.0.0.1").setEncoding("utf8");
    newer.on("error", () => undefined);
    newer.write("three");
    expect(await once(newer, "data")).toEqual(["three"]);
    expect([abandoned.bytesRead, abandoned.destroyed]).toEqual([3, false]);
    proxy.set({ newcomers: "refuse" });
    const refused = connect(proxy.port, "127.0.0.1");
    refused.on("error", () => undefined);
    await new Promise((resolve) => refused.once("close", resolve));
    expect(refused.bytesRead).toBe(0);
  } finally {
    await proxy.close();
    echo.close();
  }
});

describe("the former release", () => {
  const OLDER = `## [1.1.0] - 2026-01-02\n\nCommit: ${"a".repeat(40)}\n\n### Added\n`;
  test("is the newest in the changelog whose commit is known", () => {
    expect(formerReleaseIn(`## [Unreleased]\n\n${OLDER}\n## [1.0.0] - 2026-01-01\n\nCommit: ${"b".repeat(40)}\n`)).toEqual({
      version: "1.1.0",
      commit: "a".repeat(40),
    });
    // A release that is being made does not know its own commit.
    expect(formerReleaseIn(`## [1.2.0] - 2026-01-03\n\n### Added\n\n${OLDER}`)).toMatchObject({ version: "1.1.0" });
    expect(() => formerReleaseIn("## [1.0.0] - 2026-01-01\n\n### Added\n")).toThrow("names the commit of no release");
  });

  test("of this repository is named", async () => {
    expect(formerReleaseIn(await readFile(join(ROOT, "CHANGELOG.md"), "utf8")).version).toMatch(/^\d+\.\d+\.\d+$/);
  });
});
