// A session that another one has taken over always ends with 1000, whatever else would close it at that moment: an agent that is told to come back
// would push out its own newer session.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PubSub } from "../../../server/core/ports/pub-sub.ts";
import { openMemoryBus, openMemorySessionOwners } from "../../../server/platform/cluster/bus-memory.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";
import { type AgentSocket, connect, greet, type NodeOptions, startNode, type TestDevice, type TestNode } from "../harness.ts";

const HANDOFF = { capabilities: ["journal.v1", "inflight.v1", "handoff.v1"] };
const QUICK = { drainWindowMs: 100, drainWindowMaxMs: 200, handoffMs: 400 };
/** Only the test's own ticks close a session. */
const BY_HAND = { handoffMs: 60_000, tickMs: 3_600_000 };
const CLUSTER = { connections: 0, liveNodes: 2 };

type Evictions = "pass" | "hold" | "lose";
/** A bus that passes evictions on, loses them, or holds them until `release`. */
const createEvictionBus = () => {
  const bus = openMemoryBus();
  const held: (() => unknown)[] = [];
  const state: { evictions: Evictions } = { evictions: "pass" };
  const publish: PubSub["publish"] = async (channel, message) => {
    if (message["op"] !== "evict" || state.evictions === "pass") return bus.publish(channel, message);
    if (state.evictions === "hold") held.push(() => bus.publish(channel, message));
    return true;
  };
  const release = async (): Promise<void> => void (await Promise.all(held.splice(0).map((send) => send())));
  return { bus: { ...bus, publish }, state, release };
};

const evictions = createEvictionBus();
let base: Pick<NodeOptions, "databaseUrl" | "bus" | "owners" | "tenants">;
let stays: TestNode;
beforeAll(async () => {
  base = { databaseUrl: await createTestDatabase(), bus: evictions.bus, owners: openMemorySessionOwners(), tenants: new Map() };
  stays = await startNode(base);
});
afterAll(() => stays.close());

const startLeaver = (settings: NodeOptions["settings"] = {}): Promise<TestNode> =>
  startNode({ ...base, cluster: () => CLUSTER, settings: { ...QUICK, ...settings } });

const enter = async (node: TestNode, device: TestDevice, hello: object = {}) => {
  const socket = await connect(node, device);
  const welcome = await socket.next("welcome");
  socket.frames.unshift(welcome);
  await greet(node, socket, device, { ...HANDOFF, ...hello });
  return { socket, sessionId: welcome.data.sessionId };
};
const codeOf = async (socket: AgentSocket): Promise<number> => (await socket.closed()).code;

/** An agent on a node of its own; `takeOver` opens its next session on the node that stays. */
const onLeaver = async (state: Evictions, settings: NodeOptions["settings"] = {}) => {
  evictions.state.evictions = state;
  const node = await startLeaver(settings);
  const device = await node.device();
  const old = await enter(node, device);
  return { node, device, ...old, takeOver: async () => (await enter(stays, device, { handoffFrom: old.sessionId })).socket };
};

/** The same while the node drains and has told the agent. */
const onDrainingNode = async (state: Evictions, settings: NodeOptions["settings"] = {}) => {
  const agent = await onLeaver(state, settings);
  const drained = agent.node.channel.drainSockets();
  await agent.socket.next("drain");
  return { ...agent, drained };
};

describe("a session that is taken over while its node drains ends with 1000", () => {
  test.each(["pass", "hold", "lose"] as const)("after a goodbye, whether evictions pass, wait or get lost: %s", async (state) => {
    const { node, socket, takeOver, drained } = await onDrainingNode(state);
    const next = await takeOver();
    socket.say("goodbye", { reason: "handoff" });
    await drained;
    expect(await codeOf(socket)).toBe(1000);
    await evictions.release();
    expect(next.isOpen()).toBe(true);
    next.end();
    await node.close();
  });

  test.each(["pass", "hold", "lose"] as const)("without a goodbye when its time runs out, whether evictions pass, wait or get lost: %s", async (state) => {
    const { node, socket, takeOver, drained } = await onDrainingNode(state);
    const next = await takeOver();
    await drained;
    expect(await codeOf(socket)).toBe(1000);
    await evictions.release();
    next.end();
    await node.close();
  });

  test("when only a tick of its node closes it and the eviction is lost", async () => {
    const { node, socket, takeOver, drained } = await onDrainingNode("lose", BY_HAND);
    const next = await takeOver();
    node.clock.advance(BY_HAND.handoffMs);
    node.channel.tick();
    expect(await codeOf(socket)).toBe(1000);
    next.end();
    await drained;
    await node.close();
  });

  test("if the hello reaches the database before the close; otherwise it ends with 1012 and nothing was handed over", async () => {
    const outcomes = new Set<string>();
    for (const first of ["hello", "close", "hello", "close"] as const) {
      const { node, device, socket, sessionId, drained } = await onDrainingNode("lose", BY_HAND);
      const waiting = async (count: number): Promise<void> =>
        eventually(async () => {
          const [row] = await stays.db.query<{ count: number }>(
            "select count(*)::int as count from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
          );
          expect(row?.count).toBe(count);
        });
      const close = (): void => {
        node.clock.advance(BY_HAND.handoffMs);
        node.channel.tick();
      };
      const opened = await connect(stays, device);
      let next: Promise<unknown> = Promise.resolve();
      const hello = (): void => {
        next = greet(stays, opened, device, { ...HANDOFF, handoffFrom: sessionId });
      };
      const order = first === "hello" ? [hello, close] : [close, hello];
      // Both wait for the lock on the presence row, in this order.
      await stays.db.sqlTx(async (tx) => {
        await tx.query("select 1 from device_presence where device_id = $1 for update", [device.deviceId]);
        for (const [index, step] of order.entries()) {
          step();
          await waiting(index + 1);
        }
      });
      const code = await codeOf(socket);
      await next;
      const [row] = await stays.db.query<{ handed: boolean }>("select handed_from = $2 as handed from device_presence where device_id = $1", [
        device.deviceId,
        sessionId,
      ]);
      outcomes.add(`${first} first: ${code} ${row?.handed ?? false}`);
      opened.end();
      await drained;
      await node.close();
    }
    expect([...outcomes].sort()).toEqual(["close first: 1012 false", "hello first: 1000 true"]);
  });

  test("for each of eight agents that hand over at different moments of the drain", async () => {
    evictions.state.evictions = "hold";
    const node = await startLeaver({ handoffMs: 2_000 });
    const agents = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const device = await node.device();
        return { device, ...(await enter(node, device)) };
      }),
    );
    const drained = node.channel.drainSockets();
    const moved = await Promise.all(
      agents.map(async ({ device, socket, sessionId }, index) => {
        await socket.next("drain");
        const next = await enter(stays, device, { handoffFrom: sessionId });
        if (index % 2 === 0) socket.say("goodbye", { reason: "handoff" });
        if (index % 4 === 1) await evictions.release();
        return next.socket;
      }),
    );
    await drained;
    expect(await Promise.all(agents.map(({ socket }) => codeOf(socket)))).toEqual(agents.map(() => 1000));
    for (const socket of moved) socket.end();
    await evictions.release();
    await node.close();
  });
});

test("a released session cannot be taken over by any later hello, whatever session that names", async () => {
  evictions.state.evictions = "pass";
  const node = await startLeaver();
  for (const nameOf of [(name: string) => name, () => ""]) {
    const device = await stays.device();
    const { sessionId, socket } = await enter(stays, device);
    await stays.db.query("update device_presence set session_id = '' where device_id = $1", [device.deviceId]);
    const next = await enter(node, device, { handoffFrom: nameOf(sessionId) });
    const [row] = await stays.db.query("select handed_from from device_presence where device_id = $1", [device.deviceId]);
    expect(row).toEqual({ handed_from: null });
    expect(await codeOf(socket)).toBe(4009);
    next.socket.end();
  }
  await node.close();
});

describe("a session that is taken over while its node stays ends with 1000", () => {
  test("when the next one is on another node and the eviction is lost", async () => {
    const { node, socket, takeOver } = await onLeaver("lose");
    const next = await takeOver();
    await node.channel.flush();
    node.clock.advance(5_000);
    await node.channel.flush();
    expect(await codeOf(socket)).toBe(1000);
    next.end();
    await node.close();
  });

  test("when its own age ends it at the same moment", async () => {
    const { node, socket, takeOver } = await onLeaver("lose", { silenceMs: 1e9, tickMs: 3_600_000 });
    const next = await takeOver();
    node.clock.advance(86_400_000 * 1.1 + 1);
    node.channel.tick();
    expect(await codeOf(socket)).toBe(1000);
    next.end();
    await node.close();
  });

  test("when the next one is on the same node", async () => {
    evictions.state.evictions = "pass";
    const device = await stays.device();
    const { socket, sessionId } = await enter(stays, device);
    const next = await enter(stays, device, { handoffFrom: sessionId });
    socket.say("goodbye", { reason: "handoff" });
    expect(await codeOf(socket)).toBe(1000);
    next.socket.end();
  });
});
