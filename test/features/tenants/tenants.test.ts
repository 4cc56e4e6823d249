// Tenants: owned by their creator, invisible to others, limited by their plan even under concurrent calls.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PLANS } from "../../../protocol/index.ts";
import { limitOf, planFor, planTable } from "../../../server/features/tenants/plan-table.ts";
import { anyone, failureOf, inside, userOf } from "../../kit/gateway/call.ts";
import { openTenancy, type Tenancy } from "./tenancy-kit.ts";

let world: Tenancy;
beforeAll(async () => {
  world = await openTenancy();
});
afterAll(() => world.close());

const slug = () => `s-${randomUUID().slice(0, 13)}`;
const asUser = (userId: string) => ({ ...anyone(), principal: userOf(userId, `${userId}@users.example`) });
const create = (userId: string, given: { slug?: string } = {}) =>
  world.call.tenants.create(asUser(userId), { name: "Acme", slug: given.slug ?? slug(), userId });

describe("creation", () => {
  test("a new tenant has its creator as owner, a default deployment and the starter plan", async () => {
    const userId = randomUUID();
    const made = await create(userId);
    expect(made).toMatchObject({ name: "Acme", owner: userId, tenantId: expect.stringMatching(/^ten_/), durableObjectId: expect.any(String) });
    expect(await world.tenants.memberships.find(made.tenantId, userId)).toMatchObject({
      tenantId: made.tenantId,
      role: "owner",
      limits: [],
      email: `${userId}@users.example`,
    });
    expect(await world.call.tenants.get(inside(made.tenantId, userOf(userId)), { tenantId: made.tenantId })).toMatchObject({
      ...{ slug: made.slug, plan: "starter", status: "active", version: 1 },
      deploymentCount: 1,
      appCount: 0,
      tunnelCount: 0,
    });
    expect(await world.events(made.tenantId)).toMatchObject([{ type: "tenant.created" }]);
  });

  test("nobody can create a tenant for somebody else", async () => {
    const attempt = world.call.tenants.create(asUser("somebody"), { name: "Acme", slug: slug(), userId: "else" });
    expect(await failureOf(attempt)).toMatchObject({ code: "FORBIDDEN", details: { reason: "user_mismatch" } });
  });

  test.each(["admin", "api", "www", "internal", "trpc", "static", "mooring", "well-known", "xn--80ak6aa92e", "ab--cd"])(
    "the slug %s, which would pass for the platform's own, is refused in a creation and in a rename",
    async (reserved) => {
      const refused = { code: "VALIDATION_FAILED", details: { reason: "slug_reserved" } };
      expect(await failureOf(create(randomUUID(), { slug: reserved }))).toMatchObject(refused);
      const { tenantId, userId } = await world.newTenant();
      const scope = inside(tenantId, userOf(userId, null, "owner"));
      expect(await failureOf(world.call.tenants.update(scope, { tenantId, slug: reserved }))).toMatchObject(refused);
      // The installation's operator gave the tenant this slug, and the portal's form sends it back.
      await world.db.query("update tenants set slug = $2 where tenant_id = $1", [tenantId, reserved]);
      expect(await world.call.tenants.update(scope, { tenantId, slug: reserved, name: "Renamed" })).toMatchObject({ slug: reserved, name: "Renamed" });
    },
  );

  test("of eight creations that ask for one slug at once, one gets it", async () => {
    const wanted = slug();
    const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => create(randomUUID(), { slug: wanted })));
    expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await failureOf(create(randomUUID(), { slug: wanted }))).toMatchObject({ code: "TENANT_SLUG_TAKEN", details: { slug: wanted } });
  });

  test("a user owns at most three tenants, even when all are created at once", async () => {
    const userId = randomUUID();
    const attempts = await Promise.allSettled(Array.from({ length: 6 }, () => create(userId)));
    expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(await failureOf(create(userId))).toMatchObject({ code: "TENANT_LIMIT_REACHED", details: { limit: 3 } });
    expect(await world.call.tenants.list(asUser(userId), { pageSize: 2 })).toMatchObject({ total: 3, items: [{}, {}] });
  });
});

describe("isolation", () => {
  test("another tenant looks like an unknown one", async () => {
    const [mine, theirs] = [await world.newTenant(), await world.newTenant()];
    const scope = inside(mine.tenantId, userOf(mine.userId, null, "owner"));
    for (const tenantId of [theirs.tenantId, "ten_unknown", ""].filter(Boolean) as `ten_${string}`[]) {
      expect(await failureOf(world.call.tenants.get(scope, { tenantId }))).toEqual({ code: "TENANT_NOT_FOUND", status: 404, details: { tenantId } });
      expect(await failureOf(world.call.tenants.update(scope, { tenantId, name: "x" }))).toEqual({
        code: "TENANT_NOT_FOUND",
        status: 404,
        details: { tenantId },
      });
    }
  });
});

describe("updates", () => {
  test("an update renames the tenant, raises the version and refuses an older one", async () => {
    const { tenantId, userId } = await world.newTenant();
    const scope = inside(tenantId, userOf(userId, null, "owner"));
    const changed = await world.call.tenants.update(scope, { tenantId, name: "New", version: 1 });
    expect(changed).toMatchObject({ name: "New", version: 2 });
    expect(await failureOf(world.call.tenants.update(scope, { tenantId, name: "Old", version: 1 }))).toMatchObject({
      code: "VERSION_CONFLICT",
      details: { currentVersion: 2 },
    });
  });

  test("an update can neither take another tenant's slug nor change the plan", async () => {
    const [one, other] = [await world.newTenant(), await world.newTenant()];
    const scope = inside(one.tenantId, userOf(one.userId, null, "owner"));
    expect(await failureOf(world.call.tenants.update(scope, { tenantId: one.tenantId, slug: other.slug }))).toMatchObject({ code: "TENANT_SLUG_TAKEN" });
    expect(await failureOf(world.call.tenants.update(scope, { tenantId: one.tenantId, plan: "pro" }))).toMatchObject({ code: "PLAN_CHANGE_REQUIRES_BILLING" });
    expect(await world.call.tenants.update(scope, { tenantId: one.tenantId, plan: "starter" })).toMatchObject({ plan: "starter" });
  });

  test("the lookup sees an update at once", async () => {
    const { tenantId, userId } = await world.newTenant();
    await world.tenants.lookup.find(tenantId);
    const renamed = slug();
    await world.call.tenants.update(inside(tenantId, userOf(userId, null, "owner")), { tenantId, slug: renamed });
    expect(await world.tenants.lookup.find(tenantId)).toMatchObject({ slug: renamed });
  });
});

describe("bootstrap", () => {
  test("bootstrap always returns one tenant, without plan limits and, on request, without rate limits", async () => {
    const request = { name: "Home", slug: slug(), userId: randomUUID(), unlimited: false };
    const ids = await Promise.all(Array.from({ length: 4 }, async () => (await world.tenants.ensureTenant(request)).tenantId));
    expect(new Set(ids).size).toBe(1);
    const [tenantId = ""] = ids;
    expect(await world.tenants.lookup.find(tenantId)).toMatchObject({ limitOverrides: { "*": null }, rateLimitOverrides: {} });
    await world.tenants.ensureTenant({ ...request, unlimited: true });
    expect(await world.tenants.lookup.find(tenantId)).toMatchObject({ rateLimitOverrides: { "*": null } });
    expect(await world.db.query("select 1 from deployments where tenant_id = $1 and is_default", [tenantId])).toHaveLength(1);
  });
});

describe("plans", () => {
  test("a plan's limit holds under concurrent calls, and the refusal names the plan that allows more", async () => {
    const { tenantId, userId } = await world.newTenant();
    const make = () => world.call.apiKeys.create(inside(tenantId, userOf(userId, null, "owner")), { name: "k" });
    const attempts = await Promise.allSettled(Array.from({ length: 12 }, make));
    expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    expect(await failureOf(make())).toEqual({
      code: "PLAN_LIMIT_EXCEEDED",
      status: 403,
      details: { resource: "apiKeys", limit: 5, used: 5, plan: "starter", requiredPlan: "pro" },
    });
  });

  test("a tenant's own limit wins over its `*` override, and that over the plan's", () => {
    const table = planTable({ pro: { hosts: 7 } });
    const limit = (plan: string, limitOverrides: Record<string, number | null>) => limitOf(table, { plan, limitOverrides }, "hosts");
    expect(PLANS.map((plan) => limit(plan, {}))).toEqual([2, 5, 7, 100, 500]);
    expect(limit("free", { hosts: 9 })).toBe(9);
    expect(limit("free", { "*": null })).toBeNull();
    expect(limit("free", { "*": null, hosts: 1 })).toBe(1);
    expect(limit("free", { "*": 1, hosts: null })).toBeNull();
    expect(planFor(table, "hosts", 8)).toBe("team");
    expect(planFor(table, "hosts", 501)).toBeNull();
    expect(planFor(table, "members", 1_000)).toBe("business");
  });
});
