// Load tests: the gateway really calls its own reads in the starter's name, one test per tenant, and every test ends.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { winnersOf } from "../../kit/gateway/races.ts";
import { type Answer, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

const at = ({ tenantId }: TestTenant) => `/v1/tenants/${tenantId}/load-test`;
const start = async (tenant: TestTenant, body: object, as?: Caller): Promise<Answer> =>
  world.call(as ?? (await tenant.user("admin")), "POST", at(tenant), { body: { duration: 1, concurrency: 2, endpoints: ["/v1/devices"], ...body } });
const read = async (tenant: TestTenant): Promise<Answer["body"]> => (await world.call(await tenant.user("owner"), "GET", at(tenant))).body.data;
const completed = (tenant: TestTenant) =>
  eventually(async () => {
    const test = await read(tenant);
    expect(test.status).toBe("completed");
    return test;
  });
const codeOf = ({ status, body }: Answer) => [status, body?.code ?? "done"];
const told = async ({ tenantId }: TestTenant) =>
  (await world.sql.query("select data from outbox_events where type = 'load_test.completed' and tenant_id = $1", [tenantId])).rows.map(({ data }) => data);

test("a test that never ran, one that runs and one that has ended have the interface's record", async () => {
  const tenant = await world.tenant();
  const configuration = { duration: 30, concurrency: 10, endpoints: ["/v1/devices"] };
  expect(await read(tenant)).toEqual({ status: "not_started", tenantId: tenant.tenantId, lastRun: null, results: null, configuration });
  const endpoints = ["/v1/devices?pageSize=5", "/auth/me", "/api/v1/tenants", "/v1/devices/dev_unknown", "/v1/devices?page=0"];
  const started = await start(tenant, { duration: 3, endpoints });
  expect([started.status, started.body.data]).toMatchObject([201, { status: "running", configuration: { duration: 3, concurrency: 2, endpoints } }]);
  const { results, ...test } = await completed(tenant);
  expect(test).toEqual({
    status: "completed",
    tenantId: tenant.tenantId,
    lastRun: expect.any(String),
    configuration: { duration: 3, concurrency: 2, endpoints },
  });
  expect(results).toMatchObject({ outcome: "finished", progress: 1, finishedAt: expect.any(String) });
  expect([results.requests > 10, results.requests <= 700, Object.keys(results.errors).toSorted()]).toEqual([
    true,
    true,
    ["DEVICE_NOT_FOUND", "VALIDATION_FAILED"],
  ]);
  expect(results.failed).toBe(results.errors.DEVICE_NOT_FOUND + results.errors.VALIDATION_FAILED);
  const { p50, p95, p99, max } = results.latencyMs;
  expect([p50 > 0, p50 <= p95, p95 <= p99, p99 <= max]).toEqual([true, true, true, true]);
  expect(results.endpoints.map(({ operation, failed }: { operation: string; failed: number }) => [operation, failed > 0])).toEqual([
    ["devices.list", false],
    ["general.me", false],
    ["tenants.list", false],
    ["devices.get", true],
    ["devices.list", true],
  ]);
  expect(await told(tenant)).toEqual([{ tenantId: tenant.tenantId, outcome: "finished", requests: results.requests, failed: results.failed }]);
});

test("its calls do not count against the starter's rate limit", async () => {
  const tenant = await world.tenant();
  const admin = await tenant.user("admin");
  await world.call(await world.operator(), "PATCH", `/v1/admin/tenants/${tenant.tenantId}`, { body: { rateLimitOverrides: { standard: 3, tenant: 3 } } });
  await start(tenant, {}, admin);
  const results = await eventually(async () => {
    const { rows } = await world.sql.query("select results from load_tests where tenant_id = $1 and status <> 'running'", [tenant.tenantId]);
    expect(rows).toHaveLength(1);
    return rows[0].results;
  });
  expect([results.outcome, results.requests > 3, results.errors]).toEqual(["finished", true, {}]);
  expect((await world.call(admin, "GET", "/v1/devices")).status).toBe(200);
});

test("of 64 tests that start at once one runs", async () => {
  const tenant = await world.tenant();
  const admin = await tenant.user("admin");
  // The one that runs must last until the last of the others has asked.
  const answers = await Promise.all(Array.from({ length: 64 }, () => start(tenant, { duration: 300, concurrency: 1 }, admin)));
  expect(winnersOf(answers, "LOAD_TEST_RUNNING")).toBe(1);
  expect((await world.call(admin, "DELETE", at(tenant))).status).toBe(200);
  await completed(tenant);
  expect((await start(tenant, {}, admin)).status).toBe(201);
});

test("a canceled test ends and keeps what it has measured", async () => {
  const tenant = await world.tenant();
  const cancel = async () => world.call(await tenant.user("admin"), "DELETE", at(tenant));
  expect(codeOf(await cancel())).toEqual([409, "INVALID_STATE_TRANSITION"]);
  await start(tenant, { duration: 300 });
  await eventually(async () => expect((await read(tenant)).results.requests).toBeGreaterThan(0));
  expect((await cancel()).status).toBe(200);
  const { results } = await completed(tenant);
  expect([results.outcome, results.requests > 0, results.progress < 1]).toEqual(["canceled", true, true]);
  expect(codeOf(await cancel())).toEqual([409, "INVALID_STATE_TRANSITION"]);
});

test("a test ends when another node has taken the order to cancel it", async () => {
  const tenant = await world.tenant();
  await start(tenant, { duration: 300 });
  await world.sql.query("update load_tests set cancel_asked_at = now() where tenant_id = $1", [tenant.tenantId]);
  expect((await completed(tenant)).results.outcome).toBe("canceled");
});

test("a test ends when its starter may no longer run it", async () => {
  const tenant = await world.tenant();
  await start(tenant, { duration: 300 });
  await world.sql.query("update memberships set role = 'viewer' where tenant_id = $1 and role = 'admin'", [tenant.tenantId]);
  await expect.poll(async () => (await read(tenant)).results.outcome, { timeout: 20_000 }).toBe("unauthorized");
});

test("a test whose node has ended fails at its deadline, and is told once", async () => {
  const tenant = await world.tenant();
  await world.sql.query(
    `insert into load_tests (tenant_id, load_test_id, status, duration, concurrency, endpoints, started_by, node_id, started_at, deadline_at)
     values ($1, 'ltr_1', 'running', 1, 1, '{/v1/devices}', 'user:u', 'gone', now() - interval '1 minute', now() - interval '1 second')`,
    [tenant.tenantId],
  );
  const job = world.app.jobs.find(({ name }) => name === "tenants.load-tests");
  const signal = new AbortController().signal;
  await Promise.all([job?.run(signal), job?.run(signal)]);
  const lost = await read(tenant);
  expect([lost.status, lost.results]).toMatchObject(["completed", { outcome: "failed", reason: "the node that ran it has ended", requests: 0 }]);
  expect(await told(tenant)).toHaveLength(1);
});

test("only harmless reads of this API can be called", async () => {
  const tenant = await world.tenant();
  for (const endpoint of [
    "/v1/admin/stats",
    "/v1/agent/me",
    "/v1/pairing/lookup?code=BCDFGHJK",
    "/v1/pairing/status?device_fingerprint=somebody",
    "/v1/events/stream/live",
    "/v1/devices/dev_1/secrets",
    "/v1/nothing",
    "//example.org/v1/devices",
    "/v1/../v1/devices",
    "/metrics",
  ]) {
    const refused = await start(tenant, { endpoints: ["/v1/devices", endpoint] });
    expect([endpoint, ...codeOf(refused), refused.body.details?.issues?.[0]?.path]).toEqual([endpoint, 400, "VALIDATION_FAILED", "endpoints.1"]);
  }
  for (const body of [
    { endpoints: ["http://example.org/"] },
    { endpoints: [] },
    { endpoints: Array(21).fill("/v1/devices") },
    { endpoints: ["/v1/a\u0000"] },
    { duration: 0 },
    { duration: 301 },
    { concurrency: 101 },
    { concurrency: 2 ** 31 },
    { endpoints: ["/v1/\ud800"] },
  ])
    expect([JSON.stringify(body), ...codeOf(await start(tenant, body))]).toEqual([JSON.stringify(body), 400, "VALIDATION_FAILED"]);
  expect((await read(tenant)).status).toBe("not_started");
});

test("another tenant's test, an operator of the tenant and a tenant whose flag is off are refused", async () => {
  const [tenant, other] = [await world.tenant(), await world.tenant()];
  const admin = await tenant.user("admin");
  for (const method of ["GET", "POST", "DELETE"])
    expect([403, 404]).toContain((await world.call(admin, method, at(other), method === "POST" ? { body: {} } : {})).status);
  expect(codeOf(await start(tenant, {}, await tenant.user("operator")))).toEqual([403, "FORBIDDEN"]);
  await world.call(await world.operator(), "PUT", "/v1/admin/flags/loadTests", { body: { enabled: false, tenantId: tenant.tenantId } });
  const refused = await start(tenant, {});
  expect([codeOf(refused), refused.body.details]).toEqual([[403, "FORBIDDEN"], { reason: "feature_disabled", feature: "loadTests" }]);
});

test("a test does not use up what its starter may read, nor is it limited by that", async () => {
  const tight = await startWorld({ RATE_LIMIT_READS: "30", RATE_LIMIT_STANDARD: "30" });
  try {
    const tenant = await tight.tenant({ unlimited: false });
    const admin = await tenant.user("admin");
    const body = { duration: 2, concurrency: 4, endpoints: ["/v1/devices"] };
    expect((await tight.call(admin, "POST", at(tenant), { body })).status).toBe(201);
    const results = await eventually(async () => {
      const { rows } = await tight.sql.query("select results from load_tests where tenant_id = $1", [tenant.tenantId]);
      expect(rows[0].results.outcome).toBe("finished");
      return rows[0].results;
    });
    expect([results.requests > 30, results.errors]).toEqual([true, {}]);
    expect((await tight.call(admin, "GET", "/v1/devices")).status).toBe(200);
  } finally {
    await tight.close();
  }
});
