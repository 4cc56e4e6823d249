// A secret rotation never locks a device out: wherever agent or gateway crash, one of the agent's secrets works, and in the end only the new one does.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createAgent,
  createHttp,
  createMemoryJournal,
  createRotation,
  type Http,
  type Keys,
  NoAnswer,
  openFileKeys,
  signer,
  systemTime as time,
} from "../../agent-sim/agent/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { asAgent, type Device, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

let world: World;
let http: Http;
let tenant: TestTenant;
const folder = mkdtempSync(join(tmpdir(), "mooring-keys-"));
beforeAll(async () => {
  world = await startWorld();
  http = createHttp(world.url);
  tenant = await world.tenant();
});
afterAll(async () => {
  http.close();
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

let stamp = Date.now();
const stampMs = (): number => {
  stamp = Math.max(stamp + 1, Date.now());
  return stamp;
};
const fileOf = ({ deviceId }: Device): string => join(folder, deviceId);
const storedOf = (device: Device): { current: string; next: string | null; former: string | null } => JSON.parse(readFileSync(fileOf(device), "utf8"));
const statusWith = async (device: Device, secret: string): Promise<number> =>
  (await world.call(asAgent({ ...device.identity, secret }), "GET", "/v1/agent/me")).status;
const rotate = (device: Device, body: object = {}) => world.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/secrets/rotate`, { body });
const pending = async ({ deviceId }: Device): Promise<boolean> =>
  (await world.sql.query("select 1 from devices where device_id = $1 and pending_secret is not null", [deviceId])).rows.length > 0;

const rotationOf = (device: Device, keys: Keys, through: Http = http) =>
  createRotation({ keys, http: through, deviceId: device.deviceId, identity: device.identity, sign: signer(2), time, random: Math.random, stampMs });
const context = { commandId: "cmd_1", signal: new AbortController().signal, progress: () => undefined, traceparent: null };

class Crash extends Error {}
/** Fails the first call of a path: before it is sent, or instead of its answer. */
const dyingAt = (path: string, when: "sending" | "receiving", make: () => Error): Http => {
  let died = false;
  return {
    close: () => undefined,
    call: async (request) => {
      const hit = !died && request.path.endsWith(path);
      died ||= hit;
      if (hit && when === "sending") throw make();
      const answer = await http.call(request);
      if (hit) throw make();
      return answer;
    },
  };
};

const expectNewOnly = async (device: Device): Promise<void> => {
  const { current, next } = storedOf(device);
  expect(next).toBeNull();
  expect(current).not.toBe(device.identity.secret);
  expect([await statusWith(device, current), await statusWith(device, device.identity.secret)]).toEqual([200, 401]);
  expect(await pending(device)).toBe(false);
};

const CRASHES: readonly (readonly [string, string, "sending" | "receiving"])[] = [
  ["before the agent asks for the new secret", "/secrets", "sending"],
  ["before the agent stores the new secret", "/secrets", "receiving"],
  ["after the agent stores the new secret, before it uses it", "/me", "sending"],
  ["after the agent uses the new secret, before it hears so", "/me", "receiving"],
];

describe("agent crashes", () => {
  test.each(CRASHES)("a crash %s leaves a working secret, and the next start completes the rotation", async (_, path, when) => {
    const device = await tenant.device();
    await rotate(device);
    const broken = rotationOf(
      device,
      openFileKeys(fileOf(device), device.identity.secret),
      dyingAt(path, when, () => new Crash()),
    );
    await expect(broken.handler.run({}, context)).rejects.toThrow(Crash);
    const { current, next } = storedOf(device);
    const statuses = await Promise.all([current, next].map((secret) => (secret === null ? 401 : statusWith(device, secret))));
    expect(statuses).toContain(200);
    const stop = rotationOf(device, openFileKeys(fileOf(device), device.identity.secret)).resume();
    await eventually(() => expectNewOnly(device));
    stop();
  });
});

describe("gateway failures", () => {
  test.each(CRASHES)("a call without an answer %s does not stop the rotation", async (_, path, when) => {
    const device = await tenant.device();
    await rotate(device);
    const keys = openFileKeys(fileOf(device), device.identity.secret);
    await rotationOf(
      device,
      keys,
      dyingAt(path, when, () => new NoAnswer("gone")),
    ).handler.run({}, context);
    await expectNewOnly(device);
  });

  test("the agent keeps its old secret if the gateway does not know the new one", async () => {
    const device = await tenant.device();
    const keys = openFileKeys(fileOf(device), device.identity.secret);
    keys.offer("a secret from a database that was restored");
    await rotationOf(device, keys).handler.run({}, context);
    expect(keys.secret).toBe(device.identity.secret);
    expect(storedOf(device)).toMatchObject({ current: device.identity.secret, next: null });
  });
});

describe("whole rotation", () => {
  const launch = (device: Device, mode: "socket" | "poll") => {
    const keys = openFileKeys(fileOf(device), device.identity.secret);
    const agent = createAgent({
      url: world.url,
      http,
      time,
      mode,
      keys,
      random: Math.random,
      deviceId: device.deviceId,
      identity: device.identity,
      journal: createMemoryJournal(time.wallMs),
      handlers: {},
      firstWindowMs: 0,
    });
    agent.start();
    return agent;
  };

  test.each(["socket", "poll"] as const)("an agent over %s completes a rotation, and its command carries no secret", async (mode) => {
    const device = await tenant.device();
    expect((await rotate(device)).body.sharedSecret).toBeUndefined();
    const agent = launch(device, mode);
    await eventually(() => expectNewOnly(device));
    await eventually(async () => {
      const { body } = await world.call(tenant.apiKey, "GET", `/v1/devices/${device.deviceId}/commands?type=svc.rotate-secret`);
      expect(body.data.map(({ status, payload }: { status: string; payload: object }) => [status, payload])).toEqual([["succeeded", {}]]);
    });
    await agent.stop();
  });

  test("an agent comes back to a gateway whose database is older than its rotation", async () => {
    const device = await tenant.device();
    const read = async () => (await world.sql.query("select secret, secret_rotated_at from devices where device_id = $1", [device.deviceId])).rows[0];
    const dump = await read();
    await rotate(device);
    const agent = launch(device, "socket");
    await eventually(() => expectNewOnly(device));
    const { current: lost } = storedOf(device);
    await agent.stop();
    await world.sql.query("update devices set secret = $2, secret_rotated_at = $3, pending_secret = null where device_id = $1", [
      device.deviceId,
      dump.secret,
      dump.secret_rotated_at,
    ]);
    const back = launch(device, "socket");
    // Nodes remember an agent for some seconds.
    await eventually(() => expect(storedOf(device)).toMatchObject({ current: device.identity.secret, former: lost }), { boundMs: 40_000 });
    expect(await statusWith(device, device.identity.secret)).toBe(200);
    await back.stop();
  });

  test("of two secrets that are both refused each is tried once, and then the agent asks like any other", () => {
    const keys = openFileKeys(join(folder, "both"), "one");
    expect(keys.refused("one")).toBe(false);
    keys.offer("two");
    expect([keys.refused("two"), keys.secret, keys.refused("one"), keys.secret]).toEqual([true, "one", true, "two"]);
    keys.confirmed("two");
    expect([keys.refused("two"), keys.secret, keys.refused("one"), keys.secret]).toEqual([true, "one", false, "two"]);
    expect([keys.refused("two"), keys.secret]).toEqual([true, "one"]);
    keys.confirmed("one");
    const reopened = openFileKeys(join(folder, "both"), "another");
    expect(reopened.secret).toBe("one");
    reopened.offer("three");
    reopened.confirmed("three");
    expect([reopened.refused("three"), reopened.secret]).toEqual([true, "one"]);
  });

  test("a second rotation during the first is refused and queues no command", async () => {
    const device = await tenant.device();
    await rotate(device);
    expect((await rotate(device)).body.code).toBe("ROTATION_IN_PROGRESS");
    expect((await world.sql.query("select 1 from commands_now where device_id = $1", [device.deviceId])).rows).toHaveLength(1);
  });

  test("a revoked secret stops working at once and closes its socket with 4032", async () => {
    const device = await tenant.device();
    const ends: number[] = [];
    const agent = createAgent({
      url: world.url,
      http,
      time,
      random: Math.random,
      deviceId: device.deviceId,
      identity: device.identity,
      journal: createMemoryJournal(time.wallMs),
      handlers: {},
      firstWindowMs: 0,
      on: { away: (end) => void (end.kind === "closed" && ends.push(end.code)) },
    });
    agent.start();
    await eventually(() => expect(agent.state).toBe("ready"));
    expect((await rotate(device, { revoke: true })).status).toBe(200);
    await eventually(() => expect(ends[0]).toBe(4032));
    expect(await statusWith(device, device.identity.secret)).toBe(401);
    await agent.stop();
    const fresh = (await world.call(await tenant.user("owner"), "GET", `/v1/devices/${device.deviceId}/secrets`)).body.data.secrets.DEVICE_TOKEN;
    expect(await statusWith(device, fresh)).toBe(200);
  });
});
