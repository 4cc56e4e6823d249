// Scopes and devices of API keys: a key has what its role, its scopes and its creator have in common, and sees the devices that both may see.
import { afterAll, beforeAll, expect, test } from "vitest";
import { asKey, type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
let berlin: Device;
beforeAll(async () => {
  world = await startWorld();
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  berlin = await tenant.device();
  await tenant.device();
  await world.call(owner, "PATCH", `/v1/devices/${berlin.deviceId}`, { body: { tags: ["site:berlin"] } });
});
afterAll(() => world.close());

const create = (body: object, as = owner) => world.call(as, "POST", "/v1/api-keys", { body: { name: "script", ...body } });
const made = async (body: object, as = owner) => {
  const { body: answer } = await create(body, as);
  return { keyId: answer.data.keyId as string, as: asKey(answer.data.apiKey, tenant.tenantId) };
};
const meOf = async (as: Caller) => (await world.call(as, "GET", "/v1/auth/me")).body.data;
const devicesOf = async (as: Caller): Promise<number> => (await world.call(as, "GET", "/v1/devices")).body.meta.pagination.total;

test("scopes narrow the role, and a change of them holds from the next call on", async () => {
  const key = await made({ role: "operator", scopes: ["device:read"] });
  expect((await meOf(key.as)).permissions).toEqual(["device:read"]);
  expect(await devicesOf(key.as)).toBe(2);
  expect((await world.call(key.as, "GET", `/v1/devices/${berlin.deviceId}/commands`)).body.details).toEqual({
    requiredPermission: "command:read",
    role: "operator",
  });
  await world.call(owner, "PATCH", `/v1/api-keys/${key.keyId}`, { body: { scopes: ["command:read"] } });
  expect((await world.call(key.as, "GET", `/v1/devices/${berlin.deviceId}/commands`)).status).toBe(200);
  expect((await world.call(key.as, "GET", "/v1/devices")).status).toBe(403);
});

test("scopes that do not exist, or that the role does not have, are refused", async () => {
  for (const scope of ["device:dance", "__proto__"]) expect((await create({ scopes: [scope] })).body.code).toBe("PERMISSION_UNKNOWN");
  expect((await create({ role: "viewer", scopes: ["device:delete"] })).body).toMatchObject({
    code: "VALIDATION_FAILED",
    details: { issues: [{ path: "scopes.0" }] },
  });
});

test("nobody gives a key more than they hold, when they create it and when they change it", async () => {
  const admin = await tenant.user("admin");
  expect((await create({ role: "owner", scopes: ["tenant:delete"] }, admin)).body).toMatchObject({
    code: "PRIVILEGE_ESCALATION",
    details: { permissions: ["tenant:delete"] },
  });
  const { keyId } = await made({ role: "owner", scopes: ["device:read"] }, admin);
  for (const scopes of [["tenant:delete"], []])
    expect((await world.call(admin, "PATCH", `/v1/api-keys/${keyId}`, { body: { scopes } })).body.code).toBe("PRIVILEGE_ESCALATION");
});

test("a key with a selector sees those devices only, and no permission that concerns the tenant", async () => {
  const key = await made({ role: "admin", selector: { tags: ["site:berlin"] } });
  expect(await devicesOf(key.as)).toBe(1);
  expect(await meOf(key.as)).toMatchObject({ role: "admin", selector: { deviceIds: [], tags: ["site:berlin"] } });
  expect((await world.call(key.as, "GET", "/v1/audit-logs")).body.details).toMatchObject({ reason: "limited_access" });
  await world.call(owner, "PATCH", `/v1/api-keys/${key.keyId}`, { body: { selector: null } });
  expect(await devicesOf(key.as)).toBe(2);
  const other = await (await world.tenant()).device();
  for (const deviceId of [other.deviceId, "dev_unknown"]) expect((await create({ selector: { deviceIds: [deviceId] } })).body.code).toBe("DEVICE_NOT_FOUND");
});

test("a key sees no device that its creator does not see", async () => {
  const admin = await tenant.user("admin");
  const [all, few] = [await made({ role: "operator" }, admin), await made({ role: "operator", selector: { deviceIds: [berlin.deviceId] } }, admin)];
  const members = (await world.call(owner, "GET", "/v1/members")).body.data as { memberId: string; role: string }[];
  const memberId = members.find(({ role }) => role === "admin")?.memberId;
  const limit = (selector: object | null) => world.call(owner, "PATCH", `/v1/members/${memberId}`, { body: { selector } });
  await limit({ tags: ["site:berlin"] });
  expect([await devicesOf(all.as), await devicesOf(few.as)]).toEqual([1, 1]);
  await limit({ tags: ["site:paris"] });
  expect([await devicesOf(all.as), await devicesOf(few.as)]).toEqual([0, 0]);
  await limit(null);
  expect([await devicesOf(all.as), await devicesOf(few.as)]).toEqual([2, 1]);
});
