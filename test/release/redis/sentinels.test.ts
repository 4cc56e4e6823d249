// With sentinels in REDIS_URL, connections lead to the master and follow it, whether it dies, stands still or is demoted.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openRedis, type Redis } from "../../../server/platform/cluster/redis.ts";
import { openSubscriber, type RedisSubscriber } from "../../../server/platform/cluster/redis-subscriber.ts";
import { redisPlaceOf } from "../../../server/platform/cluster/redis-urls.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Sentinels, startSentinels } from "../../kit/stores/redis-sentinels.ts";

describe("a URL", () => {
  test("names sentinels, their port, the master's name and both passwords", () => {
    const { sentinels, master, at } = redisPlaceOf("rediss-sentinel://app:p%40@s1,[::1]:7/3?master=main&sentinelPassword=a%26b");
    expect([sentinels, master]).toEqual([["rediss://:a%26b@s1:26379", "rediss://:a%26b@[::1]:7"], "main"]);
    expect([at("10.0.0.5", "6380"), at("fd00::1", "6379")]).toEqual(["rediss://app:p%40@10.0.0.5:6380/3", "rediss://app:p%40@[fd00::1]:6379/3"]);
    expect(redisPlaceOf("redis://u:p@h:1/2").at("", "")).toBe("redis://u:p@h:1/2");
  });

  test("names members of a cluster, and the login for all", () => {
    const { sentinels, members, at } = redisPlaceOf("rediss-cluster://app:p%40@r1,[::1]:7");
    expect([sentinels, members]).toEqual([[], ["rediss://app:p%40@r1:6379", "rediss://app:p%40@[::1]:7"]]);
    expect(at("10.0.0.5", "6380")).toBe("rediss://app:p%40@10.0.0.5:6380/");
  });

  test.each([
    ["http://h", "must be a URL that begins with redis://"],
    ["redis://h1:1,h2:2", "must be a URL that begins with redis://"],
    ["redis://h1,h2/0", "names several servers"],
    ["redis-sentinel://s1,,s2", "names a sentinel that is none: nothing"],
    ["redis-sentinel://s1:99999", "names a sentinel that is none: s1:99999"],
    ["redis-sentinel://s1?name=main", "has no parameter name"],
    ["redis-cluster://h1,,h2", "names a member that is none: nothing"],
    ["redis-cluster://h1/1", "a cluster has only database 0"],
    ["redis-cluster://h1?master=main", "has no parameter master"],
  ])("%s is refused", (url, why) => expect(() => redisPlaceOf(url)).toThrow(why));
});

describe("a failover", () => {
  let sentinels: Sentinels;
  let redis: Redis;
  let subscriber: RedisSubscriber;
  let received: string[];
  beforeEach(async () => {
    sentinels = await startSentinels();
    received = [];
    const deps = { url: sentinels.url, name: "test", onError: () => undefined };
    redis = openRedis(deps);
    subscriber = openSubscriber({ ...deps, onMessage: (_, text) => void received.push(text) });
    await subscriber.subscribe("news");
    await eventually(async () => expect(await redis.command("SET", "before", "1")).toBe("OK"));
  }, 60_000);
  afterEach(async () => {
    await redis.close();
    await subscriber.close();
    await sentinels.close();
  });

  const arrivesOn = async (server: number): Promise<void> => {
    await eventually(async () => expect(await sentinels.master()).toBe(server), 40_000);
    await eventually(async () => expect(await redis.command("SET", "after", "1")).toBe("OK"));
    expect(await sentinels.ask(server, "GET", "after")).toBe("1");
    await eventually(async () => {
      await redis.command("PUBLISH", "news", "moved");
      expect(received).toContain("moved");
    });
  };

  test.each(["kill", "freeze"] as const)("%s: both connections leave the master for the promoted replica", { timeout: 90_000 }, async (how) => {
    expect(await sentinels.master()).toBe(0);
    await sentinels[how](0);
    // A connection that only listens cannot notice a silent Redis. The bus does, by messages to itself, and renews it.
    if (how === "freeze") subscriber.renew(new Error("nothing arrives"));
    await arrivesOn(1);
  });

  test("a connection whose Redis has become a replica is given up at its first refused write", { timeout: 60_000 }, async () => {
    // Nobody tells the connection: the replica follows itself by hand, and the sentinels undo it.
    await sentinels.ask(0, "REPLICAOF", "127.0.0.1", "1");
    await expect(redis.command("SET", "refused", "1")).rejects.toThrow(/READONLY/);
    await eventually(() => expect(redis.connected).toBe(false));
  });
});
