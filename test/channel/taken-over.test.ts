// A session that another one has taken over ends with 1000, whatever else would have closed it in that moment: whoever is told to come back
// would push its own newer session out.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PubSub } from "../../server/core/pub-sub.ts";
import { openMemoryBus, openMemorySessionOwners } from "../../server/platform/bus-memory.ts";
import { createTestDatabase } from "../kit/database.ts";
import { eventually } from "../kit/eventually.ts";
import { type AgentSocket, connect, greet, type NodeOptions, startNode, type TestDevice, type TestNode } from "./harness.ts";

const HANDOFF = { capabilities: ["journal.v1", "inflight.v1", "handoff.v1"] };
const QUICK = { drainWindowMs: 100, drainWindowMaxMs: 200, handoffMs: 400 };
const together = { connections: 0, liveNodes: 2 };

/** A bus on which evictions get lost, or wait until they are let go. */
const createDeafBus = () => {
  const bus = openMemoryBus();
  const held: (() => unknown)[] = [];
  const state: { evictions: "pass" | "hold" | "lose" } = { evictions: "pass" };
  const publish: PubSub["publish"] = async (channel, message) => {
    if (message["op"] !== "evict" || state.evictions === "pass") return bus.publish(channel, message);
    if (state.evictions === "hold") held.push(() => bus.publish(channel, message));
    return true;
  };
  const letGo = async (): Promise<void> => void (await Promise.all(held.splice(0).map((send) => send())));
  return { bus: { ...bus, publish }, state, letGo };
};

let hall: ReturnType<typeof createDeafBus>;
let base: Pick<NodeOptions, "databaseUrl" | "bus" | "owners" | "tenants">;
let stays: TestNode;
beforeAll(async () => {
  hall = createDeafBus();
  base = { databaseUrl: await createTestDatabase(), bus: hall.bus, owners: openMemorySessionOwners(), tenants: new Map() };
  stays = await startNode(base);
});
afterAll(() => stays.close());

const leaver = (settings: NodeOptions["settings"] = {}): Promise<TestNode> =>
  startNode({ ...base, cluster: () => together, settings: { ...QUICK, ...settings } });

const enter = async (node: TestNode, device: TestDevice, hello: object = {}) => {
  const socket = await connect(node, device);
  const welcome = await socket.next("welcome");
  socket.frames.unshift(welcome);
  await greet(node, socket, device, { ...HANDOFF, ...hello });
  return { socket, sessionId: welcome.data.sessionId };
};
const codeOf = async (socket: AgentSocket): Promise<number> => (await socket.closed()).code;

describe("by a handoff, while its node leaves", () => {
  test.each(["pass", "hold", "lose"] as const)("when the agent has said goodbye and evictions %s", async (evictions) => {
    hall.state.evictions = evictions;
    const node = await leaver();
    const device = await node.device();
    const { socket, sessionId } = await enter(node, device);
    const left = node.channel.drainSockets();
    await socket.next("drain");
    const young = await enter(stays, device, { handoffFrom: sessionId });
    socket.say("goodbye", { reason: "handoff" });
    await left;
    expect(await codeOf(socket)).toBe(1000);
    await hall.letGo();
    expect(young.socket.isOpen()).toBe(true);
    young.socket.end();
    await node.close();
  });

  test.each(["pass", "hold", "lose"] as const)("when the agent says nothing, its time runs out and evictions %s", async (evictions) => {
    hall.state.evictions = evictions;
    const node = await leaver();
    const device = await node.device();
    const { socket, sessionId } = await enter(node, device);
    const left = node.channel.drainSockets();
    await socket.next("drain");
    const young = await enter(stays, device, { handoffFrom: sessionId });
    await left;
    expect(await codeOf(socket)).toBe(1000);
    await hall.letGo();
    young.socket.end();
    await node.close();
  });

  test("when only the clock of its node closes it, and the eviction is lost", async () => {
    hall.state.evictions = "lose";
    const node = await leaver({ handoffMs: 60_000, tickMs: 3_600_000 });
    const device = await node.device();
    const { socket, sessionId } = await enter(node, device);
    const left = node.channel.drainSockets();
    await socket.next("drain");
    const young = await enter(stays, device, { handoffFrom: sessionId });
    node.clock.advance(60_000);
    node.channel.tick();
    expect(await codeOf(socket)).toBe(1000);
    young.socket.end();
    await left;
    await node.close();
  });

  test("when hello and close meet in the database, whoever comes first there: closed with 1012, it has not been taken over", async () => {
    hall.state.evictions = "lose";
    const outcomes = new Set<string>();
    for (const first of ["hello", "close", "hello", "close"] as const) {
      const node = await leaver({ handoffMs: 60_000, tickMs: 3_600_000 });
      const device = await node.device();
      const { socket, sessionId } = await enter(node, device);
      const left = node.channel.drainSockets();
      await socket.next("drain");
      const waiting = async (count: number): Promise<void> =>
        eventually(async () => {
          const [row] = await stays.db.query<{ count: number }>(
            "select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
          );
          expect(row?.count).toBe(count);
        });
      const close = (): void => {
        node.clock.advance(60_000);
        node.channel.tick();
      };
      const opened = await connect(stays, device);
      let young: Promise<unknown> = Promise.resolve();
      const hello = (): void => {
        young = greet(stays, opened, device, { ...HANDOFF, handoffFrom: sessionId });
      };
      const order = first === "hello" ? [hello, close] : [close, hello];
      // Both wait for the row of presence, in this order.
      await stays.db.sqlTx(async (tx) => {
        await tx.query("select 1 from device_presence where device_id = $1 for update", [device.deviceId]);
        for (const [index, step] of order.entries()) {
          step();
          await waiting(index + 1);
        }
      });
      const code = await codeOf(socket);
      await young;
      const [row] = await stays.db.query<{ handed: boolean }>("select handed_from = $2 as handed from device_presence where device_id = $1", [
        device.deviceId,
        sessionId,
      ]);
      outcomes.add(`${first} first: ${code} ${row?.handed ?? false}`);
      opened.end();
      await left;
      await node.close();
    }
    expect([...outcomes].sort()).toEqual(["close first: 1012 false", "hello first: 1000 true"]);
  });

  test("when its time has run out, no later session takes it over, whatever name it gives", async () => {
    hall.state.evictions = "pass";
    const node = await leaver();
    for (const nameOf of [(name: string) => name, () => ""]) {
      const device = await stays.device();
      const { sessionId, socket } = await enter(stays, device);
      await stays.db.query("update device_presence set session_id = '' where device_id = $1", [device.deviceId]);
      const young = await enter(node, device, { handoffFrom: nameOf(sessionId) });
      const [row] = await stays.db.query("select handed_from from device_presence where device_id = $1", [device.deviceId]);
      expect(row).toEqual({ handed_from: null });
      expect(await codeOf(socket)).toBe(4009);
      young.socket.end();
    }
    await node.close();
  });

  test("eight agents that hand over each at another moment of the drain all end with 1000", async () => {
    hall.state.evictions = "hold";
    const node = await leaver({ handoffMs: 2_000 });
    const agents = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const device = await node.device();
        return { device, ...(await enter(node, device)) };
      }),
    );
    const left = node.channel.drainSockets();
    const moved = await Promise.all(
      agents.map(async ({ device, socket, sessionId }, index) => {
        await socket.next("drain");
        const young = await enter(stays, device, { handoffFrom: sessionId });
        if (index % 2 === 0) socket.say("goodbye", { reason: "handoff" });
        if (index % 4 === 1) await hall.letGo();
        return young.socket;
      }),
    );
    await left;
    expect(await Promise.all(agents.map(({ socket }) => codeOf(socket)))).toEqual(agents.map(() => 1000));
    for (const socket of moved) socket.end();
    await hall.letGo();
    await node.close();
  });
});

describe("by a handoff, while its node stays", () => {
  test("on another node, with the eviction lost", async () => {
    hall.state.evictions = "lose";
    const node = await leaver();
    const device = await node.device();
    const { socket, sessionId } = await enter(node, device);
    const young = await enter(stays, device, { handoffFrom: sessionId });
    await node.channel.flush();
    node.clock.advance(5_000);
    await node.channel.flush();
    expect(await codeOf(socket)).toBe(1000);
    young.socket.end();
    await node.close();
  });

  test("on another node, in the moment in which its age ends it", async () => {
    hall.state.evictions = "lose";
    const node = await leaver({ silenceMs: 1e9, tickMs: 3_600_000 });
    const device = await node.device();
    const { socket, sessionId } = await enter(node, device);
    const young = await enter(stays, device, { handoffFrom: sessionId });
    node.clock.advance(86_400_000 * 1.1 + 1);
    node.channel.tick();
    expect(await codeOf(socket)).toBe(1000);
    young.socket.end();
    await node.close();
  });

  test("on the same node", async () => {
    hall.state.evictions = "pass";
    const device = await stays.device();
    const { socket, sessionId } = await enter(stays, device);
    const young = await enter(stays, device, { handoffFrom: sessionId });
    socket.say("goodbye", { reason: "handoff" });
    expect(await codeOf(socket)).toBe(1000);
    young.socket.end();
  });
});
