// Draining a node moves its agents to other nodes in time; no device goes offline and no command is delivered twice because of it.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { channelSettings } from "../../server/gateway/channel/settings.ts";
import { drainWindowMs } from "../../server/gateway/channel/socket-drain.ts";
import { openMemoryBus, openMemorySessionOwners } from "../../server/platform/cluster/bus-memory.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { createTestDatabase } from "../kit/stores/database.ts";
import { attempt, connect, greet, type NodeOptions, online, startNode, type TestDevice, type TestNode } from "./harness.ts";

const HANDOFF = { capabilities: ["journal.v1", "handoff.v1"] };
const SHORT = { drainWindowMs: 300, drainWindowMaxMs: 600, handoffMs: 3_000 };
const together = { connections: 0, liveNodes: 2 };

describe("the drain window", () => {
  const settings = channelSettings();
  test.each([
    [{ connections: 0, others: 2 }, 0],
    [{ connections: 10, others: 2 }, 10_000],
    [{ connections: 4_000, others: 2 }, 20_000],
    [{ connections: 4_000, others: 1 }, 40_000],
    [{ connections: 1_000_000, others: 3 }, 120_000],
    [{ connections: 4_000, others: 0 }, 1_000],
  ])("for %j is %i ms", (load, ms) => expect(drainWindowMs(load, settings)).toBe(ms));
});

let base: Pick<NodeOptions, "databaseUrl" | "bus" | "owners" | "tenants">;
let stays: TestNode;
beforeAll(async () => {
  base = { databaseUrl: await createTestDatabase(), bus: openMemoryBus(), owners: openMemorySessionOwners(), tenants: new Map() };
  stays = await startNode(base);
});
afterAll(() => stays.close());

const leaver = (settings: NodeOptions["settings"] = {}, cluster = together): Promise<TestNode> =>
  startNode({ ...base, cluster: () => cluster, settings: { ...SHORT, ...settings } });
const eventsOf = async ({ deviceId }: TestDevice, type: string): Promise<number> =>
  (await stays.db.query("select 1 from outbox_events where subject_id = $1 and type = $2", [deviceId, type])).length;
const sweep = async (): Promise<void> => {
  await stays.devices.jobs.find(({ name }) => name === "devices.offline")?.run(new AbortController().signal);
};

/** Connects to the node; returns the session id too. */
const enter = async (node: TestNode, device: TestDevice, hello: object) => {
  const socket = await connect(node, device);
  const welcome = await socket.next("welcome");
  socket.frames.unshift(welcome);
  await greet(node, socket, device, hello);
  return { socket, sessionId: welcome.data.sessionId };
};

describe("with another node", () => {
  test("an agent with handoff.v1 hands over: it is never offline, its old socket closes with 1000, and no command is delivered twice", async () => {
    const node = await leaver();
    const device = await node.device();
    const { socket, sessionId } = await enter(node, device, HANDOFF);
    const before = await node.queue(device);
    expect((await socket.next("command")).data.command.commandId).toBe(before);
    const beforeMs = Date.now();
    const left = node.channel.drainSockets();
    const { data } = await socket.next("drain");
    expect(data).toMatchObject({ handoff: true, reconnectAfterMs: 0 });
    expect(Date.parse(data.closeAt)).toBeGreaterThanOrEqual(beforeMs + SHORT.handoffMs);
    // Queued during the handoff, so the old session must not get it.
    const between = await node.queue(device);
    const young = (await enter(stays, device, { ...HANDOFF, handoffFrom: sessionId, inFlight: [{ commandId: before, status: "running" }] })).socket;
    expect((await young.next("command")).data.command.commandId).toBe(between);
    expect((await socket.closed()).code).toBe(1000);
    await left;
    await stays.db.query("update device_presence set offline_after = least(offline_after, now() + interval '60 s') where device_id = $1", [device.deviceId]);
    await sweep();
    expect([await eventsOf(device, "device.online"), await eventsOf(device, "device.offline")]).toEqual([1, 0]);
    await stays.commands.writeSent();
    const rows = await stays.db.query<{ attempt: number }>("select attempt from commands_now where device_id = $1", [device.deviceId]);
    expect(rows.map(({ attempt: times }) => times)).toEqual([1, 1]);
    young.end();
    await node.close();
  });

  test("acks over the old socket count while the new one opens", async () => {
    const node = await leaver();
    const device = await node.device();
    const { socket } = await enter(node, device, HANDOFF);
    const commandId = await node.queue(device);
    await socket.next("command");
    const left = node.channel.drainSockets();
    await socket.next("drain");
    socket.say("ack", { commandId, status: "succeeded" });
    expect((await socket.next("ack_ok")).data).toMatchObject({ commandId, result: "applied" });
    socket.say("goodbye", { reason: "handoff" });
    socket.end();
    await left;
    await node.close();
  });

  test("an agent that does not hand over in time is closed with 1012 and keeps its presence", async () => {
    const node = await leaver({ handoffMs: 200 });
    const device = await node.device();
    const { socket } = await enter(node, device, HANDOFF);
    await node.channel.drainSockets();
    expect(await socket.closed()).toEqual({ code: 1012, reason: expect.stringMatching(/^drain;ra=\d+$/) });
    await node.close();
    await sweep();
    expect(await stays.devices.find(device, device.deviceId)).toMatchObject({ status: "online", connection: { connectivity: "realtime" } });
  });

  test("an agent without handoff.v1 is closed with 1012 and told when to come back", async () => {
    const node = await leaver();
    const { socket } = await enter(node, await node.device(), { capabilities: ["journal.v1"] });
    const left = node.channel.drainSockets();
    expect((await socket.next("drain")).data).toMatchObject({ handoff: false, reconnectAfterMs: expect.any(Number) });
    expect(await socket.closed()).toEqual({ code: 1012, reason: expect.stringMatching(/^drain;ra=\d+$/) });
    await left;
    await node.close();
  });

  test("agents are sent away over the window in random order, and the drain ends once all have gone", async () => {
    const node = await leaver({ drainWindowMs: 60_000, drainWindowMaxMs: 60_000, handoffMs: 20_000 });
    const tenantId = await node.tenant();
    const told: number[] = [];
    const entered = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const { socket } = await enter(node, await node.device(tenantId), {});
        socket.socket.once("close", () => told.push(index));
        return socket;
      }),
    );
    const drained = node.channel.drainSockets();
    await eventually(() => expect(told).not.toEqual([]));
    expect(told.length).toBeLessThan(20);
    node.clock.advance(30_000);
    await eventually(() => expect(told.length).toBeGreaterThanOrEqual(20));
    expect(told.length).toBeLessThan(40);
    node.clock.advance(30_000);
    await drained;
    await Promise.all(entered.map((socket) => socket.closed()));
    expect(told).not.toEqual([...told].sort((a, b) => a - b));
    await node.close();
  });

  test("upgrades are refused meanwhile, with a retry within five seconds", async () => {
    const node = await leaver();
    const device = await node.device();
    node.channel.refuseUpgrades();
    const refused = await attempt(node, device);
    if (!("status" in refused)) throw new Error("a draining node took an agent in");
    expect(refused).toMatchObject({ status: 503, body: { code: "NODE_DRAINING", retryable: true } });
    const seconds = Number(refused.headers["retry-after"]);
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(5);
    await node.close();
  });
});

test("a node without other nodes asks no agent to hand over", async () => {
  const node = await leaver({ handoffMs: 60_000 }, { connections: 1, liveNodes: 1 });
  const socket = await online(node, await node.device(), HANDOFF);
  await withTimeout(node.close(), 20_000, "the node did not close");
  expect((await socket.next("drain")).data.handoff).toBe(false);
  expect((await socket.closed()).code).toBe(1012);
});
