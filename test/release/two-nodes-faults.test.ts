// Two gateways on one database and one Redis: what one of them revokes ends on the other, and what remains while Redis misbehaves.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connect, greet, online } from "../channel/harness.ts";
import { at, BY_HINT_MS, openTwoNodes, redisCheck, TWO_NODES_ENV, TWO_NODES_SETTINGS, type TwoNodes } from "../flows/two-nodes.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { asKey, type Caller, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

/** A lost hint costs at most the sweep's period plus the two seconds that the sweep leaves to hints. */
const SWEEP_BOUND_MS = 9_000;
/** Caches live for five seconds, presence is flushed and tenants are checked every three; none of it needs a hint. */
const REVOKED_WITHIN_MS = 7_000;

let nodes: TwoNodes;
let a: World;
let b: World;
let tenant: TestTenant;
beforeAll(async () => {
  nodes = await openTwoNodes();
  ({ a, b, tenant } = nodes);
});
afterEach(() => nodes.settle());
afterAll(() => nodes.close());

/** A socket, a signed call and a key on one node, revoked on the other: each must end within the bound. */
const revocations = (): void => {
  const cut = async (revoke: () => Promise<unknown>, ended: () => Promise<unknown>): Promise<void> => {
    await revoke();
    await eventually(ended, REVOKED_WITHIN_MS);
  };
  const refused = (as: Caller, path: string) => async () => expect([401, 403]).toContain((await b.call(as, "GET", path)).status);

  test("a removed device loses its socket and its signed calls", async () => {
    const device = await tenant.device();
    const socket = await nodes.join(b, device);
    expect((await b.call(device.as, "GET", "/v1/agent/me")).status).toBe(200);
    const remove = () => a.call(tenant.apiKey, "DELETE", `/v1/devices/${device.deviceId}`);
    await cut(remove, async () => {
      expect(socket.isOpen()).toBe(false);
      await refused(device.as, "/v1/agent/me")();
    });
  });

  test("a revoked secret loses its socket and its signed calls", async () => {
    const device = await tenant.device();
    const socket = await nodes.join(b, device);
    expect((await b.call(device.as, "GET", "/v1/agent/me")).status).toBe(200);
    const revoke = () => a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/secrets/rotate`, { body: { revoke: true } });
    await cut(revoke, async () => {
      expect(socket.isOpen()).toBe(false);
      await refused(device.as, "/v1/agent/me")();
    });
  });

  test("a revoked key is refused, and its open stream ends", async () => {
    const owner = await tenant.user();
    const made = await a.call(owner, "POST", "/v1/api-keys", { body: { name: "short", role: "viewer" } });
    const key = asKey(made.body.data.apiKey, tenant.tenantId);
    expect((await b.call(key, "GET", "/v1/devices")).status).toBe(200);
    const stream = await fetch(`${b.url}/trpc/live.watch?input=${encodeURIComponent("{}")}`, { headers: { ...key.headers(""), accept: "text/event-stream" } });
    expect(stream.status).toBe(200);
    const drained = stream.text();
    await cut(() => a.call(owner, "DELETE", `/v1/api-keys/${made.body.data.keyId}`), refused(key, "/v1/devices"));
    expect(await drained).toContain("UNAUTHORIZED");
  });

  test("a suspended tenant loses its sockets and may change nothing", async () => {
    const other = await a.tenant();
    const socket = await online(at(b), await other.device());
    await a.sql.query("update tenants set status = 'suspended' where tenant_id = $1", [other.tenantId]);
    await cut(
      async () => undefined,
      async () => {
        expect(socket.isOpen()).toBe(false);
        expect((await b.call(await other.user(), "POST", "/v1/api-keys", { body: { name: "no", role: "viewer" } })).body.code).toBe("TENANT_SUSPENDED");
      },
    );
    expect((await socket.closed()).code).toBe(4503);
  });
};

describe("revocation on the other node", revocations);

describe("revocation on the other node without Redis", () => {
  beforeEach(() => nodes.redis.kill());
  afterEach(() => nodes.redis.start());
  revocations();
});

test("a node closes its socket within a presence flush once a node without Redis has a newer session", async () => {
  const device = await tenant.device();
  const held = await nodes.join(a, device);
  const lonely = await startWorld({ ...TWO_NODES_ENV, REDIS_URL: "redis://127.0.0.1:1" }, { settings: TWO_NODES_SETTINGS, beside: a });
  try {
    nodes.keep(await online(at(lonely), device, { instanceId: "another" }));
    expect((await held.closed()).code).toBe(4009);
  } finally {
    await lonely.close();
  }
});

describe("Redis failures", () => {
  test("while Redis is dead, nodes are ready but degraded, commands are still pushed and the newest connection wins; afterwards hints work again", async () => {
    const [device, other] = [await tenant.device(), await tenant.device()];
    const [socket, held] = [await nodes.join(b, device), await nodes.join(a, other)];
    await nodes.redis.kill();
    try {
      await nodes.delivered(a, device, socket, SWEEP_BOUND_MS);
      await nodes.degraded(a);
      await nodes.degraded(b);
      await nodes.join(b, other);
      expect((await held.closed()).code).toBe(4009);
    } finally {
      await nodes.redis.start();
    }
    await nodes.whole();
    await nodes.delivered(a, device, socket, BY_HINT_MS);
  });

  test("while Redis is frozen, calls are answered and the sweep pushes commands; afterwards hints work again", async () => {
    const device = await tenant.device();
    const socket = await nodes.join(b, device);
    nodes.redis.freeze();
    try {
      await nodes.delivered(a, device, socket, SWEEP_BOUND_MS);
      await nodes.degraded(a);
    } finally {
      nodes.redis.thaw();
    }
    await nodes.whole();
    await nodes.delivered(a, device, socket, BY_HINT_MS);
  });

  test("cut subscriptions are renewed at once", async () => {
    const device = await tenant.device();
    const socket = await nodes.join(b, device);
    await nodes.redis.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await nodes.delivered(a, device, socket, SWEEP_BOUND_MS);
    await nodes.whole();
    await nodes.delivered(a, device, socket, BY_HINT_MS);
  });

  test("a node notices and renews a subscription that went deaf, and pushes what it missed", async () => {
    const device = await tenant.device();
    const socket = await nodes.join(b, device);
    expect(nodes.proxy.deafen()).toBe(1);
    // Three periods of the probe bound this, not the sweep's: a renewal sweeps at once.
    await nodes.delivered(a, device, socket, SWEEP_BOUND_MS);
    await nodes.whole();
    await nodes.delivered(a, device, socket, BY_HINT_MS);
  });

  test("while Redis is emptied again and again, no command is lost and none is pushed twice", async () => {
    const devices = await Promise.all(Array.from({ length: 4 }, () => tenant.device()));
    const held = await Promise.all(devices.map((device, n) => nodes.join(n % 2 === 0 ? a : b, device)));
    const expected = new Set<string>();
    for (let round = 0; round < 6; round += 1) {
      for (const [n, device] of devices.entries()) expected.add(await nodes.queue(n % 2 === 0 ? b : a, device));
      await nodes.redis.ask("FLUSHALL");
    }
    const pushed = () => held.flatMap(({ frames }) => frames.flatMap((frame) => (frame.op === "command" ? [frame.data.command.commandId] : [])));
    await eventually(() => expect(new Set(pushed())).toEqual(expected), 2 * SWEEP_BOUND_MS);
    expect(pushed().length).toBe(expected.size);
  });
});

test("a node that cannot reach Redis accepts a hello and pushes commands", async () => {
  const lonely = await startWorld({ ...TWO_NODES_ENV, REDIS_URL: "redis://127.0.0.1:1" }, { settings: TWO_NODES_SETTINGS, beside: a });
  try {
    expect(await redisCheck(lonely)).toEqual([true, "degraded"]);
    const device = await tenant.device();
    const socket = await connect(at(lonely), device);
    await greet(at(lonely), socket, device);
    await nodes.delivered(a, device, socket, SWEEP_BOUND_MS);
    socket.end();
  } finally {
    await lonely.close();
  }
});
