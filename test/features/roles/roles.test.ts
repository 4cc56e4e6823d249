// Roles and members: nobody grants or manages more than they hold, the tenant keeps an owner, and every change takes effect at once.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { winnersOf } from "../../kit/gateway/races.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", DATABASE_POOL: "32" });
});
afterAll(() => world.close());

const builtIn = (role: string): string => `rol_${role.padStart(20, "0")}`;

interface Person {
  readonly as: Caller;
  readonly userId: string;
  readonly memberId: string;
}
const personOf = async (tenant: TestTenant, role: "viewer" | "operator" | "admin" | "owner"): Promise<Person> => {
  const as = await tenant.user(role);
  const userId = (await world.call(as, "GET", "/v1/auth/me")).body.data.subject;
  const { rows } = await world.sql.query("select member_id from memberships where tenant_id = $1 and user_id = $2", [tenant.tenantId, userId]);
  return { as, userId, memberId: rows[0].member_id };
};
const setUp = async (options: { unlimited?: boolean } = {}) => {
  const tenant = await world.tenant(options);
  return { tenant, owner: await personOf(tenant, "owner") };
};

const create = (as: Caller, permissions: readonly string[], name: string = newId("role")) =>
  world.call(as, "POST", "/v1/roles", { body: { name, permissions } });
const give = (as: Caller, { memberId }: Person, body: object) => world.call(as, "PATCH", `/v1/members/${memberId}`, { body });
const remove = (as: Caller, { memberId }: Person) => world.call(as, "DELETE", `/v1/members/${memberId}`);
const codeOf = ({ status, body }: { status: number; body: { code?: string } | null }) => [status, body?.code ?? null];

describe("roles", () => {
  test("a custom role grants what it lists, from the next call on, and no more", async () => {
    const { tenant, owner } = await setUp();
    const viewer = await personOf(tenant, "viewer");
    const role = (await create(owner.as, ["device:read", "role:read"], "Night shift")).body.data;
    expect(role).toMatchObject({ key: "night-shift", builtIn: false, memberCount: 0, permissions: ["device:read", "role:read"] });
    expect(codeOf(await give(owner.as, viewer, { roleId: role.roleId }))).toEqual([200, null]);
    expect((await world.call(viewer.as, "GET", "/v1/devices")).status).toBe(200);
    expect((await world.call(viewer.as, "GET", "/v1/members")).body.details).toEqual({ requiredPermission: "member:read", role: "night-shift" });
    expect((await world.call(viewer.as, "GET", "/v1/auth/me")).body.data).toMatchObject({ role: "night-shift", permissions: ["device:read", "role:read"] });

    await world.call(owner.as, "PATCH", `/v1/roles/${role.roleId}`, { body: { permissions: ["member:read"] } });
    expect((await world.call(viewer.as, "GET", "/v1/members")).status).toBe(200);
    expect((await world.call(viewer.as, "GET", "/v1/devices")).status).toBe(403);
    expect((await world.call(owner.as, "GET", `/v1/roles/${role.roleId}`)).body.data).toMatchObject({ memberCount: 1, version: 2 });
    expect(codeOf(await world.call(owner.as, "DELETE", `/v1/roles/${role.roleId}`))).toEqual([409, "ROLE_IN_USE"]);
  });

  test("built-in roles are listed first and cannot be changed, and their names are taken", async () => {
    const { owner } = await setUp();
    const { items } = { items: (await world.call(owner.as, "GET", "/v1/roles")).body.data };
    expect(items.map(({ key }: { key: string }) => key)).toEqual(["viewer", "operator", "admin", "owner"]);
    for (const [method, body] of [
      ["PATCH", { description: "mine" }],
      ["DELETE", undefined],
    ] as const)
      expect(codeOf(await world.call(owner.as, method, `/v1/roles/${builtIn("viewer")}`, body === undefined ? {} : { body }))).toEqual([409, "ROLE_IMMUTABLE"]);
    await create(owner.as, ["device:read"], "Guards");
    for (const name of ["OWNER", " owner! ", "guards", "GUARDS"])
      expect(codeOf(await create(owner.as, ["device:read"], name))).toEqual([409, "ROLE_NAME_RESERVED"]);
    expect((await create(owner.as, ["device:read"], "夜班")).body.data.key).toMatch(/^role-[0-9a-z]{8}$/);
  });

  test("unknown permissions and unstorable names get a clear answer", async () => {
    const { owner } = await setUp();
    for (const key of ["device:dance", "__proto__", "constructor", ""])
      expect(codeOf(await create(owner.as, ["device:read", key]))).toEqual([422, "PERMISSION_UNKNOWN"]);
    for (const name of ["a\u0000b", "\ud800", "", "x".repeat(101)])
      expect(codeOf(await create(owner.as, ["device:read"], name))).toEqual([400, "VALIDATION_FAILED"]);
    expect(codeOf(await create(owner.as, []))).toEqual([400, "VALIDATION_FAILED"]);
    expect((await create(owner.as, ["device:read", "device:read"])).body.data.permissions).toEqual(["device:read"]);
  });

  test("64 roles at once at the plan's limit leave as many as it allows, and 50 without one", { timeout: 60_000 }, async () => {
    for (const [unlimited, expected] of [
      [false, 10],
      [true, 50],
    ] as const) {
      const { tenant, owner } = await setUp({ unlimited });
      await world.sql.query("update tenants set plan = 'team', limit_overrides = $2 where tenant_id = $1", [tenant.tenantId, unlimited ? { "*": null } : {}]);
      const answers = await Promise.all(Array.from({ length: 64 }, () => create(owner.as, ["device:read"])));
      expect(winnersOf(answers, "PLAN_LIMIT_EXCEEDED")).toBe(expected);
      expect((await create(owner.as, ["device:read"])).body).toMatchObject({ code: "PLAN_LIMIT_EXCEEDED", details: { limit: expected } });
    }
  });
});

describe("escalation", () => {
  test("nobody puts into a role what they do not hold, or changes a role that holds more", async () => {
    const { tenant, owner } = await setUp();
    const admin = await personOf(tenant, "admin");
    expect((await create(admin.as, ["device:read", "tenant:delete"])).body).toMatchObject({
      code: "PRIVILEGE_ESCALATION",
      details: { permissions: ["tenant:delete"] },
    });
    const strong = (await create(owner.as, ["tenant:delete"])).body.data;
    for (const body of [{ permissions: ["device:read"] }, { name: "mine" }])
      expect(codeOf(await world.call(admin.as, "PATCH", `/v1/roles/${strong.roleId}`, { body }))).toEqual([403, "PRIVILEGE_ESCALATION"]);
    expect(codeOf(await world.call(admin.as, "DELETE", `/v1/roles/${strong.roleId}`))).toEqual([403, "PRIVILEGE_ESCALATION"]);
  });

  test("nobody grants a role above their own, or manages a member who may do more", async () => {
    const { tenant, owner } = await setUp();
    const [viewer, admin] = [await personOf(tenant, "viewer"), await personOf(tenant, "admin")];
    for (const who of [viewer, admin]) expect(codeOf(await give(admin.as, who, { roleId: builtIn("owner") }))).toEqual([403, "PRIVILEGE_ESCALATION"]);
    expect(codeOf(await give(admin.as, owner, { roleId: builtIn("viewer") }))).toEqual([403, "PRIVILEGE_ESCALATION"]);
    expect(codeOf(await give(admin.as, owner, { selector: { tags: ["x"] } }))).toEqual([403, "PRIVILEGE_ESCALATION"]);
    expect(codeOf(await remove(admin.as, owner))).toEqual([403, "PRIVILEGE_ESCALATION"]);
    expect(codeOf(await give(admin.as, viewer, { roleId: builtIn("admin") }))).toEqual([200, null]);
  });

  test("a member without member:write removes nobody but herself", async () => {
    const { tenant } = await setUp();
    const [viewer, operator] = [await personOf(tenant, "viewer"), await personOf(tenant, "operator")];
    expect((await remove(operator.as, viewer)).body).toMatchObject({ code: "FORBIDDEN", details: { requiredPermission: "member:write", role: "operator" } });
    expect((await remove(viewer.as, viewer)).status).toBe(204);
    expect((await world.call(viewer.as, "GET", "/v1/devices")).body.details).toEqual({ reason: "not_a_member" });
  });
});

describe("owners", () => {
  test("the last owner cannot leave, step down or be limited to some devices", async () => {
    const { owner } = await setUp();
    for (const answer of [
      await remove(owner.as, owner),
      await give(owner.as, owner, { roleId: builtIn("admin") }),
      await give(owner.as, owner, { selector: { tags: ["site:berlin"] } }),
    ])
      expect(codeOf(answer)).toEqual([409, "LAST_OWNER"]);
  });

  test("of two owners who leave at the same moment one stays", async () => {
    for (let round = 0; round < 5; round += 1) {
      const { tenant, owner } = await setUp();
      const second = await personOf(tenant, "admin");
      await give(owner.as, second, { roleId: builtIn("owner") });
      const answers = await Promise.all([remove(owner.as, owner), remove(second.as, second)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([204, 409]);
    }
  });

  test("the ownership goes to another member, who loses every limit, and the old owner becomes an admin", async () => {
    const { tenant, owner } = await setUp();
    const operator = await personOf(tenant, "operator");
    await give(owner.as, operator, { selector: { tags: ["site:berlin"] } });
    const path = `/v1/tenants/${tenant.tenantId}/transfer-ownership`;
    expect(codeOf(await world.call(owner.as, "POST", path, { body: { userId: "nobody" } }))).toEqual([404, "MEMBER_NOT_FOUND"]);
    expect((await world.call(owner.as, "POST", path, { body: { userId: operator.userId } })).body.data).toEqual({
      ...{ tenantId: tenant.tenantId, owner: operator.userId, previousOwner: owner.userId },
    });
    expect((await world.call(operator.as, "GET", "/v1/auth/me")).body.data).toMatchObject({ role: "owner", selector: null });
    expect((await world.call(owner.as, "GET", "/v1/auth/me")).body.data).toMatchObject({ role: "admin" });
    expect((await world.call(owner.as, "POST", path, { body: { userId: owner.userId } })).body.details).toEqual({
      requiredPermission: "tenant:transfer",
      role: "admin",
    });
    const events = await world.sql.query("select type from outbox_events where tenant_id = $1 and type like '%owner%'", [tenant.tenantId]);
    expect(events.rows).toEqual([{ type: "tenant.ownership_transferred" }]);
  });
});

describe("devices of a member", () => {
  test("a selector limits the member at once, names only devices of the tenant, and null lifts it", async () => {
    const [{ tenant, owner }, other] = [await setUp(), await setUp()];
    const viewer = await personOf(tenant, "viewer");
    const [mine, foreign] = [await tenant.device(), await other.tenant.device()];
    await tenant.device();
    for (const deviceId of [foreign.deviceId, "dev_unknown"])
      expect(codeOf(await give(owner.as, viewer, { selector: { deviceIds: [deviceId] } }))).toEqual([404, "DEVICE_NOT_FOUND"]);
    for (const selector of [{}, { tags: [] }, { fleetIds: [] }, { tags: ["Not A Tag"] }, { tags: ["a\u0000"] }])
      expect(codeOf(await give(owner.as, viewer, { selector }))).toEqual([400, "VALIDATION_FAILED"]);
    expect((await give(owner.as, viewer, { selector: { deviceIds: [mine.deviceId] } })).body.data.selector).toEqual({
      deviceIds: [mine.deviceId],
      tags: [],
      fleetIds: [],
    });
    const seen = async () => (await world.call(viewer.as, "GET", "/v1/devices")).body.meta.pagination.total;
    expect(await seen()).toBe(1);
    await give(owner.as, viewer, { selector: null });
    expect(await seen()).toBe(2);
  });

  test("the version decides between two changes", async () => {
    const { tenant, owner } = await setUp();
    const viewer = await personOf(tenant, "viewer");
    const answers = await Promise.all([1, 2, 3].map(() => give(owner.as, viewer, { roleId: builtIn("operator"), version: 1 })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });
});
