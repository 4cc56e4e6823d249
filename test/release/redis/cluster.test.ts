// A Redis Cluster keeps the guarantees of every implementation, over three masters, and follows its keys and channels when masters change. The node is the
// user that docs/operating.md makes.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestClock, systemClock } from "../../../server/core/clock.ts";
import type { BusMessage } from "../../../server/core/ports/pub-sub.ts";
import type { Bus } from "../../../server/platform/cluster/bus.ts";
import { openRedisBus } from "../../../server/platform/cluster/bus-redis.ts";
import { createRedisRateLimiter } from "../../../server/platform/cluster/rate-limit-redis.ts";
import type { Redis } from "../../../server/platform/cluster/redis.ts";
import { openRedisPlace } from "../../../server/platform/cluster/redis-cluster.ts";
import { channelName, limitKey, sessionKey } from "../../../server/platform/cluster/redis-keys.ts";
import { clusterSlotOf } from "../../../server/platform/cluster/redis-slots.ts";
import { openRedisSessionOwners } from "../../../server/platform/cluster/session-owners-redis.ts";
import { createSignatureMemory } from "../../../server/platform/signature-memory.ts";
import { busSuite } from "../../conformance/bus.ts";
import { deviceNotifierSuite } from "../../conformance/device-notifier.ts";
import { rateLimiterSuite } from "../../conformance/rate-limit.ts";
import { sessionOwnersSuite } from "../../conformance/session-owners.ts";
import { signatureSuite } from "../../conformance/signatures.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type RedisClusterServers, startRedisCluster } from "../../kit/stores/redis-cluster.ts";

const PROBE_MS = 250;
const PATIENCE = { boundMs: 40_000, stepMs: 200 };
const MASTERS = [0, 1, 2];
/** The master of a key's slot, as the cluster begins. */
const masterOf = (key: string): number => Math.floor((3 * clusterSlotOf(key)) / 16_384);
/** A name for which the key lives at this master. */
const nameAt = (master: number, keyOf: (name: string) => string): string => {
  for (let n = 0; ; n += 1) if (masterOf(keyOf(`${master}-${n}`)) === master) return `${master}-${n}`;
};

let cluster: RedisClusterServers;
let url: string;
let redis: Redis;
let bus: Bus;

const open = (nodeId: string) => {
  const { redis, openSubscriber } = openRedisPlace({ url, name: "test", onError: () => undefined });
  return { redis, bus: openRedisBus({ redis, openSubscriber, nodeId, ownChannel: `node:${nodeId}`, bus: { probeEveryMs: PROBE_MS } }) };
};
beforeAll(async () => {
  cluster = await startRedisCluster();
  const [line = ""] = /ACL SETUSER mooring .*/.exec(await readFile("docs/operating.md", "utf8")) ?? [];
  await cluster.askAll(...line.split(" "));
  url = cluster.urlOf("mooring", "PASSWORD");
  ({ redis, bus } = open("first"));
  await eventually(() => expect(bus.healthy()).toBe(true));
}, 60_000);
afterAll(async () => {
  await bus.close();
  await redis.close();
  await cluster.close();
});

describe("bus", () => busSuite(() => bus));
describe("session owners", () => sessionOwnersSuite(() => openRedisSessionOwners({ redis })));
describe("device notifier", () => deviceNotifierSuite(() => ({ bus, owners: openRedisSessionOwners({ redis }) })));
describe("signatures", () => signatureSuite(() => createSignatureMemory(redis)));
describe("rate limiter", () =>
  rateLimiterSuite(() => {
    const clock = createTestClock();
    const limiter = createRedisRateLimiter({ redis, clock, liveNodes: () => 1, nowMs: () => clock.now().getTime() });
    return { limiter, now: clock.now, advance: clock.advance };
  }));

describe("several masters", () => {
  test("a limit counts in two buckets of two masters, and a call that one of them refuses counts in neither", async () => {
    const limiter = createRedisRateLimiter({ redis, clock: systemClock, liveNodes: () => 1 });
    const [wide, narrow] = [5, 2].map((limit, master) => {
      const name = `bucket${limit}`;
      return { name, key: nameAt(master, (key) => limitKey(name, key)), limit, windowSeconds: 60 };
    });
    if (wide === undefined || narrow === undefined) throw new Error("no buckets");
    const verdicts = [];
    for (let call = 0; call < 4; call += 1) verdicts.push((await limiter.take([wide, narrow])).allowed);
    expect(verdicts).toEqual([true, true, false, false]);
    expect((await limiter.peek([wide, narrow])).map(({ remaining }) => remaining)).toEqual([3, 0]);
    expect(limiter.degraded).toBe(0);
  });

  test("the owners and signatures of one turn are kept at all masters", async () => {
    const owners = openRedisSessionOwners({ redis });
    const devices = MASTERS.map((master) => nameAt(master, sessionKey));
    await Promise.all(devices.map((deviceId) => owners.claim(deviceId, "node_a", 1)));
    expect(await Promise.all(devices.map(owners.owner))).toEqual(["node_a", "node_a", "node_a"]);
    for (const [at, deviceId] of devices.entries()) expect(await cluster.ask(at, "HGET", sessionKey(deviceId), "node")).toBe("node_a");
    const [one, two] = [createSignatureMemory(redis), createSignatureMemory(redis)];
    const uses = Array.from({ length: 50 }, () => randomUUID());
    await Promise.all(uses.map((use) => one.bind(use, "GET /first")));
    expect(new Set(await Promise.all(uses.map((use) => two.bind(use, "GET /second"))))).toEqual(new Set(["GET /first"]));
    expect(two.degraded).toBe(0);
  });

  test("a key and a channel follow their slot while it moves and after it", async () => {
    const channel = nameAt(0, channelName);
    const heard: BusMessage[] = [];
    await bus.subscribe(channel, (message) => heard.push(message));
    // In the slot of the channel.
    const key = `svc:{${channelName(channel)}}`;
    const slot = String(clusterSlotOf(channelName(channel)));
    const [from, to] = await Promise.all([0, 1].map(async (member) => String(await cluster.ask(member, "CLUSTER", "MYID"))));
    await cluster.ask(1, "CLUSTER", "SETSLOT", slot, "IMPORTING", String(from));
    await cluster.ask(0, "CLUSTER", "SETSLOT", slot, "MIGRATING", String(to));
    // Its old master has not got it, so it sends the call to the new one, for this once.
    await eventually(async () => expect(await redis.command("SET", key, "1")).toBe("OK"));
    expect(await cluster.ask(0, "EXISTS", key).catch(String)).toContain("ASK");
    for (const member of [1, 0, 2]) await cluster.ask(member, "CLUSTER", "SETSLOT", slot, "NODE", String(to));
    await eventually(async () => expect(await redis.command("GET", key)).toBe("1"));
    await eventually(async () => {
      await bus.publish(channel, { moved: true });
      expect(heard).toContainEqual({ moved: true });
    });
    await eventually(() => expect(bus.healthy()).toBe(true));
  });
});

describe("a failover", () => {
  test.each(["kill", "freeze"] as const)(
    "%s: keys and channels of a lost master are at its replica, and the others were never away",
    { timeout: 90_000 },
    async (how) => {
      const lost = how === "kill" ? 1 : 2;
      const own = open(`node_${how}`);
      await eventually(() => expect(own.bus.healthy()).toBe(true));
      const resyncs: string[] = [];
      own.bus.onResync(() => void resyncs.push("resync"));
      const heard: BusMessage[] = [];
      const [channel, steady] = [nameAt(lost, channelName), nameAt(0, channelName)];
      await own.bus.subscribe(channel, (message) => heard.push(message));
      cluster[how](lost);
      const key = sessionKey(nameAt(0, sessionKey));
      expect(await own.redis.command("SET", key, steady)).toBe("OK");
      await eventually(async () => {
        await own.bus.publish(channel, { after: how });
        expect(heard).toContainEqual({ after: how });
        expect(await own.redis.command("SET", sessionKey(nameAt(lost, sessionKey)), how)).toBe("OK");
      }, PATIENCE);
      expect(await cluster.isMaster(cluster.replicaOf(lost))).toBe(true);
      expect(resyncs).not.toEqual([]);
      await eventually(() => expect(own.bus.healthy()).toBe(true), PATIENCE);
      await own.bus.close();
      await own.redis.close();
    },
  );
});
