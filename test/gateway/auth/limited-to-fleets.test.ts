// A member, an API key and an invite that are limited to a fleet: each sees the fleet's devices everywhere, no others, and follows when the fleet changes.
// Each test has a tenant of its own and most wait until another node looks again, so they run beside each other.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { withTimeout } from "../../../server/platform/timeout.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Answer, asBearer, asKey, type Caller, type Device, emailOf, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { openStream } from "../../kit/net/event-stream.ts";

/** A change takes at most five seconds to reach callers on every node, and their open streams; a busy test machine may double that. */
const REACH_MS = 10_000;

let world: World;
/** Another node, on the same database. */
let other: World;
beforeAll(async () => {
  const env = { RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off" };
  world = await startWorld(env);
  other = await startWorld(env, { beside: world });
});
afterAll(async () => {
  await other.close();
  await world.close();
});

interface Stage {
  readonly tenant: TestTenant;
  readonly owner: Caller;
  readonly inside: Device;
  readonly outside: Device;
}
const open = async (): Promise<Stage> => {
  const tenant = await world.tenant();
  return { tenant, owner: await tenant.user("owner"), inside: await tenant.device(), outside: await tenant.device() };
};
const newFleet = async ({ owner }: Stage, body: object): Promise<string> =>
  (await world.call(owner, "POST", "/v1/fleets", { body: { name: "sample", ...body } })).body.data.fleetId;
const patchDevice = (owner: Caller, { deviceId }: Device, body: object) => world.call(owner, "PATCH", `/v1/devices/${deviceId}`, { body });
const inFleet = (method: "PUT" | "DELETE", { owner }: Stage, fleetId: string, { deviceId }: Device) =>
  world.call(owner, method, `/v1/fleets/${fleetId}/devices/${deviceId}`);

type Kind = "member" | "key" | "invite";
/** A new caller with every permission but those of the tenant as a whole. */
const limitedTo: Readonly<Record<Kind, (stage: Stage, fleetId: string) => Promise<Caller>>> = {
  member: async ({ tenant, owner }, fleetId) => {
    const userId = newId("usr");
    const { token } = await world.app.mint({ userId, email: emailOf(userId), tenantId: tenant.tenantId, role: "owner", ttlSeconds: 3_600 });
    const [{ member_id }] = (await world.sql.query("select member_id from memberships where user_id = $1", [userId])).rows;
    const { status } = await world.call(owner, "PATCH", `/v1/members/${member_id}`, { body: { selector: { fleetIds: [fleetId] } } });
    expect(status).toBe(200);
    return asBearer(token);
  },
  key: async ({ tenant, owner }, fleetId) => {
    const { body } = await world.call(owner, "POST", "/v1/api-keys", { body: { name: "limited", role: "admin", selector: { fleetIds: [fleetId] } } });
    return asKey(body.data.apiKey, tenant.tenantId);
  },
  invite: async ({ tenant, owner }, fleetId) => {
    const userId = newId("usr");
    const invite = { email: emailOf(userId), roleId: "admin", selector: { fleetIds: [fleetId] } };
    const { body } = await world.call(owner, "POST", "/v1/invites", { body: invite });
    const { token } = await world.app.mint({ userId, email: emailOf(userId), ttlSeconds: 3_600 });
    const accepted = await world.call(asBearer(token), "POST", "/v1/invites/accept", { body: { token: new URL(body.data.link).searchParams.get("token") } });
    expect(accepted.status).toBe(200);
    return { kind: "user", headers: () => ({ authorization: `Bearer ${token}`, "x-svc-tenant-id": tenant.tenantId }) };
  },
};
const KINDS = ["member", "key", "invite"] as const;

const idsOf = ({ body }: Answer): string[] => body.data.map(({ deviceId }: { deviceId: string }) => deviceId).sort();
const devicesOf = async (as: Caller, node: World = world): Promise<readonly string[]> => idsOf(await node.call(as, "GET", "/v1/devices"));
const queue = (as: Caller, { deviceId }: Device) => world.call(as, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } });

/** That the caller meets one device and not the other, in every kind of operation. */
const expectOnly = async ({ tenant, owner }: Stage, as: Caller, [seen, hidden]: readonly [Device, Device]) => {
  const call = (path: string) => world.call(as, "GET", `/v1${path}`);
  const both = `${seen.deviceId},${hidden.deviceId}`;
  const list = await call("/devices");
  expect([idsOf(list), list.body.meta.pagination.total]).toEqual([[seen.deviceId], 1]);
  expect((await call("/devices/summary")).body.data.total).toBe(1);
  expect((await call(`/tenants/${tenant.tenantId}/summary`)).body.data.devices).toBe(1);
  expect((await call(`/devices/${seen.deviceId}`)).status).toBe(200);
  expect((await call(`/devices/${hidden.deviceId}`)).body.code).toBe("DEVICE_NOT_FOUND");
  expect(idsOf(await call(`/devices/batch?ids=${both}`))).toEqual([seen.deviceId]);

  const commands = await Promise.all([seen, hidden].map(async (device) => (await queue(owner, device)).body.data.commandId as string));
  expect(idsOf(await call(`/commands/batch?ids=${commands.join(",")}`))).toEqual([seen.deviceId]);
  expect(new Set(idsOf(await call("/commands")))).toEqual(new Set([seen.deviceId]));
  expect((await call(`/commands/${commands[1]}`)).body.code).toBe("COMMAND_NOT_FOUND");
  expect((await queue(as, seen)).status).toBe(201);
  expect((await queue(as, hidden)).body.code).toBe("DEVICE_NOT_FOUND");
  expect((await world.call(as, "PATCH", `/v1/devices/${hidden.deviceId}`, { body: { name: "mine" } })).body.code).toBe("DEVICE_NOT_FOUND");
};

describe.concurrent.each(KINDS)("a caller limited by %s", (kind) => {
  test("to a static fleet meets its devices and no others, in lists, counts, reads, batches and commands", async () => {
    const stage = await open();
    const fleetId = await newFleet(stage, { deviceIds: [stage.inside.deviceId] });
    const as = await limitedTo[kind](stage, fleetId);
    await expectOnly(stage, as, [stage.inside, stage.outside]);
    expect((await world.call(as, "GET", "/v1/auth/me")).body.data.selector).toEqual({ deviceIds: [], tags: [], fleetIds: [fleetId] });
  });

  test("to a dynamic fleet meets the devices that match its selector now", async () => {
    const stage = await open();
    const { owner, inside, outside } = stage;
    const fleetId = await newFleet(stage, { selector: { tags: ["site:a", "rack:1"], platform: "linux" } });
    await world.sql.query("update devices set platform = 'linux', tags = '{site:a,rack:1}' where device_id = $1", [inside.deviceId]);
    await world.sql.query("update devices set tags = '{site:a,rack:1}' where device_id = $1", [outside.deviceId]);
    const as = await limitedTo[kind](stage, fleetId);
    await expectOnly(stage, as, [inside, outside]);
    await patchDevice(owner, inside, { tags: ["site:a"] });
    expect(await devicesOf(as)).toEqual([]);
  });

  test("follows the fleet: at once on the node where it changes, within five seconds on another", { timeout: 30_000 }, async () => {
    const stage = await open();
    const { owner, inside, outside } = stage;
    const fixed = await newFleet(stage, { deviceIds: [inside.deviceId] });
    const as = await limitedTo[kind](stage, fixed);
    for (const node of [world, other]) expect(await devicesOf(as, node)).toEqual([inside.deviceId]);
    await inFleet("PUT", stage, fixed, outside);
    await inFleet("DELETE", stage, fixed, inside);
    for (const node of [world, other]) expect(await devicesOf(as, node)).toEqual([outside.deviceId]);

    await patchDevice(owner, inside, { tags: ["a"] });
    await patchDevice(owner, outside, { tags: ["b"] });
    const moving = await newFleet(stage, { selector: { tags: ["a"] } });
    const next = await limitedTo[kind](stage, moving);
    for (const node of [world, other]) expect(await devicesOf(next, node)).toEqual([inside.deviceId]);
    await world.call(owner, "PATCH", `/v1/fleets/${moving}`, { body: { selector: { tags: ["b"] } } });
    expect(await devicesOf(next)).toEqual([outside.deviceId]);
    await eventually(async () => expect(await devicesOf(next, other)).toEqual([outside.deviceId]), REACH_MS);
  });
});

describe.concurrent("a limited caller and fleets", () => {
  test("sees the fleets that have one of her devices, with only those in their lists and counts", async () => {
    const stage = await open();
    const { inside, outside } = stage;
    const both = await newFleet(stage, { deviceIds: [inside.deviceId, outside.deviceId] });
    const own = await newFleet(stage, { deviceIds: [inside.deviceId] });
    const [foreign, empty] = [await newFleet(stage, { deviceIds: [outside.deviceId] }), await newFleet(stage, {})];
    const as = await limitedTo.member(stage, own);
    const call = (path: string) => world.call(as, "GET", `/v1/fleets${path}`);
    const { data, meta } = (await call("")).body;
    expect(data.map(({ fleetId, deviceCount }: Record<string, unknown>) => [fleetId, deviceCount])).toEqual([
      [own, 1],
      [both, 1],
    ]);
    expect(meta.pagination.total).toBe(2);
    expect(idsOf(await call(`/${both}/devices`))).toEqual([inside.deviceId]);
    expect((await call(`/${both}/summary`)).body.data).toMatchObject({ deviceCount: 1, status: { provisioning: 1 } });
    for (const hidden of [foreign, empty])
      for (const path of ["", "/devices", "/summary"]) expect((await call(`/${hidden}${path}`)).body.code).toBe("FLEET_NOT_FOUND");
  });

  test.each(KINDS)("cannot widen a limit by %s, neither through the fleet nor with another fleet", async (kind) => {
    const stage = await open();
    const fleetId = await newFleet(stage, { deviceIds: [stage.inside.deviceId] });
    const as = await limitedTo[kind](stage, fleetId);
    const attempts = [
      ["POST", "/fleets", { name: "mine", selector: { tags: ["a"] } }],
      ["PATCH", `/fleets/${fleetId}`, { name: "mine" }],
      ["DELETE", `/fleets/${fleetId}`, undefined],
      ["PUT", `/fleets/${fleetId}/devices/${stage.outside.deviceId}`, undefined],
      ["DELETE", `/fleets/${fleetId}/devices/${stage.inside.deviceId}`, undefined],
      ["PATCH", `/devices/${stage.inside.deviceId}`, { tags: ["a"] }],
    ] as const;
    for (const [method, path, body] of attempts) {
      const answer = await world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
      expect([path, answer.status, answer.body.details.reason]).toEqual([path, 403, "limited_access"]);
    }
    expect(await devicesOf(as)).toEqual([stage.inside.deviceId]);
  });

  test("a key that names a fleet sees no device that its creator does not see", async () => {
    const stage = await open();
    const wide = await newFleet(stage, { deviceIds: [stage.inside.deviceId, stage.outside.deviceId] });
    const narrow = await newFleet(stage, { deviceIds: [stage.inside.deviceId] });
    const admin = await stage.tenant.user("admin");
    const as = await limitedTo.key({ ...stage, owner: admin }, wide);
    expect((await devicesOf(as)).length).toBe(2);
    const members = (await world.call(stage.owner, "GET", "/v1/members")).body.data as { memberId: string; role: string }[];
    const memberId = members.find(({ role }) => role === "admin")?.memberId;
    await world.call(stage.owner, "PATCH", `/v1/members/${memberId}`, { body: { selector: { fleetIds: [narrow] } } });
    expect(await devicesOf(as)).toEqual([stage.inside.deviceId]);
  });

  test("a limit written before fleets existed selects what it did", async () => {
    const stage = await open();
    await patchDevice(stage.owner, stage.inside, { tags: ["a"] });
    const as = await limitedTo.key(stage, await newFleet(stage, {}));
    await world.sql.query("update api_keys set selector = $2 where tenant_id = $1 and name = 'limited'", [
      stage.tenant.tenantId,
      { deviceIds: [], tags: ["a"] },
    ]);
    await eventually(async () => expect(await devicesOf(as)).toEqual([stage.inside.deviceId]));
  });
});

describe.concurrent.each(KINDS)("the open stream of a caller limited by %s", (kind) => {
  const watch = ({ url }: World, as: Caller) => openStream(url, { headers: as.headers("") });
  const finish = async (stage: Stage, device: Device): Promise<string> => {
    const { commandId } = (await queue(stage.owner, device)).body.data;
    await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status: "succeeded" } });
    return commandId;
  };

  test("shows a device from the moment it joins the fleet, and hides it once it leaves", async () => {
    const stage = await open();
    const { inside, outside } = stage;
    const fleetId = await newFleet(stage, { deviceIds: [inside.deviceId] });
    const stream = await watch(world, await limitedTo[kind](stage, fleetId));
    const before = [await finish(stage, outside), await finish(stage, inside)];
    await eventually(() => expect(stream.seen()).toContain(before[1]));
    expect(stream.seen()).not.toContain(before[0]);

    await inFleet("PUT", stage, fleetId, outside);
    await inFleet("DELETE", stage, fleetId, inside);
    const after = [await finish(stage, inside), await finish(stage, outside)];
    await eventually(() => expect(stream.seen()).toContain(after[1]));
    expect(stream.seen()).not.toContain(after[0]);
    stream.close();
  });

  test("shows a device that has joined on another node", async () => {
    const stage = await open();
    const fleetId = await newFleet(stage, { deviceIds: [stage.inside.deviceId] });
    const stream = await watch(other, await limitedTo[kind](stage, fleetId));
    const before = await finish(stage, stage.inside);
    await eventually(() => expect(stream.seen()).toContain(before));
    await inFleet("PUT", stage, fleetId, stage.outside);
    await eventually(async () => {
      await finish(stage, stage.outside);
      expect(stream.seen()).toContain(stage.outside.deviceId);
    });
    stream.close();
  });

  test("ends within five seconds when the fleet gets another selector, on another node too, and begins again with it", { timeout: 30_000 }, async () => {
    const stage = await open();
    const { owner, inside, outside } = stage;
    await patchDevice(owner, inside, { tags: ["a"] });
    await patchDevice(owner, outside, { tags: ["b"] });
    const fleetId = await newFleet(stage, { selector: { tags: ["a"] } });
    const as = await limitedTo[kind](stage, fleetId);
    const streams = [await watch(world, as), await watch(other, as)];
    await world.call(owner, "PATCH", `/v1/fleets/${fleetId}`, { body: { selector: { tags: ["b"] } } });
    for (const { ended } of streams) expect(await withTimeout(ended, REACH_MS, "the stream did not end")).toContain("access_changed");

    const again = await watch(other, as);
    const [hidden, shown] = [await finish(stage, inside), await finish(stage, outside)];
    await eventually(() => expect(again.seen()).toContain(shown));
    expect(again.seen()).not.toContain(hidden);
    again.close();
  });
});
