// API keys: shown once, dead as soon as they are revoked, never stronger than their creator.
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Role } from "../../../protocol/index.ts";
import { accessOf } from "../../../server/core/access.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { unwatched } from "../../../server/core/ports/security.ts";
import { createApiKeyLookup } from "../../../server/features/api-keys/api-key-lookup.ts";
import { isWellFormed, makeKey } from "../../../server/features/api-keys/keys.ts";
import { createToLimit } from "../../../server/features/fleets/device-limits.ts";
import { failureOf, inside, userOf } from "../../kit/gateway/call.ts";
import { openTenancy, type Tenancy } from "../tenants/tenancy-kit.ts";

let world: Tenancy;
beforeAll(async () => {
  world = await openTenancy();
});
afterAll(() => world.close());

const newOwner = async (role: Role = "owner") => {
  const { tenantId, userId } = await world.newTenant();
  return { tenantId, userId, scope: inside(tenantId, userOf(userId, null, role)) };
};
const find = (apiKey: string) => world.apiKeys.lookup.find(apiKey);
const runJobs = async () => {
  for (const job of world.apiKeys.jobs) await job.run(new AbortController().signal);
};

describe("key format", () => {
  test("a key is well formed as made, and malformed with any one character changed", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.nat(), fc.constantFrom(..."0aZ_-x"), (secret, at, character) => {
        const { apiKey, prefix, last4 } = makeKey("key_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", secret);
        expect(apiKey).toMatch(/^svk_live_5N6P7Q8R_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
        expect(apiKey.startsWith(prefix) && apiKey.endsWith(last4) && isWellFormed(apiKey)).toBe(true);
        const index = at % apiKey.length;
        const typo = `${apiKey.slice(0, index)}${character}${apiKey.slice(index + 1)}`;
        if (typo !== apiKey) expect(isWellFormed(typo)).toBe(false);
      }),
    );
  });

  test("two secrets never give one key", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.nat(31),
        (secret, at) =>
          makeKey("key_x", secret).apiKey !==
          makeKey(
            "key_x",
            secret.map((byte, index) => (index === at ? byte ^ 1 : byte)),
          ).apiKey,
      ),
    );
  });
});

describe("keys", () => {
  test("a key is shown once, found by the lookup, and stored only as a hash", async () => {
    const { scope, tenantId, userId } = await newOwner();
    const { apiKey, ...shown } = await world.call.apiKeys.create(scope, { name: "ci", role: "operator", ipAllowlist: ["10.0.0.0/8"] });
    expect(shown).toMatchObject({ role: "operator", status: "active", createdBy: `user:${userId}`, last4: apiKey.slice(-4) });
    expect(Date.parse(shown.expiresAt ?? "") - Date.parse(shown.createdAt)).toBe(90 * 86_400_000);
    expect(await find(apiKey)).toEqual({ keyId: shown.keyId, tenantId, status: "active", ipAllowlist: ["10.0.0.0/8"], ...accessOf("operator") });
    expect(await world.call.apiKeys.get(scope, { keyId: shown.keyId })).toEqual({
      ...shown,
      actor: expect.objectContaining({ kind: "user", id: shown.createdBy }),
    });
    const secret = apiKey.split("_")[3] ?? "";
    expect(JSON.stringify([await world.db.query("select * from api_keys"), await world.call.apiKeys.list(scope, {}), await world.events()])).not.toContain(
      secret,
    );
  });

  test("a revoked key is refused at the next call", async () => {
    const { scope } = await newOwner();
    const { apiKey, keyId } = await world.call.apiKeys.create(scope, { name: "k" });
    expect(await find(apiKey)).toMatchObject({ status: "active" });
    await world.call.apiKeys.revoke(scope, { keyId });
    expect(await find(apiKey)).toMatchObject({ status: "revoked" });
    expect(await failureOf(world.call.apiKeys.revoke(scope, { keyId }))).toMatchObject({ code: "API_KEY_NOT_FOUND" });
  });

  test("a key expires when its days are over and can then not be rotated", async () => {
    const { scope } = await newOwner();
    const { apiKey, keyId } = await world.call.apiKeys.create(scope, { name: "k", expiresInDays: 1 });
    await world.db.query("update api_keys set expires_at = now() - interval '1 second' where key_id = $1", [keyId]);
    expect(await find(apiKey)).toMatchObject({ status: "expired" });
    expect(await failureOf(world.call.apiKeys.rotate(scope, { keyId }))).toMatchObject({ code: "API_KEY_NOT_FOUND" });
  });

  test("a key that was never made is unknown", async () => {
    expect(await find(makeKey("key_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R").apiKey)).toBeNull();
  });

  test("a key with a typo is refused as malformed without a read, any other key is read", async () => {
    let reads = 0;
    const counting = new Proxy(world.db, {
      get: (db, name) => {
        reads += 1;
        return Reflect.get(db, name) as unknown;
      },
    });
    const { lookup } = createApiKeyLookup({
      db: counting,
      clock: systemClock,
      memberships: world.tenants.memberships,
      toLimit: createToLimit(world.db),
      watch: unwatched,
    });
    const { apiKey } = makeKey("key_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R");
    for (const bad of [`${apiKey.slice(0, -1)}${apiKey.endsWith("0") ? "1" : "0"}`, apiKey.slice(1), "svk_live_x", "svk_", "\0", "__proto__", ""])
      expect(await failureOf(lookup.find(bad))).toEqual({ code: "UNAUTHORIZED", status: 401, details: { reason: "api_key_malformed" } });
    expect(reads).toBe(0);
    expect(await lookup.find(apiKey)).toBeNull();
    expect(reads).toBe(1);
  });

  test("a key's last use and its address are written by a job, at most once a minute", async () => {
    const { scope } = await newOwner();
    const { keyId } = await world.call.apiKeys.create(scope, { name: "k" });
    const flush = async () => {
      world.apiKeys.lookup.used({ keyId, tenantId: scope.tenantId }, "192.0.2.1");
      world.apiKeys.lookup.used({ keyId, tenantId: scope.tenantId }, "2001:db8::1");
      expect((await world.call.apiKeys.get(scope, { keyId })).lastUsedIp).toBe(seen);
      await runJobs();
      const { lastUsedAt, lastUsedIp } = await world.call.apiKeys.get(scope, { keyId });
      seen = lastUsedIp;
      return lastUsedAt;
    };
    let seen: string | null = null;
    const first = await flush();
    expect(first).toEqual(expect.any(String));
    expect(await flush()).toBe(first);
    await world.db.query("update api_keys set last_used_at = last_used_at - interval '61 seconds' where key_id = $1", [keyId]);
    expect(Date.parse((await flush()) ?? "")).toBeGreaterThanOrEqual(Date.parse(first ?? ""));
    expect(seen).toBe("2001:db8::1");
  });

  test("a key is expiring for its last seven days and works until the end", async () => {
    const { scope } = await newOwner();
    const { apiKey, keyId } = await world.call.apiKeys.create(scope, { name: "k" });
    const inHours = async (hours: number) => {
      await world.db.query("update api_keys set expires_at = now() + make_interval(hours => $2) where key_id = $1", [keyId, hours]);
      return (await world.call.apiKeys.get(scope, { keyId })).status;
    };
    expect([await inHours(7 * 24 + 1), await inHours(7 * 24 - 1)]).toEqual(["active", "expiring"]);
    expect(await find(apiKey)).toMatchObject({ status: "active" });
    expect(await inHours(-1)).toBe("expired");
  });

  test("an expiring key is told of seven days and one day before, once each, by however many nodes", async () => {
    const { scope } = await newOwner();
    const { keyId } = await world.call.apiKeys.create(scope, { name: "k" });
    const told = async (id: string = keyId) => (await world.events(id)).filter(({ type }) => type === "api_key.expiring").length;
    const inHours = async (hours: number) => {
      await world.db.query("update api_keys set expires_at = now() + make_interval(hours => $2) where key_id = $1", [keyId, hours]);
      await Promise.all([runJobs(), runJobs(), runJobs()]);
      await runJobs();
      return told();
    };
    expect([await inHours(169), await inHours(167), await inHours(25), await inHours(23), await inHours(1)]).toEqual([0, 1, 1, 2, 2]);
    const young = await world.call.apiKeys.create(scope, { name: "k", expiresInDays: 1 });
    await runJobs();
    expect(await told(young.keyId)).toBe(1);
    const gone = await world.call.apiKeys.create(scope, { name: "k", expiresInDays: 1 });
    await world.call.apiKeys.revoke(scope, { keyId: gone.keyId });
    await runJobs();
    expect(await told(gone.keyId)).toBe(0);
  });
});

describe("rotation", () => {
  test("a rotation without grace revokes the old key at once", async () => {
    const { scope } = await newOwner();
    const before = await world.call.apiKeys.create(scope, { name: "k" });
    const after = await world.call.apiKeys.rotate(scope, { keyId: before.keyId });
    expect(after.apiKey).not.toBe(before.apiKey);
    expect(await find(before.apiKey)).toMatchObject({ status: "revoked" });
    expect(await find(after.apiKey)).toMatchObject({ status: "active", keyId: before.keyId });
  });

  test("a previous key ends with its grace, and both end with the key's expiry, however long the grace", async () => {
    const { scope } = await newOwner();
    const first = await world.call.apiKeys.create(scope, { name: "k", expiresInDays: 1 });
    const second = await world.call.apiKeys.rotate(scope, { keyId: first.keyId, graceSeconds: 604_800 });
    expect(second.expiresAt).toBe(first.expiresAt);
    const states = async () => {
      // Nothing may come from the cache of the reads before.
      const { lookup } = createApiKeyLookup({
        db: world.db,
        clock: systemClock,
        memberships: world.tenants.memberships,
        toLimit: createToLimit(world.db),
        watch: unwatched,
      });
      return [(await lookup.find(first.apiKey))?.status, (await lookup.find(second.apiKey))?.status];
    };
    const set = (change: string) => world.db.query(`update api_keys set ${change} where key_id = $1`, [first.keyId]);
    expect(await states()).toEqual(["active", "active"]);
    await set("previous_valid_until = now() - interval '1 second'");
    expect(await states()).toEqual(["revoked", "active"]);
    await set("previous_valid_until = now() + interval '1 day', expires_at = now() - interval '1 second'");
    expect(await states()).toEqual(["expired", "expired"]);
  });

  test("a rotation with grace keeps the previous key alive, and only that one", async () => {
    const { scope } = await newOwner();
    const first = await world.call.apiKeys.create(scope, { name: "k" });
    const second = await world.call.apiKeys.rotate(scope, { keyId: first.keyId, graceSeconds: 60 });
    expect(await find(first.apiKey)).toMatchObject({ status: "active" });
    await world.call.apiKeys.rotate(scope, { keyId: first.keyId, graceSeconds: 60 });
    expect(await find(first.apiKey)).toBeNull();
    expect(await find(second.apiKey)).toMatchObject({ status: "active" });
    await world.call.apiKeys.revoke(scope, { keyId: first.keyId });
    expect(await find(second.apiKey)).toMatchObject({ status: "revoked" });
  });
});

describe("privilege escalation", () => {
  test("nobody can create or rotate a key that is stronger than their own role", async () => {
    const { scope, tenantId } = await newOwner();
    const admin = inside(tenantId, userOf(await world.join(tenantId, "admin"), null, "admin"));
    const strong = await world.call.apiKeys.create(scope, { name: "k", role: "owner" });
    expect(await failureOf(world.call.apiKeys.create(admin, { name: "k", role: "owner" }))).toMatchObject({
      code: "PRIVILEGE_ESCALATION",
      details: { permissions: ["tenant:delete", "billing:write", "tenant:transfer", "backup:recover"] },
    });
    expect(await failureOf(world.call.apiKeys.rotate(admin, { keyId: strong.keyId }))).toMatchObject({ code: "PRIVILEGE_ESCALATION" });
    expect(await find(strong.apiKey)).toMatchObject({ status: "active", role: "owner" });
  });

  test("a key weakens with its creator's role and dies with their membership", async () => {
    const { scope, tenantId, userId } = await newOwner();
    const { apiKey } = await world.call.apiKeys.create(scope, { name: "k", role: "admin" });
    await world.db.query("update memberships set role = 'viewer' where tenant_id = $1 and user_id = $2", [tenantId, userId]);
    expect(await find(apiKey)).toMatchObject({ status: "active", role: "viewer" });

    const other = await newOwner();
    const orphan = await world.call.apiKeys.create(other.scope, { name: "k" });
    await world.db.query("delete from memberships where tenant_id = $1", [other.tenantId]);
    expect(await find(orphan.apiKey)).toMatchObject({ status: "revoked" });
  });
});

test("another tenant's key looks like an unknown one to every operation", async () => {
  const [mine, theirs] = [await newOwner(), await newOwner()];
  const { keyId } = await world.call.apiKeys.create(theirs.scope, { name: "k" });
  const { get, update, rotate, revoke } = world.call.apiKeys;
  for (const attempt of [
    () => get(mine.scope, { keyId }),
    () => update(mine.scope, { keyId, name: "x" }),
    () => rotate(mine.scope, { keyId }),
    () => revoke(mine.scope, { keyId }),
  ]) {
    expect(await failureOf(attempt())).toEqual({ code: "API_KEY_NOT_FOUND", status: 404, details: { keyId } });
  }
  expect((await world.call.apiKeys.list(mine.scope, {})).total).toBe(0);
});

test("an update raises the version, refuses an older one and holds at the next call", async () => {
  const { scope } = await newOwner();
  const { apiKey, keyId } = await world.call.apiKeys.create(scope, { name: "k" });
  await find(apiKey);
  expect(await world.call.apiKeys.update(scope, { keyId, name: "n", ipAllowlist: ["192.0.2.0/24"], version: 1 })).toMatchObject({ name: "n", version: 2 });
  expect(await find(apiKey)).toMatchObject({ ipAllowlist: ["192.0.2.0/24"] });
  expect(await failureOf(world.call.apiKeys.update(scope, { keyId, version: 1 }))).toMatchObject({ code: "VERSION_CONFLICT", details: { currentVersion: 2 } });
});

describe("bootstrap key", () => {
  const ensure = (owner: { tenantId: `ten_${string}`; userId: string }) => world.apiKeys.ensureKey({ ...owner, role: "admin" });

  test("bootstrap returns one and the same key, however many ask at once", async () => {
    const owner = await newOwner();
    const keys = await Promise.all(Array.from({ length: 5 }, () => ensure(owner)));
    expect(new Set(keys).size).toBe(1);
    expect(await find(keys[0] ?? "")).toMatchObject({ role: "admin", status: "active" });
    expect((await world.call.apiKeys.list(owner.scope, {})).total).toBe(1);
  });

  test("bootstrap returns its old key after a rotation, beside the rotated one, and a new key after a revocation", async () => {
    const owner = await newOwner();
    const key = await ensure(owner);
    const [{ keyId } = { keyId: "key_none" as const }] = (await world.call.apiKeys.list(owner.scope, {})).items;
    const rotated = await world.call.apiKeys.rotate(owner.scope, { keyId });
    expect(await ensure(owner)).toBe(key);
    expect([(await find(key))?.status, (await find(rotated.apiKey))?.status]).toEqual(["active", "active"]);
    await world.call.apiKeys.revoke(owner.scope, { keyId });
    const fresh = await ensure(owner);
    expect(fresh).not.toBe(key);
    expect([(await find(key))?.status, (await find(fresh))?.status]).toEqual(["revoked", "active"]);
  });

  test("each user of a tenant has a bootstrap key of their own", async () => {
    const owner = await newOwner();
    expect(await ensure(owner)).not.toBe(await ensure({ tenantId: owner.tenantId, userId: randomUUID() }));
  });
});
