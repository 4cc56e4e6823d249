// An older agent with a newer gateway: unknown values, new forms of ids, settings that are missing or fractional. None of it stops the work.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Agent, type AgentOptions, IssuedIdentity, type Journal, toPairedDevice } from "../../agent-sim/agent/index.ts";
import { adjustPlan, DEFAULT_AGENT_PLAN, GivenPlan } from "../../agent-sim/agent/plan.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { createHandTime } from "./clocks.ts";
import type { FakeGateway, FakeSession } from "./fake-gateway.ts";
import { type AgentFixture, openAgentFixture } from "./fixture.ts";

let fixture: AgentFixture;
let gateway: FakeGateway;
let agent: Agent | null = null;
let journal: Journal;
let executed: string[];

beforeEach(async () => {
  fixture = await openAgentFixture({ deviceId: "device/1", agentId: "agent of another form", tenantId: "tenant-1" });
  ({ gateway, journal, executed } = fixture);
});
afterEach(() => fixture.close());

const launch = (differences: Partial<AgentOptions> = {}): Agent => {
  agent = fixture.launch(differences);
  return agent;
};
const ready = (): Promise<void> => eventually(() => expect(agent?.state).toBe("ready"));
const words = ({ frames }: FakeSession, commandId: string): readonly string[] =>
  frames.flatMap((frame) => (frame.op === "ack" && frame.data.commandId === commandId ? [frame.data.status] : []));
const ID = "job of another form #42 ü";
const bare = { commandId: ID, type: "ping" };

test("the agent runs and acknowledges a command that has only an id and a type", async () => {
  launch();
  const session = await gateway.session(0);
  session.send("command", { command: bare });
  await eventually(() => expect(words(session, ID)).toEqual(["received", "succeeded"]));
  expect(executed).toEqual([ID]);
});
test.each([
  ["fractional values", { seq: 1.5, lane: "l", expiresAt: "2099-01-02T03:04:05.678901Z", executionTimeoutSec: 0.5 }],
  ["meaningless values", { seq: "x", lane: 7, ackBy: 0, expiresAt: false, executionTimeoutSec: "soon", traceparent: {} }],
])("the agent runs a command despite %s in its delivery", async (_, delivery) => {
  launch();
  const session = await gateway.session(0);
  session.send("command", { command: { ...bare, issuedAt: null, priority: "new" }, delivery });
  await eventually(() => expect(words(session, ID).at(-1)).toBe("succeeded"));
});
test("the agent runs and acknowledges a polled command of another form", async () => {
  gateway.refuse = () => ({ status: 500, body: {} });
  gateway.due = [bare];
  launch();
  await eventually(() => expect(journal.find(ID)?.settledAtMs).toEqual(expect.any(Number)));
  expect(executed).toEqual([ID]);
});

test("the agent treats an unknown reconcile action as continue and sends its result", async () => {
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
  ["a refusal", { status: "failed", result: "refused", code: "PAYLOAD_TOO_LARGE" }],
  ["an unknown status", { status: "quarantined", result: "applied" }],
  ["no status and no result", {}],
])("%s in ack_ok settles the ack: the agent never sends it again", async (_, answer) => {
  gateway.ackOk = answer;
  launch();
  const session = await gateway.session(0);
  session.send("command", { command: bare });
  await eventually(() => expect(journal.find(ID)?.settledAtMs).toEqual(expect.any(Number)));
  expect(agent?.unconfirmed).toBe(0);
  expect(words(session, ID)).toEqual(["received", "succeeded"]);
});

describe("an ack over REST", () => {
  const acks = (): readonly string[] => gateway.requests.filter((line) => line.startsWith("POST"));
  const refuseAck = (status: number, body: object): void => {
    journal.begin(ID, true);
    journal.finish(ID, { status: "succeeded", output: { pong: true } });
    gateway.refuse = () => ({ status: 500, body: {} });
    gateway.refuseAcks = { status, body };
    launch();
  };
  const issues = [{ path: "startedAt", code: "custom", message: "too long" }];

  test.each([
    [400, { code: "VALIDATION_FAILED", details: { issues } }],
    [422, { code: "VALIDATION_FAILED", details: { issues } }],
    [404, { code: "COMMAND_NOT_FOUND" }],
  ])("is settled if the gateway refuses it with %i %o: the agent never sends it again", async (status, body) => {
    refuseAck(status, body);
    await eventually(() => expect(journal.find(ID)?.settledAtMs).toEqual(expect.any(Number)));
    expect(acks()).toHaveLength(1);
  });

  test.each([
    [
      400,
      { code: "VALIDATION_FAILED", details: { reason: "repeated_header", issues: [{ path: "header.x-svc-timestamp", code: "custom", message: "twice" }] } },
    ],
    [404, { code: "NOT_FOUND" }],
    [404, { code: "DEVICE_NOT_FOUND" }],
    [401, { code: "INVALID_SIGNATURE", details: { reason: "replayed" } }],
    [403, { code: "TENANT_SUSPENDED" }],
    [503, { code: "SERVICE_UNAVAILABLE" }],
  ])("is sent again if the gateway answers %i %o, which does not speak of the ack", async (status, body) => {
    refuseAck(status, body);
    await eventually(() => expect(acks().length).toBeGreaterThanOrEqual(2));
    expect(journal.find(ID)?.settledAtMs).toBeNull();
    gateway.refuseAcks = null;
    await eventually(() => expect(journal.find(ID)?.settledAtMs).toEqual(expect.any(Number)));
  });

  test("is sent without its output if the gateway finds it too large", async () => {
    refuseAck(413, { code: "PAYLOAD_TOO_LARGE" });
    await eventually(() => expect(journal.find(ID)?.settledAtMs).toEqual(expect.any(Number)));
    expect(acks().map((line) => JSON.parse(line.slice(line.indexOf("{"))))).toEqual([
      { status: "succeeded", output: { pong: true } },
      { status: "succeeded", outputTruncated: true },
    ]);
  });
});

describe("welcome", () => {
  test("a welcome with a nonce alone is enough", async () => {
    gateway.welcome = Object.fromEntries(
      ["protocol", "sessionId", "serverTime", "capabilities", "heartbeat", "limits", "reconnect", "poll", "sessionMaxAgeSec"].map((name) => [name, null]),
    );
    launch();
    await ready();
  });
  test("the agent sends heartbeats at a fractional interval", async () => {
    gateway.welcome = { heartbeat: { intervalSec: 1.25, jitterPct: 2.5 } };
    launch();
    const session = await gateway.session(0);
    await eventually(() => expect(session.frames.filter(({ op }) => op === "heartbeat").length).toBeGreaterThanOrEqual(3));
  });
  test("the agent waits graceMs for the answer to the second unanswered heartbeat", async () => {
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
  test("the agent sends an ack again after ack.resendMs", async () => {
    gateway.polite = false;
    gateway.welcome = { ack: { resendMs: 1_000, capMs: 1_000 }, heartbeat: { intervalSec: 300, jitterPct: 10 } };
    launch();
    const session = await gateway.session(0);
    session.send("command", { command: bare });
    await eventually(() => expect(words(session, ID).filter((word) => word === "succeeded").length).toBeGreaterThanOrEqual(4));
    gateway.polite = true;
  });
});

test("missing, non-numeric or negative settings keep their defaults, and no interval exceeds an hour", () => {
  const given = { heartbeat: { intervalSec: 1e9, jitterPct: -1, graceMs: "10" }, limits: null, poll: { intervalSec: 0.5, safetySec: 7_200 }, more: 1 };
  expect(adjustPlan(DEFAULT_AGENT_PLAN, GivenPlan.parse(given))).toEqual({
    ...DEFAULT_AGENT_PLAN,
    heartbeat: { ...DEFAULT_AGENT_PLAN.heartbeat, intervalSec: 3_600 },
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

test("the agent connects to the socket address from its pairing", async () => {
  launch({ socketUrl: `${gateway.url.replace(/^http/, "ws")}/sockets/eu?v=1` });
  await gateway.session(0);
  expect(gateway.paths).toEqual(["/sockets/eu?v=1"]);
});

test("an identity may have ids of any form and lack its optional fields", () => {
  const given = { device_id: "d", agent_id: "a", tenant_id: "t", shared_secret: "s" };
  expect(toPairedDevice(IssuedIdentity.parse(given))).toEqual({ deviceId: "d", agentId: "a", tenantId: "t", secret: "s", fingerprint: "" });
  expect(IssuedIdentity.parse({ ...given, connect: { url: "wss://e", coldStartMs: 2.5 }, infrastructure_secrets: 7 }).connect).toEqual({
    url: "wss://e",
    coldStartMs: 2.5,
  });
});
