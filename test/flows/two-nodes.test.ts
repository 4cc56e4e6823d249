// Two gateways on one database and one Redis: their guarantees together, and those that remain while Redis misbehaves.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { signedHeaders } from "../../protocol/index.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { type AgentSocket, attempt, connect, greet, online } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { anonymous, asKey, type Caller, type Device, startWorld, type TestTenant, type World, type WorldOptions } from "../kit/gateway/world.ts";
import { startDeafProxy, startRedis, type TestRedis } from "../kit/stores/redis.ts";

const ENV = { ACCEPT_PER_SECOND: "1000", RATE_LIMIT_CONNECT: "off", RATE_LIMIT_FAILED_AUTH: "off" };
/** As in production, except for the periods of a node's self-checks; the sweep keeps its own. */
const SETTINGS: NonNullable<WorldOptions["settings"]> = {
  cluster: { redis: { connectTimeoutMs: 1_000, retryBaseMs: 20, retryCapMs: 200 }, bus: { probeEveryMs: 1_000 } },
  admin: { beatEveryMs: 200 },
  // Two gateways, their agents and a Redis share this process: what its event loop is late by says nothing here.
  channel: { flushEveryMs: 500, overload: { loopDelayMs: 60_000, lateForMs: 60_000, claimWaitMs: 60_000, calmForMs: 60_000 } },
  // Long enough that whatever wakes a waiting call sooner was a hint.
  commands: { waitRecheckEveryMs: 30_000 },
};
/** A lost hint costs at most the sweep's period plus the two seconds that the sweep leaves to hints. */
const SWEEP_BOUND_MS = 9_000;
/** Caches live for five seconds, presence is flushed and tenants are checked every three; none of it needs a hint. */
const REVOKED_WITHIN_MS = 7_000;
/** The sweep finds only older commands, so anything faster was a hint. */
const BY_HINT_MS = 1_500;

let redis: TestRedis;
let proxy: Awaited<ReturnType<typeof startDeafProxy>>;
let a: World;
let b: World;
let tenant: TestTenant;

beforeAll(async () => {
  redis = await startRedis();
  proxy = await startDeafProxy(redis.port);
  a = await startWorld({ ...ENV, REDIS_URL: redis.url, NODE_ID: "node-a" }, { settings: SETTINGS });
  b = await startWorld({ ...ENV, REDIS_URL: proxy.url, NODE_ID: "node-b" }, { settings: SETTINGS, beside: a });
  tenant = await a.tenant();
});
afterAll(async () => {
  await b.close();
  await a.close();
  await proxy.close();
  await redis.close();
});
const sockets: AgentSocket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.end();
  await whole();
});

const at = ({ url }: World) => ({ url: url.replace(/^http/, "ws"), clock: { now: () => new Date() } });
const join = async (world: World, device: Device, more: object = {}): Promise<AgentSocket> => {
  const socket = await online(at(world), device, more);
  sockets.push(socket);
  return socket;
};
const queue = async (world: World, { deviceId }: Device): Promise<string> => {
  const { status, body } = await world.call(tenant.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body.data.commandId;
};
/** Queues on one node and waits for the frame on the other. */
const delivered = async (world: World, device: Device, socket: AgentSocket, withinMs: number): Promise<void> => {
  const commandId = await queue(world, device);
  await eventually(() => expect(socket.frames.some((frame) => frame.op === "command" && frame.data.command.commandId === commandId)).toBe(true), withinMs);
  socket.say("ack", { commandId, status: "succeeded" });
};
const redisCheck = async (world: World): Promise<[boolean, string | undefined]> => {
  const { body } = await world.call(anonymous, "GET", "/v1/health/ready");
  return [body.data.ready, body.data.checks.find(({ name }: { name: string }) => name === "redis")?.status];
};
/** Waits until both nodes are healthy again. */
const whole = () =>
  eventually(
    async () =>
      expect([await redisCheck(a), await redisCheck(b)]).toEqual([
        [true, "healthy"],
        [true, "healthy"],
      ]),
    15_000,
  );
const degraded = (world: World) => eventually(async () => expect(await redisCheck(world)).toEqual([true, "degraded"]));

describe("both nodes", () => {
  test("a command created on one node is pushed by the other as soon as its hint arrives", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    for (let n = 0; n < 20; n += 1) await delivered(a, device, socket, BY_HINT_MS);
  });

  test("the newest connection wins across nodes: the old one is closed with 4009 and commands go to the new one", async () => {
    const device = await tenant.device();
    const old = await join(a, device);
    const young = await join(b, device);
    expect((await old.closed()).code).toBe(4009);
    await delivered(a, device, young, BY_HINT_MS);
    expect(old.frames.filter(({ op }) => op === "command")).toEqual([]);
    const back = await join(a, device);
    expect((await young.closed()).code).toBe(4009);
    await delivered(b, device, back, BY_HINT_MS);
  });

  test("a disconnect and a removal close a socket on the other node by a hint, and every node refuses the removed agent", async () => {
    const device = await tenant.device();
    const first = await join(b, device);
    expect((await a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/disconnect`)).status).toBeLessThan(300);
    expect((await withTimeout(first.closed(), BY_HINT_MS, "the socket did not close")).code).toBe(1013);
    const second = await join(b, device);
    expect((await a.call(tenant.apiKey, "DELETE", `/v1/devices/${device.deviceId}`)).status).toBeLessThan(300);
    expect((await withTimeout(second.closed(), BY_HINT_MS, "the socket did not close")).code).toBe(4501);
    for (const world of [a, b]) expect(await attempt(at(world), device)).toMatchObject({ status: 403 });
  });

  test("a cancel reaches the agent through the other node", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    const commandId = await queue(a, device);
    await socket.next("command");
    socket.say("ack", { commandId, status: "running" });
    await socket.next("ack_ok");
    expect((await a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/cancel`)).status).toBeLessThan(300);
    expect((await socket.next("cancel")).data.commandId).toBe(commandId);
  });

  test("a signature that opened a socket on one node opens none on the other", async () => {
    const device = await tenant.device();
    const signed = signedHeaders(device.identity, "", new Date());
    sockets.push(await connect(at(a), device, { signed }));
    expect(await attempt(at(b), device, { signed })).toMatchObject({ status: 401, body: { code: "INVALID_SIGNATURE", details: { reason: "replayed" } } });
  });

  test("a limit of 100 lets exactly 100 of 150 calls over both nodes pass", async () => {
    const limited = await a.tenant({ unlimited: false });
    const answers = await Promise.all(Array.from({ length: 150 }, (_, n) => (n % 2 === 0 ? a : b).call(limited.apiKey, "GET", "/v1/devices")));
    const statuses = answers.map(({ status }) => status);
    expect([statuses.filter((status) => status === 200).length, statuses.filter((status) => status === 429).length]).toEqual([100, 50]);
  });

  test("each node lists all nodes, and one can drain another", async () => {
    const third = await startWorld({ ...ENV, REDIS_URL: redis.url, NODE_ID: "node-c" }, { settings: SETTINGS, beside: a });
    const operator = await a.operator();
    const listed = async (world: World) =>
      (await world.call(operator, "GET", "/v1/admin/nodes")).body.data.map(({ nodeId }: { nodeId: string }) => nodeId).sort();
    expect([await listed(a), await listed(b)]).toEqual([
      ["node-a", "node-b", "node-c"],
      ["node-a", "node-b", "node-c"],
    ]);
    expect((await a.call(operator, "POST", "/v1/admin/nodes/node-c/drain")).status).toBe(200);
    await eventually(async () => expect((await third.call(anonymous, "GET", "/v1/health/ready")).status).toBe(503));
    await third.close();
    expect(await listed(b)).toEqual(["node-a", "node-b"]);
  });
});

/** The tenant's live feed on a node, as received so far. */
const feed = async (world: World): Promise<{ text(): string; end(): void }> => {
  const stop = new AbortController();
  const input = encodeURIComponent(JSON.stringify({ types: ["command.*"] }));
  const headers = { ...tenant.apiKey.headers(""), accept: "text/event-stream" };
  const { body } = await fetch(`${world.url}/trpc/live.watch?input=${input}`, { headers, signal: stop.signal });
  let text = "";
  const read = async (): Promise<void> => {
    for await (const chunk of body ?? []) text += Buffer.from(chunk).toString();
  };
  read().catch((error: Error) => expect(error.name).toBe("AbortError"));
  await eventually(() => expect(text).toContain("connected"));
  return { text: () => text, end: () => stop.abort() };
};

describe("hints between nodes", () => {
  test("a viewer sees a command that is queued, sent and ended on the other node", async () => {
    const device = await tenant.device();
    const socket = await join(a, device);
    const { text, end } = await feed(b);
    const commandId = await queue(a, device);
    await socket.next("command");
    await eventually(() => expect(text()).toMatch(new RegExp(`command.changed.*${commandId}.*"sent"`)), BY_HINT_MS);
    socket.say("ack", { commandId, status: "succeeded" });
    await eventually(() => expect(text()).toMatch(new RegExp(`command.completed.*${commandId}`)), BY_HINT_MS);
    end();
  });

  test("a long poll wakes for a command queued on the other node, and a waiting call for an outcome reported there", async () => {
    const device = await tenant.device();
    const polled = b.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands?wait=50`);
    const waited = a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands?wait=30`, { body: { type: "ping" } });
    const [command] = (await withTimeout(polled, 10_000, "the poll did not wake")).body.data;
    await b.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${command.commandId}/ack`, { body: { status: "succeeded" } });
    expect((await withTimeout(waited, 10_000, "the call did not wake")).body.data).toMatchObject({ commandId: command.commandId, status: "succeeded" });
  });
});

/** A socket, a signed call and a key on one node, revoked on the other: each must end within the bound. */
const revocations = (): void => {
  const cut = async (revoke: () => Promise<unknown>, ended: () => Promise<unknown>): Promise<void> => {
    await revoke();
    await eventually(ended, REVOKED_WITHIN_MS);
  };
  const refused = (as: Caller, path: string) => async () => expect([401, 403]).toContain((await b.call(as, "GET", path)).status);

  test("a removed device loses its socket and its signed calls", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    expect((await b.call(device.as, "GET", "/v1/agent/me")).status).toBe(200);
    const remove = () => a.call(tenant.apiKey, "DELETE", `/v1/devices/${device.deviceId}`);
    await cut(remove, async () => {
      expect(socket.isOpen()).toBe(false);
      await refused(device.as, "/v1/agent/me")();
    });
  });

  test("a revoked secret loses its socket and its signed calls", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
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
  beforeEach(() => redis.kill());
  afterEach(() => redis.start());
  revocations();
});

test("a node closes its socket within a presence flush once a node without Redis has a newer session", async () => {
  const device = await tenant.device();
  const held = await join(a, device);
  const lonely = await startWorld({ ...ENV, REDIS_URL: "redis://127.0.0.1:1" }, { settings: SETTINGS, beside: a });
  try {
    sockets.push(await online(at(lonely), device, { instanceId: "another" }));
    expect((await held.closed()).code).toBe(4009);
  } finally {
    await lonely.close();
  }
});

describe("Redis failures", () => {
  test("while Redis is dead, nodes are ready but degraded, commands are still pushed and the newest connection wins; afterwards hints work again", async () => {
    const [device, other] = [await tenant.device(), await tenant.device()];
    const [socket, held] = [await join(b, device), await join(a, other)];
    await redis.kill();
    try {
      await delivered(a, device, socket, SWEEP_BOUND_MS);
      await degraded(a);
      await degraded(b);
      await join(b, other);
      expect((await held.closed()).code).toBe(4009);
    } finally {
      await redis.start();
    }
    await whole();
    await delivered(a, device, socket, BY_HINT_MS);
  });

  test("while Redis is frozen, calls are answered and the sweep pushes commands; afterwards hints work again", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    redis.freeze();
    try {
      await delivered(a, device, socket, SWEEP_BOUND_MS);
      await degraded(a);
    } finally {
      redis.thaw();
    }
    await whole();
    await delivered(a, device, socket, BY_HINT_MS);
  });

  test("cut subscriptions are renewed at once", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    await redis.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await delivered(a, device, socket, SWEEP_BOUND_MS);
    await whole();
    await delivered(a, device, socket, BY_HINT_MS);
  });

  test("a node notices and renews a subscription that went deaf, and pushes what it missed", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    expect(proxy.deafen()).toBe(1);
    // Three periods of the probe bound this, not the sweep's: a renewal sweeps at once.
    await delivered(a, device, socket, SWEEP_BOUND_MS);
    await whole();
    await delivered(a, device, socket, BY_HINT_MS);
  });

  test("while Redis is emptied again and again, no command is lost and none is pushed twice", async () => {
    const devices = await Promise.all(Array.from({ length: 4 }, () => tenant.device()));
    const held = await Promise.all(devices.map((device, n) => join(n % 2 === 0 ? a : b, device)));
    const expected = new Set<string>();
    for (let round = 0; round < 6; round += 1) {
      for (const [n, device] of devices.entries()) expected.add(await queue(n % 2 === 0 ? b : a, device));
      await redis.ask("FLUSHALL");
    }
    const pushed = () => held.flatMap(({ frames }) => frames.flatMap((frame) => (frame.op === "command" ? [frame.data.command.commandId] : [])));
    await eventually(() => expect(new Set(pushed())).toEqual(expected), 2 * SWEEP_BOUND_MS);
    expect(pushed().length).toBe(expected.size);
  });
});

test("a node that cannot reach Redis accepts a hello and pushes commands", async () => {
  const lonely = await startWorld({ ...ENV, REDIS_URL: "redis://127.0.0.1:1" }, { settings: SETTINGS, beside: a });
  try {
    expect(await redisCheck(lonely)).toEqual([true, "degraded"]);
    const device = await tenant.device();
    const socket = await connect(at(lonely), device);
    await greet(at(lonely), socket, device);
    await delivered(a, device, socket, SWEEP_BOUND_MS);
    socket.end();
  } finally {
    await lonely.close();
  }
});
