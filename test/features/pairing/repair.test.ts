// Who may take over the identity of a living device: only someone whom its tenant allows to, and never in silence.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, anonymous, asAgent, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_PAIRING: "off" });
});
afterAll(() => world.close());

const post = (as: Caller, path: string, body: object = {}): Promise<Answer> => world.call(as, "POST", `/v1${path}`, { body });
const initiate = async (fingerprint: string): Promise<string> => {
  const { body } = await post(anonymous, "/pairing/initiate", { device_fingerprint: fingerprint });
  return body.data.pairing_code;
};
const tokenOf = async (tenant: TestTenant, more: object = {}): Promise<string> => {
  const { body } = await post(tenant.apiKey, "/pairing/enrollment-tokens", { name: "install", maxUses: null, ...more });
  return body.data.token;
};
const enroll = async (enrollment_token: string, fingerprint: string): Promise<Answer> =>
  post(anonymous, "/pairing/auto-activate", { enrollment_token, pairing_code: await initiate(fingerprint) });
const prepare = async (tenant: TestTenant, pairing_code: string, more: object = {}): Promise<Answer> =>
  post(await tenant.user(), "/pairing/prepare-activation", { pairing_code, tenant_id: tenant.tenantId, ...more });
const activate = (pairing_code: string, activation_token: string): Promise<Answer> =>
  post(anonymous, "/pairing/activate", { pairing_code, activation_token, user_email: "owner@example.com" });

interface Paired {
  readonly deviceId: string;
  readonly as: Caller;
}
const pairedBy = ({ status, body }: Answer): Paired => {
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`);
  const { device_id, agent_id, tenant_id, shared_secret } = body.data;
  return { deviceId: device_id, as: asAgent({ agentId: agent_id, tenantId: tenant_id, secret: shared_secret }) };
};
const signsIn = async ({ as, deviceId }: Paired): Promise<number> => (await post(as, `/devices/${deviceId}/heartbeat`, { status: "online" })).status;
const eventsOf = async (deviceId: string, type: string): Promise<object[]> =>
  (await world.sql.query("select data from outbox_events where subject_id = $1 and type = $2 order by position", [deviceId, type])).rows.map(
    ({ data }) => data,
  );
const codeOf = ({ status, body }: Answer) => [status, body.code ?? "done"];

describe("repair by token", () => {
  test("a token cannot pair a paired device again: the device keeps its agent and the token its use", async () => {
    const tenant = await world.tenant();
    const fingerprint = randomUUID();
    const token = await tokenOf(tenant, { maxUses: 2 });
    const first = pairedBy(await enroll(token, fingerprint));
    expect(await signsIn(first)).toBe(200);
    for (let round = 0; round < 2; round += 1) {
      const refused = await enroll(token, fingerprint);
      expect(codeOf(refused)).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
      expect(refused.body.details).toMatchObject({ deviceId: first.deviceId, lastSeen: expect.any(String) });
    }
    expect(await signsIn(first)).toBe(200);
    expect(await eventsOf(first.deviceId, "device.paired_again")).toEqual([]);
    expect((await enroll(token, randomUUID())).status).toBe(201);
  });

  test("a token with allowRepair pairs the device again, and the event names the token", async () => {
    const tenant = await world.tenant();
    const fingerprint = randomUUID();
    const first = pairedBy(await enroll(await tokenOf(tenant), fingerprint));
    const made = await post(tenant.apiKey, "/pairing/enrollment-tokens", { name: "repairs", maxUses: null, allowRepair: true });
    expect(made.body.data).toMatchObject({ allowRepair: true });
    const again = pairedBy(await enroll(made.body.data.token, fingerprint));
    expect([again.deviceId, await signsIn(first), await signsIn(again)]).toEqual([first.deviceId, 401, 200]);
    expect(await eventsOf(first.deviceId, "device.paired_again")).toEqual([
      { deviceId: first.deviceId, fingerprint, means: "enrollment_token", actor: made.body.data.tokenId, ip: "127.0.0.1" },
    ]);
  });

  test("a repair window pairs the device again once, until an admin closes the window or its day is over", async () => {
    const tenant = await world.tenant();
    const admin = await tenant.user("admin");
    const fingerprint = randomUUID();
    const token = await tokenOf(tenant);
    const { deviceId } = pairedBy(await enroll(token, fingerprint));
    const repair = (as: Caller, method: "POST" | "DELETE") => world.call(as, method, `/v1/devices/${deviceId}/repair`);
    expect(codeOf(await repair(await tenant.user("operator"), "POST"))).toEqual([403, "FORBIDDEN"]);
    expect(codeOf(await repair(await (await world.tenant()).user(), "POST"))).toEqual([404, "DEVICE_NOT_FOUND"]);

    const opened = await repair(admin, "POST");
    const hours = (Date.parse(opened.body.data.repairUntil) - Date.now()) / 3_600_000;
    expect([opened.status, Math.round(hours)]).toEqual([200, 24]);
    expect((await world.call(admin, "GET", `/v1/devices/${deviceId}`)).body.data.repairUntil).toBe(opened.body.data.repairUntil);
    const again = await Promise.all([enroll(token, fingerprint), enroll(token, fingerprint)]);
    expect(again.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(codeOf(await enroll(token, fingerprint))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
    expect((await world.call(admin, "GET", `/v1/devices/${deviceId}`)).body.data).not.toHaveProperty("repairUntil");

    await repair(admin, "POST");
    expect((await repair(admin, "DELETE")).status).toBe(204);
    expect(codeOf(await enroll(token, fingerprint))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
    await repair(admin, "POST");
    await world.sql.query("update devices set repair_until = now() - interval '1 second' where device_id = $1", [deviceId]);
    expect(codeOf(await enroll(token, fingerprint))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
    const actor = expect.stringMatching(/^user:admin-/);
    expect(await eventsOf(deviceId, "device.repair_changed")).toMatchObject([
      { repairUntil: expect.any(String), actor },
      { repairUntil: expect.any(String), actor },
      { repairUntil: null, actor },
      { repairUntil: expect.any(String), actor },
    ]);
    expect(await eventsOf(deviceId, "device.paired_again")).toHaveLength(1);
  });

  test("repeated requests with one code get the same identity until the device signs in", async () => {
    const tenant = await world.tenant();
    const token = await tokenOf(tenant, { maxUses: 1 });
    const request = { enrollment_token: token, pairing_code: await initiate(randomUUID()) };
    const answers = await Promise.all(Array.from({ length: 4 }, () => post(anonymous, "/pairing/auto-activate", request)));
    const [first, ...others] = answers.map(({ body }) => body.data);
    expect([first.shared_secret, others]).toEqual([expect.any(String), [first, first, first]]);
    const device = pairedBy(answers[0] as Answer);
    expect(await signsIn(device)).toBe(200);
    expect(codeOf(await post(anonymous, "/pairing/auto-activate", request))).toEqual([409, "PAIRING_ALREADY_ACTIVATED"]);
    const stranger = { ...request, enrollment_token: await tokenOf(tenant) };
    expect(codeOf(await post(anonymous, "/pairing/auto-activate", stranger))).toEqual([409, "PAIRING_ALREADY_ACTIVATED"]);
  });

  test("a device is never handed to two installers, however many come at once", async () => {
    const tenant = await world.tenant();
    const token = await tokenOf(tenant);
    const fingerprint = randomUUID();
    // Each installer has its own code. Only the last one lives, so the test revives the others.
    const codes: string[] = [];
    for (let n = 0; n < 4; n += 1) codes.push(await initiate(fingerprint));
    await world.sql.query("update pairings set status = 'pending' where fingerprint = $1", [fingerprint]);
    const answers = await Promise.all(codes.map((pairing_code) => post(anonymous, "/pairing/auto-activate", { enrollment_token: token, pairing_code })));
    expect(answers.map(codeOf).toSorted()).toEqual([[201, "done"], ...Array.from({ length: 3 }, () => [409, "DEVICE_ALREADY_PAIRED"])]);
  });
});

describe("repair by code", () => {
  test("a token that paired the device before cannot fetch the new machine's secret", async () => {
    const tenant = await world.tenant();
    const fingerprint = randomUUID();
    const request = { enrollment_token: await tokenOf(tenant), pairing_code: await initiate(fingerprint) };
    const first = pairedBy(await post(anonymous, "/pairing/auto-activate", request));
    await signsIn(first);
    const code = await initiate(fingerprint);
    const { body } = await prepare(tenant, code, { replaceExisting: true });
    const again = pairedBy(await activate(code, body.data.activation_token));
    expect(codeOf(await post(anonymous, "/pairing/auto-activate", request))).toEqual([409, "PAIRING_ALREADY_ACTIVATED"]);
    expect([await signsIn(first), await signsIn(again)]).toEqual([401, 200]);
  });

  test("the person who approves a code learns that its device is paired, and must confirm the replacement", async () => {
    const tenant = await world.tenant();
    const fingerprint = randomUUID();
    const first = pairedBy(await enroll(await tokenOf(tenant), fingerprint));
    await signsIn(first);
    const code = await initiate(fingerprint);
    const asked = await prepare(tenant, code);
    expect(codeOf(asked)).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
    expect(asked.body.details).toEqual({
      deviceId: first.deviceId,
      fingerprint,
      status: "online",
      lastSeen: expect.any(String),
      confirmWith: "replaceExisting",
    });
    expect(await signsIn(first)).toBe(200);
    const confirmed = await prepare(tenant, code, { replaceExisting: true });
    const again = pairedBy(await activate(code, confirmed.body.data.activation_token));
    expect([again.deviceId, await signsIn(first), await signsIn(again)]).toEqual([first.deviceId, 401, 200]);
    expect(await eventsOf(first.deviceId, "device.paired_again")).toEqual([
      { deviceId: first.deviceId, fingerprint, means: "code", actor: `user:${tenant.ownerId}`, ip: "127.0.0.1", lastSeen: expect.any(String) },
    ]);
  });

  test("an approval does not replace a device that was paired after it", async () => {
    const tenant = await world.tenant();
    const fingerprint = randomUUID();
    const code = await initiate(fingerprint);
    const { body } = await prepare(tenant, code, { replaceExisting: true });
    const [device] = (await post(tenant.apiKey, "/devices/provision", { fingerprints: [fingerprint] })).body.data;
    const refused = await activate(code, body.data.activation_token);
    expect(codeOf(refused)).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
    expect(refused.body.details).toMatchObject({ deviceId: device.device_id });
  });

  test("a code belongs to the tenant that claims it first, and is unknown to every other tenant", async () => {
    const [first, second] = [await world.tenant(), await world.tenant()];
    const code = await initiate(randomUUID());
    const unknown = await prepare(second, "BCDF-GHJK");
    const claimed = await prepare(first, code);
    const same = ({ status, body: { requestId, timestamp, meta, ...body } }: Answer) => ({ status, body });
    expect(same(await prepare(second, code))).toEqual(same(unknown));
    expect(same(await prepare(second, code, { replaceExisting: true }))).toEqual(same(unknown));
    const stolen = await post(anonymous, "/pairing/auto-activate", { enrollment_token: await tokenOf(second), pairing_code: code });
    expect(same(stolen)).toEqual(same(unknown));
    pairedBy(await activate(code, claimed.body.data.activation_token));
    expect(same(await prepare(second, code))).toEqual(same(unknown));
    expect(codeOf(await prepare(first, code))).toEqual([409, "PAIRING_ALREADY_ACTIVATED"]);
  });

  test("the token of an earlier approval activates nothing", async () => {
    const tenant = await world.tenant();
    const code = await initiate(randomUUID());
    const old = (await prepare(tenant, code)).body.data.activation_token;
    const { activation_token } = (await prepare(tenant, code)).body.data;
    expect(codeOf(await activate(code, old))).toEqual([401, "ACTIVATION_TOKEN_INVALID"]);
    expect((await activate(code, activation_token)).status).toBe(201);
  });
});

test("provisioning replaces a living device only when asked to", async () => {
  const tenant = await world.tenant();
  const device = await tenant.device();
  const provision = (more: object) => post(tenant.apiKey, "/devices/provision", { fingerprints: [randomUUID(), device.fingerprint], ...more });
  expect(codeOf(await provision({}))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
  expect(await signsIn(device)).toBe(200);
  expect((await provision({ replaceExisting: true })).status).toBe(201);
  expect(await signsIn(device)).toBe(401);
  expect(await eventsOf(device.deviceId, "device.paired_again")).toMatchObject([{ means: "provisioning", actor: expect.stringMatching(/^key_/) }]);
});

test("a user who reads a device's secret leaves an event, the agent itself leaves none", async () => {
  const tenant = await world.tenant();
  const device = await tenant.device();
  for (const as of [device.as, await tenant.user()]) expect((await world.call(as, "GET", `/v1/devices/${device.deviceId}/secrets`)).status).toBe(200);
  expect(await eventsOf(device.deviceId, "device.secrets_read")).toEqual([{ deviceId: device.deviceId, actor: `user:${tenant.ownerId}` }]);
});
