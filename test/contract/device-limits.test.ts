// A member who is limited to some devices never meets another one, whatever operation of the contract she calls. Generated over all of them.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isOfTenant, type Permission } from "../../protocol/index.ts";
import { newId } from "../../server/core/ids.ts";
import { type Caller, emailOf, startWorld, type World } from "../kit/gateway/world.ts";
import { CASES, type Case, type OperationId, openStock, pair, REST_CASES, SESSION_ONLY, type Stock, sample, send, toRequest } from "./samples.ts";

const TAG = "site:berlin";
let world: World;
/** One tenant with two devices; only the first has the tag. */
let inside: Stock;
let outside: Stock;
let limited: Caller;
let limitedId: string;

beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_PAIRING: "off", TENANTS_PER_USER: "100" }, { inProcess: true });
  inside = await openStock(world);
  const other = await pair(inside);
  outside = { ...inside, device: other.device, pairingCode: other.code };
  await world.sql.query("update devices set tags = array[$2] where device_id = $1", [inside.device.deviceId, TAG]);
  // An owner by role, so that nothing but the limit stands in the way.
  limitedId = newId("usr");
  const { tenantId } = inside.tenant;
  const { token } = await world.app.mint({ userId: limitedId, email: emailOf(limitedId), tenantId, role: "owner", ttlSeconds: 3_600 });
  await limit();
  limited = { kind: "user", headers: () => ({ authorization: `Bearer ${token}` }) };
});
afterAll(() => world.close());

const byUser = REST_CASES.filter(({ id, op }) => op.auth.includes("user") && op.permission !== "platform" && !SESSION_ONLY.has(id));
const needsTenant = ({ op }: Case): boolean => !["self", "public", "platform"].includes(op.permission) && isOfTenant(op.permission as Permission);
const named = (cases: readonly Case[]) => cases.map((each) => [each.id, each] as const);
/** Also after one of the operations has let her leave. */
const limit = () =>
  world.sql.query(
    `insert into memberships (member_id, tenant_id, user_id, role, selector) values ($1, $2, $3, 'owner', $4)
     on conflict (tenant_id, user_id) do update set selector = $4`,
    [newId("mem"), inside.tenant.tenantId, limitedId, { deviceIds: [], tags: [TAG] }],
  );
const inputFor = async (each: Case, stock: Stock) => {
  await limit();
  return sample(each, stock, limitedId);
};
const IDS: Readonly<Record<string, string>> = {
  deviceId: newId("dev"),
  commandId: newId("cmd"),
  pairingCode: "BBBB-BBBB",
  fleetId: newId("flt"),
  appId: newId("app"),
  deploymentId: newId("dep"),
};
const timeless = (body: unknown): string => JSON.stringify(body, (name, value) => (["timestamp", "requestId", "meta"].includes(name) ? undefined : value));

describe("a limited member", () => {
  test.each(named(byUser.filter(needsTenant)))("may not call %s, which concerns the tenant as a whole", async (_, each) => {
    // Refused before anybody reads the input.
    const answer = await send(inside, limited, "/v1", toRequest(each.op, {}));
    expect([answer.status, answer.body.details]).toEqual([403, { requiredPermission: each.op.permission, role: "owner", reason: "limited_access" }]);
  });

  test.each(named(byUser.filter((each) => !needsTenant(each))))("calls %s for her own devices, and meets no other", async (_, each) => {
    const input = await inputFor(each, inside);
    if (input["deviceId"] !== undefined) await world.sql.query("update devices set tags = array[$2] where device_id = $1", [input["deviceId"], TAG]);
    const own = await send(inside, limited, "/v1", toRequest(each.op, input));
    expect([own.status, own.body?.code ?? null]).toEqual([each.op.status, null]);

    const foreign = await inputFor(each, outside);
    const field = Object.keys(IDS).find((name) => name in foreign);
    if (field === undefined) {
      for (const secret of [outside.device.deviceId, outside.device.fingerprint, outside.device.identity.agentId])
        expect(timeless(own.body)).not.toContain(secret);
      return;
    }
    const answers = [];
    for (const value of [foreign[field], IDS[field]]) {
      const answer = await send(outside, limited, "/v1", toRequest(each.op, { ...foreign, [field]: value }));
      answers.push([answer.status, timeless(answer.body).replaceAll(String(value), "ID")]);
    }
    expect(answers[0]?.[0]).toBe(404);
    expect(answers[0]).toEqual(answers[1]);
  });

  test("sees one device in lists and counts", async () => {
    await limit();
    const path = `/v1/tenants/${inside.tenant.tenantId}`;
    const read = async (as: Caller, at: string) => (await world.call(as, "GET", at)).body;
    expect((await read(inside.owner, "/v1/devices")).meta.pagination.total).toBeGreaterThan(1);
    await world.sql.query("update devices set tags = '{}' where tenant_id = $1 and device_id <> $2", [inside.tenant.tenantId, inside.device.deviceId]);
    const list = await read(limited, "/v1/devices");
    expect([list.data.map(({ deviceId }: { deviceId: string }) => deviceId), list.meta.pagination.total]).toEqual([[inside.device.deviceId], 1]);
    expect((await read(limited, `${path}/summary`)).data.devices).toBe(1);
    const dashboard = (await read(limited, `${path}/dashboard`)).data;
    expect(dashboard.devices.total).toBe(1);
    expect(JSON.stringify(dashboard)).not.toContain(outside.device.deviceId);
    expect((await read(limited, `${path}/metrics?metric=health&range=1h`)).data.summary.devices).toMatchObject({ online: 0 });
    expect((await world.call(limited, "GET", `${path}/metrics?metric=activity&range=1h`)).body.details).toMatchObject({ reason: "limited_access" });
  });

  test("may not change tags, which decide who sees a device", async () => {
    const answer = await world.call(limited, "PATCH", `/v1/devices/${inside.device.deviceId}`, { body: { tags: [] } });
    expect([answer.status, answer.body.details]).toEqual([403, { reason: "limited_access", field: "tags" }]);
  });

  test("learns her limits from her own identity", async () => {
    const { role, permissions, selector } = (await world.call(limited, "GET", "/v1/auth/me")).body.data;
    expect([role, selector]).toEqual(["owner", { deviceIds: [], tags: [TAG], fleetIds: [] }]);
    expect(permissions).toContain("device:command");
    expect(permissions.some((permission: Permission) => isOfTenant(permission))).toBe(false);
  });

  test("every operation is in one of the groups above, or has no caller with limits", () => {
    const others = CASES.filter((each) => !byUser.includes(each)).map(({ id, op }) => [id, op.auth.join(), op.permission]);
    for (const [id, auth, permission] of others)
      expect([
        id,
        auth === "public" ||
          auth === "agent" ||
          permission === "platform" ||
          id === "live.watch" ||
          permission === "trace:write" ||
          SESSION_ONLY.has(id as OperationId),
      ]).toEqual([id, true]);
  });
});
