// The upgrades of agents that the node remembers, which it decides without reading anything: it lets in nobody whom it would otherwise refuse.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE, sign, signedHeaders } from "../../../protocol/index.ts";
import { newSecret } from "../../../server/core/ids.ts";
import type { SignatureMemory } from "../../../server/core/ports/signature-memory.ts";
import { secretContext } from "../../../server/features/devices/rules.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { createSignatureMemory } from "../../../server/platform/signature-memory.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { attempt, connect, freshTime, greet, online, startNode, type TestDevice, type TestNode } from "../harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const isRemembered = ({ identity }: TestDevice, at: TestNode = node): boolean => at.devices.registry.recall(identity.agentId) !== null;

/** A device that the node has let in, and whose row the test may then change behind the node's back. */
const letIn = async (at: TestNode = node): Promise<TestDevice> => {
  const device = await at.device();
  (await connect(at, device)).end();
  expect(isRemembered(device, at)).toBe(true);
  return device;
};
const remove = ({ deviceId }: TestDevice): Promise<unknown> =>
  node.db.sqlTx((tx) => tx.query("update devices set deleted_at = now(), secret = '', pending_secret = null where device_id = $1", [deviceId]));

const box = createSecretBox(Buffer.alloc(32, 7));
/** Gives the device another secret; the agent that it returns knows it. */
const replaceSecret = async (device: TestDevice): Promise<TestDevice> => {
  const { deviceId, tenantId, identity } = device;
  const secret = newSecret();
  await node.db.sqlTx((tx) => tx.query("update devices set secret = $2 where device_id = $1", [deviceId, box.seal(secret, secretContext(tenantId, deviceId))]));
  return { ...device, identity: { ...identity, secret } };
};

/** Remembered with what is true now, of which nothing was read lately: as if the message about the next change were lost. */
const rememberOnly = async ({ identity }: TestDevice): Promise<void> => {
  const record = await node.devices.registry.take(identity.agentId);
  if (record === null) throw new Error("no such agent");
  node.devices.registry.remember(record);
};

const closeAfterHello = async (device: TestDevice, at: TestNode = node, said: () => unknown = () => undefined): Promise<number> => {
  const socket = await connect(at, device);
  const { data } = await socket.next("welcome");
  const timestamp = at.clock.now().toISOString();
  socket.say("hello", { proof: { timestamp, signature: sign(device.identity.secret, data.nonce, timestamp) } });
  await said();
  return (await socket.closed()).code;
};

describe("an agent", () => {
  test("is expected back when its socket breaks, and no longer remembered once it is back", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    expect(isRemembered(device)).toBe(false);
    socket.end();
    await eventually(async () => expect(isRemembered(device)).toBe(true));
    const back = await online(node, device);
    expect(isRemembered(device)).toBe(false);
    back.end();
  });

  test("that ends its session itself is not expected back", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    socket.socket.close(1000);
    await socket.closed();
    await eventually(() => expect(node.channel.stats.closes.get(1000)).toBeGreaterThan(0));
    expect(isRemembered(device)).toBe(false);
  });

  test("that signs with its new secret is let in although the node remembers an old one", async () => {
    const device = await node.device();
    await rememberOnly(device);
    (await online(node, await replaceSecret(device))).end();
  });
});

describe("an agent that the node remembers", () => {
  test("cannot replay its upgrade", async () => {
    const device = await letIn();
    const signed = signedHeaders(device.identity, "", freshTime(node));
    const socket = await connect(node, device, { signed });
    expect(await attempt(node, device, { signed })).toMatchObject({ status: 401, body: { details: { reason: "replayed" } } });
    socket.end();
  });

  test("is refused with 403 once it was removed", async () => {
    const device = await letIn();
    await remove(device);
    node.devices.registry.announce([device.identity.agentId]);
    expect(await attempt(node, device)).toMatchObject({ status: 403, body: { details: { reason: "device_revoked" } } });
  });

  test("gets no session after its removal even if the node missed the message", async () => {
    const device = await node.device();
    await rememberOnly(device);
    await remove(device);
    expect(await closeAfterHello(device)).toBe(CLOSE.deviceRevoked.code);
  });

  test("gets no session with a replaced secret even if the node missed the message", async () => {
    const device = await node.device();
    await rememberOnly(device);
    await replaceSecret(device);
    expect(await closeAfterHello(device)).toBe(CLOSE.authFailed.code);
  });

  test("is refused once its tenant is suspended", async () => {
    const device = await letIn();
    const facts = node.tenants.get(device.tenantId);
    if (facts !== undefined) node.tenants.set(device.tenantId, { ...facts, status: "suspended" });
    expect(await attempt(node, device)).toMatchObject({ status: 403, body: { code: "TENANT_SUSPENDED" } });
  });

  test("counts against the connect limit like any other", async () => {
    const own = await startNode({ settings: { connectsPerMinute: 10, connectBurst: 2 } });
    const device = await letIn(own);
    (await connect(own, device)).end();
    expect(await attempt(own, device)).toMatchObject({ status: 429, headers: { "retry-after": "6" } });
    await own.close();
  });

  test("gets a session only after the other nodes were asked about its signature, and none if one of them has seen it", async () => {
    const memory = createSignatureMemory();
    const answers: ((own: boolean) => void)[] = [];
    const claim: SignatureMemory["claim"] = (use, place, kept) => {
      const shared = new Promise<string>((resolve) => answers.push((own) => resolve(own ? place : "GET /v1/agent/connect#elsewhere")));
      return { ...memory.claim(use, place, kept), shared };
    };
    const own = await startNode({ signatures: { bind: memory.bind, coversMs: 0, claim } });
    const heard = (frames: number) => eventually(() => expect(own.channel.stats.framesIn).toBe(frames));
    const replay = await closeAfterHello(await letIn(own), own, async () => {
      await heard(1);
      answers.shift()?.(false);
    });
    expect([replay, own.channel.stats.connects.get("replayed"), own.channel.stats.ready]).toEqual([CLOSE.tryLater.code, 1, 0]);
    const device = await letIn(own);
    const socket = await connect(own, device);
    const ready = greet(own, socket, device);
    await heard(2);
    expect(own.channel.stats.ready).toBe(0);
    answers.shift()?.(true);
    await ready;
    socket.end();
    await own.close();
  });
});
