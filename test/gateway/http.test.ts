// How the public listener treats HTTP itself: routes, methods, sizes, encodings, browsers' preflights. It always answers, and in JSON.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withTimeout } from "../../server/platform/timeout.ts";
import { anonymous, type Caller, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { head, openRaw, rawCall } from "./raw.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_PAIRING: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
});
afterAll(() => world.close());

const JSON_TYPE = { "content-type": "application/json" };
const get = (path: string, headers: Record<string, string> = {}) => world.call(owner, "GET", path, { headers });
const create = (rawBody: string | Uint8Array, headers: Record<string, string> = {}) => world.call(owner, "POST", "/v1/api-keys", { rawBody, headers });
const issueOf = ({ body }: { body: { details: { issues: { path: string; message: string }[] } } }) => body.details.issues[0];

describe("routes", () => {
  test.each([
    "/",
    "/nowhere",
    "/v1/nowhere",
    "/v2/devices",
    "/v1/DEVICES",
    "/v1//devices",
    "/v1/devices//x",
    "/v1/devices/a/b/c/d/e/f/g/h/i/j/k/l/m",
    "/trpc",
    "/api/v1x",
    "/V1/info",
  ])("the unknown route %s answers 404 in JSON", async (path) => {
    const answer = await get(path);
    expect([answer.status, answer.body.code, answer.body.details]).toEqual([404, "NOT_FOUND", { method: "GET", path }]);
  });

  test("a path may end with one slash under both prefixes", async () => {
    for (const path of ["/v1/devices/", "/api/v1/devices/", "/v1/", "/api/v1/"]) expect([path, (await get(path)).status]).toEqual([path, 200]);
  });

  test("a wrong method answers 405 with the allowed methods", async () => {
    const answer = await world.call(owner, "DELETE", "/v1/devices");
    expect([answer.status, answer.body.code, answer.headers.get("allow")]).toEqual([405, "METHOD_NOT_ALLOWED", "GET, HEAD, OPTIONS"]);
    const trpc = await world.call(owner, "DELETE", "/trpc/devices.list");
    expect([trpc.status, trpc.body.error.data.app.code, trpc.headers.get("allow")]).toEqual([405, "METHOD_NOT_ALLOWED", "GET, POST"]);
    const swapped = await world.call(owner, "POST", "/trpc/devices.list", { body: {} });
    expect([swapped.status, swapped.headers.get("allow")]).toEqual([405, "GET"]);
  });

  test("HEAD is GET without the body", async () => {
    const [whole, bare] = [await get("/v1/devices"), await world.call(owner, "HEAD", "/v1/devices")];
    expect([bare.status, bare.body, bare.headers.get("content-type")]).toEqual([200, null, whole.headers.get("content-type")]);
    expect(Number(bare.headers.get("content-length"))).toBeGreaterThan(50);
    expect((await world.call(owner, "HEAD", "/v1/nowhere")).status).toBe(404);
  });

  test("HEAD states the length of the GET answer, and its connection serves further requests", async () => {
    const auth = owner.headers("");
    for (const path of ["/v1/devices", "/v1/devices/%00", "/v1/docs", "/v1/docs/", "/.well-known/jwks.json"]) {
      const { answer } = await rawCall(world.url, [head(`GET ${path}`, auth)]);
      const raw = await openRaw(world.url);
      for (const count of [1, 2]) {
        await raw.write(head(`HEAD ${path}`, auth));
        await raw.until(() => raw.statuses().length === count);
      }
      await raw.write(head("GET /v1/health/live"));
      await raw.until(() => raw.statuses().length === 3);
      expect([path, raw.statuses()]).toEqual([path, [String(answer?.status), String(answer?.status), "200"]]);
      const told = [...raw.seen.text.matchAll(/^content-length: (\d+)\r$/gim)].map(([, length]) => length);
      expect([path, told.slice(0, 2)]).toEqual([path, Array(2).fill(answer?.headers.get("content-length"))]);
      raw.end();
    }
  });

  test("an answer without a body states no length, and its connection serves further requests", async () => {
    const made = await world.call(owner, "POST", "/v1/api-keys", { body: { name: "short-lived" } });
    const raw = await openRaw(world.url);
    await raw.write(head("OPTIONS /v1/devices", { origin: "https://portal.example" }));
    await raw.until(() => raw.statuses().length === 1);
    await raw.write(head(`DELETE /v1/api-keys/${made.body.data.keyId}`, owner.headers("")));
    await raw.until(() => raw.statuses().length === 2);
    expect(raw.statuses()).toEqual(["204", "204"]);
    expect(raw.seen.text).not.toMatch(/^content-length/im);
    await raw.write(head("GET /v1/health/live"));
    await raw.until(() => raw.statuses().length === 3);
    raw.end();
  });

  test("no answer names the server's software", async () => {
    for (const [method, path] of [
      ["GET", "/v1/info"],
      ["HEAD", "/v1/info"],
      ["OPTIONS", "/v1/info"],
      ["GET", "/nowhere"],
      ["GET", "/v1/docs"],
      ["GET", "/v1/agent/connect"],
    ] as const)
      expect(
        [...(await world.call(anonymous, method, path)).headers].filter(([name, value]) => /uwebsockets|^server$|^x-powered-by$/i.test(`${name} ${value}`)),
      ).toEqual([]);
  });

  test("the caller's request id is kept if it is well formed and replaced otherwise", async () => {
    expect((await get("/v1/info", { "x-request-id": "my-request-0001" })).headers.get("x-request-id")).toBe("my-request-0001");
    for (const bad of ["short", "x".repeat(65), "has spaces in it", "semi;colon;1"])
      expect((await get("/v1/info", { "x-request-id": bad })).headers.get("x-request-id")).toMatch(/^req_/);
  });
});

describe("agent socket address", () => {
  const UPGRADE = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
  const asked = (method: string, headers: Readonly<Record<string, string>>) => rawCall(world.url, [head(`${method} /v1/agent/connect`, headers)]);

  test("a request that does not upgrade to a WebSocket gets 426 with the version to use", async () => {
    for (const [method, headers] of [
      ["GET", {}],
      ["GET", { ...UPGRADE, upgrade: "h2c" }],
      ["POST", { ...UPGRADE, "content-length": "0" }],
    ] as const) {
      const { answer } = await asked(method, headers);
      expect([answer?.status, answer?.body.code, answer?.body.details.reason]).toEqual([426, "PROTOCOL_UNSUPPORTED", "no_upgrade"]);
      expect([answer?.headers.get("upgrade"), answer?.headers.get("sec-websocket-version")]).toEqual(["websocket", "13"]);
    }
    expect((await asked("GET", { ...UPGRADE, "sec-websocket-version": "8" })).answer?.body.details.reason).toBe("websocket_version");
  });

  test.each([undefined, "", "short", "dGhlIHNhbXBsZSBub25jZQ", `${"A".repeat(40)}==`])("an upgrade with the WebSocket key %j is refused", async (key) => {
    const { answer } = await asked("GET", { ...UPGRADE, ...(key === undefined ? {} : { "sec-websocket-key": key }) });
    expect([answer?.status, answer?.body.code, answer?.body.details.reason]).toEqual([400, "VALIDATION_FAILED", "websocket_key"]);
  });
});

describe("browsers", () => {
  test("a preflight needs no credential", async () => {
    const answer = await world.call(anonymous, "OPTIONS", "/v1/devices", {
      headers: { origin: "https://portal.example", "access-control-request-method": "GET", "access-control-request-headers": "authorization,idempotency-key" },
    });
    expect([answer.status, answer.body]).toEqual([204, null]);
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    expect(answer.headers.get("access-control-allow-headers")).toBe("authorization,idempotency-key");
    expect(answer.headers.get("access-control-allow-methods")).toContain("PATCH");
  });

  test("browsers may read answers and refusals from any origin, with the headers that matter", async () => {
    for (const path of ["/v1/devices", "/v1/nowhere", "/trpc/devices.list", "/v1/openapi.json"]) {
      const answer = await get(path, { origin: "https://portal.example" });
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect(answer.headers.get("access-control-expose-headers")).toContain("Retry-After");
    }
  });

  test("a line break in a request header adds no header to the answer", async () => {
    const { text } = await rawCall(world.url, [head("OPTIONS /v1/info", { origin: "https://a", "access-control-request-headers": "a\nset-cookie: evil=1" })], {
      boundMs: 300,
    });
    expect(text).not.toMatch(/^set-cookie/im);
  });
});

describe("sizes", () => {
  test("a body with too large a Content-Length is refused before it arrives", async () => {
    const { answer } = await rawCall(world.url, [head("POST /v1/pairing/initiate", { ...JSON_TYPE, "content-length": "1048577" }), "{"]);
    expect([answer?.status, answer?.body.code, answer?.body.details]).toEqual([413, "PAYLOAD_TOO_LARGE", { maxBytes: 1_048_576 }]);
  });

  test("a chunked body is refused once it grows too large", async () => {
    const chunk = `c350\r\n${"a".repeat(50_000)}\r\n`;
    const { answer } = await rawCall(world.url, [
      head("POST /v1/pairing/initiate", { ...JSON_TYPE, "transfer-encoding": "chunked" }),
      ...Array.from({ length: 22 }, () => chunk),
    ]);
    expect([answer?.status, answer?.body.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
  });

  test("an operation's own body limit holds over REST and tRPC", async () => {
    const device = await tenant.device();
    const body = { deviceId: device.deviceId, metrics: { text: "x".repeat(17_000) } };
    const rest = await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/heartbeat`, { body });
    const trpc = await world.call(device.as, "POST", "/trpc/devices.heartbeat", { body });
    expect([rest.status, rest.body.details, trpc.status, trpc.body.error.data.app.details]).toEqual([413, { maxBytes: 16_384 }, 413, { maxBytes: 16_384 }]);
  });

  test("a body in one-byte chunks arrives whole", async () => {
    const body = JSON.stringify({ device_fingerprint: "in-pieces-0001" });
    const { answer } = await rawCall(world.url, [
      head("POST /v1/pairing/initiate", { ...JSON_TYPE, "transfer-encoding": "chunked" }),
      ...[...body].map((char) => `1\r\n${char}\r\n`),
      "0\r\n\r\n",
    ]);
    expect(answer?.status).toBe(201);
  });

  test("a head that arrives byte by byte is read", async () => {
    expect((await rawCall(world.url, [...head("GET /v1/health/live")])).answer?.status).toBe(200);
  });

  test("headers of 16 KiB pass, larger ones get 431, and the next call is served", async () => {
    expect((await rawCall(world.url, [head("GET /v1/info", { "x-much": "a".repeat(16_000) })])).answer?.status).toBe(200);
    const over = await rawCall(world.url, [head("GET /v1/info", { "x-much": "a".repeat(17_000) })], { untilClose: true });
    expect([over.answer?.status, over.closed]).toEqual([431, true]);
    expect((await get("/v1/info")).status).toBe(200);
  });

  test("an address of 8 KiB passes, a longer one gets 414", async () => {
    expect((await get(`/v1/devices?q=${"x".repeat(8_000)}`)).body.code).toBe("VALIDATION_FAILED");
    const over = await get(`/v1/devices?q=${"x".repeat(8_192)}`);
    expect([over.status, over.body.code, over.body.details]).toEqual([414, "URI_TOO_LONG", { maxBytes: 8_192 }]);
  });

  test("a repeated Content-Length closes the connection, and a request hidden behind it is not served", async () => {
    const start = head("POST /v1/pairing/initiate", [
      ["content-type", "application/json"],
      ["content-length", "2"],
      ["content-length", "40"],
    ]);
    const { answer, closed } = await rawCall(world.url, [start, "{}"], { untilClose: true });
    expect([answer?.status, answer?.body.details, closed]).toEqual([400, { reason: "repeated_header", header: "content-length" }, true]);
    const hidden = await rawCall(world.url, [`${start}{}${head("GET /v1/info")}`], { untilClose: true });
    expect(hidden.closed).toBe(true);
    expect(hidden.text).not.toContain("200 OK");
  });
});

describe("bodies", () => {
  test("a body must be declared as JSON", async () => {
    for (const type of ["text/plain", "application/xml", "multipart/form-data", "application/jsonx", ""]) {
      const answer = await create('{"name":"k"}', { "content-type": type });
      expect([type, answer.status, answer.body.code, answer.body.details]).toEqual([type, 415, "UNSUPPORTED_MEDIA_TYPE", { accepted: ["application/json"] }]);
    }
    for (const type of ["application/json; charset=utf-8", "Application/JSON"])
      expect((await create('{"name":"k"}', { "content-type": type })).status).toBe(201);
  });

  test.each(["{", "nul", '{"name":"k"}}', '{"name":"k",}', "{'name':'k'}"])("%j is malformed", async (body) => {
    const answer = await create(body);
    expect([answer.status, answer.body.code]).toEqual([400, "MALFORMED_JSON"]);
  });

  test("an answer carries the current date once", async () => {
    const before = Date.now();
    const said = Date.parse((await get("/v1/info")).headers.get("date") ?? "");
    // The header has whole seconds, and uWebSockets.js writes a new one each second.
    expect(said).toBeGreaterThanOrEqual(before - 2_500);
    expect(said).toBeLessThanOrEqual(Date.now());
  });

  test("a body that is not an object is refused", async () => {
    for (const body of ["[]", "null", "1", '"x"']) expect(issueOf(await create(body))).toMatchObject({ path: "body", message: "must be a JSON object" });
  });

  test("bytes that are not UTF-8 are refused", async () => {
    const answer = await create(Buffer.from([...Buffer.from('{"name":"'), 0xff, 0xfe, ...Buffer.from('"}')]));
    expect([answer.status, answer.body.code]).toEqual([400, "MALFORMED_JSON"]);
  });

  test.each([
    ["a NUL", '{"name":"a\\u0000b"}'],
    ["a lone surrogate", '{"name":"\\ud800"}'],
    ["a NUL in a key", '{"a\\u0000":1}'],
    ["deep nesting", `{"name":${"[".repeat(400_000)}${"]".repeat(400_000)}}`],
    ["endless nesting", "[".repeat(1_000_000)],
    ["an object with 10,001 keys", JSON.stringify({ name: Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [index, 1])) })],
  ])("a body with %s is refused", async (_, body) => {
    const answer = await create(body);
    expect(answer.status).toBe(400);
    expect(["VALIDATION_FAILED", "MALFORMED_JSON"]).toContain(answer.body.code);
  });

  test("no key of a body reaches a prototype", async () => {
    for (const body of ['{"name":"k","__proto__":{"role":"owner"}}', '{"name":"k","constructor":{"prototype":{"polluted":true}}}'])
      expect((await create(body)).body.code).toBe("VALIDATION_FAILED");
    const device = await tenant.device();
    const queued = await world.call(owner, "POST", `/v1/devices/${device.deviceId}/commands`, {
      rawBody: '{"type":"echo","payload":{"__proto__":{"polluted":true},"kept":1}}',
    });
    expect([queued.status, queued.body.details.reason]).toEqual([400, "unstorable"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("a body that contradicts its path is refused", async () => {
    const { deviceId } = await tenant.device();
    const answer = await world.call(owner, "PATCH", `/v1/devices/${deviceId}`, { body: { deviceId: "dev_other", name: "x" } });
    expect([answer.status, issueOf(answer)?.path]).toEqual([400, "body.deviceId"]);
  });

  test("a body on GET is ignored", async () => {
    const { answer } = await rawCall(world.url, [head("GET /v1/info", { ...JSON_TYPE, "content-length": "7" }), "garbage"]);
    expect(answer?.status).toBe(200);
  });
});

describe("queries and paths", () => {
  test.each([
    ["page=1&page=2", "query.page"],
    ["%ZZ=1", "query"],
    ["q=%E0%A4%A", "query.q"],
    ["q=%00", ""],
    ["page=0", "page"],
    ["pageSize=101", "pageSize"],
    ["page=1.5", "page"],
    ["page=one", "page"],
    ["offset=-1", "offset"],
    ["offset=100001", "offset"],
    [Array.from({ length: 101 }, (_, index) => `a${index}=1`).join("&"), "query"],
  ])("the query ?%s is refused, and the answer names the place", async (query, path) => {
    const answer = await get(`/v1/devices?${query}`);
    expect([answer.status, answer.body.code, issueOf(answer)?.path]).toEqual([400, "VALIDATION_FAILED", path]);
  });

  test("unknown query keys are refused, so a typo never widens a result", async () => {
    for (const query of ["statsu=online", "__proto__=1", "constructor=1", "page="]) expect((await get(`/v1/devices?${query}`)).status).toBe(400);
    expect((await world.call(owner, "POST", "/v1/api-keys?name=x", { body: { name: "k" } })).status).toBe(400);
  });

  test("a query cannot mix the two styles of paging", async () => {
    expect((await get("/v1/devices?page=1&limit=5")).body.details.reason).toBe("mixed_pagination");
  });

  test("broken percent-encoding or a NUL in a path answers 400", async () => {
    expect(issueOf(await get("/v1/devices/%E0%A4%A"))?.path).toBe("path.deviceId");
    expect((await get("/v1/devices/%00")).body.details.reason).toBe("unstorable");
    expect((await get("/trpc/%E0%A4%A,devices.list?batch=1")).status).toBe(400);
  });

  test("a list links its other pages in the caller's own paging style", async () => {
    await tenant.device();
    await tenant.device();
    const pages = (await get("/api/v1/devices?page=2&pageSize=1")).headers.get("link");
    expect(pages).toMatch(/^<\/v1\/devices\?page=1&pageSize=1>; rel="first", <\/v1\/devices\?page=1&pageSize=1>; rel="prev"/);
    expect((await get("/v1/hosts?limit=1")).headers.get("link")).toContain('</v1/hosts?limit=1&offset=1>; rel="next"'.replace("\\", ""));
  });

  test("a change with a stale If-Match is refused", async () => {
    const { deviceId } = await tenant.device();
    const change = (version: string) => world.call(owner, "PATCH", `/v1/devices/${deviceId}`, { body: { name: "x" }, headers: { "if-match": version } });
    const { body } = await change('"1"');
    expect([body.data.name, body.data.version]).toEqual(["x", 2]);
    const stale = await change('"1"');
    expect([stale.status, stale.body.code, stale.body.details]).toEqual([409, "VERSION_CONFLICT", { currentVersion: 2 }]);
    expect(issueOf(await change('"one"'))?.path).toBe("header.if-match");
  });
});

describe("credentials", () => {
  const refused = (headers: readonly (readonly [string, string])[]) =>
    rawCall(world.url, [head("GET /v1/devices", headers)]).then(({ answer }) => [answer?.status, answer?.body.code, answer?.body.details?.reason]);

  test("a repeated credential header is refused, even if both are valid", async () => {
    const token = `Bearer ${await tenant.token()}`;
    expect(
      await refused([
        ["authorization", token],
        ["authorization", token],
      ]),
    ).toEqual([400, "VALIDATION_FAILED", "repeated_header"]);
    expect(
      await refused([
        ["authorization", token],
        ["x-svc-tenant-id", tenant.tenantId],
        ["X-Svc-Tenant-Id", "ten_other"],
      ]),
    ).toEqual([400, "VALIDATION_FAILED", "repeated_header"]);
  });

  test("two kinds of credential at once are refused", async () => {
    const token = `Bearer ${await tenant.token()}`;
    const key = Object.entries(tenant.apiKey.headers(""));
    expect(await refused([["authorization", token], ...key])).toEqual([400, "VALIDATION_FAILED", "multiple_credentials"]);
    expect(
      await refused([
        ["authorization", token],
        ["x-svc-signature", "0"],
      ]),
    ).toEqual([400, "VALIDATION_FAILED", "multiple_credentials"]);
    expect(await refused([...key, ["x-svc-agent-id", "agt_1"]])).toEqual([400, "VALIDATION_FAILED", "multiple_credentials"]);
  });

  test("an incomplete credential is refused with the reason", async () => {
    expect(await refused([["authorization", "Basic abc"]])).toEqual([401, "UNAUTHORIZED", "malformed"]);
    expect(await refused([["x-api-key", "svk_x"]])).toEqual([401, "UNAUTHORIZED", "missing_tenant_header"]);
    expect(await refused([["x-svc-signature", "0"]])).toEqual([401, "UNAUTHORIZED", "missing_header"]);
    expect(await refused([])).toEqual([401, "UNAUTHORIZED", "missing"]);
  });

  test("a caller without a credential gets 401 before the body is parsed", async () => {
    const answer = await world.call(anonymous, "POST", "/v1/api-keys", { rawBody: "{" });
    expect([answer.status, answer.body.code]).toEqual([401, "UNAUTHORIZED"]);
  });
});

test("unfinished uploads do not delay the close", async () => {
  const other = await startWorld({ SHUTDOWN_SECONDS: "60" });
  await Promise.all(
    Array.from({ length: 5 }, () => rawCall(other.url, [head("POST /v1/pairing/initiate", { ...JSON_TYPE, "content-length": "10" }), "{"], { boundMs: 200 })),
  );
  await withTimeout(other.close(), 20_000, "the gateway did not close");
});
