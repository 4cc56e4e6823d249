// Live streams of a member who is limited to some devices: she sees theirs, also when she resumes, until a device loses its tag or she her limit.
// Some wait until the node looks again, so the tests, each with a tenant of its own, run beside each other.

import { EventSource } from "eventsource";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createMooring } from "../../../protocol/client/index.ts";
import type { LiveEvent } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Device, startWorld, type World } from "../../kit/gateway/world.ts";

// Browsers have an EventSource, Node does not.
beforeAll(() => void vi.stubGlobal("EventSource", EventSource));
afterAll(() => void vi.unstubAllGlobals());

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

/** A tenant with a device in Berlin and one elsewhere. */
const openPlace = async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const [berlin, paris] = [await tenant.device(), await tenant.device()];
  const tag = async ({ deviceId }: Device, tags: readonly string[]) => {
    const { status } = await world.call(owner, "PATCH", `/v1/devices/${deviceId}`, { body: { tags } });
    expect(status).toBe(200);
  };
  const newMember = async (tags: readonly string[]) => {
    const userId = newId("usr");
    const { token } = await world.app.mint({ userId, tenantId: tenant.tenantId, role: "admin", ttlSeconds: 3_600 });
    await limitTo(userId, tags);
    return { userId, token };
  };
  const finish = async (device: Device): Promise<string> => {
    const { body } = await world.call(owner, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping" } });
    const { commandId } = body.data;
    await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status: "succeeded" } });
    return commandId;
  };
  await tag(berlin, ["site:berlin"]);
  return { tenant, owner, berlin, paris, tag, newMember, finish };
};
const limitTo = (userId: string, tags: readonly string[]) =>
  world.sql.query("update memberships set selector = $2 where user_id = $1", [userId, { deviceIds: [], tags }]);

const watch = async (token: string, lastEventId?: string, seen?: string[]) => {
  const events: LiveEvent[] = [];
  const errors: unknown[] = [];
  const subscription = createMooring({ url: world.url, token: () => token }).live.watch.subscribe(
    { lastEventId, seen },
    { onData: ({ data }) => void events.push(data), onError: (error) => void errors.push(error) },
  );
  await eventually(() => expect(events[0]?.type).toBe("stream.position"));
  const devices = () => new Set(events.filter(({ type }) => !type.startsWith("stream.")).map(({ subjectId, data }) => data["deviceId"] ?? subjectId));
  return { events, errors, devices, close: () => subscription.unsubscribe() };
};

const subjects = ({ events }: Awaited<ReturnType<typeof watch>>) => events.map(({ subjectId }) => subjectId);

test.concurrent("a limited member sees events of her devices only, live and when she resumes", async () => {
  const { owner, berlin, paris, newMember, finish } = await openPlace();
  const { token } = await newMember(["site:berlin"]);
  const watched = await watch(token);
  const from = watched.events[0]?.id ?? "";
  await finish(paris);
  await world.call(owner, "POST", "/v1/api-keys", { body: { name: "hidden" } });
  const commandId = await finish(berlin);
  await eventually(() => expect(subjects(watched)).toContain(commandId));
  expect(watched.devices()).toEqual(new Set([berlin.deviceId]));
  watched.close();

  const resumed = await watch(token, from);
  await eventually(() => expect(subjects(resumed)).toContain(commandId));
  expect(resumed.devices()).toEqual(new Set([berlin.deviceId]));
  resumed.close();
});

test.concurrent("a summary that is read after an event counts it, and its version says so", async () => {
  const { tenant, owner, finish } = await openPlace();
  const device = await tenant.device();
  const watched = await watch(await tenant.token());
  const versionOf = async (path: string): Promise<number> => (await world.call(owner, "GET", `/v1/${path}/summary`)).body.data.version;
  const before = await versionOf("commands");
  expect(watched.events[0]?.version).toBeLessThanOrEqual(before);
  const commandId = await finish(device);
  const ended = () => watched.events.find(({ type, subjectId }) => type === "command.completed" && subjectId === commandId);
  await eventually(() => expect(ended()?.version).toBeGreaterThan(before));
  expect(await versionOf("commands")).toBeGreaterThanOrEqual(ended()?.version ?? Infinity);
  expect(await versionOf("devices")).toBeGreaterThanOrEqual(ended()?.version ?? Infinity);
  const numbers = watched.events.flatMap(({ version }) => version ?? []);
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  expect(watched.events.filter(({ id }) => id === null).every(({ version }) => version === null)).toBe(true);
  watched.close();
});

test.concurrent("a stream tells when a named device was heard, with its figures, and nothing of one out of reach or of another tenant", {
  timeout: 30_000,
}, async () => {
  const { owner, berlin, paris, newMember } = await openPlace();
  const foreign = await (await world.tenant()).device();
  const { token } = await newMember(["site:berlin"]);
  const watched = await watch(token, undefined, [berlin.deviceId, paris.deviceId, foreign.deviceId]);
  const beat = (device: Device, cpu: number) =>
    world.call(device.as, "POST", `/v1/devices/${device.deviceId}/heartbeat`, { body: { metrics: { cpu, disk: "full", memory: 1e300 } } });
  const heard = () => watched.events.filter(({ type }) => type === "device.seen").map(({ data }) => data);
  for (const device of [foreign, paris, berlin]) await beat(device, 12.5);
  await eventually(() => expect(heard().at(-1)?.["metrics"]).toEqual({ cpu: 12.5, memory: null, disk: null }), 15_000);
  const { lastSeen } = (await world.call(owner, "GET", `/v1/devices/${berlin.deviceId}`)).body.data;
  expect(heard().at(-1)).toMatchObject({ deviceId: berlin.deviceId, lastSeen, lastHeartbeatAt: lastSeen, status: "online", connectivity: "polling" });
  expect(watched.devices()).toEqual(new Set([berlin.deviceId]));
  watched.close();
});

test.concurrent("a device that loses its tag disappears from an open stream at its next event", async () => {
  const { berlin, paris, tag, newMember, finish } = await openPlace();
  const { token } = await newMember(["site:berlin"]);
  const watched = await watch(token);
  const before = await finish(berlin);
  await eventually(() => expect(subjects(watched)).toContain(before));
  await tag(berlin, []);
  await tag(paris, ["site:berlin"]);
  const hidden = await finish(berlin);
  const shown = await finish(paris);
  await eventually(() => expect(subjects(watched)).toContain(shown));
  expect(subjects(watched)).not.toContain(hidden);
  watched.close();
});

test.concurrent("an open stream begins again with the new limits when they change", { timeout: 30_000 }, async () => {
  const { paris, tag, newMember, finish } = await openPlace();
  const device = paris;
  const { userId, token } = await newMember(["site:berlin"]);
  const watched = await watch(token);
  await tag(device, ["site:paris"]);
  await limitTo(userId, ["site:paris"]);
  await eventually(() => expect(watched.events.filter(({ type }) => type === "stream.position").length).toBeGreaterThan(1), 15_000);
  const shown = await finish(device);
  await eventually(() => expect(subjects(watched)).toContain(shown));
  watched.close();
});
