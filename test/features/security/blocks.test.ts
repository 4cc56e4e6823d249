// Blocked entities over HTTP: what may be blocked by whom, how a block ends, and what stays out of reach of a tenant.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { winnersOf } from "../../kit/gateway/races.ts";
import { type Answer, anonymous, asKey, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
let operator: Caller;
beforeAll(async () => {
  world = await startWorld({ TRUSTED_PROXIES: "127.0.0.0/8", RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", RATE_LIMIT_READS: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  operator = await world.operator();
});
afterAll(() => world.close());

const OWN = "/v1/security/blocked-entities";
const EVERYWHERE = "/v1/admin/security/blocked-entities";
const HOME = { headers: { "x-forwarded-for": "192.0.2.10" } };
const codeOf = ({ status, body }: Answer) => [status, body?.code ?? null];
const block = (body: object, as = owner, path = OWN) => world.call(as, "POST", path, { body, ...HOME });
const unblock = (id: string, as = owner, path = OWN) => world.call(as, "DELETE", `${path}/${id}`, HOME);
const valuesOf = async (as: Caller, path = OWN): Promise<string[]> =>
  (await world.call(as, "GET", path)).body.data.map(({ entityValue }: { entityValue: string }) => entityValue);
const open = async () => {
  const own = await world.tenant();
  return { tenant: own, as: await own.user("owner") };
};
const userOf = (own: TestTenant, role: string) => own.ownerId.replace("owner", role);

describe("nobody blocks", () => {
  test.each([
    ["themselves", async () => block({ entityType: "user", entityValue: tenant.ownerId })],
    ["their own address", async () => block({ entityType: "ip", entityValue: "192.0.2.10" })],
    ["their own address in another form", async () => block({ entityType: "ip", entityValue: "::ffff:192.0.2.10" })],
    ["the network they call from", async () => block({ entityType: "ip", entityValue: "192.0.2.99/24" })],
    ["themselves in the whole installation", async () => block({ entityType: "ip", entityValue: "192.0.0.0/8" }, operator, EVERYWHERE)],
  ])("%s", async (_, act) => expect(codeOf(await act())).toEqual([409, "CANNOT_BLOCK_SELF"]));

  test("their own key", async () => {
    const { apiKey, keyId } = (await world.call(owner, "POST", "/v1/api-keys", { body: { name: "guard", role: "admin" } })).body.data;
    expect(codeOf(await block({ entityType: "key", entityValue: keyId }, asKey(apiKey, tenant.tenantId)))).toEqual([409, "CANNOT_BLOCK_SELF"]);
  });

  test("the last owner, nor a member who may do more", async () => {
    const { tenant: own, as } = await open();
    const admin = await own.user("admin");
    expect(codeOf(await block({ entityType: "user", entityValue: own.ownerId }, admin))).toEqual([403, "PRIVILEGE_ESCALATION"]);
    const { apiKey } = (await world.call(as, "POST", "/v1/api-keys", { body: { name: "guard", role: "owner" } })).body.data;
    const key = asKey(apiKey, own.tenantId);
    expect(codeOf(await block({ entityType: "user", entityValue: own.ownerId }, key))).toEqual([409, "CANNOT_BLOCK_SELF"]);
    const second = newId("usr");
    await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'owner')", [newId("mem"), own.tenantId, second]);
    const both = await Promise.all([own.ownerId, second].map((entityValue) => block({ entityType: "user", entityValue }, key)));
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  test.each([
    { entityType: "ip", entityValue: "0.0.0.0/0" },
    { entityType: "ip", entityValue: "somewhere" },
    { entityType: "ip", entityValue: "203.0.113.1\u0000" },
    { entityType: "user", entityValue: "\ud800" },
    { entityType: "user", entityValue: " " },
    { entityType: "__proto__", entityValue: "x" },
    { entityType: "tenant", entityValue: "x" },
    { entityType: "user", entityValue: "x".repeat(256) },
    { entityType: "user", entityValue: "x", reason: "y".repeat(501) },
    { entityType: "user", entityValue: "x", expiresAt: "0000-01-01T00:00:00.000Z" },
    { entityType: "user", entityValue: "x", expiresAt: "2001-01-01T00:00:00.000Z" },
    { entityType: "user", entityValue: "x", expiresAt: "9999-01-01T00:00:00.000Z" },
    { entityType: "user", entityValue: "x", expiresAt: 2 ** 31 },
  ])("what is none: %j", async (body) => expect(codeOf(await block(body))).toEqual([400, "VALIDATION_FAILED"]));
});

describe("a block", () => {
  test("is there once, however many ask for it at once, and in one form", async () => {
    const { as } = await open();
    const forms = ["203.0.113.9", "::ffff:203.0.113.9", "::FFFF:cb00:7109", "203.0.113.9/32"];
    const answers = await Promise.all(Array.from({ length: 32 }, (_, n) => block({ entityType: "ip", entityValue: forms[n % 4] }, as)));
    expect(winnersOf(answers, "ENTITY_ALREADY_BLOCKED")).toBe(1);
    expect(await valuesOf(as)).toEqual(["203.0.113.9"]);
  });

  test("tells of itself and of its end, each with who did it", async () => {
    const { tenant: own, as } = await open();
    const { data } = (await block({ entityType: "device", entityValue: "dev_x", reason: "stolen" }, as)).body;
    expect(data).toMatchObject({ entityType: "device", entityValue: "dev_x", reason: "stolen", createdBy: `user:${own.ownerId}`, expiresAt: null });
    expect((await unblock(data.id, as)).status).toBe(204);
    expect(codeOf(await unblock(data.id, as))).toEqual([404, "BLOCKED_ENTITY_NOT_FOUND"]);
    const { rows } = await world.sql.query("select type, data from outbox_events where subject_id = $1 order by position", [data.id]);
    const event = { blockedEntityId: data.id, entityType: "device", entityValue: "dev_x" };
    expect(rows.map(({ type, data: sent }) => [type, sent])).toEqual([
      ["security.entity_blocked", { ...event, reason: "stolen", expiresAt: null }],
      ["security.entity_unblocked", { ...event, cause: "person" }],
    ]);
  });

  test("ends by itself in time, with an event and a record, and can be made again before", async () => {
    const { tenant: own, as } = await open();
    const viewer = await own.user("viewer");
    const wanted = { entityType: "user", entityValue: userOf(own, "viewer"), expiresAt: new Date(Date.now() + 1_500).toISOString() };
    const { data } = (await block(wanted, as)).body;
    await eventually(async () => expect(codeOf(await world.call(viewer, "GET", "/v1/devices"))).toEqual([403, "ENTITY_BLOCKED"]));
    await eventually(async () => expect((await world.call(viewer, "GET", "/v1/devices")).status).toBe(200));
    await eventually(async () => {
      const { rows } = await world.sql.query("select data from outbox_events where subject_id = $1 and type = 'security.entity_unblocked'", [data.id]);
      expect(rows).toMatchObject([{ data: { cause: "expired" } }]);
    });
    const { rows } = await world.sql.query("select action from audit_logs where tenant_id = $1 and resource_id = $2 order by sequence", [
      own.tenantId,
      data.id,
    ]);
    expect(rows.map(({ action }) => action)).toContain("security.expire");
    expect((await block({ ...wanted, expiresAt: null }, as)).status).toBe(201);
  });

  test("of a tenant is unknown to every other, and refuses nobody there", async () => {
    const [one, other] = [await open(), await open()];
    const viewer = await other.tenant.user("viewer");
    const { data } = (await block({ entityType: "user", entityValue: userOf(other.tenant, "viewer") }, one.as)).body;
    await block({ entityType: "ip", entityValue: "203.0.113.200" }, one.as);
    const from = { headers: { "x-forwarded-for": "203.0.113.200" } };
    await eventually(async () => expect(codeOf(await world.call(one.as, "GET", "/v1/devices", from))).toEqual([403, "ENTITY_BLOCKED"]));
    expect(codeOf(await world.call(viewer, "GET", "/v1/devices", from))).toEqual([200, null]);
    expect(codeOf(await unblock(data.id, other.as))).toEqual([404, "BLOCKED_ENTITY_NOT_FOUND"]);
    expect(codeOf(await unblock(data.id, operator, EVERYWHERE))).toEqual([404, "BLOCKED_ENTITY_NOT_FOUND"]);
    expect(await valuesOf(other.as)).toEqual([]);
  });

  test("of an address in the whole installation stops every call, also without a credential, and its user can lift it", async () => {
    const from = { headers: { "x-forwarded-for": "2001:db8:bad::7" } };
    const { data } = (await block({ entityType: "ip", entityValue: "2001:db8:bad::/48" }, operator, EVERYWHERE)).body;
    for (const [as, path] of [
      [owner, "/v1/devices"],
      [anonymous, "/v1/health"],
      [anonymous, "/nothing"],
      [operator, EVERYWHERE],
    ] as const)
      await eventually(async () => expect([path, ...codeOf(await world.call(as, "GET", path, from))]).toEqual([path, 403, "ENTITY_BLOCKED"]));
    expect(await valuesOf(operator, EVERYWHERE)).toEqual(["2001:db8:bad::/48"]);
    expect(await valuesOf(owner)).not.toContain("2001:db8:bad::/48");
    expect((await unblock(data.id, operator, EVERYWHERE)).status).toBe(204);
    await eventually(async () => expect((await world.call(owner, "GET", "/v1/devices", from)).status).toBe(200));
  });

  test("is one of 1,000 at most", async () => {
    const { tenant: own, as } = await open();
    await world.sql.query(
      `insert into blocked_entities (blocked_entity_id, tenant_id, entity_type, entity_value, created_by)
       select 'bke_' || n || $1, $1, 'device', 'dev_' || n, 'user:x' from generate_series(1, 995) n`,
      [own.tenantId],
    );
    const answers = await Promise.all(Array.from({ length: 64 }, (_, n) => block({ entityType: "key", entityValue: `key_${n}` }, as)));
    expect(winnersOf(answers, "SECURITY_LIMIT_REACHED")).toBe(5);
  });
});
