// The implementations over a real Redis keep the guarantees of all, and their own when Redis misbehaves.
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTestClock, systemClock } from "../../server/core/clock.ts";
import type { BusMessage } from "../../server/core/ports/pub-sub.ts";
import { openRedisBus } from "../../server/platform/cluster/bus-redis.ts";
import { createRedisRateLimiter } from "../../server/platform/cluster/rate-limit-redis.ts";
import { openRedis } from "../../server/platform/cluster/redis.ts";
import { openRedisPlace } from "../../server/platform/cluster/redis-cluster.ts";
import { markKey, sessionKey } from "../../server/platform/cluster/redis-keys.ts";
import { openRedisSessionOwners } from "../../server/platform/cluster/session-owners-redis.ts";
import { createSignatureMemory } from "../../server/platform/signature-memory.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { startDeafProxy, startRedis, type TestRedis } from "../kit/stores/redis.ts";
import { busSuite } from "./bus.ts";
import { deviceNotifierSuite } from "./device-notifier.ts";
import { rateLimiterSuite } from "./rate-limit.ts";
import { sessionOwnersSuite } from "./session-owners.ts";
import { signatureSuite } from "./signatures.ts";

const QUICK = { connectTimeoutMs: 500, commandTimeoutMs: 300, retryBaseMs: 20, retryCapMs: 100 };
const PROBE_MS = 100;

let server: TestRedis;
const opened: { close(): Promise<void> }[] = [];
const deps = (url = server.url) => ({ url, name: "test", settings: QUICK, onError: () => undefined });
const keep = <T extends { close(): Promise<void> }>(part: T): T => {
  opened.push(part);
  return part;
};
const connect = async (url = server.url) => {
  const redis = keep(openRedis(deps(url)));
  await eventually(() => expect(redis.connected).toBe(true));
  return redis;
};
const node = async (url = server.url) => {
  const { redis, openSubscriber } = openRedisPlace(deps(url));
  keep(redis);
  const nodeId = `node_${randomUUID()}`;
  const bus = keep(openRedisBus({ redis, openSubscriber, nodeId, ownChannel: `node:${nodeId}`, bus: { probeEveryMs: PROBE_MS } }));
  await eventually(() => expect(bus.healthy()).toBe(true));
  return { redis, bus, nodeId };
};

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

const shared: { node?: Awaited<ReturnType<typeof node>> } = {};
const sharedNode = () => {
  if (shared.node === undefined) throw new Error("not open");
  return shared.node;
};

describe("shared guarantees", () => {
  beforeAll(async () => {
    shared.node = await node();
    // These stay open for the whole block.
    opened.splice(0);
  });
  afterAll(async () => {
    await sharedNode().bus.close();
    await sharedNode().redis.close();
  });

  describe("bus", () => busSuite(() => sharedNode().bus));
  describe("session owners", () => sessionOwnersSuite(() => openRedisSessionOwners({ redis: sharedNode().redis })));
  describe("device notifier", () => deviceNotifierSuite(() => ({ bus: sharedNode().bus, owners: openRedisSessionOwners({ redis: sharedNode().redis }) })));
  describe("signatures", () => signatureSuite(() => createSignatureMemory(sharedNode().redis)));
  describe("rate limiter", () =>
    rateLimiterSuite(() => {
      const clock = createTestClock();
      return {
        limiter: createRedisRateLimiter({ redis: sharedNode().redis, clock, liveNodes: () => 1, nowMs: () => clock.now().getTime() }),
        now: clock.now,
        advance: clock.advance,
      };
    }));
});

const standard = (limit: number, key = randomUUID()) => [{ name: "standard", key, limit, windowSeconds: 60 }];
const admitted = async (
  limiters: readonly { take(buckets: ReturnType<typeof standard>): Promise<{ allowed: boolean }> }[],
  buckets: ReturnType<typeof standard>,
  count: number,
) => (await Promise.all(Array.from({ length: count }, (_, at) => limiters[at % limiters.length]?.take(buckets)))).filter((verdict) => verdict?.allowed).length;

describe("several nodes", () => {
  test("a message crosses from one node to the other", async () => {
    const [one, two] = [await node(), await node()];
    const heard: BusMessage[] = [];
    await two.bus.subscribe("crossing", (message) => heard.push(message));
    await one.bus.publish("crossing", { n: 1 });
    await eventually(() => expect(heard).toEqual([{ n: 1 }]));
  });

  test("with a limit of 100 exactly 100 of 300 calls on two nodes pass, by Redis's clock", async () => {
    const limiters = [];
    for (let n = 0; n < 2; n += 1) limiters.push(createRedisRateLimiter({ redis: await connect(), clock: systemClock, liveNodes: () => 2 }));
    const buckets = standard(100);
    expect(await admitted(limiters, buckets, 300)).toBe(100);
    const before = Date.now();
    const verdict = await limiters[0]?.take(buckets);
    const { retryAfterSeconds = 0, resetAt } = verdict ?? {};
    expect(retryAfterSeconds).toBeGreaterThan(30);
    // Redis answers in whole seconds or more exactly, from a clock of the same machine.
    expect(resetAt?.getTime()).toBeGreaterThanOrEqual(before + retryAfterSeconds * 1_000 - 1_000);
    expect(resetAt?.getTime()).toBeLessThanOrEqual(Date.now() + retryAfterSeconds * 1_000 + 1_000);
  });

  test("a signature that is used on one node is known on the other", async () => {
    const [one, two] = [createSignatureMemory(await connect()), createSignatureMemory(await connect())];
    const key = randomUUID();
    await one.bind(key, "GET /a");
    expect(await two.bind(key, "GET /b")).toBe("GET /a");
  });

  test("a signature that one node has bound to nowhere is good nowhere on the other, whatever is asked beside it", async () => {
    const [one, two] = [createSignatureMemory(await connect()), createSignatureMemory(await connect())];
    const [spent, fresh, used] = [randomUUID(), randomUUID(), randomUUID()];
    await Promise.all([one.bind(spent, ""), one.bind(used, "GET /used")]);
    expect(await Promise.all([spent, fresh, used].map((key) => two.bind(key, "GET /b")))).toEqual(["", "GET /b", "GET /used"]);
  });

  test("a signature that one node claims cannot be claimed on the other", async () => {
    const [one, two] = [createSignatureMemory(await connect()), createSignatureMemory(await connect())];
    const key = randomUUID();
    const claims = [one.claim(key, "GET /a#1", ""), two.claim(key, "GET /a#2", "")];
    expect(claims.map(({ first }) => first)).toEqual(["GET /a#1", "GET /a#2"]);
    const found = await Promise.all(claims.map(({ shared }) => shared));
    expect(new Set(found).size).toBe(1);
  });

  test("an owner entry that Redis cannot change fails alone", async () => {
    const redis = await connect();
    const owners = openRedisSessionOwners({ redis });
    await redis.command("SET", sessionKey("dev_poisoned"), "a text where a hash belongs");
    await Promise.all(["dev_before", "dev_poisoned", "dev_after"].map((deviceId) => owners.claim(deviceId, "here", 1)));
    expect([await owners.owner("dev_before"), await owners.owner("dev_after")]).toEqual(["here", "here"]);
  });

  test("an owner entry that is not renewed expires", async () => {
    const owners = openRedisSessionOwners({ redis: await connect(), ttlMs: 50 });
    await owners.claim("dev_short", "here", 1);
    await eventually(async () => expect(await owners.owner("dev_short")).toBeNull());
  });

  test("Redis keys contain no secret", async () => {
    const redis = await connect();
    await createRedisRateLimiter({ redis, clock: systemClock, liveNodes: () => 1 }).take([
      { name: "pairing.autoActivate.token", key: "canary-enrollment-token", limit: 5, windowSeconds: 60 },
    ]);
    await createSignatureMemory(redis).bind("agt_1:canary-signature", "GET /v1/agent/me");
    await openRedisSessionOwners({ redis }).claim("dev_1", "node", 1);
    const keys = (await redis.command("KEYS", "*")) as string[];
    expect(keys.filter((key) => !key.startsWith("svc:"))).toEqual([]);
    expect(keys.filter((key) => key.includes("canary"))).toEqual([]);
    expect(keys).toContain(sessionKey("dev_1"));
  });
});

describe("Redis failures", () => {
  test("a node starts without Redis, loses hints without an error, and is healthy once Redis is there", async () => {
    const late = await startRedis();
    await late.kill();
    const { redis, openSubscriber } = openRedisPlace(deps(late.url));
    keep(redis);
    const bus = keep(openRedisBus({ redis, openSubscriber, nodeId: "early", ownChannel: "node:early", bus: { probeEveryMs: PROBE_MS } }));
    const heard: BusMessage[] = [];
    let resyncs = 0;
    bus.onResync(() => {
      resyncs += 1;
    });
    await bus.subscribe("later", (message) => heard.push(message));
    await bus.publish("later", { n: 1 });
    expect([bus.healthy(), bus.stats.lost, await openRedisSessionOwners({ redis }).owner("dev_1")]).toEqual([false, 1, null]);
    await late.start();
    await eventually(() => expect(bus.healthy()).toBe(true));
    expect(resyncs).toBeGreaterThan(0);
    await bus.publish("later", { n: 2 });
    await eventually(() => expect(heard).toEqual([{ n: 2 }]));
    await late.close();
  });

  test("without Redis each node limits calls to its share, counts earlier calls, and reports that it is degraded", async () => {
    const gone = await startRedis();
    const limiters = [];
    for (let n = 0; n < 2; n += 1) limiters.push(createRedisRateLimiter({ redis: await connect(gone.url), clock: systemClock, liveNodes: () => 2 }));
    const buckets = standard(101);
    expect(await admitted(limiters, buckets, 40)).toBe(40);
    await gone.kill();
    expect(await admitted(limiters, buckets, 300)).toBe(2 * 51 - 40);
    expect(limiters.every(({ degraded }) => degraded >= 150)).toBe(true);
    await gone.close();
  });

  test("without Redis a node still knows the signatures that it has seen itself", async () => {
    const gone = await startRedis();
    const memory = createSignatureMemory(await connect(gone.url));
    await memory.bind("before", "GET /a");
    await gone.kill();
    expect([await memory.bind("before", "GET /b"), await memory.bind("after", "GET /a"), await memory.bind("after", "GET /b")]).toEqual([
      "GET /a",
      "GET /a",
      "GET /a",
    ]);
    expect(memory.degraded).toBe(1);
    await gone.close();
  });

  test("scripts work again after Redis restarts", async () => {
    const restarted = await startRedis();
    const redis = await connect(restarted.url);
    const owners = openRedisSessionOwners({ redis });
    await owners.claim("dev_1", "here", 1);
    await restarted.kill();
    await restarted.start();
    await eventually(async () => {
      await owners.claim("dev_2", "here", 1);
      expect(await owners.owner("dev_2")).toBe("here");
    });
    await restarted.close();
  });

  test("a frozen Redis costs one timeout, then fails fast, and is used again once it thaws", async () => {
    const frozen = await startRedis();
    const { redis, bus } = await node(frozen.url);
    frozen.freeze();
    await withTimeout(expect(redis.command("PING")).rejects.toThrow("did not answer"), 20_000, "the command did not fail");
    expect(bus.healthy()).toBe(false);
    await expect(redis.command("PING")).rejects.toThrow("away");
    frozen.thaw();
    await eventually(() => expect(bus.healthy()).toBe(true));
    await frozen.close();
  });
});

describe("subscriptions", () => {
  test("a subscription whose connection is cut is renewed", async () => {
    const { bus } = await node();
    const heard: BusMessage[] = [];
    await bus.subscribe("cut", (message) => heard.push(message));
    expect(await server.ask("CLIENT", "KILL", "TYPE", "pubsub")).toMatch(/^:[1-9]/);
    await eventually(async () => {
      await bus.publish("cut", { n: 1 });
      expect(heard.length).toBeGreaterThan(0);
    });
  });

  test("the probe notices a deaf subscription although PING works, renews it and triggers a resync", async () => {
    const proxy = await startDeafProxy(server.port);
    const { redis, bus } = await node(proxy.url);
    const heard: BusMessage[] = [];
    await bus.subscribe("deaf", (message) => heard.push(message));
    let resyncs = 0;
    bus.onResync(() => {
      resyncs += 1;
    });
    expect(proxy.deafen()).toBe(1);
    await eventually(() => expect(bus.healthy()).toBe(false));
    expect(bus.degradation()).toBe("deaf");
    expect(await redis.command("PING")).toBe("PONG");
    await eventually(() => expect([bus.healthy(), bus.stats.renewals]).toEqual([true, 1]));
    expect(resyncs).toBe(1);
    await bus.publish("deaf", { n: 1 });
    await eventually(() => expect(heard).toEqual([{ n: 1 }]));
    await proxy.close();
  });

  test("a subscription that Redis's ACL refuses counts as deaf until the ACL allows it", async () => {
    const strict = await startRedis();
    const { bus } = await node(strict.url);
    await strict.ask("ACL", "SETUSER", "default", "-subscribe");
    await strict.ask("CLIENT", "KILL", "TYPE", "pubsub");
    await eventually(() => expect([bus.healthy(), bus.degradation()]).toEqual([false, "deaf"]));
    const resyncs: string[] = [];
    bus.onResync(() => resyncs.push("again"));
    await strict.ask("ACL", "SETUSER", "default", "+subscribe");
    await eventually(() => expect(bus.healthy()).toBe(true));
    expect(resyncs.length).toBeGreaterThan(0);
    await strict.close();
  });

  test("a connection that stays open but carries nothing is abandoned and renewed", async () => {
    const proxy = await startDeafProxy(server.port);
    const { bus } = await node(proxy.url);
    proxy.freeze();
    await eventually(() => expect(bus.degradation()).toBe("away"));
    proxy.thaw();
    await eventually(() => expect(bus.healthy()).toBe(true));
    await proxy.close();
  });

  test("a Redis that refuses writes makes the bus unhealthy until it accepts them again", async () => {
    const replica = await startRedis();
    const { bus } = await node(replica.url);
    await replica.ask("REPLICAOF", "127.0.0.1", "1");
    await eventually(() => expect(bus.degradation()).toBe("refuses writes"));
    await replica.ask("REPLICAOF", "NO", "ONE");
    await eventually(() => expect(bus.healthy()).toBe(true));
    await replica.close();
  });

  test("a flushed Redis triggers a resync", async () => {
    const { bus, nodeId } = await node();
    let resyncs = 0;
    bus.onResync(() => {
      resyncs += 1;
    });
    await eventually(async () => expect(await server.ask("EXISTS", markKey(nodeId))).toBe(":1"));
    await server.ask("FLUSHALL");
    await eventually(() => expect(resyncs).toBe(1));
    expect(bus.healthy()).toBe(true);
  });
});
