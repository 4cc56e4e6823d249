// The presence flush finds sessions that were superseded without an eviction, at the cost of what has changed.
import { afterAll, beforeAll, expect, test } from "vitest";
import { digestPart, type HeldSession, type SocketPresence } from "../../server/core/ports/agent-sessions.ts";
import { createPresenceFlush } from "../../server/gateway/channel/presence-flush.ts";
import type { AgentSession } from "../../server/gateway/channel/session.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";
import { noMeters } from "../../server/gateway/channel/stats.ts";
import { online, startNode, type TestNode } from "./harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

/** A flush of the node's presence beside the node's own, over sessions of the test. */
const start = () => {
  const at = { ms: 0 };
  const asked: string[] = [];
  const failing = { once: false };
  const ready = new Map<string, AgentSession>();
  const registry = { ready, news: [] as AgentSession[], changed: new Set<string>(), lost: [] };
  const presence: Pick<SocketPresence, "flush" | "closed" | "digests"> = node.devices.presence;
  const run = createPresenceFlush({
    presence,
    registry,
    closeSuperseded: async (sessions: readonly HeldSession[]) => {
      if (failing.once) {
        failing.once = false;
        throw new Error("the database is away");
      }
      asked.push(...sessions.map(({ deviceId }) => deviceId));
    },
    clock: { now: () => new Date(), elapsed: () => at.ms },
    settings: channelSettings(),
    meters: noMeters,
    claim: async () => undefined,
    onError: () => undefined,
  });
  const check = async (): Promise<readonly string[]> => {
    asked.length = 0;
    at.ms += 5_000;
    await run();
    return [...asked].sort();
  };
  return { registry, check, failing };
};

const session = async (registry: ReturnType<typeof start>["registry"]): Promise<string> => {
  const { deviceId } = await node.device();
  await node.db.query("update device_presence set epoch = 1, node_id = $2, session_id = 'ses_' || $1, connectivity = 'realtime' where device_id = $1", [
    deviceId,
    node.nodeId,
  ]);
  registry.ready.set(deviceId, { deviceId, epoch: 1, phase: "ready", seen: false } as AgentSession); // as: all that the flush reads
  registry.changed.add(digestPart(deviceId));
  return deviceId;
};
const change = (deviceId: string, to: string): Promise<unknown> => node.db.query(`update device_presence set ${to} where device_id = $1`, [deviceId]);

test("every way of losing presence raises the question again, and nothing else does", async () => {
  const { registry, check, failing } = start();
  const devices = await Promise.all(Array.from({ length: 12 }, () => session(registry)));
  const [first = ""] = devices;
  const withFirst = devices.filter((each) => digestPart(each) === digestPart(first)).sort();
  expect(await check()).toEqual([...devices].sort());
  expect(await check()).toEqual([]);
  await change(first, "last_seen_at = now(), metrics = '{}', offline_after = now()");
  expect(await check()).toEqual([]);
  for (const loss of ["epoch = 2", "session_id = 'ses_other'", "node_id = 'other'", "node_id = null, session_id = null", "session_id = ''"]) {
    await change(first, loss);
    expect(await check()).toEqual(withFirst);
    expect(await check()).toEqual([]);
    await change(first, `epoch = 1, node_id = '${node.nodeId}', session_id = 'ses_' || device_id`);
    expect(await check()).toEqual(withFirst);
  }
  await change(first, "epoch = 2");
  failing.once = true;
  expect(await check()).toEqual([]);
  expect(await check()).toEqual(withFirst);
  registry.changed.add(digestPart(first));
  expect(await check()).toEqual(withFirst);
  await node.db.query("update device_presence set node_id = null, session_id = null where device_id = any($1)", [devices]);
});

test("a quiet session is closed at the next check when its device's row names another session", async () => {
  const device = await node.device();
  const socket = await online(node, device);
  node.clock.advance(5_000);
  await node.channel.flush();
  expect(socket.isOpen()).toBe(true);
  await node.db.query("update device_presence set epoch = epoch + 1, session_id = 'ses_newer' where device_id = $1", [device.deviceId]);
  node.clock.advance(5_000);
  await node.channel.flush();
  expect((await socket.closed()).code).toBe(4009);
});
