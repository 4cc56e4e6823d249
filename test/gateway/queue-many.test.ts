// POST /v1/devices/commands as its callers meet it: over REST and tRPC, behind the tenant wall and a member's limits, and against the rate limit.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { type Caller, emailOf, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

const PATH = "/v1/devices/commands";
let world: World;
let tenant: TestTenant;
let owner: Caller;
let ids: string[];
beforeAll(async () => {
  world = await startWorld();
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  ids = [(await tenant.device()).deviceId, (await tenant.device()).deviceId];
});
afterAll(() => world.close());

const send = (as: Caller, body: object, headers: Record<string, string> = {}) => world.call(as, "POST", PATH, { body: { type: "ping", ...body }, headers });
const codesOf = (items: readonly { readonly error: { readonly code: string } | null }[]) => items.map(({ error }) => error?.code ?? null);
const commandsOf = async (tenantId: string): Promise<number> =>
  (await world.sql.query("select count(*)::int as n from commands where tenant_id = $1", [tenantId])).rows[0].n;

describe("transports", () => {
  test("REST, tRPC and the single call answer the same command under the same key", async () => {
    const key = newId("k");
    const first = await send(tenant.apiKey, { deviceIds: ids }, { "idempotency-key": key });
    expect([first.status, first.body.data.counts]).toEqual([200, { created: 2, replayed: 0, refused: 0 }]);
    const again = await send(tenant.apiKey, { deviceIds: ids }, { "idempotency-key": key });
    expect([again.headers.get("idempotent-replayed"), again.body.data.items]).toEqual(["true", first.body.data.items]);
    const overTrpc = await world.call(tenant.apiKey, "POST", "/trpc/commands.queueMany", { body: { deviceIds: ids, type: "ping", idempotencyKey: key } });
    expect(overTrpc.body.result.data.items).toEqual(first.body.data.items);
    const alone = await world.call(tenant.apiKey, "POST", `/v1/devices/${ids[1]}/commands`, { body: { type: "ping" }, headers: { "idempotency-key": key } });
    expect([alone.status, alone.body.data]).toEqual([201, { ...first.body.data.items[1].command, id: first.body.data.items[1].command.commandId }]);
  });

  test("the typed client names what it gets", async () => {
    const client = await tenant.trpc("operator");
    const { items, counts } = await client.commands.queueMany.mutate({ deviceIds: [ids[0] ?? "", "dev_unknown"], type: "ping" });
    const [command, error] = [items[0]?.command?.status, items[1]?.error?.code];
    expect([command, error, counts.refused]).toEqual(["queued", "DEVICE_NOT_FOUND", 1]);
  });

  test("a device's agent, and a member who may only read, queue nothing", async () => {
    const { as } = await tenant.device();
    for (const caller of [as, await tenant.user("viewer")]) expect((await send(caller, { deviceIds: ids })).body.code).toBe("FORBIDDEN");
  });
});

describe("walls", () => {
  test("another tenant's device is answered like an unknown one, by its id and by a selector", async () => {
    const other = await world.tenant();
    const { deviceId } = await other.device();
    await world.sql.query("update devices set tags = '{shared}' where device_id = any($1)", [[deviceId, ids[0]]]);
    const unknown = newId("dev");
    const { items } = (await send(owner, { deviceIds: [deviceId, unknown, ids[0]] })).body.data;
    expect(codesOf(items)).toEqual(["DEVICE_NOT_FOUND", "DEVICE_NOT_FOUND", null]);
    expect(JSON.stringify(items[0]).replaceAll(deviceId, "ID")).toBe(JSON.stringify(items[1]).replaceAll(unknown, "ID"));
    expect((await send(owner, { selector: { tags: ["shared"] } })).body.data.items.map((item: { deviceId: string }) => item.deviceId)).toEqual([ids[0]]);
    expect(await commandsOf(other.tenantId)).toBe(0);
  });

  test("a limited member commands the devices that she sees, by their ids and by a selector, and learns of no other", async () => {
    const userId = newId("usr");
    const { token } = await world.app.mint({ userId, email: emailOf(userId), tenantId: tenant.tenantId, role: "operator", ttlSeconds: 600 });
    const [mine, hidden] = [(await tenant.device()).deviceId, (await tenant.device()).deviceId];
    await world.sql.query("update devices set tags = '{floor:1}', platform = 'linux' where device_id = $1", [mine]);
    await world.sql.query("update devices set tags = '{floor:2}', platform = 'linux' where device_id = $1", [hidden]);
    await world.sql.query("update memberships set selector = $2 where user_id = $1", [userId, { deviceIds: [], tags: ["floor:1"], fleetIds: [] }]);
    const limited: Caller = { kind: "user", headers: () => ({ authorization: `Bearer ${token}` }) };
    const unknown = newId("dev");
    const { items } = (await send(limited, { deviceIds: [hidden, mine, unknown] })).body.data;
    expect(codesOf(items)).toEqual(["DEVICE_NOT_FOUND", null, "DEVICE_NOT_FOUND"]);
    expect(JSON.stringify(items[0]).replaceAll(hidden, "ID")).toBe(JSON.stringify(items[2]).replaceAll(unknown, "ID"));
    const chosen = (await send(limited, { selector: { platform: "linux" } })).body.data;
    expect(chosen.items.map(({ deviceId }: { deviceId: string }) => deviceId)).toEqual([mine]);
    expect((await world.sql.query("select 1 from commands where device_id = $1", [hidden])).rows).toEqual([]);
  });
});

describe("input", () => {
  test.each([
    ["no device at all", { deviceIds: [] }],
    ["1,001 devices", { deviceIds: Array.from({ length: 1_001 }, (_, n) => `dev_${n}`) }],
    ["neither devices nor a selector", {}],
    ["devices and a selector", { deviceIds: ["dev_1"], selector: { tags: ["a"] } }],
    ["an empty selector", { selector: {} }],
    ["a selector's unknown field", { selector: { deviceIds: ["dev_1"] } }],
    ["an id with NUL", { deviceIds: ["dev_\u0000"] }],
    ["an id with half a surrogate pair", { deviceIds: ["dev_\ud800"] }],
    ["an id that is no text", { deviceIds: [{ toString: "dev_1" }] }],
    ["an id without end", { deviceIds: ["x".repeat(129)] }],
    ["a number beyond the column", { deviceIds: ["dev_1"], maxAttempts: 2 ** 31 }],
    ["a wait", { deviceIds: ["dev_1"], wait: 1 }],
    ["a field named __proto__", { deviceIds: ["dev_1"], payload: JSON.parse('{"__proto__":{"a":1}}') }],
  ])("%s is refused", async (_, body) => {
    const { status, body: answer } = await send(owner, body);
    expect([status, answer.code]).toEqual([400, "VALIDATION_FAILED"]);
  });

  test("a thousand ids of any form fit into a body, and each has its own answer", async () => {
    const deviceIds = Array.from({ length: 1_000 }, (_, n) => `${["__proto__", "constructor", "ünï😀", "' or 1=1 --", "\\"][n % 5]}${"x".repeat(100)}${n}`);
    const { status, body } = await send(owner, { deviceIds: ["__proto__", ...deviceIds.slice(1)] });
    expect([status, body.data.counts]).toEqual([200, { created: 0, replayed: 0, refused: 1_000 }]);
    expect(body.data.items[0]).toMatchObject({ deviceId: "__proto__", command: null, error: { code: "DEVICE_NOT_FOUND", details: { deviceId: "__proto__" } } });
  });
});

describe("the rate limit", () => {
  const freshKey = async (): Promise<Caller> => {
    const limited = await world.tenant({ unlimited: false });
    return limited.apiKey;
  };
  const left = async (as: Caller, body: object): Promise<number> => Number((await send(as, body)).headers.get("x-ratelimit-remaining"));
  const unknown = (count: number) => ({ deviceIds: Array.from({ length: count }, () => newId("dev")) });

  test("counts each 200 devices as one call, and a selector as five", async () => {
    const key = await freshKey();
    expect([await left(key, unknown(200)), await left(key, unknown(201)), await left(key, unknown(1_000))]).toEqual([99, 97, 92]);
    expect(await left(key, { selector: { tags: ["none"] } })).toBe(87);
  });

  test("refuses a call that it cannot take whole, and lets 20,000 devices a minute through", async () => {
    const key = await freshKey();
    for (let call = 0; call < 19; call += 1) await left(key, unknown(1_000));
    expect(await left(key, unknown(1))).toBe(4);
    const refused = await send(key, unknown(1_000));
    expect([refused.status, refused.body.code, refused.body.details.bucket]).toEqual([429, "RATE_LIMIT_EXCEEDED", "standard"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await left(key, unknown(400))).toBe(1);
  });
});
