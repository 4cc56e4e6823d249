// Fleets: their life, static and dynamic membership, what they count, and what a limit that names one keeps from happening.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { winnersOf } from "../../kit/gateway/races.ts";
import { type Answer, type Caller, type Device, emailOf, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
});
afterAll(() => world.close());

const create = (body: object, as = owner) => world.call(as, "POST", "/v1/fleets", { body: { name: "sample", ...body } });
const made = async (body: object = {}, as = owner) => {
  const { status, body: answer } = await create(body, as);
  expect([status, answer.code]).toEqual([201, undefined]);
  return answer.data;
};
const read = async (path: string, as = owner) => (await world.call(as, "GET", `/v1/fleets${path}`)).body;
const patch = (fleetId: string, body: object, headers = {}) => world.call(owner, "PATCH", `/v1/fleets/${fleetId}`, { body, headers });
const remove = (fleetId: string) => world.call(owner, "DELETE", `/v1/fleets/${fleetId}`);
const put = (fleetId: string, { deviceId }: Pick<Device, "deviceId">, as = owner) => world.call(as, "PUT", `/v1/fleets/${fleetId}/devices/${deviceId}`);
const take = (fleetId: string, { deviceId }: Pick<Device, "deviceId">) => world.call(owner, "DELETE", `/v1/fleets/${fleetId}/devices/${deviceId}`);
const describeDevice = (deviceId: string, set: string, values: readonly unknown[] = []) =>
  world.sql.query(`update devices set ${set} where device_id = $1`, [deviceId, ...values]);
const idsOf = ({ data }: Answer["body"]): string[] => data.map(({ deviceId, fleetId }: Record<string, string>) => deviceId ?? fleetId).sort();
const codeOf = ({ status, body }: Answer) => [status, body?.code ?? null];
const eventsOf = async (id: string) =>
  (await world.sql.query("select type, data from outbox_events where subject_id = $1 order by position", [id])).rows.map(({ type, data }) => [type, data]);
/** A tenant of its own, for tests that count. */
const open = async () => {
  const own = await world.tenant();
  return { tenant: own, as: await own.user("owner") };
};

describe("a static fleet", () => {
  test("has the devices that were named, added and not taken out, each once", async () => {
    const [one, two] = [await tenant.device(), await tenant.device()];
    const fleet = await made({ name: "Lisbon", deviceIds: [one.deviceId, one.deviceId] });
    expect(fleet).toMatchObject({ name: "Lisbon", membership: "static", selector: null, deviceCount: 1, version: 1, createdBy: `user:${tenant.ownerId}` });
    const { fleetId } = fleet;
    expect((await put(fleetId, two)).body.data).toMatchObject({ deviceCount: 2, version: 2 });
    expect((await put(fleetId, two)).body.data).toMatchObject({ deviceCount: 2, version: 2 });
    expect(idsOf(await read(`/${fleetId}/devices`))).toEqual([one.deviceId, two.deviceId].sort());
    expect((await take(fleetId, one)).status).toBe(204);
    expect((await take(fleetId, one)).status).toBe(204);
    expect(idsOf(await read(`/${fleetId}/devices`))).toEqual([two.deviceId]);
    expect((await read(`/${fleetId}`)).data).toMatchObject({ deviceCount: 1, version: 3 });
    expect(await eventsOf(fleetId)).toEqual([
      ["fleet.created", { fleetId, name: "Lisbon" }],
      ["fleet.updated", { fleetId, name: "Lisbon", changed: ["devices"] }],
      ["fleet.updated", { fleetId, name: "Lisbon", changed: ["devices"] }],
    ]);
  });

  test.each(["name", "lastSeen", "-lastSeen"])("lists only its own devices, sorted by %s", async (sort) => {
    const [inside, outside] = [await tenant.device(), await tenant.device()];
    const { fleetId } = await made({ deviceIds: [inside.deviceId] });
    const { data, meta } = await read(`/${fleetId}/devices?sort=${sort}`);
    expect([idsOf({ data }), meta.pagination.total]).toEqual([[inside.deviceId], 1]);
    expect(idsOf({ data })).not.toContain(outside.deviceId);
  });

  test("does not count a removed device, and takes none in", async () => {
    const device = await tenant.device();
    const { fleetId } = await made({ deviceIds: [device.deviceId] });
    await world.call(owner, "DELETE", `/v1/devices/${device.deviceId}`);
    expect((await read(`/${fleetId}`)).data.deviceCount).toBe(0);
    expect(codeOf(await put(fleetId, device))).toEqual([404, "DEVICE_NOT_FOUND"]);
  });

  test("64 additions at once add each device once, and a deletion among them leaves no trace", async () => {
    const devices = [await tenant.device(), await tenant.device()];
    const { fleetId } = await made();
    await Promise.all(Array.from({ length: 64 }, (_, n) => put(fleetId, devices[n % 2] as Device)));
    expect((await read(`/${fleetId}`)).data).toMatchObject({ deviceCount: 2, version: 3 });
    const answers = await Promise.all([...devices, ...devices].map((device, n) => (n === 1 ? remove(fleetId) : put(fleetId, device))));
    expect(answers.every(({ status }) => [200, 204, 404].includes(status))).toBe(true);
    expect((await world.sql.query("select 1 from devices where $1 = any(fleet_ids)", [fleetId])).rowCount).toBe(0);
  });
});

describe("a dynamic fleet", () => {
  test("has the devices that match everything its selector names, at the moment", async () => {
    const { tenant: own, as } = await open();
    const [linux, mac, bare] = [await own.device(), await own.device(), await own.device()];
    await describeDevice(linux.deviceId, "tags = '{site:a,rack:1}', platform = 'linux', agent_version = '1.4.0', status = 'online'");
    await describeDevice(mac.deviceId, "tags = '{site:a}', platform = 'darwin', agent_version = '1.5.0', status = 'offline'");
    const members = async (selector: object) => {
      const { fleetId, deviceCount } = await made({ selector }, as);
      const listed = idsOf(await read(`/${fleetId}/devices`, as));
      expect(deviceCount).toBe(listed.length);
      return listed;
    };
    const both = [linux.deviceId, mac.deviceId].sort();
    expect(await members({ tags: ["site:a"] })).toEqual(both);
    expect(await members({ tags: ["site:a", "rack:1"] })).toEqual([linux.deviceId]);
    expect(await members({ tags: ["site:a"], platform: "darwin" })).toEqual([mac.deviceId]);
    expect(await members({ agentVersion: "1.4.0" })).toEqual([linux.deviceId]);
    expect(await members({ status: "provisioning" })).toEqual([bare.deviceId]);
    expect(await members({ platform: "linux", agentVersion: "1.5.0" })).toEqual([]);

    const fleet = await made({ selector: { platform: "linux" } }, as);
    expect(fleet).toMatchObject({ membership: "dynamic", selector: { tags: [], platform: "linux", agentVersion: null, status: null } });
    await describeDevice(bare.deviceId, "platform = 'linux'");
    expect(idsOf(await read(`/${fleet.fleetId}/devices`, as))).toEqual([linux.deviceId, bare.deviceId].sort());
  });

  test("takes no single device in or out, and a static fleet takes no selector", async () => {
    const device = await tenant.device();
    const [still, moving] = [await made(), await made({ selector: { tags: ["a"] } })];
    for (const answer of [await put(moving.fleetId, device), await take(moving.fleetId, device), await patch(still.fleetId, { selector: { tags: ["a"] } })])
      expect(codeOf(answer)).toEqual([400, "VALIDATION_FAILED"]);
    expect((await put(moving.fleetId, device)).body.details).toMatchObject({ reason: "dynamic_fleet", issues: [{ path: "fleetId" }] });
    expect((await patch(moving.fleetId, { selector: { platform: "linux" } })).body.data).toMatchObject({
      version: 2,
      selector: { tags: [], platform: "linux" },
    });
  });
});

describe("fleets", () => {
  test("are listed by name and kind, sorted, page by page", async () => {
    const { as } = await open();
    for (const [name, more] of [
      ["beta", {}],
      ["alpha", { selector: { tags: ["x"] } }],
      ["gamma 100%", {}],
    ] as const)
      await made({ name, ...more }, as);
    const names = async (query: string) => (await read(query, as)).data.map(({ name }: { name: string }) => name);
    expect(await names("?sort=name")).toEqual(["alpha", "beta", "gamma 100%"]);
    expect(await names("?sort=-name&membership=static")).toEqual(["gamma 100%", "beta"]);
    expect(await names("?membership=dynamic")).toEqual(["alpha"]);
    expect(await names("?q=100%25")).toEqual(["gamma 100%"]);
    const first = await read("?sort=name&limit=2&cursor=*", as);
    expect(first.data.length).toBe(2);
    expect(await names(`?sort=name&limit=2&cursor=${first.meta.pagination.nextCursor}`)).toEqual(["gamma 100%"]);
  });

  test("are summed up by status and version", async () => {
    const { tenant: own, as } = await open();
    const devices = [await own.device(), await own.device(), await own.device()];
    const [one, two] = devices as [Device, Device];
    for (const { deviceId } of [one, two]) await describeDevice(deviceId, "agent_version = '1.4.0', status = 'online'");
    const { fleetId } = await made({ deviceIds: devices.map(({ deviceId }) => deviceId) }, as);
    expect((await read(`/${fleetId}/summary`, as)).data).toEqual({
      fleetId,
      deviceCount: 3,
      status: { online: 2, offline: 0, provisioning: 1 },
      agentVersions: [
        { agentVersion: "1.4.0", count: 2 },
        { agentVersion: null, count: 1 },
      ],
      compliance: null,
    });
    expect(idsOf(await read(`/${fleetId}/devices?status=online&sort=createdAt`, as))).toEqual([one.deviceId, two.deviceId].sort());
  });

  test("64 creations at once at a limit of 5 leave 5", async () => {
    const { tenant: own, as } = await open();
    await world.sql.query(`update tenants set limit_overrides = '{"fleets": 5}' where tenant_id = $1`, [own.tenantId]);
    const other = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off" }, { beside: world });
    try {
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, n) => (n % 2 === 0 ? world : other).call(as, "POST", "/v1/fleets", { body: { name: `fleet ${n}` } })),
      );
      expect(winnersOf(answers, "PLAN_LIMIT_EXCEEDED")).toBe(5);
      expect((await read("", as)).meta.pagination.total).toBe(5);
    } finally {
      await other.close();
    }
  });

  test("a plan says how many there may be", async () => {
    const own = await world.tenant();
    await world.sql.query("update tenants set limit_overrides = '{}', plan = 'free' where tenant_id = $1", [own.tenantId]);
    const as = await own.user("owner");
    await made({}, as);
    expect((await create({}, as)).body).toMatchObject({ code: "PLAN_LIMIT_EXCEEDED", details: { resource: "fleets", limit: 1, used: 1 } });
  });

  test("an update that requires an outdated version changes nothing", async () => {
    const { fleetId, version } = await made();
    expect((await patch(fleetId, { name: "first", version })).body.data).toMatchObject({ name: "first", version: version + 1 });
    expect((await patch(fleetId, { name: "second", version })).body).toMatchObject({ code: "VERSION_CONFLICT", details: { currentVersion: version + 1 } });
    expect((await patch(fleetId, { name: "second" }, { "if-match": `"${version}"` })).body).toMatchObject({ code: "VERSION_CONFLICT" });
  });

  test("a deleted fleet is unknown to every operation, and its devices forget it", async () => {
    const device = await tenant.device();
    const { fleetId } = await made({ deviceIds: [device.deviceId] });
    expect((await remove(fleetId)).status).toBe(204);
    expect((await eventsOf(fleetId)).at(-1)).toEqual(["fleet.deleted", { fleetId, name: "sample" }]);
    const paths = ["", "/devices", "/summary"].map((path) => world.call(owner, "GET", `/v1/fleets/${fleetId}${path}`));
    const answers = await Promise.all([...paths, patch(fleetId, { name: "x" }), remove(fleetId), put(fleetId, device), take(fleetId, device)]);
    for (const answer of answers) expect(codeOf(answer)).toEqual([404, "FLEET_NOT_FOUND"]);
    expect((await world.sql.query("select fleet_ids from devices where device_id = $1", [device.deviceId])).rows).toEqual([{ fleet_ids: [] }]);
  });

  test("impossible values are refused", async () => {
    const { fleetId } = await made();
    for (const body of [
      { name: "" },
      { name: "a\u0000" },
      { name: "\ud800" },
      { name: "x".repeat(101) },
      { deviceIds: ["dev_1"], selector: { tags: ["a"] } },
      { selector: {} },
      { selector: { tags: [] } },
      { selector: { tags: ["Not A Tag"] } },
      { selector: { platform: "a\u0000" } },
      { selector: { agentVersion: "\ud800" } },
      { selector: { status: "asleep" } },
      { selector: { q: "x" } },
      { deviceIds: Array.from({ length: 101 }, (_, n) => `dev_${n}`) },
      { __proto__: null, extra: 1 },
    ])
      expect([body, ...codeOf(await create(body))]).toEqual([body, 400, "VALIDATION_FAILED"]);
    for (const version of [0, 2_147_483_648, "1"]) expect(codeOf(await patch(fleetId, { name: "x", version }))).toEqual([400, "VALIDATION_FAILED"]);
    for (const query of ["?sort=deviceCount", "?membership=odd", "?name=x"]) expect((await read(query)).code).toBe("VALIDATION_FAILED");
  });

  test("another tenant's devices and fleets are unknown, as impossible ids are", async () => {
    const { tenant: foreign, as } = await open();
    const theirs = await foreign.device();
    const [own, other] = [await made(), await made({}, as)];
    for (const deviceId of [theirs.deviceId, "dev_unknown", "__proto__"]) {
      expect(codeOf(await create({ deviceIds: [deviceId] }))).toEqual([404, "DEVICE_NOT_FOUND"]);
      expect(codeOf(await put(own.fleetId, { deviceId }))).toEqual([404, "DEVICE_NOT_FOUND"]);
      expect(codeOf(await take(own.fleetId, { deviceId }))).toEqual([404, "DEVICE_NOT_FOUND"]);
    }
    for (const fleetId of [other.fleetId, "flt_unknown", "__proto__"]) {
      expect(codeOf(await put(fleetId, await tenant.device()))).toEqual([404, "FLEET_NOT_FOUND"]);
      expect(codeOf(await remove(fleetId))).toEqual([404, "FLEET_NOT_FOUND"]);
    }
    expect((await read(`/${other.fleetId}`, as)).data.name).toBe("sample");
  });
});

describe("a fleet that limits somebody", () => {
  const invite = (selector: object) => world.call(owner, "POST", "/v1/invites", { body: { email: emailOf(newId("usr")), roleId: "viewer", selector } });
  const newKey = (selector: object) => world.call(owner, "POST", "/v1/api-keys", { body: { name: "limited", selector } });
  const newMember = async () => {
    const memberId = newId("mem");
    await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'viewer')", [
      memberId,
      tenant.tenantId,
      newId("usr"),
    ]);
    return memberId;
  };
  const limit = (memberId: string, selector: object | null) => world.call(owner, "PATCH", `/v1/members/${memberId}`, { body: { selector } });

  test("cannot be deleted until nobody is limited to it, and the answer says who is", async () => {
    const { fleetId } = await made();
    const selector = { fleetIds: [fleetId] };
    const memberId = await newMember();
    expect((await limit(memberId, selector)).body.data.selector).toEqual({ deviceIds: [], tags: [], fleetIds: [fleetId] });
    const { inviteId } = (await invite(selector)).body.data;
    const { keyId } = (await newKey(selector)).body.data;
    expect((await remove(fleetId)).body).toMatchObject({
      code: "FLEET_IN_USE",
      details: {
        fleetId,
        references: [
          { type: "invite", id: inviteId },
          { type: "member", id: memberId },
          { type: "apiKey", id: keyId },
        ],
      },
    });
    await limit(memberId, null);
    await world.call(owner, "DELETE", `/v1/invites/${inviteId}`);
    expect((await remove(fleetId)).body.details.references).toEqual([{ type: "apiKey", id: keyId }]);
    await world.call(owner, "DELETE", `/v1/api-keys/${keyId}`);
    expect((await remove(fleetId)).status).toBe(204);
  });

  test("is one that the tenant has, for members, keys and invites alike", async () => {
    const { fleetId: foreign } = await made({}, (await open()).as);
    const { fleetId: deleted } = await made();
    await remove(deleted);
    const memberId = await newMember();
    const { keyId } = (await newKey({ tags: ["a"] })).body.data;
    for (const fleetId of [foreign, deleted, "flt_unknown", "__proto__"]) {
      const selector = { fleetIds: [fleetId] };
      for (const answer of [
        await limit(memberId, selector),
        await newKey(selector),
        await world.call(owner, "PATCH", `/v1/api-keys/${keyId}`, { body: { selector } }),
        await invite(selector),
      ])
        expect([...codeOf(answer), answer.body.details]).toEqual([404, "FLEET_NOT_FOUND", { fleetId }]);
    }
    for (const fleetIds of [[], ["a\u0000"], Array.from({ length: 51 }, (_, n) => `flt_${n}`), "flt_1"])
      expect(codeOf(await limit(memberId, { fleetIds }))).toEqual([400, "VALIDATION_FAILED"]);
  });

  test("does not follow the status of devices, neither before nor after", async () => {
    const moving = await made({ selector: { status: "online" } });
    for (const answer of [await limit(await newMember(), { fleetIds: [moving.fleetId] }), await newKey({ fleetIds: [moving.fleetId] })]) {
      expect(codeOf(answer)).toEqual([400, "VALIDATION_FAILED"]);
      expect(answer.body.details).toMatchObject({ reason: "fleet_follows_status", issues: [{ path: "selector.fleetIds.0" }] });
    }
    const { fleetId, version } = await made({ selector: { tags: ["a"] } });
    await newKey({ fleetIds: [fleetId] });
    expect(codeOf(await patch(fleetId, { selector: { tags: ["a"], status: "online" } }))).toEqual([409, "FLEET_IN_USE"]);
    expect((await read(`/${fleetId}`)).data).toMatchObject({ version, selector: { status: null } });
  });

  test("of a deletion and 16 new limits at once, either the deletion or every limit is refused", async () => {
    for (let round = 0; round < 4; round += 1) {
      const { fleetId } = await made();
      const [deletion, ...keys] = await Promise.all([remove(fleetId), ...Array.from({ length: 16 }, () => newKey({ fleetIds: [fleetId] }))]);
      const limited = keys.filter(({ status }) => status === 201).length;
      expect(keys.every(({ status, body }) => status === 201 || body.code === "FLEET_NOT_FOUND")).toBe(true);
      expect(deletion.status === 204 ? limited === 0 : deletion.body.code === "FLEET_IN_USE" && limited > 0).toBe(true);
    }
  });
});
