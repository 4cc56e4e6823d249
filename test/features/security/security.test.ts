// Security over HTTP: each event is raised by the real act, bursts become one alert, rules block, and tenants see only their own.
// Events are written a moment later, so the tests, which share neither addresses nor keys, run beside each other.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { online } from "../../channel/harness.ts";
import { initiate, prepare } from "../../contract/samples.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Answer, anonymous, asAgent, asBearer, asKey, type Caller, emailOf, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

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

let addresses = 0;
/** One that no other test uses. */
const newAddress = (): string => {
  addresses += 1;
  return `203.0.113.${addresses}`;
};
const from = (ip: string) => ({ headers: { "x-forwarded-for": ip } });
const codeOf = ({ status, body }: Answer) => [status, body?.code ?? null];
const get = async (path: string, as = owner) => (await world.call(as, "GET", `/v1/security${path}`)).body.data;
const post = (path: string, body: object, as = owner, options = {}) => world.call(as, "POST", `/v1/security${path}`, { body, ...options });
const times = async (count: number, act: () => Promise<unknown>) => {
  for (let n = 0; n < count; n += 1) await act();
};
/** The tenant's, or those of the installation. */
const eventsAbout = async (entityId: string, type: string, as = owner, base = "/v1/security") =>
  (await world.call(as, "GET", `${base}/events?entityId=${encodeURIComponent(entityId)}&type=${type}`)).body.data;
const ofInstallation = (entityId: string, type: string) => eventsAbout(entityId, type, operator, "/v1/admin/security");
const open = async () => {
  const own = await world.tenant();
  return { tenant: own, as: await own.user("owner") };
};
const newKey = async (own = tenant, as = owner) => {
  const { apiKey, keyId } = (await world.call(as, "POST", "/v1/api-keys", { body: { name: "k" } })).body.data;
  return { keyId, as: asKey(apiKey, own.tenantId), apiKey };
};

describe.concurrent("an act", () => {
  test.each([
    ["wrong tokens", () => asBearer("eyJ.wrong.token")],
    ["unknown keys", () => asKey(`svk_${newId("x")}`, tenant.tenantId)],
    ["wrong sessions", () => ({ kind: "none", headers: () => ({ cookie: "mooring_session=wrong; __Host-mooring_session=wrong" }) }) as Caller],
  ])("of %s is a burst of failed credentials by their address", async (_, caller) => {
    const ip = newAddress();
    await times(6, () => world.call(caller(), "GET", "/v1/devices", from(ip)));
    await eventually(async () => {
      const [event] = await ofInstallation(ip, "auth.failed_burst");
      expect(event).toMatchObject({ severity: "medium", details: { entityType: "ip", entityId: ip, ipAddress: ip, operation: "devices.list" } });
      expect(event.details.count).toBeGreaterThanOrEqual(6);
    });
    expect(await eventsAbout(ip, "auth.failed_burst")).toEqual([]);
  });

  test("of everyday life is none: no credential, or four wrong ones", async () => {
    const [none, few, late] = [newAddress(), newAddress(), newAddress()];
    await times(6, () => world.call(anonymous, "GET", "/v1/devices", from(none)));
    await times(4, () => world.call(asBearer("eyJ.wrong.token"), "GET", "/v1/devices", from(few)));
    await times(6, () => world.call(asBearer("eyJ.wrong.token"), "GET", "/v1/devices", from(late)));
    await eventually(async () => expect(await ofInstallation(late, "auth.failed_burst")).toHaveLength(1));
    expect([await ofInstallation(none, "auth.failed_burst"), await ofInstallation(few, "auth.failed_burst")]).toEqual([[], []]);
  });

  test("with a revoked key is told to the key's tenant", async () => {
    const { keyId, as } = await newKey();
    await world.call(owner, "DELETE", `/v1/api-keys/${keyId}`);
    await times(6, () => world.call(as, "GET", "/v1/devices", from(newAddress())));
    await eventually(async () => expect((await eventsAbout(keyId, "auth.failed_burst"))[0]?.details).toMatchObject({ reason: "api_key_revoked" }));
  });

  test("with wrong signatures is told to the tenant of the device, over REST and at the socket", async () => {
    const [device, other] = [await tenant.device(), await tenant.device()];
    const forger = asAgent({ ...device.identity, secret: "wrong" });
    await times(6, () => world.call(forger, "GET", "/v1/agent/me", from(newAddress())));
    await eventually(async () => expect((await eventsAbout(device.deviceId, "signature.invalid_burst"))[0]?.details.count).toBe(6));
    const forged = { ...other, identity: { ...other.identity, secret: "wrong" } };
    await eventually(async () => {
      // On a busy machine a socket may be given up before it has said who it is.
      await times(6, () => online({ url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } }, forged).catch(() => undefined));
      expect((await eventsAbout(other.deviceId, "signature.invalid_burst"))[0]?.details).toMatchObject({ operation: "socket" });
    });
  });

  test("that wants the identity of a living device is a takeover attempt, and with permission a changed fingerprint", async () => {
    const stock = { world, tenant, owner };
    const { code, token, fingerprint } = await prepare(stock);
    const activated = await world.call(anonymous, "POST", "/v1/pairing/activate", {
      body: { pairing_code: code, activation_token: token, user_email: "owner@example.com" },
    });
    const deviceId = activated.body.data.device_id;
    const again = await initiate({ world }, fingerprint);
    const claim = (body: object) =>
      world.call(owner, "POST", "/v1/pairing/prepare-activation", { body: { pairing_code: again.code, tenant_id: tenant.tenantId, ...body } });
    expect(codeOf(await claim({}))).toEqual([409, "DEVICE_ALREADY_PAIRED"]);
    await eventually(async () => expect(await eventsAbout(deviceId, "device.takeover_attempt")).toHaveLength(1));
    const activationToken = (await claim({ replaceExisting: true })).body.data.activation_token;
    const taken = { pairing_code: again.code, activation_token: activationToken, user_email: "owner@example.com" };
    expect((await world.call(anonymous, "POST", "/v1/pairing/activate", { body: taken })).status).toBe(201);
    await eventually(async () => expect(await eventsAbout(deviceId, "device.fingerprint_changed")).toHaveLength(1));
  });

  test("that uses a key for another tenant, or an agent for another device, is told to the owner of the credential", async () => {
    const { keyId, apiKey } = await newKey();
    const other = await open();
    expect((await world.call(asKey(apiKey, other.tenant.tenantId), "GET", "/v1/devices")).status).toBe(403);
    await eventually(async () => expect(await eventsAbout(keyId, "cross_tenant.attempt")).toHaveLength(1));
    expect(await eventsAbout(keyId, "cross_tenant.attempt", other.as)).toEqual([]);
    const [device, neighbour] = [await tenant.device(), await tenant.device()];
    expect((await world.call(device.as, "POST", `/v1/devices/${neighbour.deviceId}/heartbeat`, { body: { status: "online" } })).status).toBe(403);
    await eventually(async () => expect(await eventsAbout(device.deviceId, "cross_tenant.attempt")).toHaveLength(1));
  });

  test("with a key from a new address is told once for each address", async () => {
    const { keyId, as } = await newKey();
    const [home, away] = [newAddress(), newAddress()];
    for (const ip of [home, away, away]) await world.call(as, "GET", "/v1/devices", from(ip));
    await eventually(async () => expect((await eventsAbout(keyId, "api_key.used_from_new_ip"))[0]?.details).toMatchObject({ ipAddress: away, count: 1 }));
  });
});

test.concurrent("an alert of the installation is acknowledged and resolved by its operators alone, and no event tells a tenant", async () => {
  const ip = newAddress();
  await times(21, () => world.call(asBearer("eyJ.wrong.token"), "GET", "/v1/devices", from(ip)));
  const find = async () => (await world.call(operator, "GET", "/v1/admin/security/alerts?type=auth.failed_burst&pageSize=100")).body.data;
  const { id } = await eventually(async () => {
    const alert = (await find()).find(({ entityId }: { entityId: string }) => entityId === ip);
    expect(alert).toMatchObject({ status: "open" });
    return alert;
  });
  const act = (name: string, as = operator, body: object = {}) => world.call(as, "POST", `/v1/admin/security/alerts/${id}/${name}`, { body });
  expect((await act("acknowledge", owner)).status).toBe(403);
  expect(codeOf(await post(`/alerts/${id}/acknowledge`, {}))).toEqual([404, "SECURITY_ALERT_NOT_FOUND"]);
  expect((await act("acknowledge")).body.data).toMatchObject({ id, status: "acknowledged", acknowledgedBy: expect.stringMatching(/^user:/) });
  expect(codeOf(await act("acknowledge"))).toEqual([409, "INVALID_STATE_TRANSITION"]);
  expect((await act("resolve", operator, { resolution: "accepted" })).body.data).toMatchObject({ id, status: "resolved" });
  expect(codeOf(await act("acknowledge"))).toEqual([409, "INVALID_STATE_TRANSITION"]);
  const unknown = await world.call(operator, "POST", `/v1/admin/security/alerts/${newId("sal")}/acknowledge`, { body: {} });
  expect(codeOf(unknown)).toEqual([404, "SECURITY_ALERT_NOT_FOUND"]);
  const { rows } = await world.sql.query("select type from outbox_events where subject_id = $1", [id]);
  expect(rows).toEqual([]);
});

describe.concurrent("a rule", () => {
  const RULE = { name: "two replays", type: "cross_tenant.attempt", conditions: { count: 2, windowSeconds: 600, severity: "critical" } };
  const attempt = (as: { apiKey: string }, ip = newAddress()) => world.call(asKey(as.apiKey, newId("ten")), "GET", "/v1/devices", from(ip));
  const alertsOf = async (as: Caller, ruleId: string) => (await get("/alerts", as)).filter((alert: { ruleId: string }) => alert.ruleId === ruleId);

  test("raises one alert for many events, and a new one that names it after it was resolved", async () => {
    const { tenant: own, as } = await open();
    const key = await newKey(own, as);
    const rule = (await post("/rules", RULE, as)).body.data;
    await times(8, () => attempt(key));
    await eventually(async () => expect(await alertsOf(as, rule.id)).toMatchObject([{ status: "open", count: 8, severity: "critical", entityId: key.keyId }]));
    const [alert] = await alertsOf(as, rule.id);
    expect((await post(`/alerts/${alert.id}/acknowledge`, {}, as)).body.data).toMatchObject({ status: "acknowledged", acknowledgedBy: `user:${own.ownerId}` });
    expect(codeOf(await post(`/alerts/${alert.id}/acknowledge`, {}, as))).toEqual([409, "INVALID_STATE_TRANSITION"]);
    const resolved = (await post(`/alerts/${alert.id}/resolve`, { resolution: "mitigated", note: "key revoked" }, as)).body.data;
    expect(resolved).toMatchObject({ status: "resolved", resolution: "mitigated", note: "key revoked", previousAlertId: null });
    expect(codeOf(await post(`/alerts/${alert.id}/resolve`, { resolution: "accepted" }, as))).toEqual([409, "INVALID_STATE_TRANSITION"]);
    await times(8, () => attempt(key));
    await eventually(async () => expect((await alertsOf(as, rule.id))[0]).toMatchObject({ status: "open", previousAlertId: alert.id }));
    const { rows } = await world.sql.query("select type from outbox_events where tenant_id = $1 and subject_id = $2 order by position", [
      own.tenantId,
      alert.id,
    ]);
    expect(rows.map(({ type }) => type)).toEqual(["security_alert.opened", "security_alert.acknowledged", "security_alert.resolved"]);
  });

  test("raises nothing below its count, and nothing while it is disabled", async () => {
    const { tenant: own, as } = await open();
    const [quiet, loud] = [await newKey(own, as), await newKey(own, as)];
    const builtIn = (await get("/rules", as)).find(({ type }: { type: string }) => type === RULE.type);
    expect(builtIn).toMatchObject({ builtIn: true, enabled: true, version: 1, createdAt: null });
    const changed = await world.call(as, "PATCH", `/v1/security/rules/${builtIn.id}`, { body: { enabled: false, version: 1 } });
    expect(changed.body.data).toMatchObject({ id: builtIn.id, enabled: false, version: 2, builtIn: true, conditions: builtIn.conditions });
    const rule = (await post("/rules", { ...RULE, conditions: { ...RULE.conditions, count: 3 } }, as)).body.data;
    await times(2, () => attempt(quiet));
    await times(5, () => attempt(loud));
    await eventually(async () => expect(await alertsOf(as, rule.id)).toMatchObject([{ entityId: loud.keyId }]));
    expect(await alertsOf(as, builtIn.id)).toEqual([]);
    expect((await get("/metrics", as)).openAlerts).toBe(1);
    // The rule has what it counts before the last of them are written.
    await eventually(async () => expect((await get("/metrics", as)).byType).toEqual([{ type: RULE.type, count: 7 }]));
  });

  test("blocks the address or the key that it names, for a while, and the call is refused", async () => {
    const { tenant: own, as } = await open();
    const key = await newKey(own, as);
    const ip = newAddress();
    await post("/rules", { ...RULE, actions: { alert: false, block: { entityType: "key", seconds: 600 } } }, as);
    await post("/rules", { ...RULE, actions: { block: { entityType: "ip", seconds: 600 } } }, as);
    await times(2, () => attempt(key, ip));
    await eventually(async () => expect(codeOf(await world.call(key.as, "GET", "/v1/devices"))).toEqual([403, "ENTITY_BLOCKED"]));
    expect(codeOf(await world.call(as, "GET", "/v1/devices", from(ip)))).toEqual([403, "ENTITY_BLOCKED"]);
    expect(codeOf(await world.call(owner, "GET", "/v1/devices", from(ip)))).toEqual([200, null]);
    const blocked = await get("/blocked-entities", as);
    expect(blocked.map(({ entityType }: { entityType: string }) => entityType).sort()).toEqual(["ip", "key"]);
  });

  test("may block only addresses for what anybody can cause in another's name", async () => {
    const unproven = { ...RULE, type: "signature.invalid_burst", actions: { block: { entityType: "device", seconds: 600 } } };
    expect(codeOf(await post("/rules", unproven))).toEqual([400, "VALIDATION_FAILED"]);
    const { id } = (await post("/rules", { ...unproven, actions: {} })).body.data;
    const patched = await world.call(owner, "PATCH", `/v1/security/rules/${id}`, { body: { actions: unproven.actions } });
    expect(codeOf(patched)).toEqual([400, "VALIDATION_FAILED"]);
  });

  test("of another tenant is unknown, and so is its alert", async () => {
    const other = await open();
    const { id } = (await post("/rules", RULE, other.as)).body.data;
    expect(codeOf(await world.call(owner, "GET", `/v1/security/rules/${id}`))).toEqual([404, "SECURITY_RULE_NOT_FOUND"]);
    expect(codeOf(await world.call(owner, "DELETE", `/v1/security/rules/${id}`))).toEqual([404, "SECURITY_RULE_NOT_FOUND"]);
    expect(codeOf(await world.call(owner, "PATCH", `/v1/security/rules/${id}`, { body: { enabled: false } }))).toEqual([404, "SECURITY_RULE_NOT_FOUND"]);
  });
});

describe.concurrent("events", () => {
  test("of one type are at most 1,000 a day in a tenant, and the others still find room", async () => {
    const { tenant: own, as } = await open();
    const key = await newKey(own, as);
    await world.sql.query(
      `insert into security_events (event_id, tenant_id, type, severity, entity_type, entity_id, minute, first_at, last_at, count, pending)
       select 'sev_' || lpad(n::text, 24, '0') || '', $1, 'cross_tenant.attempt', 'high', 'ip', n::text, now(), now(), now(), 1, false from generate_series(1, 1000) n`,
      [own.tenantId],
    );
    await world.call(asKey(key.apiKey, newId("ten")), "GET", "/v1/devices");
    await times(6, () => world.call(asAgent({ agentId: newId("agt"), tenantId: own.tenantId, secret: "x" }), "GET", "/v1/agent/me"));
    await world.call(
      asBearer((await world.app.mint({ userId: `admin-${own.tenantId}`, email: emailOf("a"), tenantId: own.tenantId, role: "admin", ttlSeconds: 600 })).token),
      "POST",
      "/v1/api-keys",
      { body: { name: "k", role: "owner" } },
    );
    await eventually(async () => expect(await eventsAbout(`admin-${own.tenantId}`, "privilege.escalation_attempt", as)).toHaveLength(1));
    expect(await eventsAbout(key.keyId, "cross_tenant.attempt", as)).toEqual([]);
  });

  test.each(["?type=nothing", "?from=yesterday", "?severity=__proto__", "?entityId=%00", "?unknown=1", "?from=0000-01-01T00:00:00.000Z&cursor=x"])(
    "refuse the filter %s",
    async (query) => expect((await world.call(owner, "GET", `/v1/security/events${query}`)).status).toBe(400),
  );
});
