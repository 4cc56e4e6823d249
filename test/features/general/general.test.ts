// The service's answers about itself, its caller and its health.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract, ERROR_CODES } from "../../../protocol/index.ts";
import { createTestClock, systemClock } from "../../../server/core/clock.ts";
import type { Reply } from "../../../server/core/feature.ts";
import { cookieNames } from "../../../server/core/people/session-cookies.ts";
import { atomOf } from "../../../server/features/general/atom.ts";
import { createGeneral, type GeneralFeature, statedLimits } from "../../../server/features/general/index.ts";
import { parseChangelog, releasesSince } from "../../../server/features/general/rules.ts";
import { type CheckOutcome, createHealth } from "../../../server/features/health/index.ts";
import { version } from "../../../server/version.ts";
import { anyone, type CallableGroup, callable, failureOf, inside, userOf } from "../../kit/gateway/call.ts";
import { anonymous, startWorld } from "../../kit/gateway/world.ts";
import { openTenancy, type Tenancy } from "../tenants/tenancy-kit.ts";

const SECTIONS = ["Upgrading", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
const SAMPLE = `# Changelog
prose
- not in a release

## [Unreleased]
### Fixed
- d

## [2.0.0] - 2026-03-01
- in no section
### Upgrading
Prose.

- you must do e
### Changed
- c, which
  takes two lines
  
  not part of c
### Remarks
- of no known kind

## [1.0.0] - 2026-01-01
### Added
- a
### Security
- b
[1.0.0]: https://example.org
`;

let world: Tenancy;
let feature: GeneralFeature;
let call: CallableGroup<typeof contract.general>;
beforeAll(async () => {
  world = await openTenancy();
  feature = createGeneral({
    db: world.db,
    clock: systemClock,
    memberships: world.tenants.memberships,
    administrators: ["usr_administrator"],
    flags: { isOn: async () => true, on: async () => ["loadTests"] },
    announcements: { current: async () => [], undismissed: async () => [] },
    changelog: await readFile("CHANGELOG.md", "utf8"),
    service: {
      name: "Mooring",
      version: "1.2.3",
      environment: "test",
      commit: "abc",
      features: ["socket"],
      payments: "stripe",
      limits: statedLimits(),
      docsUrl: () => "https://api.example/docs",
    },
    auth: {
      issuer: () => "i",
      audience: "a",
      algorithms: ["EdDSA"],
      local: true,
      jwksUri: () => "https://api.example/.well-known/jwks.json",
      signIn: "link",
      loginUrl: () => "https://api.example/v1/auth/login",
      clientId: null,
      scopes: [],
      authorizationEndpoint: async () => null,
      cookies: () => cookieNames("https://api.example"),
    },
    rateLimits: { describe: async () => [{ bucket: "standard", limit: 100, remaining: 99, windowSeconds: 60, resetAt: new Date(0) }] },
  });
  call = callable(contract.general, feature.handlers);
});
afterAll(() => world.close());

describe("service", () => {
  test("the service states the limits of its API", async () => {
    expect(await call.info(anyone(), {})).toMatchObject({
      payments: "stripe",
      name: "Mooring",
      apiVersion: "v1",
      limits: { standard: 100, heartbeat: 60, pairing: { min: 3, max: 10 } },
    });
  });

  test("the service lists every error code with the operations that declare it", async () => {
    const { items } = await call.errors(anyone(), {});
    expect(items.map(({ code }) => code)).toEqual(ERROR_CODES);
    expect(await call.error(anyone(), { code: "TENANT_SLUG_TAKEN" })).toMatchObject({
      status: 409,
      retryable: false,
      operations: ["tenants.create", "tenants.update"],
    });
    expect(await call.error(anyone(), { code: "RATE_LIMIT_EXCEEDED" })).toMatchObject({ status: 429, retryable: true });
    expect(await failureOf(call.error(anyone(), { code: "NO_SUCH" }))).toMatchObject({ code: "ERROR_CODE_NOT_FOUND", details: { code: "NO_SUCH" } });
  });

  test("the service shows its changelog, whole or since a version or a date", async () => {
    const { items } = await call.changelog(anyone(), {});
    expect(items).toContainEqual(expect.objectContaining({ version: "0.1.0", date: "2026-11-21", type: "added" }));
    // The repository's own file may list changes that no release has yet.
    const [newest] = items.filter((entry) => entry.version !== "Unreleased");
    expect(newest).toMatchObject({ version, date: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/), type: "upgrading" });
    const since = await call.changelog(anyone(), { since: "0.1.0" });
    expect([...new Set(since.items.map((entry) => entry.version))].filter((each) => each !== "Unreleased")).toEqual(["0.3.0", "0.2.0"]);

    const releases = parseChangelog(SAMPLE);
    expect(releases).toEqual([
      { version: "Unreleased", date: "", type: "fixed", title: "d" },
      { version: "2.0.0", date: "2026-03-01", type: "upgrading", title: "you must do e" },
      { version: "2.0.0", date: "2026-03-01", type: "changed", title: "c, which takes two lines" },
      { version: "1.0.0", date: "2026-01-01", type: "added", title: "a" },
      { version: "1.0.0", date: "2026-01-01", type: "security", title: "b" },
    ]);
    const titles = (from: string) => releasesSince(releases, from).map(({ title }) => title);
    expect(titles("1.0.0")).toEqual(["d", "you must do e", "c, which takes two lines"]);
    expect(titles("2026-02-01")).toEqual(["d", "you must do e", "c, which takes two lines"]);
    expect(titles("2.0.0")).toEqual(["d"]);
  });

  test("the changelog is also an Atom feed: one entry per release, newest first, with ids that stay", async () => {
    const feed = await call.changelogFeed(anyone(), {});
    expect(feed).toContain('<link rel="self" type="application/atom+xml" href="https://api.example/changelog.atom"/>');
    const ids = [...feed.matchAll(/<id>(.*?)<\/id>/g)].map(([, id]) => id);
    expect(ids.slice(1)).toEqual(["0.3.0", "0.2.0", "0.1.0"].map((release) => `tag:mooring,2026:release:${release}`));
    expect(new Set(ids).size).toBe(ids.length);
    for (const [, at = ""] of feed.matchAll(/<updated>(.*?)<\/updated>/g)) expect(at).toMatch(/^\d{4}-\d{2}-\d{2}T00:00:00Z$/);
  });

  test("the feed escapes what XML would read as its own and leaves out what is not released", () => {
    const feed = atomOf({ name: "A & B", self: "https://x/?a=1&b=\"'" }, [
      { version: "Unreleased", date: "", type: "added", title: "secret plans" },
      { version: "1.0.0", date: "2026-01-01", type: "added", title: '`<script>` & ]]> "quotes" \u0000\u0008\ud800 end' },
    ]);
    expect(feed).toContain("<title>A &amp; B releases</title>");
    expect(feed).toContain("added: `&lt;script&gt;` &amp; ]]&gt; &quot;quotes&quot; \ufffd end");
    expect(feed).toContain('href="https://x/?a=1&amp;b=&quot;&apos;"');
    expect(feed).not.toContain("secret plans");
    // Every element is closed in its order.
    const open: string[] = [];
    for (const [, close, name = "", empty] of feed.replace(/<\?.*?\?>/, "").matchAll(/<(\/?)([a-z]+)[^<>]*?(\/?)>/g))
      if (close !== "") expect(open.pop()).toBe(name);
      else if (empty === "") open.push(name);
    expect(open).toEqual([]);
    expect(atomOf({ name: "N", self: "s" }, [])).toContain("<updated>1970-01-01T00:00:00Z</updated>");
  });

  test("the service loses no entry of its changelog", async () => {
    const text = await readFile("CHANGELOG.md", "utf8");
    const { items } = await call.changelog(anyone(), {});
    expect(items).toHaveLength(text.split("\n").filter((line) => line.startsWith("- ")).length);
    expect([...text.matchAll(/^### (.+)$/gm)].map(([, section]) => section).filter((section) => !SECTIONS.includes(section ?? ""))).toEqual([]);
  });

  test("the service says who issues tokens and what is deprecated", async () => {
    expect(await call.authConfig(anyone(), {})).toMatchObject({
      issuer: "i",
      local: true,
      jwksUri: expect.stringContaining("jwks.json"),
      signIn: "link",
      csrf: { cookie: "__Host-mooring_csrf", header: "x-csrf-token" },
    });
    expect((await call.deprecations(anyone(), {})).items).toEqual(expect.any(Array));
  });
});

describe("caller", () => {
  test("callers learn their role, permissions and memberships", async () => {
    const { tenantId, userId } = await world.newTenant();
    expect(await call.me(inside(tenantId, userOf(userId, null, "owner")), {})).toMatchObject({
      credential: "user",
      subject: userId,
      tenantId,
      role: "owner",
      permissions: expect.arrayContaining(["tenant:delete"]),
      memberships: [{ tenantId, role: "owner" }],
    });
    expect(await call.me({ ...anyone(), principal: userOf("nobody") }, {})).toEqual({
      features: ["loadTests"],
      credential: "user",
      subject: "nobody",
      tenantId: null,
      role: null,
      permissions: [],
      selector: null,
      memberships: [],
      announcements: [],
      administrator: false,
      impersonation: null,
    });
    const administrator = { ...anyone(), principal: userOf("usr_administrator") };
    expect(await call.me(administrator, {})).toMatchObject({ subject: "usr_administrator", administrator: true });
    const agent = { kind: "agent", agentId: "agt_1", deviceId: "dev_1", deploymentId: "dep_1" } as const;
    expect(await call.me(inside(tenantId, agent), {})).toMatchObject({ credential: "agent", subject: "agt_1", role: null, permissions: [], memberships: [] });
  });

  test("callers see the rate limit buckets that count them", async () => {
    expect(await call.rateLimit(anyone(), {})).toEqual({
      items: [{ bucket: "standard", limit: 100, remaining: 99, windowSeconds: 60, resetAt: "1970-01-01T00:00:00.000Z" }],
    });
  });
});

describe("stream tickets", () => {
  const issue = async () => {
    const owner = await world.newTenant();
    return { owner, ...(await call.streamTicket(inside(owner.tenantId, userOf(owner.userId, null, "owner")), {})) };
  };

  test("a ticket is redeemed once, even by ten calls at once", async () => {
    const { ticket, owner } = await issue();
    const owners = await Promise.all(Array.from({ length: 10 }, () => feature.streamTickets.redeem(ticket)));
    expect(owners.filter((each) => each !== null)).toEqual([{ tenantId: owner.tenantId, userId: owner.userId, sessionId: null, impersonationId: null }]);
    expect(await feature.streamTickets.redeem(randomUUID())).toBeNull();
  });

  test("a ticket lives a minute and is then deleted", async () => {
    const { ticket } = await issue();
    await world.db.query("update stream_tickets set expires_at = expires_at - interval '61 seconds'");
    expect(await feature.streamTickets.redeem(ticket)).toBeNull();
    await issue();
    await world.db.query("update stream_tickets set expires_at = expires_at - interval '61 seconds'");
    for (const job of feature.jobs) await job.run(new AbortController().signal);
    expect(await world.db.query("select 1 from stream_tickets")).toEqual([]);
  });
});

describe("health", () => {
  const healthOf = (database: () => Promise<CheckOutcome>, { draining = false, bus = "healthy" as CheckOutcome["status"] } = {}) => {
    const clock = createTestClock();
    let asked = 0;
    const checks = [
      {
        name: "database",
        required: true,
        check: () => {
          asked += 1;
          return database();
        },
      },
      { name: "bus", required: false, check: async () => ({ status: bus, message: bus }) },
    ];
    const health = callable(contract.health, createHealth({ clock, version: "1", checks, isDraining: () => draining, startedAtMs: clock.elapsed() }).handlers);
    return { clock, health, asked: () => asked };
  };
  const well = async (): Promise<CheckOutcome> => ({ status: "healthy", message: "ok", latencyMs: 3 });
  const down = async (): Promise<CheckOutcome> => {
    throw new Error("connect ECONNREFUSED db.internal:5432");
  };
  const ask = async <T>(operation: (scope: ReturnType<typeof anyone>, input: Record<string, never>, reply: Reply) => Promise<T>) => {
    const reply: Reply = { headers: {} };
    return { ...(await operation(anyone(), {}, reply)), http: reply.status ?? 200 };
  };

  test("health is 200 when all dependencies work, and an unconfigured one is no fault", async () => {
    const { health } = healthOf(well);
    expect(await ask(health.check)).toMatchObject({ status: "healthy", http: 200 });
    expect(await ask(health.ready)).toMatchObject({ ready: true, http: 200 });
    expect(await ask(health.deep)).toMatchObject({
      status: "healthy",
      dependencies: {
        database: { status: "healthy", latencyMs: 3 },
        objectStore: { status: "healthy", configured: false },
        billingProvider: { status: "healthy", configured: false },
        mail: { status: "healthy", configured: false },
      },
    });
  });

  test("health is 503 without a required dependency and reveals no address, while the process reports itself alive", async () => {
    const { health, clock } = healthOf(down);
    for (const operation of [health.check, health.full, health.ready, health.deep, health.status]) {
      const answer = await ask(operation as typeof health.check);
      expect(answer.http).toBe(503);
      expect(JSON.stringify(answer)).not.toContain("db.internal");
    }
    clock.advance(1_500);
    expect(await ask(health.live)).toMatchObject({ alive: true, uptime: 1_500, http: 200 });
  });

  test("a missing optional dependency or a slow one only degrades health", async () => {
    expect(await ask(healthOf(well, { bus: "unhealthy" }).health.check)).toMatchObject({ status: "degraded", http: 200 });
    expect(await ask(healthOf(well, { bus: "unhealthy" }).health.ready)).toMatchObject({ ready: true });
    expect(await ask(healthOf(async () => ({ status: "healthy", message: "ok", latencyMs: 501 })).health.check)).toMatchObject({ status: "degraded" });
  });

  test("a draining node is not ready, but healthy and alive", async () => {
    const { health } = healthOf(well, { draining: true });
    expect(await ask(health.ready)).toMatchObject({ ready: false, http: 503 });
    expect(await ask(health.check)).toMatchObject({ http: 200 });
    expect(await ask(health.live)).toMatchObject({ alive: true, http: 200 });
  });

  test("health reuses a dependency's last answer for a second, deep health for longer", async () => {
    const { health, clock, asked } = healthOf(well);
    await Promise.all(Array.from({ length: 20 }, () => ask(health.ready)));
    expect(asked()).toBe(1);
    clock.advance(1_000);
    await ask(health.ready);
    expect(asked()).toBe(2);
    for (let second = 0; second < 9; second += 1) {
      await ask(health.deep);
      clock.advance(1_000);
    }
    expect(asked()).toBe(3);
  });
});

test("deep health and the service's facts name a payment provider and a mail server if there are some", async () => {
  const configured = await startWorld(
    { STRIPE_SECRET_KEY: "sk_test_x", SMTP_URL: "smtp://127.0.0.1:1", MAIL_FROM: "a@gateway.example" },
    { settings: { withoutJobs: true } },
  );
  try {
    const { status, body } = await configured.call(anonymous, "GET", "/v1/health/deep");
    expect((await configured.call(anonymous, "GET", "/v1/info")).body.data).toMatchObject({ payments: "stripe" });
    expect([status, body.dependencies]).toMatchObject([200, { billingProvider: { configured: true, status: "healthy" }, mail: { configured: true } }]);
    expect(body.dependencies.billingProvider.message).toContain("Stripe");
  } finally {
    await configured.close();
  }
});
