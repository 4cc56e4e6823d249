// What operators of the installation see and change over all tenants: plans, limits, users, devices, flags and jobs.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Answer, asBearer, type Caller, startWorld, type World } from "../../kit/gateway/world.ts";

let world: World;
let operator: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off" });
  operator = await world.operator();
});
afterAll(() => world.close());

const admin = (method: string, path: string, body?: object): Promise<Answer> =>
  world.call(operator, method, `/v1/admin${path}`, body === undefined ? {} : { body });
const codeOf = ({ status, body }: Answer) => [status, body?.code ?? "done"];
/** A tenant that the API made, with the limits of its plan. */
const limited = async () => {
  const userId = `usr_${randomUUID()}`;
  const as = asBearer((await world.app.mint({ userId, ttlSeconds: 600 })).token);
  const slug = `s-${randomUUID().slice(0, 12)}`;
  const { tenantId } = (await world.call(as, "POST", "/v1/tenants", { body: { name: "Limited", slug, userId } })).body.data;
  const call = (method: string, path: string, body?: object) =>
    world.call(as, method, `/v1${path}`, { headers: { "x-svc-tenant-id": tenantId }, ...(body === undefined ? {} : { body }) });
  return { tenantId: tenantId as string, userId, call };
};

describe("a tenant's plan and limits", () => {
  test("a limit that an operator raises or lifts holds with the next call", async () => {
    const { tenantId, call } = await limited();
    const provision = (count: number) => call("POST", "/devices/provision", { count });
    expect(codeOf(await provision(6))).toEqual([403, "PLAN_LIMIT_EXCEEDED"]);
    const changed = await admin("PATCH", `/tenants/${tenantId}`, { limitOverrides: { hosts: 6 }, notes: "partner" });
    expect(changed.body.data).toMatchObject({ limitOverrides: { hosts: 6 }, operatorNotes: "partner", plan: "starter" });
    expect((await provision(6)).status).toBe(201);
    expect(codeOf(await provision(1))).toEqual([403, "PLAN_LIMIT_EXCEEDED"]);
    await admin("PATCH", `/tenants/${tenantId}`, { limitOverrides: { hosts: null }, notes: null });
    expect((await provision(1)).status).toBe(201);
    expect(JSON.stringify((await call("GET", `/tenants/${tenantId}`)).body)).not.toContain("operatorNotes");
  });

  test("a rate limit that an operator sets holds with the next call", async () => {
    const { tenantId, call } = await limited();
    await admin("PATCH", `/tenants/${tenantId}`, { rateLimitOverrides: { "pairing.tokens.user": 1 } });
    const create = () => call("POST", "/pairing/enrollment-tokens", { name: "t" });
    expect([(await create()).status, (await create()).status]).toEqual([201, 429]);
  });

  test("a plan that an operator sets stays when the trial would have ended, unless the tenant pays", async () => {
    const { tenantId, call } = await limited();
    expect((await admin("PATCH", `/tenants/${tenantId}`, { plan: "team" })).body.data.plan).toBe("team");
    expect((await call("GET", "/billing")).body.data.billing).toMatchObject({ plan: "team", status: "none" });
    const { rows } = await world.sql.query("select data from outbox_events where tenant_id = $1 and type = 'billing.plan_changed'", [tenantId]);
    expect(rows).toEqual([{ data: { tenantId, from: "starter", to: "team" } }]);
    expect((await call("POST", "/billing/checkout", { plan: "pro" })).status).toBe(201);
    expect(codeOf(await admin("PATCH", `/tenants/${tenantId}`, { plan: "free" }))).toEqual([409, "PLAN_CHANGE_REQUIRES_BILLING"]);
  });

  test("unknown resources and buckets, impossible figures, an old version and an unknown tenant are refused", async () => {
    const { tenantId } = await limited();
    for (const body of [
      { limitOverrides: { nothing: 1 } },
      { limitOverrides: { __proto__x: 1 } },
      { limitOverrides: { constructor: 1 } },
      { limitOverrides: { hosts: 2 ** 31 } },
      { limitOverrides: { hosts: -1 } },
      { rateLimitOverrides: { nothing: 1 } },
      { notes: "a\u0000b" },
      { plan: "gold" },
      { version: 2 ** 31 },
    ])
      expect([JSON.stringify(body), ...codeOf(await admin("PATCH", `/tenants/${tenantId}`, body))]).toEqual([JSON.stringify(body), 400, "VALIDATION_FAILED"]);
    // A literal of JavaScript cannot have this name.
    const sent = await world.call(operator, "PATCH", `/v1/admin/tenants/${tenantId}`, { rawBody: '{"limitOverrides":{"__proto__":1}}' });
    expect(codeOf(sent)).toEqual([400, "VALIDATION_FAILED"]);
    expect(codeOf(await admin("PATCH", `/tenants/${tenantId}`, { notes: "n", version: 9 }))).toEqual([409, "VERSION_CONFLICT"]);
    expect(codeOf(await admin("PATCH", "/tenants/ten_unknown", { notes: "n" }))).toEqual([404, "TENANT_NOT_FOUND"]);
  });
});

describe("users and devices", () => {
  test("a user is found by a part of id or address, with all tenants, and a sign of a pattern is taken literally", async () => {
    const [one] = [await limited(), await limited()];
    const found = await admin("GET", `/users?q=${one.userId.slice(4, 20).toUpperCase()}`);
    expect(found.body.data).toEqual([
      { userId: one.userId, email: null, name: null, lastSignInAt: null, memberships: [{ tenantId: one.tenantId, role: "owner" }] },
    ]);
    expect((await admin("GET", "/users?q=%25")).body.data).toEqual([]);
    const paged = await admin("GET", "/users?page=1&pageSize=1");
    expect([paged.body.data.length, paged.body.meta.pagination.total > 1]).toEqual([1, true]);
  });

  test("a person who has signed in and is no member is listed with name and last sign-in, in one order with the members", async () => {
    const mark = randomUUID().slice(0, 8);
    const ids = [`a-${mark}`, `B-${mark}`, `c-${mark}`];
    for (const userId of ids) await world.session(userId);
    await world.sql.query("update users set name = 'Ada Example', email = 'ada@example.com' where user_id = $1", [ids[0]]);
    const tenant = await world.tenant();
    await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'viewer')", [
      `mem_${mark}`,
      tenant.tenantId,
      ids[1],
    ]);
    const list = async (query: string) => (await admin("GET", `/users?q=${mark}&${query}`)).body;
    const all = await list("sort=userId");
    expect(all.data.find(({ userId }: { userId: string }) => userId === ids[0])).toEqual({
      userId: ids[0],
      email: "ada@example.com",
      name: "Ada Example",
      lastSignInAt: expect.any(String),
      memberships: [],
    });
    const order = all.data.map(({ userId }: { userId: string }) => userId);
    expect([order.toSorted(), all.meta.pagination.total]).toEqual([ids.toSorted(), 3]);
    const one = async (page: number, sort: string) => (await list(`sort=${sort}&page=${page}&pageSize=1`)).data[0].userId;
    expect([await one(1, "userId"), await one(2, "userId"), await one(3, "userId")]).toEqual(order);
    expect([await one(1, "-userId"), await one(2, "-userId")]).toEqual(order.toReversed().slice(0, 2));
    const { meta } = await list("limit=2");
    expect((await list(`limit=2&cursor=${meta.pagination?.nextCursor ?? meta.nextCursor}`)).data.map(({ userId }: { userId: string }) => userId)).toEqual(
      order.slice(2),
    );
    expect((await admin("GET", "/users?q=ada%20exa")).body.data).toHaveLength(1);
  });

  test("a machine is found in every tenant, and any device can be disconnected", async () => {
    const [one, two] = [await world.tenant(), await world.tenant()];
    const fingerprint = randomUUID();
    for (const tenant of [one, two]) await world.call(await tenant.user(), "POST", "/v1/devices/provision", { body: { fingerprints: [fingerprint] } });
    const { body } = await admin("GET", `/devices?fingerprint=${fingerprint}`);
    expect(body.data.map(({ tenantId }: { tenantId: string }) => tenantId).toSorted()).toEqual([one.tenantId, two.tenantId].toSorted());
    const { deviceId } = body.data[0];
    expect((await admin("POST", `/devices/${deviceId}/disconnect`)).body.data).toEqual({ deviceId, disconnected: false });
    expect(codeOf(await admin("POST", "/devices/dev_unknown/disconnect"))).toEqual([404, "DEVICE_NOT_FOUND"]);
  });

  test("the figures count tenants, devices, sockets, commands and events", async () => {
    await (await world.tenant()).device();
    await world.tenant();
    const { data } = (await admin("GET", "/stats")).body;
    expect(data.tenants.active).toBeGreaterThan(1);
    expect(data.nodes).toEqual([{ nodeId: world.app.nodeId, connections: 0, ready: 0 }]);
    expect([data.commands.pastDeadline, data.commands.perMinute, data.devices.provisioning >= 0]).toEqual([0, expect.any(Number), true]);
  });
});

describe("feature flags", () => {
  test("a tenant's own value counts before the installation's, and both before the default", async () => {
    const [own, other] = [await world.tenant(), await world.tenant()];
    const features = async (tenant: typeof own) => (await world.call(await tenant.user(), "GET", "/v1/auth/me")).body.data.features;
    expect(await features(own)).toContain("browserPairing");
    const set = await admin("PUT", "/flags/browserPairing", { enabled: false, tenantId: own.tenantId });
    expect(set.body.data).toMatchObject({ key: "browserPairing", value: true, tenants: [{ tenantId: own.tenantId, enabled: false }] });
    expect([await features(own), await features(other)]).toEqual([["loadTests"], ["loadTests", "browserPairing"]]);
    await admin("PUT", "/flags", { key: "browserPairing", enabled: false });
    await admin("PUT", "/flags/browserPairing", { enabled: true, tenantId: own.tenantId });
    expect([await features(own), await features(other)]).toEqual([["loadTests", "browserPairing"], ["loadTests"]]);
    expect((await world.call(operator, "GET", "/v1/info")).body.data.features).not.toContain("browserPairing");
    for (const tenantId of [undefined, own.tenantId]) await admin("PUT", "/flags/browserPairing", { enabled: null, tenantId });
    const { body } = await admin("GET", "/flags");
    expect(body.data).toContainEqual({ key: "browserPairing", summary: expect.any(String), default: true, value: true, tenants: [] });
  });

  test("pairing in the browser stops for a tenant whose flag is off", async () => {
    const tenant = await world.tenant();
    await admin("PUT", "/flags/browserPairing", { enabled: false, tenantId: tenant.tenantId });
    const { body } = await world.call(operator, "POST", "/v1/pairing/initiate", { body: { device_fingerprint: randomUUID() } });
    const refused = await world.call(await tenant.user(), "POST", "/v1/pairing/approve", { body: { code: body.data.pairing_code } });
    expect([codeOf(refused), refused.body.details]).toEqual([[403, "FORBIDDEN"], { reason: "feature_disabled", feature: "browserPairing" }]);
    await admin("PUT", "/flags/browserPairing", { enabled: null, tenantId: tenant.tenantId });
  });

  test("an unknown flag and an unknown tenant are refused", async () => {
    for (const key of ["__proto__", "constructor", "nothing"])
      expect(codeOf(await admin("PUT", `/flags/${key}`, { enabled: true }))).toEqual([404, "FLAG_NOT_FOUND"]);
    expect(codeOf(await admin("PUT", "/flags/loadTests", { enabled: true, tenantId: "ten_unknown" }))).toEqual([404, "TENANT_NOT_FOUND"]);
  });
});

describe("background jobs", () => {
  const jobNamed = async (name: string) => (await admin("GET", "/jobs")).body.data.find((each: { name: string }) => each.name === name);

  test("a job runs when an operator asks for it, and the list shows its last run", async () => {
    await world.sql.query(
      "insert into gateway_nodes (node_id, address, host, pid, version, seen_at) values ('long-gone', '', '', 1, '', now() - interval '1 day')",
    );
    await eventually(async () => expect((await jobNamed("nodes.forget")).nodes).toHaveLength(1));
    expect((await admin("POST", "/jobs/nodes.forget/run")).body.data).toMatchObject({ name: "nodes.forget", nodeId: world.app.nodeId });
    await eventually(async () => expect((await world.sql.query("select 1 from gateway_nodes where node_id = 'long-gone'")).rows).toEqual([]));
    expect((await jobNamed("nodes.forget")).nodes).toEqual([
      { nodeId: world.app.nodeId, startedAt: expect.any(String), durationMs: expect.any(Number), runs: 2, failures: 0 },
    ]);
    expect(codeOf(await admin("POST", "/jobs/__proto__/run"))).toEqual([404, "JOB_NOT_FOUND"]);
  });

  test("the runs of other nodes are listed as those reported them", async () => {
    await world.sql.query(
      "insert into job_runs (node_id, name, started_at, duration_ms, runs, failures, failed_since, error) values ('node-b', 'nodes.beat', now(), 1, 4, 4, now(), 'no')",
    );
    const { nodes } = await jobNamed("nodes.beat");
    expect(nodes).toContainEqual(expect.objectContaining({ nodeId: "node-b", failures: 4, error: "no", failedSince: expect.any(String) }));
  });
});

test("only operators reach these operations, and never an API key", async () => {
  const tenant = await world.tenant();
  for (const path of ["stats", "users", "flags", "jobs", "stuck", "devices?fingerprint=somebody"]) {
    expect(codeOf(await world.call(await tenant.user("owner"), "GET", `/v1/admin/${path}`))).toEqual([403, "ADMIN_REQUIRED"]);
    expect(codeOf(await world.call(tenant.apiKey, "GET", `/v1/admin/${path}`))).toEqual([403, "FORBIDDEN"]);
  }
});
