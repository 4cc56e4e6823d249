// The whole agent against a small gateway: proof, work, silence, refusals, polling. A second lasts ten milliseconds here.
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
  type Journal,
} from "../../agent-sim/agent/index.ts";
import type { AgentFrame } from "../../protocol/index.ts";
import { HEADERS, parseTimestamp, verify } from "../../protocol/index.ts";
import { eventually } from "../kit/eventually.ts";
import { createFastTime } from "./clocks.ts";
import { type FakeGateway, SECRET, type Session, startFakeGateway } from "./fake-gateway.ts";

let gateway: FakeGateway;
let http: Http;
let agent: Agent | null = null;
let journal: Journal;
let alarms: string[];
let executed: string[];

beforeEach(async () => {
  gateway = await startFakeGateway();
  http = createHttp(gateway.url, 2);
  journal = createMemoryJournal(Date.now);
  [alarms, executed] = [[], []];
});
afterEach(async () => {
  await agent?.stop();
  http.close();
  await gateway.close();
});

const launch = (differences: Partial<AgentOptions> = {}, skewMs = 0): Agent => {
  const time = createFastTime(100, skewMs);
  const random = createRandom(7);
  agent = createAgent({
    url: gateway.url,
    http,
    time,
    random,
    journal,
    deviceId: "dev_1",
    identity: { agentId: "agt_1", tenantId: "ten_1", secret: SECRET },
    firstWindowMs: 0,
    handlers: createHandlers({ apps: createApps({ time, random }), time }),
    on: { alarm: (text) => alarms.push(text), executed: (id) => executed.push(id) },
    ...differences,
  });
  agent.start();
  return agent;
};
const ID = "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const delivery = { attempt: 1, redelivered: false, seq: 1, lane: "l", ackBy: "2026-01-02T00:00:20.000Z", expiresAt: null, executionTimeoutSec: 600 };
const command = (type: string, payload: unknown = {}) => ({
  command: { commandId: ID, type, issuedAt: "2026-01-02T00:00:00.000Z", payload, requiresAck: true },
  delivery,
});
const acks = ({ frames }: Session): readonly string[] => frames.flatMap((frame) => (frame.op === "ack" ? [frame.data.status] : []));
const frame = <Op extends AgentFrame["op"]>({ frames }: Session, op: Op): Extract<AgentFrame, { op: Op }> => {
  const found = frames.find((one): one is Extract<AgentFrame, { op: Op }> => one.op === op);
  if (!found) throw new Error(`no ${op} yet`);
  return found;
};

describe("on a socket", () => {
  test("the upgrade is signed over the timestamp alone and the nonce is proven", async () => {
    launch();
    const session = await gateway.session(0);
    const headers = gateway.upgrades[0] ?? {};
    expect(verify(SECRET, "", String(headers[HEADERS.timestamp]), String(headers[HEADERS.signature]))).toBe(true);
    expect(frame(session, "hello").data).toMatchObject({ capabilities: ["journal.v1", "inflight.v1", "cancel.v1", "progress.v1", "handoff.v1"], inFlight: [] });
    await eventually(() => expect(agent?.state).toBe("ready"));
  });
  test("a command is acknowledged, run and its result told; frames are numbered", async () => {
    launch();
    const session = await gateway.session(0);
    session.send("command", command("echo", { text: "naïve ✓" }));
    await eventually(() => expect(acks(session)).toEqual(["received", "succeeded"]));
    const last = session.frames.filter(({ op }) => op === "ack").at(-1);
    expect(last?.data).toMatchObject({ commandId: ID, output: { text: "naïve ✓" } });
    expect(session.frames.map(({ id }) => Number(id))).toEqual(session.frames.map((_, n) => n + 1));
    await eventually(() => expect(journal.unsettled()).toHaveLength(0));
  });
  test("a long command reports running and progress, and can be canceled", async () => {
    launch();
    const session = await gateway.session(0);
    session.send("command", command("wait", { seconds: 600 }));
    await eventually(() => expect(session.frames.some((one) => one.op === "ack" && one.data.progress !== undefined)).toBe(true));
    session.send("cancel", { commandId: ID, deadline: "2026-01-02T00:01:00.000Z" });
    await eventually(() => expect(acks(session).at(-1)).toBe("canceled"));
    expect(acks(session).slice(0, 2)).toEqual(["received", "running"]);
  });
  test("a result that nobody confirmed is sent again on the next connection, listed in hello, and not run again", async () => {
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
  test("what the gateway says to forget is not sent again", async () => {
    journal.begin(ID, true);
    journal.finish(ID, { status: "succeeded" });
    gateway.reconcile = [{ commandId: ID, action: "forget" }];
    launch();
    const session = await gateway.session(0);
    await eventually(() => frame(session, "heartbeat"));
    expect([acks(session), journal.unsettled()]).toEqual([[], []]);
  });
  test("heartbeats without an answer end the socket from this side, and the agent comes back", async () => {
    gateway.polite = false;
    launch();
    await gateway.session(1);
    expect(gateway.sessions[0]?.frames.filter(({ op }) => op === "heartbeat")).toHaveLength(2);
  });
  test("an unknown op is answered by name and a broken frame does no harm", async () => {
    launch();
    const session = await gateway.session(0);
    session.send("dance", {});
    await eventually(() => expect(frame(session, "error").data.code).toBe("UNSUPPORTED_OP"));
    session.send("command", { command: {} });
    await eventually(() => expect(session.frames.filter(({ op }) => op === "error")).toHaveLength(2));
    expect(agent?.state).toBe("ready");
  });
  test("stopping says goodbye and closes", async () => {
    launch();
    const session = await gateway.session(0);
    await eventually(() => expect(agent?.state).toBe("ready"));
    await agent?.stop({ reason: "upgrade", expectBackSec: 60 });
    await eventually(() => expect(frame(session, "goodbye").data).toEqual({ reason: "upgrade", expectBackSec: 60 }));
  });
});

describe("when it is refused", () => {
  test("a wrong clock is corrected by the gateway's answer and the next try is in time", async () => {
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
  test("a machine whose clock stands at 1970 signs with a time that has the right form, is told the right one and connects", async () => {
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
  test("Retry-After is waited out", async () => {
    const at: number[] = [];
    gateway.refuse = () =>
      at.push(performance.now()) > 1 ? null : { status: 503, headers: { "retry-after": "20" }, body: { success: false, code: "NODE_DRAINING" } };
    launch();
    await gateway.session(0);
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(199);
  });
  test.each([
    [4501, "device_revoked"],
    [4504, "protocol_unsupported"],
    [4999, "a_word_of_tomorrow"],
  ])("after %i it stays away while REST refuses it, and comes back once it is answered", async (code, token) => {
    gateway.refuseRest = { status: 403, body: { code: "FORBIDDEN", details: { reason: "device_revoked" } } };
    launch();
    const session = await gateway.session(0);
    session.close(code, token);
    await eventually(() => expect(agent?.state).toBe("halted"));
    await eventually(() => expect(gateway.requests).toHaveLength(1));
    expect([alarms.length, gateway.upgrades.length]).toEqual([1, 1]);
    gateway.refuseRest = null;
    await gateway.session(1);
  });
  test("an agent that is not believed asks REST, and connects again once it is answered", async () => {
    gateway.refuse = () => (gateway.upgrades.length === 1 ? { status: 401, body: { code: "INVALID_SIGNATURE", details: { reason: "bad_signature" } } } : null);
    launch();
    await gateway.session(0);
    expect(gateway.requests[0]).toBe("GET /v1/devices/dev_1/commands?limit=10");
  });
});

describe("without a socket", () => {
  test("due commands are polled, run once though they come again, and acknowledged by REST", async () => {
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
  test("an agent that only polls never asks for a socket and beats by REST", async () => {
    launch({ mode: "poll" });
    await eventually(() => expect(gateway.requests.some((line) => line.startsWith("POST /v1/devices/dev_1/heartbeat"))).toBe(true));
    expect([gateway.upgrades.length, agent?.state]).toEqual([0, "polling"]);
  });
  test("no two requests carry the same signature", async () => {
    gateway.refuse = () => ({ status: 503, headers: { "retry-after": "0" }, body: {} });
    launch();
    await eventually(() => expect(gateway.upgrades.length).toBeGreaterThanOrEqual(5));
    const signatures = gateway.upgrades.map((headers) => headers[HEADERS.signature]);
    expect(new Set(signatures).size).toBe(signatures.length);
  });
});
