// An agent that is asked to move while its session lives: the new one first, then the old one; what it owes goes along.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Agent, createAgent, createApps, createHandlers, createHttp, createMemoryJournal, createRandom, type Http } from "../../agent-sim/agent/index.ts";
import type { End } from "../../agent-sim/agent/reconnect.ts";
import { CLOSE } from "../../protocol/index.ts";
import { eventually } from "../kit/eventually.ts";
import { createFastTime } from "./clocks.ts";
import { type FakeGateway, SECRET, type Session, startFakeGateway } from "./fake-gateway.ts";

let gateway: FakeGateway;
let http: Http;
let agent: Agent;
let executed: string[];
let aways: End[];

beforeEach(async () => {
  gateway = await startFakeGateway();
  http = createHttp(gateway.url, 2);
  [executed, aways] = [[], []];
  const [time, random] = [createFastTime(100), createRandom(7)];
  agent = createAgent({
    url: gateway.url,
    http,
    time,
    random,
    journal: createMemoryJournal(Date.now),
    deviceId: "dev_1",
    identity: { agentId: "agt_1", tenantId: "ten_1", secret: SECRET },
    firstWindowMs: 0,
    handlers: createHandlers({ apps: createApps({ time, random }), time }),
    on: { executed: (id) => executed.push(id), away: (end) => aways.push(end) },
  });
  agent.start();
});
afterEach(async () => {
  await agent.stop();
  http.close();
  await gateway.close();
});

const hello = ({ frames }: Session) => frames.flatMap((one) => (one.op === "hello" ? [one.data] : []))[0];
const acksOf = ({ frames }: Session): readonly string[] => frames.flatMap((one) => (one.op === "ack" ? [`${one.data.commandId} ${one.data.status}`] : []));
const goodbyes = ({ frames }: Session) => frames.flatMap((one) => (one.op === "goodbye" ? [one.data.reason] : []));
const command = (commandId: string, type: string, payload: object = {}) => ({
  command: { commandId, type, issuedAt: "2026-01-02T00:00:00.000Z", payload, requiresAck: true },
  delivery: { attempt: 1, redelivered: false, seq: 1, lane: commandId, ackBy: "2026-01-02T00:00:20.000Z", expiresAt: null, executionTimeoutSec: 600 },
});
const drain = (handoff: boolean) => ({ reason: "shutdown", handoff, reconnectAfterMs: 0, closeAt: "2026-01-02T00:00:20.000Z" });
const refusal = { status: 503, headers: { "retry-after": "1" }, body: { success: false, code: "NODE_DRAINING" } };
const first = async (): Promise<Session> => {
  const session = await gateway.session(0);
  await eventually(() => expect(agent.state).toBe("ready"));
  return session;
};

describe("told to hand over", () => {
  test("opens a second session that names the first, and leaves the first only when the second is ready", async () => {
    let mayBeReady = false;
    const old = await first();
    gateway.ready = () => mayBeReady;
    old.send("drain", drain(true));
    const young = await gateway.session(1);
    expect([hello(young)?.handoffFrom, hello(young)?.instanceId]).toEqual(["ses_1", hello(old)?.instanceId]);
    // The first still works: what comes over it is done, and its words go out on it.
    old.send("command", command("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8A", "ping"));
    await eventually(() => expect(acksOf(old)).toContain("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8A succeeded"));
    expect([agent.state, old.closed.code]).toEqual(["ready", null]);
    mayBeReady = true;
    young.send("ready", { deviceId: "dev_1", epoch: 2, queuedCount: 0, reconcile: [] });
    await eventually(() => expect(old.closed.code).toBe(CLOSE.normal.code));
    expect([goodbyes(old), agent.state, aways]).toEqual([["handoff"], "ready", []]);
  });

  test("takes what is unsettled along: the same command runs once, and its words go out on the new session", async () => {
    const old = await first();
    gateway.polite = false;
    const item = command("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8B", "ping");
    old.send("command", item);
    await eventually(() => expect(executed).toHaveLength(1));
    old.send("drain", drain(true));
    const young = await gateway.session(1);
    expect(hello(young)?.inFlight.map(({ commandId }) => commandId)).toEqual([item.command.commandId]);
    young.send("command", item);
    gateway.polite = true;
    await eventually(() => expect(acksOf(young)).toContain(`${item.command.commandId} succeeded`));
    await eventually(() => expect(agent.unconfirmed).toBe(0));
    expect(executed).toHaveLength(1);
  });

  test("tries again while it is refused, and keeps the first session all the while", async () => {
    const old = await first();
    let refused = 0;
    gateway.refuse = () => {
      refused += 1;
      return refused <= 2 ? refusal : null;
    };
    old.send("drain", drain(true));
    const young = await gateway.session(1);
    await eventually(() => expect(old.closed.code).toBe(CLOSE.normal.code));
    expect([refused, hello(young)?.handoffFrom, aways]).toEqual([3, "ses_1", []]);
  });

  test("closed before it could: comes back as after any drain", async () => {
    const old = await first();
    gateway.refuse = () => refusal;
    old.send("drain", drain(true));
    await eventually(() => expect(gateway.upgrades.length).toBeGreaterThan(1));
    gateway.refuse = null;
    old.close(CLOSE.drain.code, CLOSE.drain.token);
    await gateway.session(1);
    await eventually(() => expect(agent.state).toBe("ready"));
    expect(aways.every((end) => end.kind === "refused" || end.code === CLOSE.drain.code)).toBe(true);
  });

  test("closed while the second opens: the second is the one", async () => {
    const old = await first();
    gateway.ready = () => false;
    old.send("drain", drain(true));
    const young = await gateway.session(1);
    old.close(CLOSE.drain.code, CLOSE.drain.token);
    await eventually(() => expect(agent.state).toBe("connecting"));
    young.send("ready", { deviceId: "dev_1", epoch: 2, queuedCount: 0, reconcile: [] });
    await eventually(() => expect(agent.state).toBe("ready"));
    expect([gateway.sessions.length, aways]).toEqual([2, []]);
  });

  test("stopped in the middle of it: both end, and nothing comes back", async () => {
    const old = await first();
    gateway.ready = () => false;
    old.send("drain", drain(true));
    const young = await gateway.session(1);
    await agent.stop();
    await eventually(() => expect([old.closed.code, young.closed.code]).toEqual([CLOSE.normal.code, CLOSE.goingAway.code]));
    expect(agent.state).toBe("stopped");
  });
});

test("told to drain without handing over, stays until it is closed", async () => {
  const old = await first();
  old.send("drain", drain(false));
  old.send("command", command("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8C", "ping"));
  await eventually(() => expect(acksOf(old)).toContain("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8C succeeded"));
  expect(gateway.sessions).toHaveLength(1);
  old.close(CLOSE.drain.code, CLOSE.drain.token);
  await gateway.session(1);
});

test("a shorter interval holds at once, also for the beat that was planned for later", async () => {
  gateway.welcome = { heartbeat: { intervalSec: 300, jitterPct: 0 } };
  const session = await first();
  const beats = () => session.frames.filter(({ op }) => op === "heartbeat").length;
  await eventually(() => expect(beats()).toBe(1));
  const sentAt = performance.now();
  session.send("config", { heartbeat: { intervalSec: 2, jitterPct: 0 } });
  await eventually(() => expect(beats()).toBeGreaterThanOrEqual(3));
  // A second lasts ten milliseconds here: the old interval would have been three real seconds.
  expect(performance.now() - sentAt).toBeLessThan(2_000);
});
