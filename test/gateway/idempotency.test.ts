// A request that is repeated under its key happens once; every repeat gets the first answer, marked as a replay.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { type Answer, type Caller, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  world = await startWorld();
  tenant = await world.tenant();
  owner = await tenant.user("owner");
});
afterAll(() => world.close());

const create = (key: string, body: object = { name: "k" }, as = owner, header = "idempotency-key") =>
  world.call(as, "POST", "/v1/api-keys", { body, headers: { [header]: key } });
const count = async (): Promise<number> => (await world.call(owner, "GET", "/v1/api-keys?pageSize=1")).body.meta.pagination.total;
const timeless = ({ body }: Answer) => ({ ...body, meta: null, timestamp: null, requestId: null });
const isReplay = ({ headers }: Answer): boolean => headers.get("idempotent-replayed") === "true";

describe("repeats", () => {
  test("a repeat gets the first answer with its own request id", async () => {
    const before = await count();
    const key = newId("k");
    const [first, second, third] = [await create(key), await create(key), await create(`"${key}"`, undefined, owner, "x-idempotency-key")];
    expect([first.status, second.status, third.status]).toEqual([201, 201, 201]);
    expect([first, second, third].map(isReplay)).toEqual([false, true, true]);
    expect(timeless(second)).toEqual(timeless(first));
    expect(timeless(third)).toEqual(timeless(first));
    expect(second.headers.get("location")).toBe(first.headers.get("location"));
    expect(second.body.meta.requestId).not.toBe(first.body.meta.requestId);
    expect(await count()).toBe(before + 1);
  });

  test("a repeat with keys in another order or under the other prefix is the same request", async () => {
    const key = newId("k");
    const first = await create(key, { name: "k", role: "viewer" });
    const again = await world.call(owner, "POST", "/api/v1/api-keys", { rawBody: '{"role":"viewer","name":"k"}', headers: { "idempotency-key": key } });
    expect([isReplay(again), again.body.data.keyId]).toEqual([true, first.body.data.keyId]);
  });

  test("another body under the same key is refused", async () => {
    const key = newId("k");
    await create(key);
    const other = await create(key, { name: "other" });
    expect([other.status, other.body.code, Date.parse(other.body.details.firstSeenAt) > 0]).toEqual([422, "IDEMPOTENCY_KEY_REUSED", true]);
  });

  test("a key of another operation or another caller is another key", async () => {
    const key = newId("k");
    await create(key);
    const token = await world.call(owner, "POST", "/v1/pairing/enrollment-tokens", { body: { name: "k" }, headers: { "idempotency-key": key } });
    const admin = await create(key, { name: "k" }, await tenant.user("admin"));
    expect([token.status, isReplay(token), admin.status, isReplay(admin)]).toEqual([201, false, 201, false]);
  });

  test("a repeat of a refused request gets the same refusal", async () => {
    const key = newId("k");
    const remove = () => world.call(owner, "DELETE", "/v1/api-keys/key_unknown", { headers: { "idempotency-key": key } });
    const [first, second] = [await remove(), await remove()];
    expect([first.status, isReplay(first), second.status, isReplay(second)]).toEqual([404, false, 404, true]);
    expect(timeless(second)).toEqual(timeless(first));
  });

  test("a repeat after a 400 or a 403 is evaluated anew", async () => {
    const key = newId("k");
    expect((await create(key, { nonsense: 1 })).status).toBe(400);
    expect((await create(key, { name: "k" })).status).toBe(201);
    const viewer = await tenant.user("viewer");
    const other = newId("k");
    for (let times = 0; times < 2; times += 1)
      expect([(await create(other, { name: "k" }, viewer)).status, isReplay(await create(other, { name: "k" }, viewer))]).toEqual([403, false]);
  });

  test("a repeat over tRPC is marked as a replay", async () => {
    const key = newId("k");
    const call = () => world.call(owner, "POST", "/trpc/apiKeys.create", { body: { name: "k" }, headers: { "idempotency-key": key } });
    const [first, second] = [await call(), await call()];
    expect([isReplay(first), isReplay(second)]).toEqual([false, true]);
    expect(second.body.result.data).toEqual(first.body.result.data);
  });

  test("equal calls of one tRPC batch under one key happen once, and a different call of the batch is refused", async () => {
    const before = await count();
    const headers = { "idempotency-key": newId("k") };
    const batch = async () => {
      const body = { 0: { name: "same" }, 1: { name: "same" }, 2: { name: "other" } };
      const answer = await world.call(owner, "POST", "/trpc/apiKeys.create,apiKeys.create,apiKeys.create?batch=1", { body, headers });
      return (answer.body as { error?: { data: { app: { code: string } } } }[]).map(({ error }) => error?.data.app.code ?? "OK");
    };
    expect((await batch()).filter((code) => code === "OK")).not.toEqual([]);
    expect(await count()).toBe(before + 1);
    const again = await batch();
    expect([again.includes("OK"), again.includes("IDEMPOTENCY_KEY_REUSED")]).toEqual([true, true]);
    expect(await count()).toBe(before + 1);
  });

  test("a repeat of a conflict gets that conflict as a replay", async () => {
    const { deviceId } = await tenant.device();
    const rotate = (key: string) => world.call(owner, "POST", `/v1/devices/${deviceId}/secrets/rotate`, { headers: { "idempotency-key": key } });
    const key = newId("k");
    expect((await rotate(newId("k"))).status).toBe(200);
    const [first, second] = [await rotate(key), await rotate(key)];
    expect([first, second].map((answer) => [answer.status, answer.body.code, isReplay(answer)])).toEqual([
      [409, "ROTATION_IN_PROGRESS", false],
      [409, "ROTATION_IN_PROGRESS", true],
    ]);
  });

  test("a key for a command works in header and body alike", async () => {
    const { deviceId } = await tenant.device();
    const key = newId("k");
    const path = `/v1/devices/${deviceId}/commands`;
    const first = await world.call(owner, "POST", path, { body: { type: "ping" }, headers: { "idempotency-key": key } });
    const second = await world.call(owner, "POST", path, { body: { type: "ping", idempotencyKey: key } });
    expect([second.body.data.commandId, isReplay(first), isReplay(second)]).toEqual([first.body.data.commandId, false, true]);
    expect((await world.call(owner, "POST", path, { body: { type: "echo" }, headers: { "idempotency-key": key } })).body.code).toBe("IDEMPOTENCY_KEY_REUSED");
  });
});

test("of twelve equal requests at once one happens; the others get its answer or that it is in progress", async () => {
  const before = await count();
  const key = newId("k");
  const answers = await Promise.all(Array.from({ length: 12 }, () => create(key)));
  expect(await count()).toBe(before + 1);
  for (const { status, body, headers } of answers.filter((answer) => answer.status !== 201)) {
    expect([status, body.code, body.retryable, body.details, headers.get("retry-after")]).toEqual([
      409,
      "IDEMPOTENCY_IN_PROGRESS",
      false,
      { retryHint: "after_state_change" },
      "1",
    ]);
  }
  expect(answers.filter((answer) => answer.status === 201 && !isReplay(answer))).toHaveLength(1);
  await eventually(async () => expect(isReplay(await create(key))).toBe(true));
});

test.each(["k".repeat(256), '""', "é"])("the key %j is invalid", async (key) => {
  const answer = await create(key).catch(() => null);
  // fetch itself refuses what is not Latin-1.
  if (answer !== null) expect([answer.status, answer.body.code]).toEqual([400, "IDEMPOTENCY_KEY_INVALID"]);
});

test("stored answers are encrypted, so their secrets cannot be read", async () => {
  const key = newId("k");
  const { apiKey } = (await create(key)).body.data;
  const { rows } = await world.sql.query("select answer, scope from idempotency_keys where answer is not null");
  expect(rows.length).toBeGreaterThan(0);
  for (const { answer, scope } of rows) {
    expect(answer.includes(apiKey)).toBe(false);
    expect(answer.includes("apiKey")).toBe(false);
    expect(scope).not.toContain(key);
  }
  expect((await create(key)).body.data.apiKey).toBe(apiKey);
});
