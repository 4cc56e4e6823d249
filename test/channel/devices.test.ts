// The features devices and agent, called the way the transports call them.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract, type Operation, sign } from "../../protocol/index.ts";
import { AppError } from "../../server/core/errors.ts";
import type { KeyedCall } from "../../server/core/feature.ts";
import type { Principal, TenantScope } from "../../server/core/scope.ts";
import { createAgent } from "../../server/features/agent/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { countStatements } from "../kit/checks/statements.ts";
import { committing, resultOf, userOf } from "../kit/gateway/call.ts";
import { attempt, connect, online, type Refusal, startNode, type TestDevice, type TestNode } from "./harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

type DeviceOps = typeof contract.devices.operations;
const USER = userOf("u", null, "owner");

/** Parses the input and checks the output as the pipeline does. */
const run = async <N extends keyof DeviceOps>(name: N, tenantId: TestDevice["tenantId"], input: object, principal: Principal = USER) => {
  const tenant = node.tenants.get(tenantId);
  if (tenant === undefined) throw new Error("no such tenant");
  const scope: TenantScope = { tenantId, tenant, principal, requestId: "req_test", ip: "127.0.0.1", traceparent: null };
  const op: Operation = contract.devices.operations[name];
  const call = {
    scope,
    reply: { headers: {} },
    signal: new AbortController().signal,
    idempotencyKey: null,
    fail: (code: ConstructorParameters<typeof AppError>[0], details?: Record<string, unknown>) => new AppError(code, { details }),
    commit: committing(node.db),
  } as unknown as KeyedCall<Operation>;
  const handler = node.devices.handlers[name] as unknown as (call: KeyedCall<Operation>, input: unknown) => Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads any answer
  return resultOf(op, await handler(call, op.input.parse(input))) as any;
};
const failure = async (promise: Promise<unknown>): Promise<{ code: string; details: unknown }> =>
  promise.then(
    () => {
      throw new Error("it succeeded");
    },
    (error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      return { code: error.code, details: error.details };
    },
  );
const asSelf = (device: TestDevice): Principal => ({
  kind: "agent",
  agentId: device.identity.agentId as `agt_${string}`,
  deviceId: device.deviceId as `dev_${string}`,
  deploymentId: "dep_x",
});

describe("pairing in sets", () => {
  test("a thousand devices take as many statements as one, each with its own secret", async () => {
    const tenantId = await node.tenant();
    const another = await node.tenant();
    const forOne = await countStatements(() => run("provision", another, { count: 1, tags: ["sim"], platform: "linux" }));
    const forAll = await countStatements(() => run("provision", tenantId, { count: 1_000, tags: ["sim"], platform: "linux" }));
    const { items } = forAll.result;
    expect(forOne.count).toBeGreaterThan(0);
    expect(forAll.count).toBe(forOne.count);
    expect(new Set(items.map(({ shared_secret: secret }: { shared_secret: string }) => secret)).size).toBe(1_000);
    const { total, items: page } = await run("list", tenantId, { tag: ["sim"], status: "provisioning" });
    expect([total, page.length]).toEqual([1_000, 20]);
    expect(await node.devices.registry.find(items[999].agent_id)).toMatchObject({
      deviceId: items[999].device_id,
      secrets: [items[999].shared_secret],
      revoked: false,
      tenantStatus: "active",
    });
  });

  test("a known fingerprint keeps its device and gets a new secret; its commands are cancelled and its socket closes", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    const commandId = await node.queue(device);
    await socket.next("command");
    const {
      items: [again],
    } = await run("provision", device.tenantId, { fingerprints: [device.fingerprint], replaceExisting: true });
    expect(again).toMatchObject({ device_id: device.deviceId, agent_id: device.identity.agentId });
    expect(again.shared_secret).not.toBe(device.identity.secret);
    expect((await socket.closed()).code).toBe(4032);
    expect(await node.db.query("select status, failure_code from commands_now where command_id = $1", [commandId])).toEqual([
      { status: "canceled", failure_code: "DEVICE_RESET" },
    ]);
    expect(((await attempt(node, device)) as Refusal).body.details.reason).toBe("bad_signature");
    (await online(node, { ...device, identity: { ...device.identity, secret: again.shared_secret } })).end();
  });

  test("a fingerprint of another tenant pairs as new: neither tenant learns of the other, and neither device affects the other", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    const [one, other] = [await node.tenant(), await node.tenant()];
    // The same answer as for an unknown fingerprint, also with replace.
    for (const [tenantId, replaceExisting] of [
      [one, false],
      [other, true],
    ] as const) {
      const { items } = await run("provision", tenantId, { fingerprints: ["fresh-machine-1", device.fingerprint], replaceExisting });
      expect(items).toHaveLength(2);
      expect(items[1]).toMatchObject({ fingerprint: device.fingerprint, tenant_id: tenantId });
      expect([items[1].device_id, items[1].agent_id]).not.toContain(device.deviceId);
      expect((await run("list", tenantId, {})).total).toBe(2);
    }
    expect(socket.isOpen()).toBe(true);
    socket.end();
    (await online(node, device)).end();
  });

  test("twenty concurrent pairings of one machine make one device", async () => {
    const tenantId = await node.tenant();
    const fingerprint = `contended-${tenantId}`;
    const made = await Promise.all(Array.from({ length: 20 }, () => run("provision", tenantId, { fingerprints: [fingerprint], replaceExisting: true })));
    expect(new Set(made.map(({ items }) => items[0].device_id)).size).toBe(1);
    expect((await run("list", tenantId, {})).total).toBe(1);
  });
});

describe("removal", () => {
  test("closes the socket with 4501, cancels open commands, emits one event and frees the fingerprint", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    const commandId = await node.queue(device);
    await socket.next("command");
    await run("remove", device.tenantId, { deviceId: device.deviceId });
    expect(await socket.closed()).toEqual({ code: 4501, reason: "device_revoked" });
    expect(await node.db.query("select status from commands_now where command_id = $1", [commandId])).toEqual([{ status: "canceled" }]);
    expect(await node.db.query("select length(secret) as size, pending_secret from devices where device_id = $1", [device.deviceId])).toEqual([
      { size: 0, pending_secret: null },
    ]);
    expect(await node.db.query("select 1 from outbox_events where subject_id = $1 and type = 'device.deleted'", [device.deviceId])).toHaveLength(1);
    expect(await attempt(node, device)).toMatchObject({ status: 403, body: { details: { reason: "device_revoked" } } });
    expect(await failure(run("remove", device.tenantId, { deviceId: device.deviceId }))).toEqual({
      code: "DEVICE_NOT_FOUND",
      details: { deviceId: device.deviceId },
    });
    const {
      items: [next],
    } = await run("provision", await node.tenant(), { fingerprints: [device.fingerprint] });
    expect(next.device_id).not.toBe(device.deviceId);
  });

  test.each(["get", "update", "remove", "secrets", "rotateSecret", "disconnect"] as const)(
    "%s of another tenant's device is as unknown as one that never was",
    async (name) => {
      const device = await node.device();
      const other = await node.tenant();
      const foreign = await failure(run(name, other, { deviceId: device.deviceId }));
      const missing = await failure(run(name, other, { deviceId: "dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R" }));
      expect(foreign).toEqual({ code: "DEVICE_NOT_FOUND", details: { deviceId: device.deviceId } });
      expect(missing.code).toBe(foreign.code);
      expect(await run("get", device.tenantId, { deviceId: device.deviceId })).toMatchObject({ version: 1 });
    },
  );
});

describe("lists and changes", () => {
  test("lists are newest first and complete over pages, and filters combine", async () => {
    const tenantId = await node.tenant();
    const ids = [];
    for (let count = 0; count < 5; count += 1) ids.push((await node.device(tenantId)).deviceId);
    await run("update", tenantId, { deviceId: ids[0] ?? "", name: "100%_real", tags: ["a"] });
    await run("update", tenantId, { deviceId: ids[1] ?? "", name: "100 others", tags: ["a", "b"] });
    const pages = await Promise.all([1, 2, 3, 4].map((page) => run("list", tenantId, { page, pageSize: 2 })));
    expect(pages.flatMap(({ items }) => items.map(({ deviceId }: { deviceId: string }) => deviceId))).toEqual([...ids].reverse());
    expect(pages.map(({ total }) => total)).toEqual([5, 5, 5, 5]);
    expect((await run("listHosts", tenantId, { limit: 2, offset: 4 })).items[0].deviceId).toBe(ids[0]);
    expect((await run("list", tenantId, { q: "100%" })).total).toBe(1);
    expect((await run("list", tenantId, { q: "100", tag: ["a"] })).total).toBe(2);
    expect((await run("list", tenantId, { tag: ["b"], status: "online" })).total).toBe(0);
  });

  test("a change with an outdated version is refused, with the current version in the error", async () => {
    const { tenantId, deviceId } = await node.device();
    expect(
      await run("update", tenantId, { deviceId, name: "one", version: 1, maintenance: { enabled: true, until: "2027-01-01T01:00:00+01:00" } }),
    ).toMatchObject({ name: "one", version: 2, maintenance: { enabled: true, until: "2027-01-01T00:00:00.000Z" } });
    expect(await failure(run("update", tenantId, { deviceId, name: "two", version: 1 }))).toEqual({ code: "VERSION_CONFLICT", details: { currentVersion: 2 } });
    expect(await failure(run("update", tenantId, { deviceId, deploymentId: "dep_nowhere" }))).toEqual({
      code: "DEPLOYMENT_NOT_FOUND",
      details: { deploymentId: "dep_nowhere" },
    });
  });

  test("disconnect closes the socket, and the device can connect again", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    expect(await run("disconnect", device.tenantId, { deviceId: device.deviceId })).toMatchObject({ disconnected: true });
    expect((await socket.closed()).code).toBe(1013);
    (await online(node, device)).end();
  });
});

describe("secrets", () => {
  test("a rotation keeps the old secret until the new one is used, also over the socket", async () => {
    const device = await node.device();
    const { deviceId, tenantId, identity } = device;
    expect(await run("rotateSecret", tenantId, { deviceId })).toEqual({ success: true, message: expect.any(String) });
    expect((await failure(run("rotateSecret", tenantId, { deviceId }))).code).toBe("ROTATION_IN_PROGRESS");
    expect((await run("secrets", tenantId, { deviceId })).secrets).toEqual({
      TENANT_ID: tenantId,
      DEVICE_ID: deviceId,
      AGENT_ID: identity.agentId,
      DEVICE_TOKEN: identity.secret,
    });
    const {
      secrets: { DEVICE_TOKEN: fresh },
    } = await run("secrets", tenantId, { deviceId }, asSelf(device));
    expect(fresh).not.toBe(identity.secret);
    expect((await run("rotateSecret", tenantId, { deviceId }, asSelf(device))).sharedSecret).toBe(fresh);

    (await online(node, device)).end();
    expect(await node.db.query("select 1 from devices where device_id = $1 and pending_secret is not null", [deviceId])).toHaveLength(1);
    const renewed = { ...device, identity: { ...identity, secret: fresh } };
    (await online(node, renewed)).end();
    expect(((await attempt(node, device)) as Refusal).body.details.reason).toBe("bad_signature");
    (await online(node, renewed)).end();
    await Promise.all([1, 2, 3].map(() => node.devices.registry.promote(identity.agentId, fresh)));
    expect(await node.db.query("select 1 from outbox_events where subject_id = $1 and type = 'device.secrets_rotated'", [deviceId])).toHaveLength(1);
  });

  test("a hello signed with the new secret completes the rotation too", async () => {
    const device = await node.device();
    const socket = await connect(node, device);
    const { sharedSecret } = await run("rotateSecret", device.tenantId, { deviceId: device.deviceId }, asSelf(device));
    const { data } = await socket.next("welcome");
    const timestamp = node.clock.now().toISOString();
    socket.say("hello", { proof: { timestamp, signature: sign(sharedSecret, data.nonce, timestamp) } });
    await socket.next("ready");
    await eventually(async () => expect((await node.devices.registry.find(device.identity.agentId))?.secrets).toEqual([sharedSecret]));
    socket.end();
  });

  test("a sealed secret that is copied to another device does not decrypt", async () => {
    const [one, two] = [await node.device(), await node.device()];
    await node.db.query("update devices set secret = (select secret from devices where device_id = $2) where device_id = $1", [one.deviceId, two.deviceId]);
    node.devices.registry.announce([one.identity.agentId]);
    await expect(node.devices.registry.find(one.identity.agentId)).rejects.toThrow("does not open");
    expect((await node.devices.registry.find(two.identity.agentId))?.secrets).toEqual([two.identity.secret]);
  });
});

test("an agent reads its identity and its settings, and reports its machine", async () => {
  const device = await node.device();
  const { handlers } = createAgent({
    clock: node.clock,
    emit: async () => undefined,
    devices: node.devices,
    apps: () => {
      throw new Error("it has no apps");
    },
    meshRoutes: () => {
      throw new Error("it has no mesh routes");
    },
    tunnels: () => {
      throw new Error("it has no tunnels");
    },
    onError: (error) => {
      throw error;
    },
    settings: {
      edgeUrl: () => "https://edge.example.org",
      heartbeatSeconds: 30,
      pollSeconds: 30,
      requestsPerMinute: 100,
      heartbeatsPerMinute: 60,
      maxOutputBytes: 65_536,
      publicUrl: () => "https://example.org/",
    },
  });
  const tenant = node.tenants.get(device.tenantId);
  if (tenant === undefined) throw new Error("no such tenant");
  const call = { scope: { tenantId: device.tenantId, tenant, principal: asSelf(device), requestId: "req_test", ip: "127.0.0.1", traceparent: null } } as never;
  expect(await handlers.me(call, {})).toMatchObject({ deviceId: device.deviceId, limits: { heartbeatsPerMinute: 60 } });
  const config = await handlers.config(call, {});
  expect(config).toMatchObject({
    socketUrl: "wss://example.org/v1/agent/connect",
    subprotocol: "mooring-agent.v1",
    maintenance: { enabled: false, until: null },
  });
  expect(await handlers.config(call, {})).toEqual(config);
  await run("update", device.tenantId, { deviceId: device.deviceId, maintenance: { enabled: true } });
  expect((await handlers.config(call, {})).version).not.toBe(config.version);
  await handlers.reportInventory(call, { hostname: "box", arch: "arm64", cores: 4 });
  expect(await node.devices.find({ tenantId: device.tenantId }, device.deviceId)).toMatchObject({ hostname: "box", arch: "arm64" });
});
