// Pairing in the browser: a person decides about a code, and only the machine that requested it collects the identity.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../protocol/index.ts";
import { newCode } from "../../../server/features/pairing/codes.ts";
import { type Answer, anonymous, asAgent, asBearer, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_PAIRING: "off", DATABASE_POOL: "32" });
});
afterAll(() => world.close());

interface Machine {
  readonly code: string;
  readonly fingerprint: string;
  readonly pollToken: string;
  readonly comparison: string;
}
const post = (as: Caller, path: string, body: object = {}): Promise<Answer> => world.call(as, "POST", `/v1${path}`, { body });
const initiate = async (fingerprint: string = randomUUID()): Promise<Machine> => {
  const { body } = await post(anonymous, "/pairing/initiate", { device_fingerprint: fingerprint, device_name: "box", platform: "linux" });
  const { pairing_code: code, pollToken, comparison } = body.data;
  return { code, fingerprint, pollToken, comparison };
};
const collect = ({ code, fingerprint, pollToken }: Machine, more: object = {}): Promise<Answer> =>
  post(anonymous, "/pairing/collect", { pairing_code: code, device_fingerprint: fingerprint, pollToken, ...more });
const lookup = (as: Caller, code: string): Promise<Answer> => world.call(as, "GET", `/v1/pairing/lookup?code=${code}`);
const approve = async (tenant: TestTenant, { code }: Pick<Machine, "code">, more: object = {}): Promise<Answer> =>
  post(await tenant.user("operator"), "/pairing/approve", { code, ...more });
const reject = async (tenant: TestTenant, { code }: Machine): Promise<Answer> => post(await tenant.user("operator"), "/pairing/reject", { code });
const codeOf = ({ status, body }: Answer) => [status, body?.code ?? "done"];
const statusOf = ({ body }: Answer) => [body.data.status, body.data.identity !== undefined];
const heartbeat = async ({ body }: Answer): Promise<number> => {
  const { device_id, agent_id, tenant_id, shared_secret } = body.data.identity;
  const as = asAgent({ agentId: agent_id, tenantId: tenant_id, secret: shared_secret });
  return (await post(as, `/devices/${device_id}/heartbeat`, { status: "online" })).status;
};
const old = (column: string, { fingerprint }: Machine) =>
  world.sql.query(`update pairings set ${column} = now() - interval '1 second' where fingerprint = $1`, [fingerprint]);

test("a person looks a code up, approves it, and the machine collects an identity that works", async () => {
  const tenant = await world.tenant();
  const machine = await initiate();
  expect(statusOf(await collect(machine))).toEqual(["pending", false]);
  const seen = (await lookup(await tenant.user("operator"), machine.code.toLowerCase())).body.data;
  expect(seen).toMatchObject({
    device: { fingerprint: machine.fingerprint, name: "box", platform: "linux", initiatedFrom: "127.0.0.1" },
    comparison: machine.comparison,
  });
  expect([machine.comparison, seen.ageSeconds < 60]).toEqual([expect.stringMatching(/^\d{3} \d{3}$/), true]);
  expect(statusOf(await collect(machine))).toEqual(["pending", false]);

  const approved = await approve(tenant, machine, { name: "attic", tags: ["site:home"] });
  expect([approved.status, approved.body.data]).toEqual([201, expect.objectContaining({ name: "attic", fingerprint: machine.fingerprint })]);
  expect(JSON.stringify(approved.body)).not.toContain("secret");
  const collected = await collect(machine);
  expect([statusOf(collected), await heartbeat(collected)]).toEqual([["activated", true], 200]);
  const device = (await world.call(tenant.apiKey, "GET", `/v1/devices/${approved.body.data.deviceId}`)).body.data;
  expect([device.name, device.tags]).toEqual(["attic", ["site:home"]]);
  const { rows } = await world.sql.query("select data from outbox_events where type = 'pairing.activated' and subject_id = $1", [device.deviceId]);
  expect(rows[0]?.data).toMatchObject({ deviceId: device.deviceId, deviceName: "attic" });
});

test("the identity is given again while its answer may be lost, and never after its first use or its time", async () => {
  const tenant = await world.tenant();
  const [used, late, never] = [await initiate(), await initiate(), await initiate()];
  for (const machine of [used, late, never]) expect((await approve(tenant, machine)).status).toBe(201);
  const answers = await Promise.all([collect(used), collect(used), collect(used)]);
  const secrets = new Set(answers.map(({ body }) => body.data.identity.shared_secret));
  expect(secrets.size).toBe(1);
  expect(await heartbeat(answers[0] as Answer)).toBe(200);
  expect(statusOf(await collect(used))).toEqual(["activated", false]);
  await collect(late);
  const { rows } = await world.sql.query("select collect_until - now() < interval '5 minutes' as soon from pairings where fingerprint = $1", [
    late.fingerprint,
  ]);
  expect(rows).toEqual([{ soon: true }]);
  for (const machine of [late, never]) {
    await old("collect_until", machine);
    expect(statusOf(await collect(machine))).toEqual(["activated", false]);
  }
});

test("a bystander who knows code and fingerprint cannot fetch the identity, and learns as much as from an unknown code", async () => {
  const tenant = await world.tenant();
  const machine = await initiate();
  await approve(tenant, machine);
  const strangers = [{ pollToken: (await initiate()).pollToken }, { device_fingerprint: randomUUID() }, { pairing_code: newCode() }];
  for (const stranger of strangers) expect(codeOf(await collect(machine, stranger))).toEqual([404, "PAIRING_CODE_NOT_FOUND"]);
  expect(statusOf(await collect(machine))).toEqual(["activated", true]);
});

test("a copied fingerprint does not have the digits of the machine", async () => {
  const fingerprint = randomUUID();
  expect((await initiate(fingerprint)).comparison).not.toBe((await initiate(fingerprint)).comparison);
});

test("an identity that another way of pairing gave is never given again by polling", async () => {
  const tenant = await world.tenant();
  const machine = await initiate();
  const { body } = await post(await tenant.user(), "/pairing/prepare-activation", { pairing_code: machine.code, tenant_id: tenant.tenantId });
  const activation = { pairing_code: machine.code, activation_token: body.data.activation_token, user_email: "owner@example.com" };
  expect((await post(anonymous, "/pairing/activate", activation)).status).toBe(201);
  expect(statusOf(await collect(machine))).toEqual(["activated", false]);
});

test("of two people who approve at once one succeeds, in one tenant and in two", async () => {
  const [mine, theirs] = [await world.tenant(), await world.tenant()];
  const same = await initiate();
  const both = await Promise.all([approve(mine, same), approve(mine, same)]);
  expect(both.map(codeOf).toSorted()).toEqual([
    [201, "done"],
    [409, "PAIRING_ALREADY_ACTIVATED"],
  ]);
  const apart = await Promise.all([mine, theirs].map((tenant) => approve(tenant, other)));
  expect(apart.map(codeOf).toSorted()).toEqual([
    [201, "done"],
    [404, "PAIRING_CODE_NOT_FOUND"],
  ]);
});
let other: Machine;
beforeAll(async () => {
  other = await initiate();
});

test("a rejected machine learns it and nobody can approve it, and an approved one cannot be rejected", async () => {
  const [tenant, stranger] = [await world.tenant(), await world.tenant()];
  const machine = await initiate();
  expect((await reject(tenant, machine)).status).toBe(204);
  expect(statusOf(await collect(machine))).toEqual(["rejected", false]);
  for (const again of [approve(tenant, machine), reject(tenant, machine), lookup(await tenant.user(), machine.code)])
    expect(codeOf(await again)).toEqual([409, "PAIRING_REJECTED"]);
  expect(codeOf(await approve(stranger, machine))).toEqual([404, "PAIRING_CODE_NOT_FOUND"]);
  const prepared = await post(await tenant.user(), "/pairing/prepare-activation", { pairing_code: machine.code, tenant_id: tenant.tenantId });
  expect(codeOf(prepared)).toEqual([409, "PAIRING_CODE_EXPIRED"]);
  const status = await world.call(anonymous, "GET", `/v1/pairing/status?device_fingerprint=${machine.fingerprint}`);
  expect(status.body.data.status).toBe("expired");
  const { rows } = await world.sql.query("select data from outbox_events where type = 'pairing.rejected' and tenant_id = $1", [tenant.tenantId]);
  expect(rows).toEqual([{ data: { fingerprint: machine.fingerprint, deviceName: "box", status: "rejected" } }]);
  const approved = await initiate();
  await approve(tenant, approved);
  expect(codeOf(await reject(tenant, approved))).toEqual([409, "PAIRING_ALREADY_ACTIVATED"]);
});

test("an expired code is answered as expired to the person and to the machine", async () => {
  const tenant = await world.tenant();
  const machine = await initiate();
  await old("expires_at", machine);
  for (const again of [approve(tenant, machine), reject(tenant, machine), lookup(await tenant.user(), machine.code)])
    expect(codeOf(await again)).toEqual([409, "PAIRING_CODE_EXPIRED"]);
  expect(statusOf(await collect(machine))).toEqual(["expired", false]);
});

test("a known machine gets its device's identity only if the person names the device that it replaces", async () => {
  const tenant = await world.tenant();
  const first = await initiate();
  const { deviceId } = (await approve(tenant, first)).body.data;
  const before = await collect(first);
  await heartbeat(before);
  const again = await initiate(first.fingerprint);
  expect((await lookup(await tenant.user(), again.code)).body.data.existingDevice).toMatchObject({ deviceId, status: "online" });
  expect(codeOf(await approve(tenant, again))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
  expect(codeOf(await approve(tenant, again, { replaces: "dev_unknown" }))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
  expect(codeOf(await approve(tenant, await initiate(), { replaces: deviceId }))).toEqual([404, "DEVICE_NOT_FOUND"]);
  expect((await approve(tenant, again, { replaces: deviceId })).body.data.deviceId).toBe(deviceId);
  expect(statusOf(await collect(first))).toEqual(["activated", false]);
  const after = await collect(again);
  expect([await heartbeat(before), await heartbeat(after)]).toEqual([401, 200]);
});

test("of 64 machines that are approved at once only as many become devices as the plan allows", async () => {
  const userId = `usr_${randomUUID()}`;
  const as = asBearer((await world.app.mint({ userId, ttlSeconds: 600 })).token);
  const { tenantId } = (await post(as, "/tenants", { name: "Limited", slug: "limited-pairing", userId })).body.data;
  const machines = await Promise.all(Array.from({ length: 64 }, () => initiate()));
  const headers = { "x-svc-tenant-id": tenantId };
  const answers = await Promise.all(machines.map(({ code }) => world.call(as, "POST", "/v1/pairing/approve", { headers, body: { code } })));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
  expect(new Set(answers.filter(({ status }) => status !== 201).map(({ body }) => body.code))).toEqual(new Set(["PLAN_LIMIT_EXCEEDED"]));
});

test("wrong codes and tokens count as guesses", async () => {
  const limited = await startWorld();
  try {
    const tenant = await limited.tenant();
    const user = await tenant.user();
    const guess = (n: number) =>
      n % 2 === 0
        ? limited.call(user, "GET", `/v1/pairing/lookup?code=${newCode()}`)
        : limited.call(anonymous, "POST", "/v1/pairing/collect", { body: { pairing_code: newCode(), device_fingerprint: "somebody", pollToken: `t${n}` } });
    for (let n = 0; n < LIMITS["pairing.guess"][0].limit; n += 1) expect((await guess(n)).status).toBe(404);
    for (const n of [0, 1]) expect((await guess(n)).body.details.bucket).toBe("pairing.guess.ip");
  } finally {
    await limited.close();
  }
});

test("impossible values are refused before any lookup", async () => {
  const user = await (await world.tenant()).user();
  for (const code of ["\u0000", "\ud800", "", "x".repeat(33)]) expect((await post(user, "/pairing/approve", { code })).status).toBeGreaterThanOrEqual(400);
  const { code } = await initiate();
  for (const more of [{ name: "a\u0000b" }, { tags: ["UPPER"] }, { tags: ["__proto__"], replaces: "\u0000" }, { unknown: 1 }])
    expect((await post(user, "/pairing/approve", { code, ...more })).status).toBe(400);
});
