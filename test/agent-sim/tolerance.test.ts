// An older agent with a newer gateway: new words, new forms of ids, figures that are missing or fractions. Nothing of it may stop the work.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type Agent,
  type AgentOptions,
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  createMemoryJournal,
  createRandom,
  type Http,
  Identity,
  type Journal,
  toMember,
} from "../../agent-sim/agent/index.ts";
import { adjustPlan, DEFAULT_PLAN, GivenPlan } from "../../agent-sim/agent/plan.ts";
import { eventually } from "../kit/eventually.ts";
import { createFastTime, createHandTime } from "./clocks.ts";
import { type FakeGateway, SECRET, type Session, startFakeGateway } from "./fake-gateway.ts";

let gateway: FakeGateway;
let http: Http;
let agent: Agent | null = null;
let journal: Journal;
let executed: string[];

beforeEach(async () => {
  gateway = await startFakeGateway();
  http = createHttp(gateway.url, 2);
  journal = createMemoryJournal(Date.now);
  executed = [];
});
afterEach(async () => {
  await agent?.stop();
  http.close();
  await gateway.close();
});

const launch = (differences: Partial<AgentOptions> = {}): Agent => {
  const time = createFastTime(100);
  const random = createRandom(7);
  agent = createAgent({
    url: gateway.url,
    http,
    time,
    random,
    journal,
    deviceId: "device/1",
    identity: { agentId: "agent of another form", tenantId: "tenant-1", secret: SECRET },
    firstWindowMs: 0,
    handlers: createHandlers({ apps: createApps({ time, random }), time }),
    on: { executed: (id) => executed.push(id) },
    ...differences,
  });
  agent.start();
  return agent;
};
const ready = (): Promise<void> => eventually(() => expect(agent?.state).toBe("ready"));
const words = ({ frames }: Session, commandId: string): readonly string[] =>
  frames.flatMap((frame) => (frame.op === "ack" && frame.data.commandId === commandId ? [frame.data.status] : []));
const ID = "job of another form #42 ü";
const bare = { commandId: ID, type: "ping" };

test("a command of which only id and type are told is run and acknowledged", async () => {
  launch();
  const session = await gateway.session(0);
  session.send("command", { command: bare });
  await eventually(() => expect(words(session, ID)).toEqual(["received", "succeeded"]));
  expect(executed).toEqual([ID]);
});
test.each([
  ["fractions", { seq: 1.5, lane: "l", expiresAt: "2099-01-02T03:04:05.678901Z", executionTimeoutSec: 0.5 }],
  ["nonsense", { seq: "x", lane: 7, ackBy: 0, expiresAt: false, executionTimeoutSec: "soon", traceparent: {} }],
])("%s in the delivery do not keep a command from being run", async (_, delivery) => {
  launch();
  const session = await gateway.session(0);
  session.send("command", { command: { ...bare, issuedAt: null, priority: "new" }, delivery });
  await eventually(() => expect(words(session, ID).at(-1)).toBe("succeeded"));
});
test("a polled command of another form is run and acknowledged", async () => {
  gateway.refuse = () => ({ status: 500, body: {} });
  gateway.due = [bare];
  launch();
  await eventually(() => expect(journal.find(ID)?.settledAtMs).toEqual(expect.any(Number)));
  expect(executed).toEqual([ID]);
});

test("an unknown action in reconcile means continue: the agent is ready and its result is told", async () => {
  journal.begin(ID, true);
  journal.finish(ID, { status: "succeeded" });
  gateway.reconcile = [{ commandId: ID, action: "escalate" }];
  launch();
  await ready();
  const [session] = gateway.sessions;
  await eventually(() => expect(session && words(session, ID)).toEqual(["succeeded"]));
});

test.each([
  ["an unknown result", { status: "succeeded", result: "archived" }],
  ["refused", { status: "failed", result: "refused", code: "PAYLOAD_TOO_LARGE" }],
  ["an unknown status", { status: "quarantined", result: "applied" }],
  ["no status and no result", {}],
])("%s in ack_ok settles the word: it is never sent again", async (_, answer) => {
  gateway.ackOk = answer;
  launch();
  const session = await gateway.session(0);
  session.send("command", { command: bare });
  await eventually(() => expect(journal.find(ID)?.settledAtMs).toEqual(expect.any(Number)));
  expect(agent?.unconfirmed).toBe(0);
  expect(words(session, ID)).toEqual(["received", "succeeded"]);
});

test.each([400, 404, 413, 422])("an ack that REST answers with %i is settled: it is never sent again", async (status) => {
  journal.begin(ID, true);
  journal.finish(ID, { status: "succeeded" });
  gateway.refuse = () => ({ status: 500, body: {} });
  gateway.refuseAcks = { status, body: { success: false, code: "VALIDATION_FAILED", retryable: false } };
  launch();
  await eventually(() => expect(journal.find(ID)?.settledAtMs).toEqual(expect.any(Number)));
  expect(gateway.requests.filter((line) => line.startsWith("POST"))).toHaveLength(1);
});

describe("welcome", () => {
  test("with a nonce and nothing else is enough", async () => {
    gateway.welcome = Object.fromEntries(
      ["protocol", "sessionId", "serverTime", "capabilities", "heartbeat", "limits", "reconnect", "poll", "sessionMaxAgeSec"].map((name) => [name, null]),
    );
    launch();
    await ready();
  });
  test("the agent beats at a fraction of a second if it is told so", async () => {
    gateway.welcome = { heartbeat: { intervalSec: 1.25, jitterPct: 2.5 } };
    launch();
    const session = await gateway.session(0);
    await eventually(() => expect(session.frames.filter(({ op }) => op === "heartbeat").length).toBeGreaterThanOrEqual(3));
  });
  test("graceMs is how long the last of two unanswered heartbeats is waited for", async () => {
    const time = createHandTime(Date.now());
    gateway.polite = false;
    gateway.welcome = { heartbeat: { intervalSec: 20, jitterPct: 1, graceMs: 3_000.5 } };
    launch({ time, random: () => 0.5 });
    await eventually(() => {
      time.advance(1);
      expect(gateway.sessions[0]?.frames).toHaveLength(1);
    });
    await ready();
    const beats = (): number => gateway.sessions[0]?.frames.filter(({ op }) => op === "heartbeat").length ?? 0;
    time.advance(2_500);
    await eventually(() => expect(beats()).toBe(1));
    time.advance(20_000);
    await eventually(() => expect(beats()).toBe(2));
    time.advance(2_500);
    expect(agent?.state).toBe("ready");
    time.advance(501);
    expect(agent?.state).toBe("waiting");
    gateway.polite = true;
  });
  test("ack.resendMs is how long an answer is waited for", async () => {
    gateway.polite = false;
    gateway.welcome = { ack: { resendMs: 1_000, capMs: 1_000 }, heartbeat: { intervalSec: 300, jitterPct: 10 } };
    launch();
    const session = await gateway.session(0);
    session.send("command", { command: bare });
    await eventually(() => expect(words(session, ID).filter((word) => word === "succeeded").length).toBeGreaterThanOrEqual(4));
    gateway.polite = true;
  });
});

test("figures that are missing, no numbers or below zero keep their value, and no wait is longer than an hour", () => {
  const given = { heartbeat: { intervalSec: 1e9, jitterPct: -1, graceMs: "10" }, limits: null, poll: { intervalSec: 0.5, safetySec: 7_200 }, more: 1 };
  expect(adjustPlan(DEFAULT_PLAN, GivenPlan.parse(given))).toEqual({
    ...DEFAULT_PLAN,
    heartbeat: { ...DEFAULT_PLAN.heartbeat, intervalSec: 3_600 },
    poll: { intervalSec: 0.5, safetySec: 3_600 },
  });
});

test("an agent with more commands than a hello may list does not claim to have listed them all", async () => {
  for (let n = 0; n < 201; n += 1) {
    journal.begin(`c${n}`, true);
    journal.finish(`c${n}`, { status: "succeeded" });
  }
  launch();
  const [hello] = (await gateway.session(0)).frames;
  const data = hello?.op === "hello" ? hello.data : undefined;
  expect(data?.inFlight).toHaveLength(200);
  expect(data?.capabilities).not.toContain("inflight.v1");
});

test("the socket is where pairing says", async () => {
  launch({ socketUrl: `${gateway.url.replace(/^http/, "ws")}/sockets/eu?v=1` });
  await gateway.session(0);
  expect(gateway.paths).toEqual(["/sockets/eu?v=1"]);
});

test("an identity is read without knowing the form of its ids, and without what is optional", () => {
  const given = { device_id: "d", agent_id: "a", tenant_id: "t", shared_secret: "s" };
  expect(toMember(Identity.parse(given))).toEqual({ deviceId: "d", agentId: "a", tenantId: "t", secret: "s", fingerprint: "" });
  expect(Identity.parse({ ...given, connect: { url: "wss://e", coldStartMs: 2.5 }, infrastructure_secrets: 7 }).connect).toEqual({
    url: "wss://e",
    coldStartMs: 2.5,
  });
});
