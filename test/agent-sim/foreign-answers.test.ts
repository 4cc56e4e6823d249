// Between agent and gateway stand proxies, captive portals and networks without WebSockets. What they answer is no answer: it settles, stops and confirms nothing.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDueTimer, createHttp, createMemoryKeys, createRotation, NoAnswer, signer, thisMachine } from "../../agent-sim/agent/index.ts";
import { createInventorySync } from "../../agent-sim/host/inventory-sync.ts";
import { createLogSender } from "../../agent-sim/host/log-sender.ts";
import { createStateSync, fetchSecretsBy } from "../../agent-sim/host/state-sync.ts";
import { createKeys, MAIN, signRelease } from "../../agent-sim/update/release.ts";
import { createUpdater } from "../../agent-sim/update/updater.ts";
import { openVersions } from "../../agent-sim/update/versions.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { createFastTime, createHandTime, withLongestDelay } from "./clocks.ts";
import { type FakeGateway, type ForeignAnswer, OWN_HEADERS, SECRET } from "./fake-gateway.ts";
import { type AgentFixture, openAgentFixture, USUAL_IDS } from "./fixture.ts";

const HTML = { "content-type": "text/html" };
const OWN_BODY = JSON.stringify({ success: true, data: [] });
const FOREIGN: readonly (readonly [string, ForeignAnswer])[] = [
  ["404 HTML", { status: 404, headers: HTML, text: "<html>default backend</html>" }],
  ["400 HTML", { status: 400, headers: HTML, text: "<html>Bad Request</html>" }],
  ["401 HTML with a realm", { status: 401, headers: { ...HTML, "www-authenticate": "Basic" }, text: "<html>Who are you?</html>" }],
  ["403 JSON of a firewall", { status: 403, headers: { "content-type": "application/json" }, text: '{"success":false,"code":"FORBIDDEN"}' }],
  ["413 HTML", { status: 413, headers: HTML, text: "<html>Request Entity Too Large</html>" }],
  ["422 HTML", { status: 422, headers: HTML, text: "<html>?</html>" }],
  ["429 HTML that says when", { status: 429, headers: { ...HTML, "retry-after": "3600" }, text: "<html>Slow down</html>" }],
  ["503 HTML that says when", { status: 503, headers: { ...HTML, "retry-after": "3600" }, text: "<html>Maintenance</html>" }],
  ["200 HTML of a captive portal", { status: 200, headers: HTML, text: "<html>Welcome, accept our terms</html>" }],
  ["200 JSON of another server", { status: 200, headers: { "content-type": "application/json" }, text: OWN_BODY }],
  ["204 of another server", { status: 204, headers: {}, text: "" }],
  ["an empty 200", { status: 200, headers: OWN_HEADERS, text: "" }],
  ["a success with a status of failure", { status: 404, headers: OWN_HEADERS, text: OWN_BODY }],
  ["a redirect", { status: 302, headers: { location: "/v1/agent/me" }, text: "" }],
  ["a permanent redirect", { status: 308, headers: { location: "/elsewhere" }, text: "" }],
  ["a body that is cut off", { status: 200, headers: OWN_HEADERS, text: OWN_BODY, after: "cut" }],
  ["half of the JSON", { status: 200, headers: OWN_HEADERS, text: OWN_BODY.slice(0, -3) }],
  ["gzip that never ends", { status: 200, headers: { ...OWN_HEADERS, "content-encoding": "gzip" }, text: "\u001f\u008b", after: "endless" }],
];

let fixture: AgentFixture;
let gateway: FakeGateway;
beforeEach(async () => {
  fixture = await openAgentFixture();
  ({ gateway } = fixture);
});
afterEach(() => fixture.close());

const upgradesOnly = (answer: ForeignAnswer) => (target: string) => (target === "upgrade" ? answer : null);
const restOnly = (answer: ForeignAnswer) => (target: string) => (target === "upgrade" ? null : answer);
const endless = ([name]: readonly [string, ForeignAnswer]): boolean => name.endsWith("never ends");
/** Some kilobytes follow the head, more than a refusal may have. */
const bounded = FOREIGN.filter((each) => !endless(each));

describe.each(FOREIGN)("%s", (_, answer) => {
  test("does not stop an agent that connects: it backs off and is back as soon as the gateway answers", async () => {
    gateway.foreign = upgradesOnly(answer);
    const ends: (number | null)[] = [];
    const agent = fixture.launch({ on: { away: (_end, inMs) => void ends.push(inMs) } });
    await eventually(() => expect(ends.length).toBeGreaterThanOrEqual(2));
    expect(ends.slice(0, 3).filter((inMs) => inMs === null || inMs > 20_000)).toEqual([]);
    expect(fixture.alarms).toEqual([]);
    gateway.foreign = null;
    await eventually(() => expect(agent.state).toBe("ready"));
  });

  test("settles no ack, counts as no poll, and starts no halted agent", async () => {
    fixture.journal.begin("cmd_1", true);
    fixture.journal.finish("cmd_1", { status: "succeeded" });
    let polls = 0;
    const isAck = (target: string): boolean => target.endsWith("/ack");
    gateway.foreign = restOnly(answer);
    gateway.refuse = () => ({ status: 403, body: { code: "FORBIDDEN", details: { reason: "device_revoked" } } });
    // A halted agent asks every four to six minutes.
    const agent = fixture.launch({
      time: withLongestDelay(createFastTime(1_000), 60_000),
      on: {
        polled: () => {
          polls += 1;
        },
      },
    });
    await eventually(() => expect(gateway.requests.length).toBeGreaterThanOrEqual(2), 20_000);
    expect([polls, agent.state]).toEqual([0, "halted"]);
    // Now the gateway answers polls, and the other acks.
    gateway.foreign = (target) => (isAck(target) ? answer : null);
    await eventually(() => expect(gateway.requests.filter((line) => line.includes("/ack")).length).toBeGreaterThanOrEqual(2), 20_000);
    expect(fixture.journal.find("cmd_1")?.settledAtMs).toBeNull();
    gateway.foreign = null;
    await eventually(() => expect(fixture.journal.find("cmd_1")?.settledAtMs).toEqual(expect.any(Number)), 20_000);
  }, 60_000);
});

describe.each(bounded)("%s", (_, answer) => {
  const callThrough = () => {
    const agent = fixture.launch({ mode: "poll", firstWindowMs: 3_600_000 });
    gateway.foreign = restOnly(answer);
    return agent.call;
  };

  test("does not confirm a report: the next one follows as after no answer", async () => {
    const time = createHandTime();
    const host = { report: () => [], apply: () => Promise.reject(new Error("nothing is to be applied")) };
    const sync = createStateSync({ host, call: callThrough(), time, applied: { get: () => 0, raise: () => undefined }, random: () => 0.5 });
    const reports = (): number => gateway.requests.filter((line) => line.startsWith("PUT /v1/agent/reported-state")).length;
    sync.start();
    await eventually(() => {
      time.advance(250);
      expect(reports()).toBeGreaterThanOrEqual(1);
    });
    await eventually(() => {
      time.advance(2_500);
      expect(reports()).toBeGreaterThanOrEqual(3);
    });
    // 5 and 10 s of backoff instead of a minute after each.
    expect(time.elapsedMs()).toBeLessThan(60_000);
    sync.stop();
  });

  test("does not confirm an inventory: it is told again as after no answer", async () => {
    const time = createHandTime();
    const sync = createInventorySync({ machine: thisMachine, call: callThrough(), time, random: () => 0.5 });
    const reports = (): number => gateway.requests.filter((line) => line.startsWith("PUT /v1/agent/inventory")).length;
    sync.start();
    await eventually(() => {
      time.advance(2_500);
      expect(reports()).toBeGreaterThanOrEqual(2);
    });
    expect(time.elapsedMs()).toBeLessThan(60_000);
    sync.stop();
  });

  test("is no word about secrets: neither those of an app nor the agent's own", async () => {
    const call = callThrough();
    const time = createFastTime(1_000);
    await expect(fetchSecretsBy(call, time)("app_1")).rejects.toBeInstanceOf(NoAnswer);
    const keys = createMemoryKeys(SECRET);
    const http = createHttp(gateway.url, 1);
    const identity = { ...USUAL_IDS, secret: SECRET };
    let stampMs = Date.now();
    const rotation = createRotation({
      ...{ keys, http, identity, time, deviceId: "dev_1", sign: signer(1), random: Math.random },
      stampMs: () => (stampMs += 1),
    });
    const context = { commandId: "cmd_1", signal: new AbortController().signal, progress: () => undefined, traceparent: null };
    await expect(rotation.handler.run({}, context)).rejects.toBeInstanceOf(NoAnswer);
    expect([keys.secret, keys.rotating]).toEqual([SECRET, true]);
    http.close();
  });

  test("does not tell an agent that nobody watches a log", async () => {
    const time = createFastTime(20);
    const logs = createLogSender({ host: { tail: async () => ["a line"], follow: () => Readable.from([]) }, call: callThrough(), time });
    const sent = logs.sendTail({ appId: "app_1", followId: "f1", tail: 10, since: null });
    const chunks = (): number => gateway.requests.filter((line) => line.startsWith("POST /v1/agent/logs")).length;
    await eventually(() => expect(chunks()).toBeGreaterThanOrEqual(2));
    logs.stop();
    await sent;
  });
});

test("an answer without a body is the gateway's if it carries the gateway's header", async () => {
  const http = createHttp(gateway.url, 1);
  const remove = () => http.call({ method: "DELETE", path: "/v1/deployments/dep_1", headers: {} });
  gateway.foreign = () => ({ status: 204, headers: OWN_HEADERS, text: "" });
  expect(await remove()).toMatchObject({ status: 204 });
  gateway.foreign = () => ({ status: 204, headers: {}, text: "" });
  await expect(remove()).rejects.toBeInstanceOf(NoAnswer);
  http.close();
});

describe("the updates of an agent", () => {
  const folder = mkdtempSync(join(tmpdir(), "mooring-foreign-"));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("take no package, and tell of no failure, through a captive portal", async () => {
    const { privateKey, publicKey } = createKeys();
    const text = JSON.stringify({ "package.json": '{"version":"99.0.0"}', [MAIN]: "process.exit(0);" });
    const release = signRelease(
      {
        ...{ version: "99.0.0", platform: "any", arch: "any", channel: "stable", mandatory: true, minVersion: null },
        ...{ url: "/v1/agent/updates/packages/99.package.json", sha256: "0".repeat(64), size: text.length },
      },
      privateKey,
    );
    const versions = openVersions(folder);
    versions.write({ failed: { version: "98.0.0", sha256: "1".repeat(64), message: "it did not start", told: false } });
    const portal: ForeignAnswer = { status: 200, headers: HTML, text: "<html>Welcome</html>" };
    gateway.foreign = () => portal;
    const agent = fixture.launch({ mode: "poll", firstWindowMs: 3_600_000 });
    const updater = createUpdater({
      ...{ versions, publicKey, channel: "stable", time: createFastTime(1_000), random: () => 0.1, say: () => undefined },
      restart: () => {
        throw new Error("there is nothing to restart for");
      },
    });
    updater.start(agent);
    const events = (): number => gateway.requests.filter((line) => line.startsWith("POST /v1/agent/events")).length;
    await eventually(() => expect(events()).toBeGreaterThanOrEqual(2));
    expect(versions.read().failed).toMatchObject({ told: false });
    const own = (data: unknown): ForeignAnswer => ({ status: 200, headers: OWN_HEADERS, text: JSON.stringify({ success: true, data }) });
    // The gateway offers a release; the portal stands before its package.
    gateway.foreign = (target) => (target.includes("/latest") ? own({ release }) : target.includes("/packages/") ? portal : own({ accepted: 1 }));
    await eventually(() => expect(versions.read().failed).toMatchObject({ told: true }));
    const handler = updater.handlers["agent-update"];
    const context = { commandId: "cmd_1", signal: new AbortController().signal, progress: () => undefined, traceparent: null };
    await expect(handler?.run({}, context)).rejects.toMatchObject({ code: "DOWNLOAD_FAILED" });
    updater.stop();
  });
});

describe("what is more frequent than a period does not put the period off", () => {
  test.each<readonly [string, () => void]>([
    ["the gateway refuses", () => (gateway.refuse = () => ({ status: 500, body: {} }))],
    ["a proxy refuses", () => (gateway.foreign = upgradesOnly({ status: 404, headers: HTML, text: "<html>no WebSockets here</html>" }))],
  ])("polls go on while %s upgrades, and commands run", async (_, block) => {
    gateway.due = [{ commandId: "cmd_1", type: "ping" }];
    block();
    fixture.launch({ random: () => 0.01 });
    await eventually(() => expect(fixture.executed).toEqual(["cmd_1"]));
    expect(gateway.upgrades.length).toBeGreaterThan(3);
  });

  test("an app that changes all the time is reported all the time", async () => {
    const time = createHandTime();
    let reports = 0;
    const call = async () => {
      reports += 1;
      return { status: 200, headers: {}, body: { success: true, data: { desiredVersion: 0, ignored: [] } } };
    };
    const host = { report: () => [], apply: () => Promise.reject(new Error("nothing is to be applied")) };
    const sync = createStateSync({ host, call, time, applied: { get: () => 0, raise: () => undefined } });
    sync.start();
    for (let n = 0; n < 100; n += 1) {
      sync.changed();
      time.advance(200);
      await new Promise(setImmediate);
    }
    expect(reports).toBeGreaterThanOrEqual(30);
    sync.stop();
  });

  test("a timer that is brought forward again and again runs when it was first due", () => {
    const time = createHandTime();
    const ranAt: number[] = [];
    const timer = createDueTimer(time, () => ranAt.push(time.elapsedMs()));
    for (let n = 0; n < 50; n += 1) {
      timer.within(1_000);
      time.advance(100);
    }
    expect(ranAt).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
    timer.within(1_000);
    timer.stretch(10_000);
    time.advance(9_999);
    expect(ranAt).toHaveLength(5);
    time.advance(1);
    expect(ranAt).toHaveLength(6);
    timer.within(1_000);
    timer.cancel();
    time.advance(10_000);
    expect(ranAt).toHaveLength(6);
  });
});

describe("a device whose own clock is put back", () => {
  test("signs with the right time again after one refusal, not only after as long as it was ahead", async () => {
    const base = createFastTime(100);
    let aheadMs = 200_000;
    gateway.welcome = { serverTime: null };
    const agent = fixture.launch({ time: { ...base, wallMs: () => Date.now() + aheadMs } });
    await eventually(() => expect(agent.state).toBe("ready"));
    aheadMs = 0;
    const skewMs = (headers: Readonly<Record<string, unknown>>): number => Date.parse(String(headers["x-svc-timestamp"])) - Date.now();
    const details = () => ({ reason: "timestamp_skew", serverTime: new Date().toISOString() });
    gateway.refuse = (headers) => (skewMs(headers) > 100_000 ? { status: 401, body: { code: "INVALID_SIGNATURE", details: details() } } : null);
    gateway.sessions[0]?.cut();
    await eventually(() => expect(gateway.sessions).toHaveLength(2));
    expect(agent.state).not.toBe("halted");
    expect(fixture.alarms).toEqual([]);
  });
});
