// Two agents with one identity on two nodes: a live holder keeps its session, and a silent one delays the newcomer by no more than the time limit.
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { sign } from "../../../protocol/index.ts";
import type { BusMessage } from "../../../server/core/ports/pub-sub.ts";
import { createDuplicateProbes } from "../../../server/gateway/channel/duplicate-probe.ts";
import { newSession } from "../../../server/gateway/channel/session.ts";
import { channelSettings } from "../../../server/gateway/channel/settings.ts";
import type { Bus } from "../../../server/platform/cluster/bus.ts";
import { openMemoryBus, openMemorySessionOwners } from "../../../server/platform/cluster/bus-memory.ts";
import { failureOf } from "../../kit/gateway/call.ts";
import { type AgentSocket, connect, greet, online, startNode, type TestDevice, type TestNode } from "../harness.ts";

const PROBE_MS = 300;
const SETTINGS = { probeMs: PROBE_MS, probesAtOnce: 2 };

/** The bus between the nodes; records its messages and can drop them. */
const tapped = (bus: Bus) => {
  const state = { said: [] as BusMessage[], swallow: false, well: true };
  const tap: Bus = {
    ...bus,
    healthy: () => state.well,
    publish: async (channel, message) => {
      state.said.push(message);
      return state.swallow || bus.publish(channel, message);
    },
  };
  return { tap, state };
};

let one: TestNode;
let two: TestNode;
let wire: ReturnType<typeof tapped>["state"];
beforeAll(async () => {
  const owners = openMemorySessionOwners();
  const { tap, state } = tapped(openMemoryBus());
  wire = state;
  one = await startNode({ bus: tap, owners, settings: SETTINGS });
  two = await startNode({ databaseUrl: one.databaseUrl, bus: tap, owners, settings: SETTINGS });
});
afterAll(async () => {
  await two.close();
  await one.close();
});

const known = async (): Promise<TestDevice> => {
  const device = await one.device();
  const facts = one.tenants.get(device.tenantId);
  if (facts !== undefined) two.tenants.set(device.tenantId, facts);
  wire.said.length = 0;
  return device;
};
const asked = (): number => wire.said.filter(({ op }) => op === "live?").length;
const hello = async (node: TestNode, device: TestDevice, more: object): Promise<AgentSocket> => {
  const socket = await connect(node, device);
  const { data } = await socket.next("welcome");
  const timestamp = node.clock.now().toISOString();
  socket.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, data.nonce, timestamp) }, ...more });
  return socket;
};
const told = ({ deviceId }: TestDevice): Promise<{ tenant_id: string; data: object }[]> =>
  one.db.query("select tenant_id, data from outbox_events where type = 'device.duplicate_identity' and subject_id = $1", [deviceId]);

test("a clone on the other node is refused with 4505, the holder stays, and the tenant gets one event an hour over both nodes", async () => {
  const device = await known();
  const holder = await online(one, device, { instanceId: "holder" });
  const clones = [
    await hello(two, device, { instanceId: "clone", hostname: "copy", agentVersion: "2" }),
    await hello(one, device, { instanceId: "another" }),
    await hello(two, device, { instanceId: "clone" }),
  ];
  for (const clone of clones) expect(await clone.closed()).toEqual({ code: 4505, reason: expect.stringMatching(/^duplicate_identity;ra=\d+$/) });
  expect(holder.isOpen()).toBe(true);
  const [first, ...more] = await told(device);
  expect([first?.tenant_id, more]).toEqual([device.tenantId, []]);
  expect(first?.data).toMatchObject({ deviceId: device.deviceId });
  await one.db.query("update device_presence set duplicate_told_at = now() - interval '61 minutes' where device_id = $1", [device.deviceId]);
  await (await hello(two, device, { instanceId: "clone", hostname: "copy", agentVersion: "2" })).closed();
  const events = await told(device);
  expect(events.length).toBe(2);
  expect(events[1]?.data).toEqual({ deviceId: device.deviceId, nodeId: two.nodeId, hostname: "copy", agentVersion: "2" });
  holder.end();
});

test("concurrent clones on both nodes make one event", async () => {
  const device = await known();
  const holder = await online(one, device, { instanceId: "holder" });
  const clones = await Promise.all(Array.from({ length: 4 }, (_, n) => hello(n % 2 === 0 ? one : two, device, { instanceId: `clone-${n}` })));
  const codes = await Promise.all(clones.map(async (clone) => (await clone.closed()).code));
  expect(new Set(codes)).toEqual(new Set([4505]));
  expect((await told(device)).length).toBe(1);
  holder.end();
});

test("no probe is sent for the same process, its handoff or an agent that names no process", async () => {
  const device = await known();
  const first = await connect(one, device);
  const welcome = await first.next("welcome");
  const timestamp = one.clock.now().toISOString();
  first.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, welcome.data.nonce, timestamp) }, instanceId: "p" });
  await first.next("ready");
  const second = await online(two, device, { instanceId: "p", handoffFrom: welcome.data.sessionId });
  expect((await first.closed()).code).toBe(1000);
  const third = await online(one, device, { instanceId: "p" });
  await second.closed();
  const fourth = await online(two, device, { instanceId: undefined });
  await third.closed();
  expect([asked(), await told(device)]).toEqual([0, []]);
  fourth.end();
});

test("a handoff that another process claims is refused beside a live holder, and takes nothing over from a silent one", async () => {
  const device = await known();
  const holder = await connect(one, device);
  const { data } = await holder.next("welcome");
  const timestamp = one.clock.now().toISOString();
  holder.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, data.nonce, timestamp) }, instanceId: "holder" });
  await holder.next("ready");
  for (const node of [one, two]) {
    const clone = await hello(node, device, { instanceId: "clone", handoffFrom: data.sessionId });
    expect((await clone.closed()).code).toBe(4505);
  }
  const commandId = await one.queue(device);
  await holder.next("command");
  holder.socket.pause();
  const next = await online(two, device, { instanceId: "next", handoffFrom: data.sessionId });
  // Another process received the frames of the older session, so this one gets the command again.
  expect((await next.next("command")).data).toMatchObject({ command: { commandId }, delivery: { redelivered: true } });
  holder.end();
  next.end();
});

test("a poll of another process is refused on both nodes while the holder of the session answers, and reported like a clone's hello", async () => {
  const device = await known();
  const holder = await online(one, device, { instanceId: "holder" });
  const poll = (node: TestNode, instanceId: string | null) => node.devices.presence.polled(device, { instanceId, aliveForMs: 0 });
  for (const node of [one, two]) {
    expect(await failureOf(poll(node, "clone"))).toEqual({
      code: "DUPLICATE_IDENTITY",
      status: 409,
      details: { reason: "duplicate_identity", holder: "socket" },
    });
    await poll(node, "holder");
    await poll(node, null);
  }
  expect(await told(device)).toMatchObject([{ data: { deviceId: device.deviceId } }]);
  holder.socket.pause();
  await poll(two, "clone");
  holder.end();
});

test("a holder whose socket does not answer is superseded within the time limit, without an event", async () => {
  const device = await known();
  const holder = await online(one, device, { instanceId: "holder" });
  holder.socket.pause();
  const next = await online(two, device, { instanceId: "next" });
  expect([asked(), await told(device)]).toEqual([1, []]);
  holder.end();
  next.end();
});

test("a node that does not answer delays the hello by the time limit and no more", async () => {
  const device = await known();
  const holder = await online(one, device, { instanceId: "holder" });
  wire.swallow = true;
  try {
    const timers = vi.spyOn(globalThis, "setTimeout");
    const next = await online(two, device, { instanceId: "next" });
    const probes = timers.mock.calls.filter(([, ms]) => ms === PROBE_MS);
    timers.mockRestore();
    // `online` gives up after a few seconds, so the probe's limit has ended the wait.
    expect([asked(), probes.length]).toEqual([1, 1]);
    next.end();
  } finally {
    wire.swallow = false;
  }
  holder.end();
});

test("while messages get lost no probe is sent: the newcomer supersedes at once, and the old node finds out at its next flush", async () => {
  const device = await known();
  const holder = await online(one, device, { instanceId: "holder" });
  wire.well = false;
  wire.swallow = true;
  try {
    const next = await online(two, device, { instanceId: "next" });
    expect(asked()).toBe(0);
    await one.channel.flush();
    expect((await holder.closed()).code).toBe(4009);
    next.end();
  } finally {
    wire.well = true;
    wire.swallow = false;
  }
});

test("a flood of hellos probes a bounded number at once and lets the others in without a probe", async () => {
  const devices = await Promise.all(Array.from({ length: 6 }, known));
  const holders = await Promise.all(devices.map((device) => online(one, device, { instanceId: "holder" })));
  wire.swallow = true;
  try {
    wire.said.length = 0;
    const newcomers = await Promise.all(devices.map((device) => connect(two, device)));
    await Promise.all(newcomers.map((socket, n) => greet(two, socket, devices[n] as TestDevice, { instanceId: "next" })));
    expect(asked()).toBeLessThanOrEqual(SETTINGS.probesAtOnce);
    for (const socket of newcomers) socket.end();
  } finally {
    wire.swallow = false;
  }
  for (const socket of holders) socket.end();
});

test("concurrent probes of one holder share one ping", async () => {
  const device = await known();
  const sessionOf = () =>
    newSession(
      { id: "ses", agent: { ...device, ...device.identity } as never, signatureVersion: 1, ip: "127.0.0.1", heartbeatLimit: null },
      channelSettings(),
      0,
    );
  let pings = 0;
  const holder = sessionOf();
  holder.phase = "ready";
  holder.instanceId = "holder";
  const countPing = (): void => {
    pings += 1;
  };
  holder.link = { ping: countPing } as never;
  const probes = createDuplicateProbes({
    nodeId: "n",
    bus: openMemoryBus(),
    sessions: { holder: async () => null },
    delivery: { writeSent: () => undefined },
    ready: new Map([[device.deviceId, holder]]),
    clock: { now: () => new Date(), elapsed: () => 0 },
    settings: channelSettings(),
    onError: () => undefined,
  });
  const asking = Array.from({ length: 5 }, (_, n) => probes.isDuplicate(sessionOf(), { instanceId: `clone-${n}` } as never));
  expect(pings).toBe(1);
  holder.probe?.settle(true);
  expect(await Promise.all(asking)).toEqual(Array(5).fill(true));
});
