// Traces: ingest over OTLP in JSON, its bounds, lists and filters, who sees what, and how long spans stay.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { nanos, newSpanId, newTraceId, readTrace, rejectedOf, send, span, text } from "./kit.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({}, { settings: { withoutJobs: true } });
}, 120_000);
afterAll(() => world.close());

const opened = async (): Promise<TestTenant> => world.tenant();
const listOf = async (tenant: TestTenant, query = "") => {
  const { status, body } = await world.call(await tenant.user("viewer"), "GET", `/v1/traces${query}`);
  expect(status).toBe(200);
  return body.data as readonly { readonly traceId: string; readonly spanCount: number; readonly [field: string]: unknown }[];
};
const runJob = (name: string) => {
  const job = world.app.jobs.find((each) => each.name === name);
  return job?.run(new AbortController().signal);
};

describe("ingest", () => {
  test("stores spans once, sums them up by trace and takes tenant and device from the credential", async () => {
    const tenant = await opened();
    const device = await tenant.device();
    const root = span({ name: "checkout", attributes: [{ key: "count", value: { intValue: "9007199254740993" } }, text("who", "ada")] });
    const child = span({ traceId: root.traceId, parentSpanId: root.spanId, name: "pay", kind: 3, status: { code: 2, message: "no money" } });
    const forged = [text("service.name", "shop"), text("svc.tenant.id", "ten_other"), text("svc.device.id", "dev_other")];
    expect((await send(world, tenant.apiKey, [child], forged)).body).toEqual({});
    expect((await send(world, device.as, [root, child], forged)).body).toEqual({});
    const [listed] = await listOf(tenant);
    expect(listed).toMatchObject({ traceId: root.traceId, rootService: "shop", rootOperation: "checkout", spanCount: 2, errorCount: 1, services: ["shop"] });
    const trace = await readTrace(world, await tenant.user("viewer"), root.traceId);
    expect(trace.durationMs).toBeGreaterThanOrEqual(1_000);
    const [pay, checkout] = ["pay", "checkout"].map((name) => trace.spans.find((each: { operation: string }) => each.operation === name));
    expect(checkout).toMatchObject({ deviceId: device.deviceId, attributes: { count: "9007199254740993", who: "ada" }, kind: "internal", source: "sent" });
    expect(checkout.resource).toEqual({ "service.name": "shop", "svc.tenant.id": tenant.tenantId, "svc.device.id": device.deviceId });
    expect(pay).toMatchObject({ parentSpanId: root.spanId, status: "error", statusMessage: "no money", deviceId: null, kind: "client" });
    expect(pay.resource).toEqual({ "service.name": "shop", "svc.tenant.id": tenant.tenantId });
  });

  test("rejects a bad span alone and says why", async () => {
    const tenant = await opened();
    const good = span();
    const day = 86_400_000;
    const bad = [
      null,
      "text",
      span({ traceId: "12" }),
      span({ spanId: "0000000000000000" }),
      span({ traceId: "z".repeat(32) }),
      span({ parentSpanId: "abc" }),
      span({ startTimeUnixNano: "0" }),
      span({ startTimeUnixNano: "-1" }),
      span({ startTimeUnixNano: {} }),
      span({ startTimeUnixNano: nanos(Date.now() - 8 * day) }),
      span({ startTimeUnixNano: nanos(Date.now() + day), endTimeUnixNano: nanos(Date.now() + day) }),
      span({ endTimeUnixNano: "99999999999999999999" }),
    ];
    const { body, status } = await send(world, tenant.apiKey, [...bad, good]);
    expect(status).toBe(200);
    expect(body.partialSuccess).toMatchObject({ rejectedSpans: String(bad.length), errorMessage: expect.stringContaining("older than 7 days") });
    expect((await listOf(tenant)).map(({ traceId }) => traceId)).toEqual([good.traceId]);
  });

  test("keeps a span whose text or values nobody can store, in a form that can be stored", async () => {
    const tenant = await opened();
    const deep = (depth: number): unknown => (depth === 0 ? { stringValue: "x" } : { arrayValue: { values: [deep(depth - 1)] } });
    const odd = span({
      name: "a\u0000b",
      attributes: [
        { key: "deep", value: deep(200) },
        { key: "__proto__", value: { stringValue: "polluted" } },
        { key: "constructor", value: { kvlistValue: { values: [{ key: "__proto__", value: { boolValue: true } }] } } },
        { key: "nan", value: { doubleValue: "NaN" } },
        text("lone", "\ud800"),
        text("long", "x".repeat(5_000)),
        text("n\u0000ul", "1"),
        ...Array.from({ length: 200 }, (_, at) => text(`k${at}`, "v")),
      ],
      status: { code: 77 },
      kind: "SPAN_KIND_SERVER",
      events: [{ name: "e\ud800", timeUnixNano: "1", attributes: "none" }, null, 7],
      links: [{ traceId: newTraceId(), spanId: newSpanId() }, { traceId: "1" }, null],
      unknownField: { a: 1 },
    });
    const raw = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [odd] }], __proto__x: 1 }, null, 5, { scopeSpans: "x" }, { scopeSpans: [null] }] });
    const answer = await world.call(tenant.apiKey, "POST", "/v1/traces", { rawBody: raw.replace("__proto__x", "__proto__") });
    expect(rejectedOf(answer)).toBe(0);
    const { spans } = await readTrace(world, await tenant.user(), odd.traceId);
    const [{ attributes, ...kept }] = spans;
    expect(kept).toMatchObject({ operation: "a\ufffdb", status: "unset", kind: "unspecified", service: "unknown_service" });
    expect(kept.links).toHaveLength(1);
    expect(kept.events).toHaveLength(3);
    expect(Object.keys(attributes).length).toBeLessThanOrEqual(64);
    expect(attributes).toMatchObject({ lone: "\ufffd", nan: "NaN", "n\ufffdul": "1" });
    expect(attributes.long).toHaveLength(1_024);
    expect(Object.hasOwn(attributes, "__proto__")).toBe(false);
  });

  test("takes 2,000 spans at once and no more", async () => {
    const tenant = await opened();
    const traceId = newTraceId();
    expect(
      rejectedOf(
        await send(
          world,
          tenant.apiKey,
          Array.from({ length: 2_003 }, () => span({ traceId })),
        ),
      ),
    ).toBe(3);
    expect((await listOf(tenant))[0]).toMatchObject({ traceId, spanCount: 2_000 });
  });

  test("64 exporters at once do not get past the plan's spans of a day, and sending a span again costs nothing", async () => {
    const tenant = await opened();
    await world.sql.query(`update tenants set limit_overrides = '{"spansPerDay": 5}' where tenant_id = $1`, [tenant.tenantId]);
    const first = span();
    const answers = await Promise.all(Array.from({ length: 64 }, (_, at) => send(world, tenant.apiKey, [at < 2 ? first : span()])));
    const rejected = answers.map(rejectedOf).reduce((sum, each) => sum + each, 0);
    const { rows } = await world.sql.query("select count(*)::int as spans from trace_spans where tenant_id = $1", [tenant.tenantId]);
    expect(rows).toEqual([{ spans: 5 }]);
    expect(rejected).toBeGreaterThanOrEqual(58);
  });

  test("needs the permission, and a person's credential does not do", async () => {
    const tenant = await opened();
    const made = await world.call(await tenant.user(), "POST", "/v1/api-keys", { body: { name: "reads", role: "viewer", scopes: ["trace:read"] } });
    const reader = { kind: "apiKey" as const, headers: () => ({ authorization: `Bearer ${made.body.data.key ?? made.body.data.apiKey}` }) };
    expect((await send(world, reader, [span()])).status).toBe(403);
    expect((await send(world, await tenant.user(), [span()])).status).toBe(403);
    expect((await world.call(reader, "GET", "/v1/traces")).status).toBe(200);
  });
});

describe("list", () => {
  test("filters by service, operation, device, app, status and duration, and pages by cursor without gaps", async () => {
    const tenant = await opened();
    const device = await tenant.device();
    const start = Date.now() - 60_000;
    const ended = (ms: number) => ({ startTimeUnixNano: nanos(start), endTimeUnixNano: nanos(start + ms) });
    const slow = span({ name: "slow", ...ended(5_000) });
    const failed = span({ name: "failed", status: { code: 2 }, ...ended(10) });
    await send(world, tenant.apiKey, [slow], [text("service.name", "a"), text("svc.app.id", "app_1")]);
    await send(world, device.as, [failed], [text("service.name", "b")]);
    const ids = async (query: string) => (await listOf(tenant, query)).map(({ traceId }) => traceId);
    expect(await ids("?service=a")).toEqual([slow.traceId]);
    expect(await ids("?operation=failed")).toEqual([failed.traceId]);
    expect(await ids(`?deviceId=${device.deviceId}`)).toEqual([failed.traceId]);
    expect(await ids("?appId=app_1")).toEqual([slow.traceId]);
    expect(await ids("?status=error")).toEqual([failed.traceId]);
    expect(await ids("?status=ok")).toEqual([slow.traceId]);
    expect(await ids("?minDurationMs=1000")).toEqual([slow.traceId]);
    expect(await ids("?maxDurationMs=1000")).toEqual([failed.traceId]);
    expect(await ids("?requestId=unknown-request")).toEqual([]);
    expect(await ids(`?to=${new Date(Date.now() - 3_600_000).toISOString()}`)).toEqual([]);
    const page = await world.call(tenant.apiKey, "GET", "/v1/traces?pageSize=1");
    const next = await world.call(tenant.apiKey, "GET", `/v1/traces?pageSize=1&cursor=${page.body.meta.pagination.nextCursor}`);
    expect([...page.body.data, ...next.body.data].map(({ traceId }) => traceId).sort()).toEqual([slow.traceId, failed.traceId].sort());
    expect(next.body.meta.pagination.nextCursor).toBe(null);
    const names = await world.call(tenant.apiKey, "GET", "/v1/traces/services");
    expect(names.body.data.map(({ service }: { service: string }) => service)).toEqual(["a", "b"]);
    const operations = await world.call(tenant.apiKey, "GET", "/v1/traces/operations?service=b");
    expect(operations.body.data).toMatchObject([{ service: "b", operation: "failed" }]);
  });

  test("a window of more than 24 hours is refused", async () => {
    const tenant = await opened();
    const answer = await world.call(tenant.apiKey, "GET", "/v1/traces?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:01Z");
    expect([answer.status, answer.body.code]).toEqual([422, "TRACE_RANGE_TOO_LARGE"]);
  });
});

describe("who sees what", () => {
  test("another tenant sees nothing, even of the same trace id", async () => {
    const [a, b] = [await opened(), await opened()];
    const mine = span();
    await send(world, a.apiKey, [mine]);
    expect(await readTrace(world, b.apiKey, mine.traceId)).toBe(null);
    await send(world, b.apiKey, [span({ traceId: mine.traceId, name: "theirs" })]);
    const [mineRead, theirs] = [await readTrace(world, a.apiKey, mine.traceId), await readTrace(world, b.apiKey, mine.traceId)];
    expect([mineRead.spans.length, theirs.spans.length, theirs.rootOperation]).toEqual([1, 1, "theirs"]);
    expect(await listOf(b, "?operation=work")).toEqual([]);
  });

  test("a member who is limited to a device sees its spans alone, in traces, lists and names", async () => {
    const tenant = await opened();
    const [own, other] = [await tenant.device(), await tenant.device()];
    const traceId = newTraceId();
    await send(world, tenant.apiKey, [span({ traceId, name: "server" })]);
    await send(world, own.as, [span({ traceId, name: "own" })], [text("service.name", "own-agent")]);
    const hidden = span({ name: "other" });
    await send(world, other.as, [span({ traceId, name: "other" }), hidden], [text("service.name", "other-agent")]);
    const viewer = await tenant.user("viewer");
    // Before she calls for the first time, so that no cache knows her otherwise.
    await world.sql.query("update memberships set selector = $2 where tenant_id = $1 and role = 'viewer'", [
      tenant.tenantId,
      { deviceIds: [own.deviceId], tags: [], fleetIds: [] },
    ]);
    const list = await world.call(viewer, "GET", "/v1/traces");
    expect(list.body.data).toMatchObject([{ traceId, spanCount: 1, rootOperation: "own", services: ["own-agent"] }]);
    expect((await readTrace(world, viewer, traceId)).spans.map(({ operation }: { operation: string }) => operation)).toEqual(["own"]);
    expect(await readTrace(world, viewer, hidden.traceId)).toBe(null);
    const names = await world.call(viewer, "GET", "/v1/traces/services");
    expect(names.body.data.map(({ service }: { service: string }) => service)).toEqual(["own-agent"]);
  });
});

describe("a list for a member who is limited to a device", () => {
  test("knows nothing of other spans, whatever it is filtered by, and pages without gaps", async () => {
    const tenant = await opened();
    const [own, other] = [await tenant.device(), await tenant.device()];
    const [traceId, second] = [newTraceId(), newTraceId()];
    const now = Date.now();
    const lasting = (agoMs: number, ms: number) => ({ startTimeUnixNano: nanos(now - agoMs), endTimeUnixNano: nanos(now - agoMs + ms) });
    const failed = { traceId, name: "server", status: { code: 2 }, ...lasting(600_000, 599_000) };
    await send(world, tenant.apiKey, [span(failed)], [text("service.name", "shop"), text("svc.app.id", "app_1")]);
    await send(world, other.as, [span({ ...failed, spanId: newSpanId(), name: "other" })], [text("service.name", "other-agent")]);
    const app = [text("service.name", "own-agent"), text("svc.app.id", "app_2")];
    await send(world, own.as, [span({ traceId, name: "own", ...lasting(60_000, 10) }), span({ traceId: second, name: "own", ...lasting(30_000, 10) })], app);
    const viewer = await tenant.user("viewer");
    await world.sql.query("update memberships set selector = $2 where tenant_id = $1 and role = 'viewer'", [
      tenant.tenantId,
      { deviceIds: [own.deviceId], tags: [], fleetIds: [] },
    ]);
    const get = async (query: string, as = viewer) => (await world.call(as, "GET", `/v1/traces${query}`)).body;
    const ids = async (query: string) => (await get(query)).data.map((each: { traceId: string }) => each.traceId);
    const before = new Date(Date.now() - 300_000).toISOString();
    for (const hidden of ["service=shop", "operation=server", "operation=other", `deviceId=${other.deviceId}`, "appId=app_1"])
      expect([hidden, await ids(`?${hidden}`), (await get(`?${hidden}`, tenant.apiKey)).data.length]).toEqual([hidden, [], 1]);
    for (const hidden of ["status=error", "minDurationMs=1000", `to=${before}`]) expect([hidden, await ids(`?${hidden}`)]).toEqual([hidden, []]);
    for (const shown of ["service=own-agent", "operation=own", `deviceId=${own.deviceId}`, "appId=app_2", "status=ok", "maxDurationMs=1000", `from=${before}`])
      expect([shown, await ids(`?${shown}`)]).toEqual([shown, [second, traceId]]);
    const page = await get("?pageSize=1");
    const next = await get(`?pageSize=1&cursor=${page.meta.pagination.nextCursor}`);
    expect([...page.data, ...next.data]).toMatchObject([
      { traceId: second, spanCount: 1, errorCount: 0, durationMs: 10 },
      { traceId, spanCount: 1, errorCount: 0, durationMs: 10, rootOperation: "own", services: ["own-agent"] },
    ]);
    expect(next.meta.pagination.nextCursor).toBe(null);
  });
});

describe("retention", () => {
  test("deletes traces with all of their spans after the plan's days, and leaves others", async () => {
    const tenant = await opened();
    const [old, young] = [span(), span()];
    await send(world, tenant.apiKey, [old, span({ traceId: old.traceId }), young]);
    const { rows } = await world.sql.query("select expires_at > now() + interval '1 hour' as stays from traces where tenant_id = $1", [tenant.tenantId]);
    expect(rows).toEqual([{ stays: true }, { stays: true }]);
    await world.sql.query("update traces set expires_at = now() - interval '1 second' where trace_id = $1", [old.traceId]);
    while ((await runJob("traces.forget")) === true);
    expect(await readTrace(world, tenant.apiKey, old.traceId)).toBe(null);
    const left = await world.sql.query("select trace_id from trace_spans where tenant_id = $1", [tenant.tenantId]);
    expect(left.rows).toEqual([{ trace_id: young.traceId }]);
  });
});
