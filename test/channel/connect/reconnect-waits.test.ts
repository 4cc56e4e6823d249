// The waits that agents are told before they reconnect: one for each close, and a longer one for two agents that keep pushing each other out.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE, isTerminalClose } from "../../../protocol/index.ts";
import { openMemoryBus, openMemorySessionOwners } from "../../../server/platform/cluster/bus-memory.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";
import { type AgentSocket, connect, greet, type NodeOptions, startNode, type TestDevice, type TestNode } from "../harness.ts";

let base: Pick<NodeOptions, "databaseUrl" | "bus" | "owners" | "tenants">;
let nodes: readonly [TestNode, TestNode];
beforeAll(async () => {
  base = { databaseUrl: await createTestDatabase(), bus: openMemoryBus(), owners: openMemorySessionOwners(), tenants: new Map() };
  nodes = [await startNode(base), await startNode(base)];
});
afterAll(() => Promise.all(nodes.map((node) => node.close())));

const waitOf = async (socket: AgentSocket): Promise<number> => Number(/^superseded;ra=(\d+)$/.exec((await socket.closed()).reason)?.[1]);
const enter = async (node: TestNode, device: TestDevice, hello: object = {}) => {
  const socket = await connect(node, device);
  const welcome = await socket.next("welcome");
  socket.frames.unshift(welcome);
  await greet(node, socket, device, hello);
  return { socket, sessionId: welcome.data.sessionId };
};

test("a close of 4500 or above names a wait or leaves it to REST, and no close below waits longer than a minute", () => {
  const waits = Object.values(CLOSE).map((close) => ({ ...close, wait: "waitSec" in close ? close.waitSec : null }));
  expect(waits.filter(({ code, wait }) => isTerminalClose(code) && wait !== null).map(({ token }) => token)).toEqual([
    "tenant_suspended",
    "duplicate_identity",
  ]);
  expect(waits.filter(({ code, wait }) => !isTerminalClose(code) && (wait?.[1] ?? 0) > 60)).toEqual([]);
});

describe("two agents that keep pushing each other out", () => {
  test("wait half a minute or more at first, and a quarter of an hour from the third time, over all nodes", async () => {
    const device = await nodes[0].device();
    const waits: number[] = [];
    let { socket } = await enter(nodes[0], device);
    for (let turn = 1; turn <= 4; turn += 1) {
      const next = (await enter(nodes[turn % 2 === 0 ? 0 : 1], device)).socket;
      waits.push(await waitOf(socket));
      socket = next;
    }
    expect(waits.map((seconds) => (seconds >= 900 && seconds <= 990 ? "long" : seconds >= 30 && seconds <= 60 ? "short" : seconds))).toEqual([
      "short",
      "short",
      "long",
      "long",
    ]);
    socket.end();
  });

  test("get the long wait also when the eviction is lost", async () => {
    const device = await nodes[0].device();
    const { socket } = await enter(nodes[0], device);
    await nodes[0].db.query("update device_presence set epoch = epoch + 1, supersessions = 3, superseded_at = now() where device_id = $1", [device.deviceId]);
    socket.say("heartbeat", { cpu: 1 });
    await socket.next("heartbeat_ack");
    await nodes[0].channel.flush();
    expect(await waitOf(socket)).toBeGreaterThanOrEqual(900);
  });

  test("start from the short wait again after a pause longer than the wait", async () => {
    const device = await nodes[0].device();
    const { socket } = await enter(nodes[0], device);
    await nodes[0].db.query("update device_presence set supersessions = 9, superseded_at = now() - interval '21 minutes' where device_id = $1", [
      device.deviceId,
    ]);
    const next = await enter(nodes[0], device);
    expect(await waitOf(socket)).toBeLessThanOrEqual(60);
    next.socket.end();
  });
});

test("sessions that say goodbye or hand over never count, however many there are", async () => {
  const device = await nodes[0].device();
  let { socket, sessionId } = await enter(nodes[0], device);
  for (let turn = 0; turn < 3; turn += 1) {
    const next = await enter(nodes[0], device, { handoffFrom: sessionId });
    expect((await socket.closed()).code).toBe(1000);
    ({ socket, sessionId } = next);
  }
  socket.say("goodbye", { reason: "restart", expectBackSec: 10 });
  await eventually(async () => {
    const [left] = await nodes[0].db.query("select session_id from device_presence where device_id = $1", [device.deviceId]);
    expect(left).toEqual({ session_id: null });
  });
  socket.end();
  await enter(nodes[0], device);
  const [row] = await nodes[0].db.query("select supersessions from device_presence where device_id = $1", [device.deviceId]);
  expect(row).toEqual({ supersessions: 0 });
});
