// Two gateways on one database and one Redis: what they promise together, and what remains of it while Redis misbehaves.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { signedHeaders } from "../../protocol/index.ts";
import { type AgentSocket, attempt, connect, greet, online } from "../channel/harness.ts";
import { eventually } from "../kit/eventually.ts";
import { startDeafProxy, startRedis, type TestRedis } from "../kit/redis.ts";
import { asKey, type Caller, type Device, nobody, startWorld, type TestTenant, type World, type WorldOptions } from "../kit/world.ts";

const ENV = { ACCEPT_PER_SECOND: "1000", RATE_LIMIT_CONNECT: "off", RATE_LIMIT_FAILED_AUTH: "off" };
/** As in production, but for the periods in which a node looks at itself; the sweep keeps its own. */
const SETTINGS: NonNullable<WorldOptions["settings"]> = {
  mesh: { redis: { connectTimeoutMs: 1_000, retryBaseMs: 20, retryCapMs: 200 }, bus: { probeEveryMs: 1_000 } },
  admin: { beatEveryMs: 200 },
  // Two gateways, their agents and a Redis share this process: what its event loop is late by says nothing here.
  channel: { flushEveryMs: 500, strain: { loopDelayMs: 60_000, lateForMs: 60_000, claimWaitMs: 60_000, calmForMs: 60_000 } },
  // Long enough that whatever wakes a waiting call sooner was a hint.
  commands: { waitLookEveryMs: 30_000 },
};
/** A lost hint costs at most a sweep's period and the two seconds that hints are given to arrive. */
const SWEEP_BOUND_MS = 9_000;
/** Memories of five seconds, the flush of presence and a look at tenants every three; no hint is needed for any of them. */
const REVOKED_WITHIN_MS = 7_000;
/** What the sweep finds is older than this: anything faster was a hint. */
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
/** Queued here, pushed there: how long from the answer to the frame. */
const delivered = async (world: World, device: Device, socket: AgentSocket, withinMs: number): Promise<number> => {
  const commandId = await queue(world, device);
  const answeredAt = performance.now();
  await eventually(() => expect(socket.frames.some((frame) => frame.op === "command" && frame.data.command.commandId === commandId)).toBe(true), withinMs);
  const tookMs = performance.now() - answeredAt;
  socket.say("ack", { commandId, status: "succeeded" });
  return tookMs;
};
const redisCheck = async (world: World): Promise<[boolean, string | undefined]> => {
  const { body } = await world.call(nobody, "GET", "/v1/health/ready");
  return [body.data.ready, body.data.checks.find(({ name }: { name: string }) => name === "redis")?.status];
};
/** Both hear and speak again. */
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

describe("together", () => {
  test("a command created on one node is pushed by the other within 100 ms", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    const took: number[] = [];
    for (let n = 0; n < 20; n += 1) took.push(await delivered(a, device, socket, BY_HINT_MS));
    expect(took.sort((x, y) => x - y)[10]).toBeLessThan(100);
  });

  test("the newest connection wins over nodes: the old one is closed with 4009 and commands go to the new one", async () => {
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

  test("a disconnect and a removal reach a socket on the other node within a second, and the removed agent stays out everywhere", async () => {
    const device = await tenant.device();
    const first = await join(b, device);
    const startedAt = performance.now();
    expect((await a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/disconnect`)).status).toBeLessThan(300);
    expect((await first.closed()).code).toBe(1013);
    const second = await join(b, device);
    expect((await a.call(tenant.apiKey, "DELETE", `/v1/devices/${device.deviceId}`)).status).toBeLessThan(300);
    expect((await second.closed()).code).toBe(4501);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
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

  test("of 150 calls over both nodes exactly 100 pass", async () => {
    const limited = await a.tenant({ unlimited: false });
    const answers = await Promise.all(Array.from({ length: 150 }, (_, n) => (n % 2 === 0 ? a : b).call(limited.apiKey, "GET", "/v1/devices")));
    const statuses = answers.map(({ status }) => status);
    expect([statuses.filter((status) => status === 200).length, statuses.filter((status) => status === 429).length]).toEqual([100, 50]);
  });

  test("each node lists both, and one can send the other away", async () => {
    const third = await startWorld({ ...ENV, REDIS_URL: redis.url, NODE_ID: "node-c" }, { settings: SETTINGS, beside: a });
    const operator = await a.operator();
    const listed = async (world: World) =>
      (await world.call(operator, "GET", "/v1/admin/nodes")).body.data.map(({ nodeId }: { nodeId: string }) => nodeId).sort();
    expect([await listed(a), await listed(b)]).toEqual([
      ["node-a", "node-b", "node-c"],
      ["node-a", "node-b", "node-c"],
    ]);
    expect((await a.call(operator, "POST", "/v1/admin/nodes/node-c/drain")).status).toBe(200);
    await eventually(async () => expect((await third.call(nobody, "GET", "/v1/health/ready")).status).toBe(503));
    await third.close();
    expect(await listed(b)).toEqual(["node-a", "node-b"]);
  });
});

/** The tenant's live feed on a node, as far as it has come. */
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

describe("news of the other node", () => {
  test("a viewer sees a command being queued, sent and ended elsewhere", async () => {
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

  test("a long poll wakes for a command that was queued elsewhere, a queueing call for an end that was told elsewhere", async () => {
    const device = await tenant.device();
    const polled = b.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands?wait=10`);
    const waited = a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands?wait=10`, { body: { type: "ping" } });
    const startedAt = performance.now();
    const [command] = (await polled).body.data;
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await b.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${command.commandId}/ack`, { body: { status: "succeeded" } });
    expect((await waited).body.data).toMatchObject({ commandId: command.commandId, status: "succeeded" });
    expect(performance.now() - startedAt).toBeLessThan(8_000);
  });
});

/** A socket, a signed call and a key on one node, revoked on the other: how long each of them lived on. */
const revocations = (): void => {
  const cut = async (revoke: () => Promise<unknown>, ended: () => Promise<unknown>): Promise<number> => {
    await revoke();
    const startedAt = performance.now();
    await eventually(ended, REVOKED_WITHIN_MS + 2_000);
    return performance.now() - startedAt;
  };
  const refused = (as: Caller, path: string) => async () => expect([401, 403]).toContain((await b.call(as, "GET", path)).status);

  test("a removed device loses its socket and its signed calls", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    expect((await b.call(device.as, "GET", "/v1/agent/me")).status).toBe(200);
    const remove = () => a.call(tenant.apiKey, "DELETE", `/v1/devices/${device.deviceId}`);
    const tookMs = await cut(remove, async () => {
      expect(socket.isOpen()).toBe(false);
      await refused(device.as, "/v1/agent/me")();
    });
    expect(tookMs).toBeLessThan(REVOKED_WITHIN_MS);
  });

  test("a revoked secret loses the socket that it opened and signs no more", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    expect((await b.call(device.as, "GET", "/v1/agent/me")).status).toBe(200);
    const revoke = () => a.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/secrets/rotate`, { body: { revoke: true } });
    const tookMs = await cut(revoke, async () => {
      expect(socket.isOpen()).toBe(false);
      await refused(device.as, "/v1/agent/me")();
    });
    expect(tookMs).toBeLessThan(REVOKED_WITHIN_MS);
  });

  test("a revoked key opens nothing more, and the stream that it had opened ends", async () => {
    const owner = await tenant.user();
    const made = await a.call(owner, "POST", "/v1/api-keys", { body: { name: "short", role: "viewer" } });
    const key = asKey(made.body.data.apiKey, tenant.tenantId);
    expect((await b.call(key, "GET", "/v1/devices")).status).toBe(200);
    const stream = await fetch(`${b.url}/trpc/live.watch?input=${encodeURIComponent("{}")}`, { headers: { ...key.headers(""), accept: "text/event-stream" } });
    expect(stream.status).toBe(200);
    const drained = stream.text();
    const tookMs = await cut(() => a.call(owner, "DELETE", `/v1/api-keys/${made.body.data.keyId}`), refused(key, "/v1/devices"));
    expect(tookMs).toBeLessThan(REVOKED_WITHIN_MS);
    expect(await drained).toContain("UNAUTHORIZED");
  });

  test("a suspended tenant loses its sockets and changes nothing more", async () => {
    const other = await a.tenant();
    const socket = await online(at(b), await other.device());
    await a.sql.query("update tenants set status = 'suspended' where tenant_id = $1", [other.tenantId]);
    const tookMs = await cut(
      async () => undefined,
      async () => {
        expect(socket.isOpen()).toBe(false);
        expect((await b.call(await other.user(), "POST", "/v1/api-keys", { body: { name: "no", role: "viewer" } })).body.code).toBe("TENANT_SUSPENDED");
      },
    );
    expect((await socket.closed()).code).toBe(4503);
    expect(tookMs).toBeLessThan(REVOKED_WITHIN_MS);
  });
};

describe("revoked on one node, cut on the other", revocations);

describe("revoked on one node, cut on the other, while Redis is away", () => {
  beforeEach(() => redis.kill());
  afterEach(() => redis.start());
  revocations();
});

test("a node that hears of nothing while the other hears well loses its claim on a device within a flush", async () => {
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

describe("while Redis misbehaves", () => {
  test("killed: nodes stay ready but degraded, every command is still pushed, the newest connection still wins; back, hints work again", async () => {
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

  test("frozen: calls are answered, commands are pushed by the sweep; thawed, hints work again", async () => {
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

  test("subscriptions cut: made anew at once", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    await redis.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await delivered(a, device, socket, SWEEP_BOUND_MS);
    await whole();
    await delivered(a, device, socket, BY_HINT_MS);
  });

  test("a subscription silently deaf: noticed and healed by the node itself, and what was missed is pushed", async () => {
    const device = await tenant.device();
    const socket = await join(b, device);
    expect(proxy.deafen()).toBe(1);
    // The probe's three periods, not the sweep's, bound this: renewal sweeps at once.
    await delivered(a, device, socket, SWEEP_BOUND_MS);
    await whole();
    await delivered(a, device, socket, BY_HINT_MS);
  });

  test("emptied again and again: no command is lost and none is pushed twice", async () => {
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

test("an agent's hello is judged the same on a node that cannot reach Redis", async () => {
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
