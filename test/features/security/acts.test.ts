// Every type of security event: the act that raises it, over the real interface, and whom it is told. Events are written a moment later, so the acts happen
// beside each other.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { factsOf, SECURITY_EVENT_TYPES, type SecurityEvent, type SecurityEventType, sign } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { connect, online } from "../../channel/harness.ts";
import { initiate, prepare } from "../../contract/samples.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { anonymous, asAgent, asBearer, asKey, type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

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
  return `192.0.2.${addresses}`;
};
const from = (ip: string) => ({ headers: { "x-forwarded-for": ip } });
const times = async (count: number, act: () => Promise<unknown>): Promise<void> => {
  for (let n = 0; n < count; n += 1) await act();
};
const newKey = async (): Promise<{ readonly keyId: string; readonly apiKey: string }> =>
  (await world.call(owner, "POST", "/v1/api-keys", { body: { name: "k" } })).body.data;
const node = () => ({ url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } });

const RECEIVER_OF_NOBODY = "10.0.0.1";

/** Whom the event is about, and who is told instead of the tenant. */
interface Told extends Pick<SecurityEvent["details"], "entityType" | "entityId"> {
  readonly installation?: true;
}
const aboutDevice = ({ deviceId: entityId }: Pick<Device, "deviceId">): Told => ({ entityType: "device", entityId });

/** Of a device that was paired, and of the machine that asks for its identity once more. */
const takeOver = async () => {
  const { code, token, fingerprint } = await prepare({ world, tenant, owner });
  const body = { pairing_code: code, activation_token: token, user_email: "owner@example.com" };
  const paired = await world.call(anonymous, "POST", "/v1/pairing/activate", { body });
  const again = await initiate({ world }, fingerprint);
  const claim = (more: object) =>
    world.call(owner, "POST", "/v1/pairing/prepare-activation", { body: { pairing_code: again.code, tenant_id: tenant.tenantId, ...more } });
  return { claim, code: again.code, about: aboutDevice({ deviceId: paired.body.data.device_id }) };
};

const ACTS: Readonly<Record<SecurityEventType, () => Promise<Told>>> = {
  "auth.failed_burst": async () => {
    const ip = newAddress();
    await times(5, () => world.call(asBearer("eyJ.wrong.token"), "GET", "/v1/devices", from(ip)));
    return { installation: true, entityType: "ip", entityId: ip };
  },
  "signature.invalid_burst": async () => {
    const device = await tenant.device();
    await times(5, () => world.call(asAgent({ ...device.identity, secret: "wrong" }), "GET", "/v1/agent/me", from(newAddress())));
    return aboutDevice(device);
  },
  "signature.replayed": async () => {
    const device = await tenant.device();
    const headers = device.as.headers("");
    for (const path of ["/v1/agent/me", `/v1/devices/${device.deviceId}/secrets`]) await world.call(anonymous, "GET", path, { headers });
    return aboutDevice(device);
  },
  "pairing.bruteforce": async () => {
    const ip = newAddress();
    await times(5, () =>
      world.call(anonymous, "POST", "/v1/pairing/auto-activate", {
        body: { enrollment_token: `wrong-${newId("x")}`, pairing_code: "BCDF-GHJK" },
        ...from(ip),
      }),
    );
    return { installation: true, entityType: "ip", entityId: ip };
  },
  "device.takeover_attempt": async () => {
    const { claim, about } = await takeOver();
    expect((await claim({})).status).toBe(409);
    return about;
  },
  "device.fingerprint_changed": async () => {
    const { claim, code, about } = await takeOver();
    const { activation_token } = (await claim({ replaceExisting: true })).body.data;
    const body = { pairing_code: code, activation_token, user_email: "owner@example.com" };
    expect((await world.call(anonymous, "POST", "/v1/pairing/activate", { body })).status).toBe(201);
    return about;
  },
  "device.cloned": async () => {
    const device = await tenant.device();
    const holder = await online(node(), device, { instanceId: "holder" });
    const clone = await connect(node(), device);
    const { data } = await clone.next("welcome");
    const timestamp = new Date().toISOString();
    clone.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, data.nonce, timestamp) }, instanceId: "clone" });
    expect((await clone.closed()).code).toBe(4505);
    expect(holder.isOpen()).toBe(true);
    holder.end();
    return aboutDevice(device);
  },
  "api_key.used_from_new_ip": async () => {
    const { keyId, apiKey } = await newKey();
    for (const ip of [newAddress(), newAddress()]) await world.call(asKey(apiKey, tenant.tenantId), "GET", "/v1/devices", from(ip));
    return { entityType: "key", entityId: keyId };
  },
  "privilege.escalation_attempt": async () => {
    const admin = await tenant.user("admin");
    const { body } = await world.call(admin, "POST", "/v1/api-keys", { body: { name: "k", role: "owner" } });
    expect(body.code).toBe("PRIVILEGE_ESCALATION");
    return { entityType: "user", entityId: tenant.ownerId.replace("owner", "admin") };
  },
  "cross_tenant.attempt": async () => {
    const { keyId, apiKey } = await newKey();
    expect((await world.call(asKey(apiKey, newId("ten")), "GET", "/v1/devices")).status).toBe(403);
    return { entityType: "key", entityId: keyId };
  },
  "webhook.ssrf_blocked": async () => {
    const url = `http://${RECEIVER_OF_NOBODY}:8080/`;
    expect((await world.call(owner, "POST", "/v1/webhooks", { body: { url, events: ["fleet.*"] } })).body.code).toBe("WEBHOOK_URL_NOT_ALLOWED");
    return { entityType: "webhook", entityId: RECEIVER_OF_NOBODY };
  },
  "secrets.read": async () => {
    const { deviceId } = await tenant.device();
    expect((await world.call(owner, "GET", `/v1/devices/${deviceId}/secrets`)).status).toBe(200);
    return { entityType: "user", entityId: tenant.ownerId };
  },
};

describe.concurrent("each type of security event", () => {
  test.each(SECURITY_EVENT_TYPES)("%s is raised by its act, and told to nobody else", async (type) => {
    const { installation, entityType, entityId } = await ACTS[type]();
    const told = async (base: string, as: Caller) =>
      (await world.call(as, "GET", `${base}/events?type=${type}&entityId=${encodeURIComponent(entityId)}`)).body.data;
    const [mine, others] = [() => told("/v1/security", owner), () => told("/v1/admin/security", operator)];
    const [event] = await eventually(async () => {
      const events = await (installation ? others() : mine());
      expect(events.length).toBeGreaterThan(0);
      return events;
    });
    expect(event).toMatchObject({ type, severity: factsOf(type).severity, details: { entityType, entityId } });
    expect(await (installation ? mine() : others())).toEqual([]);
    const stranger = await world.tenant();
    expect(await told("/v1/security", await stranger.user("owner"))).toEqual([]);
  });
});
