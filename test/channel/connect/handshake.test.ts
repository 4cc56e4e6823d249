// From welcome to ready: what a hello must prove, how long it may take, and which of two sessions wins.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sign } from "../../../protocol/index.ts";
import { connect, greet, online, startNode, type TestDevice, type TestNode } from "../harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const epochOf = async ({ deviceId }: TestDevice): Promise<number> =>
  (await node.db.query<{ epoch: number }>("select epoch from device_presence where device_id = $1", [deviceId]))[0]?.epoch ?? -1;

describe("the proof of a hello", () => {
  test("raises the epoch by one and brings the device online if it is good", async () => {
    const device = await node.device();
    const socket = await connect(node, device);
    const ready = await greet(node, socket, device, { hostname: "box", os: "linux", agentVersion: "1.0" });
    expect(ready.data).toEqual({ deviceId: device.deviceId, epoch: 1, queuedCount: 0, reconcile: [] });
    expect(await node.devices.find({ tenantId: device.tenantId }, device.deviceId)).toMatchObject({
      status: "online",
      hostname: "box",
      platform: "linux",
      agentVersion: "1.0",
      connection: { connectivity: "realtime", epoch: 1, nodeId: node.nodeId },
    });
    socket.end();
  });

  test.each([
    ["signed with another secret", (nonce: string, at: string) => sign("other", nonce, at)],
    ["signed without the nonce", (_: string, at: string, secret: string) => sign(secret, "", at)],
    ["in upper case", (nonce: string, at: string, secret: string) => sign(secret, nonce, at).toUpperCase()],
  ])("closes with 4500 and changes neither the epoch nor the older session if it is %s", async (_, forge) => {
    const device = await node.device();
    const honest = await online(node, device);
    const socket = await connect(node, device);
    const { data } = await socket.next("welcome");
    const timestamp = node.clock.now().toISOString();
    socket.say("hello", { proof: { timestamp, signature: forge(data.nonce, timestamp, device.identity.secret) } });
    expect((await socket.next("error")).data.code).toBe("INVALID_SIGNATURE");
    expect(await socket.closed()).toEqual({ code: 4500, reason: "auth_failed" });
    expect(await epochOf(device)).toBe(1);
    expect(honest.isOpen()).toBe(true);
    honest.end();
  });

  test("closes with 4500 if its timestamp is too old or too new", async () => {
    const device = await node.device();
    const socket = await connect(node, device);
    const { data } = await socket.next("welcome");
    const timestamp = new Date(node.clock.now().getTime() - 300_500).toISOString();
    socket.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, data.nonce, timestamp) } });
    expect((await socket.closed()).code).toBe(4500);
    expect(await epochOf(device)).toBe(0);
  });

  test("closes with 4001 if it does not come within ten seconds", async () => {
    const own = await startNode();
    const socket = await connect(own, await own.device());
    await socket.next("welcome");
    own.clock.advance(9_000);
    own.channel.tick();
    expect(socket.isOpen()).toBe(true);
    own.clock.advance(1_001);
    own.channel.tick();
    expect(await socket.closed()).toEqual({ code: 4001, reason: "hello_timeout" });
    await own.close();
  });
});

describe("two sessions of one device", () => {
  test("the newer one of the same process supersedes the older, whose late close changes nothing", async () => {
    const device = await node.device();
    const first = await online(node, device);
    const second = await online(node, device);
    expect(await first.closed()).toEqual({ code: 4009, reason: expect.stringMatching(/^superseded;ra=\d+$/) });
    await node.channel.flush();
    const [row] = await node.db.query<{ epoch: number; connectivity: string; session_id: string | null; margin: number }>(
      "select epoch, connectivity, session_id, extract(epoch from offline_after - now())::float8 as margin from device_presence where device_id = $1",
      [device.deviceId],
    );
    expect(row).toMatchObject({ epoch: 2, connectivity: "realtime" });
    expect(row?.session_id).not.toBeNull();
    expect(row?.margin).toBeGreaterThan(60);
    second.end();
  });

  test("a handoff closes the older one with 1000", async () => {
    const device = await node.device();
    const first = await connect(node, device);
    const { data } = await first.next("welcome");
    const timestamp = node.clock.now().toISOString();
    first.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, data.nonce, timestamp) }, instanceId: "one" });
    await first.next("ready");
    const second = await online(node, device, { handoffFrom: data.sessionId, instanceId: "one" });
    expect(await first.closed()).toEqual({ code: 1000, reason: "normal" });
    second.end();
  });

  test("a clone beside a live holder is refused with 4505", async () => {
    const device = await node.device();
    const holder = await online(node, device, { instanceId: "holder" });
    const clone = await connect(node, device);
    const { data } = await clone.next("welcome");
    const timestamp = node.clock.now().toISOString();
    clone.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, data.nonce, timestamp) }, instanceId: "clone" });
    expect(await clone.closed()).toEqual({ code: 4505, reason: expect.stringMatching(/^duplicate_identity;ra=\d+$/) });
    expect(holder.isOpen()).toBe(true);
    expect(await epochOf(device)).toBe(1);
    holder.end();
  });

  test("a holder that does not answer is superseded", async () => {
    const own = await startNode({ settings: { probeMs: 100 } });
    const device = await own.device();
    const holder = await connect(own, device);
    await greet(own, holder, device, { instanceId: "holder" });
    holder.socket.pause();
    const next = await connect(own, device);
    expect((await greet(own, next, device, { instanceId: "next" })).data.epoch).toBe(2);
    holder.end();
    next.end();
    await own.close();
  });

  test("on two nodes the newest wins and the older one is closed", async () => {
    const one = await startNode();
    const two = await startNode({ databaseUrl: one.databaseUrl, bus: one.bus, owners: one.owners });
    const device = await one.device();
    const facts = one.tenants.get(device.tenantId);
    if (facts !== undefined) two.tenants.set(device.tenantId, facts);
    const old = await online(one, device);
    const fresh = await connect(two, device);
    expect((await greet(two, fresh, device)).data.epoch).toBe(2);
    expect((await old.closed()).code).toBe(4009);
    await one.queue(device);
    expect((await fresh.next("command")).data.delivery.attempt).toBe(1);
    fresh.end();
    await two.close();
    await one.close();
  });

  test("a quiet session is checked too, and closes as revoked if its device was removed", async () => {
    const [taken, removed] = [await node.device(), await node.device()];
    const sockets = [await online(node, taken), await online(node, removed)];
    await node.channel.flush();
    await node.db.query("update device_presence set epoch = epoch + 1 where device_id = any($1)", [[taken.deviceId, removed.deviceId]]);
    await node.db.query("update devices set deleted_at = now() where device_id = $1", [removed.deviceId]);
    // Quiet sessions are checked every five seconds.
    node.clock.advance(5_000);
    await node.channel.flush();
    expect([(await sockets[0]?.closed())?.code, (await sockets[1]?.closed())?.code]).toEqual([4009, 4501]);
  });

  test("the next flush closes a session whose eviction was lost", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    await node.db.query("update device_presence set epoch = epoch + 1 where device_id = $1", [device.deviceId]);
    socket.say("heartbeat", { cpu: 1 });
    await socket.next("heartbeat_ack");
    await node.channel.flush();
    expect((await socket.closed()).code).toBe(4009);
  });
});

test("a session closes with 4031 at its maximum age", async () => {
  const own = await startNode({ settings: { silenceMs: 1e9 } });
  const socket = await online(own, await own.device());
  own.clock.advance(86_400_000 * 1.1 + 1);
  own.channel.tick();
  expect(await socket.closed()).toEqual({ code: 4031, reason: expect.stringMatching(/^session_expired;ra=\d+$/) });
  await own.close();
});
