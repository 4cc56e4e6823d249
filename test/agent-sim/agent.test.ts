// The whole agent against a fake gateway: proof, work, silence, refusals, polling. A second lasts ten milliseconds here.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Agent, AgentOptions, Journal } from "../../agent-sim/agent/index.ts";
import type { AgentFrame } from "../../protocol/index.ts";
import { HEADERS, parseTimestamp, verify } from "../../protocol/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { createFastTime, withLongestDelay } from "./clocks.ts";
import { type FakeGateway, type FakeSession, SECRET } from "./fake-gateway.ts";
import { type AgentFixture, openAgentFixture } from "./fixture.ts";

let fixture: AgentFixture;
let gateway: FakeGateway;
let agent: Agent | null = null;
let journal: Journal;
let alarms: string[];
let executed: string[];

beforeEach(async () => {
  fixture = await openAgentFixture();
  ({ gateway, journal, alarms, executed } = fixture);
});
afterEach(() => fixture.close());

const launch = (differences: Partial<AgentOptions> = {}, skewMs = 0): Agent => {
  agent = fixture.launch(differences, skewMs);
  return agent;
};
const ID = "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const delivery = { attempt: 1, redelivered: false, seq: 1, lane: "l", ackBy: "2026-01-02T00:00:20.000Z", expiresAt: null, executionTimeoutSec: 600 };
const command = (type: string, payload: unknown = {}) => ({
  command: { commandId: ID, type, issuedAt: "2026-01-02T00:00:00.000Z", payload, requiresAck: true },
  delivery,
});
const acks = ({ frames }: FakeSession): readonly string[] => frames.flatMap((frame) => (frame.op === "ack" ? [frame.data.status] : []));
const frame = <Op extends AgentFrame["op"]>({ frames }: FakeSession, op: Op): Extract<AgentFrame, { op: Op }> => {
  const found = frames.find((one): one is Extract<AgentFrame, { op: Op }> => one.op === op);
  if (!found) throw new Error(`no ${op} yet`);
  return found;
};

describe("socket", () => {
  test("the agent signs the timestamp for the upgrade and the nonce in its hello", async () => {
    launch();
    const session = await gateway.session(0);
    const headers = gateway.upgrades[0] ?? {};
    expect(verify(SECRET, "", String(headers[HEADERS.timestamp]), String(headers[HEADERS.signature]))).toBe(true);
    expect(frame(session, "hello").data).toMatchObject({ capabilities: ["journal.v1", "inflight.v1", "cancel.v1", "progress.v1", "handoff.v1"], inFlight: [] });
    await eventually(() => expect(agent?.state).toBe("ready"));
  });
  test("the agent acknowledges a command, runs it, reports its result, and numbers its frames", async () => {
    launch();
    const session = await gateway.session(0);
    session.send("command", command("echo", { text: "naïve ✓" }));
    await eventually(() => expect(acks(session)).toEqual(["received", "succeeded"]));
    const last = session.frames.filter(({ op }) => op === "ack").at(-1);
    expect(last?.data).toMatchObject({ commandId: ID, output: { text: "naïve ✓" } });
    expect(session.frames.map(({ id }) => Number(id))).toEqual(session.frames.map((_, n) => n + 1));
    await eventually(() => expect(journal.unsettled()).toHaveLength(0));
  });
  test("the agent reports progress of a long command and can cancel it", async () => {
    launch();
    const session = await gateway.session(0);
    session.send("command", command("wait", { seconds: 600 }));
    await eventually(() => expect(session.frames.some((one) => one.op === "ack" && one.data.progress !== undefined)).toBe(true));
    session.send("cancel", { commandId: ID, deadline: "2026-01-02T00:01:00.000Z" });
    await eventually(() => expect(acks(session).at(-1)).toBe("canceled"));
    expect(acks(session).slice(0, 2)).toEqual(["received", "running"]);
  });
  test("an unconfirmed result is listed in the next hello and sent again, and the command does not run again", async () => {
    gateway.polite = false;
    launch();
    const first = await gateway.session(0);
    first.send("command", command("ping"));
    await eventually(() => expect(journal.find(ID)?.status).toBe("succeeded"));
    first.cut();
    gateway.polite = true;
    gateway.reconcile = [{ commandId: ID, action: "continue" }];
    const second = await gateway.session(1);
    expect(frame(second, "hello").data.inFlight).toEqual([{ commandId: ID, status: "succeeded" }]);
    second.send("command", command("ping"));
    await eventually(() => expect(journal.unsettled()).toHaveLength(0));
    expect([acks(second)[0], executed]).toEqual(["succeeded", [ID]]);
  });
  test("a result that the gateway tells to forget is not sent again", async () => {
    journal.begin(ID, true);
    journal.finish(ID, { status: "succeeded" });
    gateway.reconcile = [{ commandId: ID, action: "forget" }];
    launch();
    const session = await gateway.session(0);
    await eventually(() => frame(session, "heartbeat"));
    expect([acks(session), journal.unsettled()]).toEqual([[], []]);
  });
  test("the agent closes a socket after two unanswered heartbeats and reconnects", async () => {
    gateway.polite = false;
    launch();
    await gateway.session(1);
    expect(gateway.sessions[0]?.frames.filter(({ op }) => op === "heartbeat")).toHaveLength(2);
  });
  test("the agent answers an unknown op or a broken frame with an error and stays ready", async () => {
    launch();
    const session = await gateway.session(0);
    session.send("dance", {});
    await eventually(() => expect(frame(session, "error").data.code).toBe("UNSUPPORTED_OP"));
    session.send("command", { command: {} });
    await eventually(() => expect(session.frames.filter(({ op }) => op === "error")).toHaveLength(2));
    expect(agent?.state).toBe("ready");
  });
  test("a stopped agent says goodbye with its reason", async () => {
    launch();
    const session = await gateway.session(0);
    await eventually(() => expect(agent?.state).toBe("ready"));
    await agent?.stop({ reason: "upgrade", expectBackSec: 60 });
    await eventually(() => expect(frame(session, "goodbye").data).toEqual({ reason: "upgrade", expectBackSec: 60 }));
  });
});

describe("refusals", () => {
  test("the gateway's answer corrects a wrong clock, and the next attempt succeeds", async () => {
    const skewMs = -3_600_000;
    gateway.refuse = (headers) =>
      Math.abs((parseTimestamp(String(headers[HEADERS.timestamp])) ?? 0) - Date.now()) > 300_000
        ? {
            status: 401,
            body: {
              success: false,
              code: "INVALID_SIGNATURE",
              error: { code: "INVALID_SIGNATURE", details: { reason: "timestamp_skew", serverTime: new Date().toISOString(), skewMs } },
            },
          }
        : null;
    launch({}, skewMs);
    await gateway.session(0);
    expect(gateway.upgrades).toHaveLength(2);
    expect(Math.abs((agent?.clockOffsetMs ?? 0) + skewMs)).toBeLessThan(5_000);
  });
  test("a machine whose clock stands at 1970 connects at its second attempt", async () => {
    gateway.refuse = (headers) => {
      const at = parseTimestamp(String(headers[HEADERS.timestamp]));
      if (at === null) return { status: 401, body: { code: "INVALID_SIGNATURE", details: { reason: "bad_timestamp" } } };
      return Math.abs(at - Date.now()) > 300_000
        ? { status: 401, body: { code: "INVALID_SIGNATURE", details: { reason: "timestamp_skew", serverTime: new Date().toISOString() } } }
        : null;
    };
    launch({}, -Date.now());
    await gateway.session(0);
    expect(gateway.upgrades).toHaveLength(2);
  });
  test("the agent waits out a Retry-After", async () => {
    const fast = createFastTime();
    const over: number[] = [];
    const after: typeof fast.after = (delayMs, run) =>
      fast.after(delayMs, () => {
        over.push(delayMs);
        run();
      });
    gateway.refuse = () =>
      gateway.upgrades.length > 1 ? null : { status: 503, headers: { "retry-after": "20" }, body: { success: false, code: "NODE_DRAINING" } };
    launch({ time: { ...fast, after } });
    await gateway.session(0);
    expect(over.filter((delayMs) => delayMs >= 20_000 && delayMs < 27_000)).toHaveLength(1);
  });
  test.each([
    [4501, "device_revoked"],
    [4504, "protocol_unsupported"],
    [4999, "a_future_reason"],
  ])("after close code %i the agent stays away while REST refuses it, and reconnects once REST answers", async (code, token) => {
    gateway.refuseRest = { status: 403, body: { code: "FORBIDDEN", details: { reason: "device_revoked" } } };
    // A halted agent asks every four to six minutes.
    launch({ time: withLongestDelay(createFastTime(), 50_000) });
    const session = await gateway.session(0);
    session.close(code, token);
    await eventually(() => expect(agent?.state).toBe("halted"));
    await eventually(() => expect(gateway.requests.length).toBeGreaterThanOrEqual(1));
    expect([alarms.length, gateway.upgrades.length]).toEqual([1, 1]);
    gateway.refuseRest = null;
    await gateway.session(1);
  });
  test("an agent whose signature is refused asks REST and reconnects once REST answers", async () => {
    gateway.refuse = () => (gateway.upgrades.length === 1 ? { status: 401, body: { code: "INVALID_SIGNATURE", details: { reason: "bad_signature" } } } : null);
    launch();
    await gateway.session(0);
    expect(gateway.requests[0]).toBe("GET /v1/devices/dev_1/commands?limit=10");
  });
});

describe("polling", () => {
  test("without a socket the agent polls commands, runs each once although it is polled again, and acknowledges over REST", async () => {
    gateway.refuse = () => ({ status: 500, body: {} });
    const { command: plain } = command("ping");
    gateway.due = [{ ...plain, delivery }];
    launch();
    await eventually(() => expect(gateway.requests.filter((line) => line.startsWith("GET")).length).toBeGreaterThanOrEqual(2));
    await eventually(() =>
      expect(
        gateway.requests
          .filter((line) => line.startsWith(`POST /v1/devices/dev_1/commands/${ID}/ack`))
          .map((line) => /"status":"(\w+)"/.exec(line)?.[1])
          .slice(0, 2),
      ).toEqual(["received", "succeeded"]),
    );
    expect(executed).toEqual([ID]);
  });
  test("a polling agent never opens a socket and sends heartbeats over REST", async () => {
    launch({ mode: "poll" });
    await eventually(() => expect(gateway.requests.some((line) => line.startsWith("POST /v1/devices/dev_1/heartbeat"))).toBe(true));
    expect([gateway.upgrades.length, agent?.state]).toEqual([0, "polling"]);
  });
  test("no two upgrades carry the same signature", async () => {
    gateway.refuse = () => ({ status: 503, headers: { "retry-after": "0" }, body: {} });
    launch();
    await eventually(() => expect(gateway.upgrades.length).toBeGreaterThanOrEqual(5));
    const signatures = gateway.upgrades.map((headers) => headers[HEADERS.signature]);
    expect(new Set(signatures).size).toBe(signatures.length);
  });
});
