// What security is made of: addresses and networks in one form, bounded counting, and the set of blocked entities.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createTestClock } from "../../../server/core/clock.ts";
import { type Address, canonicalNetwork, networkTest, parseAddress } from "../../../server/core/people/addresses.ts";
import { type BlockedCaller, INSTALLATION } from "../../../server/core/ports/security.ts";
import { createBlockedSet } from "../../../server/features/security/blocked-set.ts";
import { createSecurityWatch } from "../../../server/features/security/watch.ts";

describe("an address", () => {
  test.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::ffff:c000:207", "192.0.2.7"],
    ["2001:DB8:0:0::1", "2001:db8::1"],
    ["192.0.2.0/24", "192.0.2.0/24"],
    ["192.0.2.77/24", "192.0.2.0/24"],
    ["192.0.2.7/32", "192.0.2.7"],
    ["::ffff:192.0.2.99/120", "192.0.2.0/24"],
    ["2001:db8:1:2::ff/48", "2001:db8:1::/48"],
    ["10.255.1.1/9", "10.128.0.0/9"],
  ])("%s has the form %s", (given, form) => {
    expect(canonicalNetwork(given)).toBe(form);
  });

  test.each(
    ["", " ", "192.0.2", "0x7f.1", "192.0.2.07", "192.0.2.256", "1.2.3.4/33", "1.2.3.4/7", "::/0", "2001:db8::/15", "2001:db8::/129", "fe80::1%eth0"].concat([
      "::ffff:1.2.3.4/95",
      "1.2.3.4/",
      "1.2.3.4/-1",
      "1.2.3.4/8/8",
      "１.2.3.4",
      "__proto__",
      "\0",
    ]),
  )("%j is none", (text) => {
    expect(canonicalNetwork(text)).toBeNull();
  });

  test("of any text has one form or none, which is its own form", () => {
    const text = fc.oneof(
      fc.string(),
      fc.ipV4(),
      fc.ipV6(),
      fc.tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.integer({ min: -1, max: 200 })).map(([ip, n]) => `${ip}/${n}`),
    );
    fc.assert(
      fc.property(text, (given) => {
        const form = canonicalNetwork(given);
        if (form !== null) expect(canonicalNetwork(form)).toBe(form);
      }),
    );
  });

  test("is in its own network, however long the prefix", () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.integer({ min: 8, max: 31 }), (ip, bits) => {
        expect(networkTest(canonicalNetwork(`${ip}/${bits}`) ?? "")(parseAddress(ip) as Address)).toBe(true);
      }),
    );
  });
});

describe("the watch", () => {
  const noteFrom = (watch: ReturnType<typeof createSecurityWatch>, entityId: string, tenantId: string | null = null) =>
    watch.note({ type: "signature.replayed", tenantId, entityType: "ip", entityId, ipAddress: entityId });

  test("keeps a flood of 100,000 signals within bounds and counts what found no room", () => {
    const watch = createSecurityWatch(createTestClock());
    for (let n = 0; n < 100_000; n += 1) noteFrom(watch, `ip ${n}`);
    expect([watch.size, watch.due().length, watch.dropped]).toEqual([500, 500, 99_500]);
    for (let n = 0; n < 100_000; n += 1) noteFrom(watch, `ip ${n}`, `ten_${n}`);
    expect(watch.size).toBe(10_000);
    expect(watch.counts.get("signature.replayed")).toBe(200_000);
  });

  test("leaves room for a tenant beside a noisy one, and for a type beside a noisy one", () => {
    const watch = createSecurityWatch(createTestClock());
    for (let n = 0; n < 1_000; n += 1) noteFrom(watch, `ip ${n}`, "ten_noisy");
    noteFrom(watch, "quiet", "ten_quiet");
    watch.note({ type: "device.cloned", tenantId: "ten_noisy", entityType: "device", entityId: "dev_1" });
    expect(watch.due().filter(({ entityId }) => entityId === "quiet" || entityId === "dev_1")).toHaveLength(2);
  });

  test("counts what repeats, and forgets it once it is written and its minute is over", () => {
    const clock = createTestClock();
    const watch = createSecurityWatch(clock);
    for (let n = 0; n < 3; n += 1) noteFrom(watch, "192.0.2.1");
    const [entry] = watch.due();
    expect(entry).toMatchObject({ total: 3, tenantId: INSTALLATION });
    if (entry !== undefined) entry.written = 3;
    expect(watch.due()).toEqual([]);
    watch.sweep();
    expect(watch.size).toBe(1);
    clock.advance(60_000);
    watch.sweep();
    expect(watch.size).toBe(0);
  });

  test("takes a burst for one only from five within a minute on", () => {
    const clock = createTestClock();
    const watch = createSecurityWatch(clock);
    const fail = () => watch.note({ type: "auth.failed_burst", tenantId: null, entityType: "ip", entityId: "192.0.2.1" });
    for (let n = 0; n < 4; n += 1) fail();
    expect(watch.due()).toEqual([]);
    clock.advance(60_000);
    watch.sweep();
    expect(watch.size).toBe(0);
    for (let n = 0; n < 5; n += 1) fail();
    expect(watch.due()).toMatchObject([{ total: 5 }]);
  });

  test("takes any text", () => {
    const watch = createSecurityWatch(createTestClock());
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => noteFrom(watch, text)));
    for (const { entityId } of watch.due()) expect(entityId.isWellFormed() && !entityId.includes("\0")).toBe(true);
  });
});

describe("the set of blocked entities", () => {
  const user = (tenantId: string | null, userId: string, ip = "192.0.2.1"): BlockedCaller => ({ tenantId, ip, principal: { kind: "user", userId } });
  const row = (entityType: string, entityValue: string, tenantId: string = INSTALLATION, leftMs: number | null = null) => ({
    tenantId,
    entityType,
    entityValue,
    leftMs,
  });

  test("matches a network and an address in every form", () => {
    const set = createBlockedSet(createTestClock());
    set.replace([row("ip", "198.51.100.0/24"), row("ip", "192.0.2.1"), row("ip", "2001:db8::/32")]);
    const refused = ["198.51.100.9", "::ffff:198.51.100.9", "192.0.2.1", "::ffff:c000:201", "2001:db8:ffff::1"];
    const served = ["198.51.101.9", "192.0.2.2", "2001:db9::1", "", "no address"];
    expect([refused.map(set.refusesAddress), served.map(set.refusesAddress)]).toEqual([refused.map(() => true), served.map(() => false)]);
  });

  test("holds a tenant's block against that tenant's callers only", () => {
    const set = createBlockedSet(createTestClock());
    set.replace([row("user", "mallory", "ten_a"), row("ip", "192.0.2.9", "ten_a"), row("user", "eve")]);
    expect(set.refuses(user("ten_a", "mallory"))).toBe(true);
    expect(set.refuses(user("ten_b", "mallory"))).toBe(false);
    expect(set.refuses(user(null, "mallory"))).toBe(false);
    expect(set.refuses(user("ten_a", "alice", "192.0.2.9"))).toBe(true);
    expect(set.refuses(user("ten_b", "alice", "192.0.2.9"))).toBe(false);
    expect(set.refusesAddress("192.0.2.9")).toBe(false);
    expect([set.refuses(user("ten_b", "eve")), set.refuses(user(null, "eve"))]).toEqual([true, true]);
    expect(set.refuses({ tenantId: "ten_a", ip: "192.0.2.1", principal: { kind: "apiKey", keyId: "mallory" } })).toBe(false);
  });

  test("ends a block in time without being told", () => {
    const clock = createTestClock();
    const set = createBlockedSet(clock);
    set.replace([row("user", "mallory", INSTALLATION, 1_000)]);
    expect(set.refuses(user(null, "mallory"))).toBe(true);
    clock.advance(1_000);
    expect(set.refuses(user(null, "mallory"))).toBe(false);
  });

  test("tells of a change once it knows of it, and not after somebody stopped listening", () => {
    const set = createBlockedSet(createTestClock());
    const heard: boolean[] = [];
    const stop = set.onBlocked(() => heard.push(set.refuses(user(null, "mallory"))));
    set.replace([row("user", "mallory")]);
    stop();
    set.replace([]);
    expect([heard, set.any]).toEqual([[true], false]);
  });
});
