// A handoff: the agent opens the new session before it leaves the old one, and takes its unsettled commands along.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Agent } from "../../agent-sim/agent/index.ts";
import type { SessionEnd } from "../../agent-sim/agent/reconnect.ts";
import { CLOSE } from "../../protocol/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import type { FakeGateway, FakeSession } from "./fake-gateway.ts";
import { type AgentFixture, openAgentFixture } from "./fixture.ts";

let fixture: AgentFixture;
let gateway: FakeGateway;
let agent: Agent;
let executed: string[];
let aways: SessionEnd[];

beforeEach(async () => {
  fixture = await openAgentFixture();
  ({ gateway, executed } = fixture);
  aways = [];
  agent = fixture.launch({ on: { away: (end) => aways.push(end) } });
});
afterEach(() => fixture.close());

const hello = ({ frames }: FakeSession) => frames.flatMap((one) => (one.op === "hello" ? [one.data] : []))[0];
const acksOf = ({ frames }: FakeSession): readonly string[] => frames.flatMap((one) => (one.op === "ack" ? [`${one.data.commandId} ${one.data.status}`] : []));
const goodbyes = ({ frames }: FakeSession) => frames.flatMap((one) => (one.op === "goodbye" ? [one.data.reason] : []));
const command = (commandId: string, type: string, payload: object = {}) => ({
  command: { commandId, type, issuedAt: "2026-01-02T00:00:00.000Z", payload, requiresAck: true },
  delivery: { attempt: 1, redelivered: false, seq: 1, lane: commandId, ackBy: "2026-01-02T00:00:20.000Z", expiresAt: null, executionTimeoutSec: 600 },
});
const drain = (handoff: boolean) => ({ reason: "shutdown", handoff, reconnectAfterMs: 0, closeAt: "2026-01-02T00:00:20.000Z" });
const refusal = { status: 503, headers: { "retry-after": "1" }, body: { success: false, code: "NODE_DRAINING" } };
const first = async (): Promise<FakeSession> => {
  const session = await gateway.session(0);
  await eventually(() => expect(agent.state).toBe("ready"));
  return session;
};

describe("handoff", () => {
  test("the agent opens a second session that names the first, and leaves the first only once the second is ready", async () => {
    let mayBeReady = false;
    const old = await first();
    gateway.ready = () => mayBeReady;
    old.send("drain", drain(true));
    const young = await gateway.session(1);
    expect([hello(young)?.handoffFrom, hello(young)?.instanceId]).toEqual(["ses_1", hello(old)?.instanceId]);
    // The first session still works: the agent runs its commands and acknowledges them on it.
    old.send("command", command("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8A", "ping"));
    await eventually(() => expect(acksOf(old)).toContain("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8A succeeded"));
    expect([agent.state, old.closed.code]).toEqual(["ready", null]);
    mayBeReady = true;
    young.send("ready", { deviceId: "dev_1", epoch: 2, queuedCount: 0, reconcile: [] });
    await eventually(() => expect(old.closed.code).toBe(CLOSE.normal.code));
    expect([goodbyes(old), agent.state, aways]).toEqual([["handoff"], "ready", []]);
  });

  test("an unsettled command moves along: it runs once, and its acks go out on the new session", async () => {
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

  test("an agent that is refused tries again and keeps its first session meanwhile", async () => {
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

  test("an agent whose session closes before the handoff reconnects as after any drain", async () => {
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

  test("if the first session closes while the second opens, the agent continues with the second", async () => {
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

  test("an agent that stops during a handoff closes both sessions and opens no other", async () => {
    const old = await first();
    gateway.ready = () => false;
    old.send("drain", drain(true));
    const young = await gateway.session(1);
    await agent.stop();
    await eventually(() => expect([old.closed.code, young.closed.code]).toEqual([CLOSE.normal.code, CLOSE.goingAway.code]));
    expect(agent.state).toBe("stopped");
  });
});

test("on a drain without handoff the agent works on until the gateway closes its session", async () => {
  const old = await first();
  old.send("drain", drain(false));
  old.send("command", command("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8C", "ping"));
  await eventually(() => expect(acksOf(old)).toContain("cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8C succeeded"));
  expect(gateway.sessions).toHaveLength(1);
  old.close(CLOSE.drain.code, CLOSE.drain.token);
  await gateway.session(1);
});

test("a shorter heartbeat interval applies at once, even to the heartbeat that is already planned", async () => {
  gateway.welcome = { heartbeat: { intervalSec: 3_600, jitterPct: 0 } };
  const session = await first();
  const beats = () => session.frames.filter(({ op }) => op === "heartbeat").length;
  await eventually(() => expect(beats()).toBe(1));
  session.send("config", { heartbeat: { intervalSec: 2, jitterPct: 0 } });
  // A second lasts ten milliseconds here, so the old interval would take 36 real seconds, longer than this waits.
  await eventually(() => expect(beats()).toBeGreaterThanOrEqual(3));
});
