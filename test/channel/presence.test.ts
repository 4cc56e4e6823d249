// Presence of a device follows its sockets, its REST calls and its silence, with one event per change of status.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../kit/checks/eventually.ts";
import { type AgentSocket, online, startNode, type TestDevice, type TestNode } from "./harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const sweep = async (): Promise<void> => {
  await node.devices.jobs.find(({ name }) => name === "devices.offline")?.run(new AbortController().signal);
};
const look = ({ tenantId, deviceId }: TestDevice) => node.devices.find({ tenantId }, deviceId);
const eventsOf = ({ deviceId }: TestDevice, type: string) =>
  node.db.query<{ data: Record<string, unknown> }>("select data from outbox_events where subject_id = $1 and type = $2 order by position", [deviceId, type]);
/** Moves the times of the device's row into the past by this much, once nothing that was heard before can be written over them. */
const age = async ({ deviceId }: TestDevice, seconds: number): Promise<void> => {
  await node.channel.flush();
  await node.db.query(
    "update device_presence set offline_after = offline_after - make_interval(secs => $2), last_seen_at = last_seen_at - make_interval(secs => $2) where device_id = $1",
    [deviceId, seconds],
  );
};
const lose = async (socket: AgentSocket): Promise<void> => {
  const before = node.channel.stats.connections;
  socket.end();
  await eventually(() => expect(node.channel.stats.connections).toBeLessThan(before));
  await node.channel.flush();
};

describe("heartbeats on the socket", () => {
  test("are answered with the server's time and update the device, plain and full frames alike", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    const id = socket.say("heartbeat", { status: "online", metrics: { load: 0.5 } });
    expect(await socket.next("heartbeat_ack")).toMatchObject({ ref: id, data: { serverTime: expect.stringMatching(/Z$/) } });
    socket.say("heartbeat", { cpu: 12, memory: 40, disk: 70, timestamp: "2026-01-01T00:00:00Z" });
    await socket.next("heartbeat_ack");
    await node.channel.flush();
    const shown = await look(device);
    expect(shown).toMatchObject({ status: "online", metrics: { cpu: 12, memory: 40, disk: 70 } });
    expect(shown?.lastHeartbeatAt).toBeDefined();
    socket.end();
  });

  test("of a thousand sessions take one statement, which names only the stale sessions", async () => {
    const { tenantId } = await node.device();
    const made = await node.db.tx((tx) =>
      node.devices.enrol(
        tx,
        { tenantId },
        Array.from({ length: 1_000 }, (_, index) => ({ fingerprint: `flush-${tenantId}-${index}` })),
      ),
    );
    await node.db.query("update device_presence set epoch = 5, session_id = 's', connectivity = 'realtime' where device_id = any($1)", [
      made.map(({ device_id }) => device_id),
    ]);
    const current = await node.devices.presence.flush(
      made.map(({ device_id }, index) => ({
        deviceId: device_id,
        epoch: index === 7 ? 4 : 5,
        seenAgoMs: 100,
        patienceMs: 100_000,
        heartbeatAgoMs: null,
        metrics: null,
      })),
    );
    expect(current.size).toBe(999);
    expect(current.has(made[7]?.device_id ?? "")).toBe(false);
  });

  test("that are missing for three intervals and ten seconds close the socket with 4002", async () => {
    const own = await startNode();
    const socket = await online(own, await own.device());
    own.clock.advance(99_000);
    own.channel.tick();
    expect(socket.isOpen()).toBe(true);
    own.clock.advance(1_500);
    own.channel.tick();
    expect(await socket.closed()).toEqual({ code: 4002, reason: "heartbeat_timeout" });
    await own.close();
  });
});

describe("offline", () => {
  test("comes once after the grace, with one event; an agent that returns within the grace causes none", async () => {
    const device = await node.device();
    await lose(await online(node, device));
    await sweep();
    expect(await look(device)).toMatchObject({ status: "online", connection: { connectivity: "none" } });
    const back = await online(node, device);
    await age(device, 16);
    await sweep();
    expect(await look(device)).toMatchObject({ status: "online", connection: { connectivity: "realtime", epoch: 2 } });
    await lose(back);
    await age(device, 16);
    await Promise.all([sweep(), sweep(), sweep()]);
    await sweep();
    expect(await look(device)).toMatchObject({ status: "offline", offlineReason: "connection_lost", connection: { connectivity: "none" } });
    expect((await eventsOf(device, "device.offline")).map(({ data }) => data)).toEqual([
      expect.objectContaining({ deviceId: device.deviceId, status: "offline", previous: "online", reason: "connection_lost", lastSeen: expect.any(String) }),
    ]);
    expect(await eventsOf(device, "device.online")).toHaveLength(1);
    (await online(node, device)).end();
    expect(await eventsOf(device, "device.online")).toHaveLength(2);
  });

  test("comes at once after a goodbye without a return time, and after that time with one", async () => {
    const [gone, back] = [await node.device(), await node.device()];
    for (const [device, data] of [
      [gone, { reason: "shutdown" }],
      [back, { reason: "reboot", expectBackSec: 300 }],
    ] as const) {
      const socket = await online(node, device);
      socket.say("goodbye", data);
      await eventually(async () =>
        expect(await node.db.query("select 1 from device_presence where device_id = $1 and session_id is null", [device.deviceId])).toHaveLength(1),
      );
      await lose(socket);
    }
    await sweep();
    expect(await look(gone)).toMatchObject({ status: "offline", offlineReason: "shutdown" });
    expect((await look(back))?.status).toBe("online");
    await age(back, 301);
    await sweep();
    expect(await look(back)).toMatchObject({ status: "offline", offlineReason: "reboot" });
  });

  test("is reverted if the socket was there all the time", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    await age(device, 200);
    await sweep();
    expect((await look(device))?.status).toBe("offline");
    socket.say("heartbeat", { cpu: 1 });
    await socket.next("heartbeat_ack");
    await node.channel.flush();
    expect(await look(device)).toMatchObject({ status: "online", connection: { connectivity: "realtime" } });
    expect(await eventsOf(device, "device.online")).toHaveLength(2);
    socket.end();
  });

  test("is reported after a day for a device that never connected", async () => {
    const device = await node.device();
    await node.db.query("update devices set created_at = created_at - interval '25 hours' where device_id = $1", [device.deviceId]);
    await node.devices.jobs.find(({ name }) => name === "devices.never-connected")?.run(new AbortController().signal);
    expect(await look(device)).toMatchObject({ status: "offline", offlineReason: "never_connected" });
    expect((await eventsOf(device, "device.offline")).map(({ data }) => data["previous"])).toEqual(["provisioning"]);
  });
});

describe("a REST call", () => {
  const contact = (device: TestDevice) => node.devices.presence.contact(device, { deviceId: device.deviceId, heartbeat: true, metrics: { cpu: 3 } });

  test("brings a device online once and keeps it so by polling", async () => {
    const device = await node.device();
    await Promise.all([contact(device), contact(device), node.devices.presence.polled(device, { instanceId: null, aliveForMs: 0 })]);
    expect(await look(device)).toMatchObject({ status: "online", metrics: { cpu: 3 }, connection: { connectivity: "polling", epoch: 0 } });
    expect(await eventsOf(device, "device.online")).toHaveLength(1);
    await age(device, 101);
    await sweep();
    expect(await look(device)).toMatchObject({ status: "offline", offlineReason: "poll_missed" });
  });

  test("leaves presence to a live socket and takes over from a dead one without an offline event", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    await contact(device);
    expect((await look(device))?.connection.connectivity).toBe("realtime");
    await age(device, 101);
    await node.db.query("update device_presence set last_seen_at = now() where device_id = $1", [device.deviceId]);
    await sweep();
    expect((await look(device))?.status).toBe("online");
    await contact(device);
    expect((await look(device))?.connection.connectivity).toBe("polling");
    expect(await eventsOf(device, "device.offline")).toHaveLength(0);
    socket.end();
  });

  test("of another tenant changes nothing", async () => {
    const device = await node.device();
    expect(await node.devices.presence.contact({ tenantId: await node.tenant() }, { deviceId: device.deviceId, heartbeat: true, metrics: null })).toBeNull();
    expect((await look(device))?.lastSeen).toBeUndefined();
  });
});
