// OTLP over HTTP as exporters speak it: the stock exporters in programs of their own, protobuf and gzip, and bodies that are broken in every way.
import { execFile } from "node:child_process";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import protobuf from "protobufjs/light.js";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { decodeOtlp, encodeOtlp } from "../../../server/gateway/rest/otlp-messages.ts";
import { asKey, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { nanos, newSpanId, newTraceId, readTrace, request, span } from "./kit.ts";

const run = promisify(execFile);
const PROTOBUF = "application/x-protobuf";
let world: World;
let tenant: TestTenant;
beforeAll(async () => {
  world = await startWorld({}, { settings: { withoutJobs: true } });
}, 120_000);
// A limit of calls is the tenant's.
beforeEach(async () => {
  tenant = await world.tenant();
});
afterAll(() => world.close());

const keyHeaders = (as: Caller) => as.headers("");
const post = async (body: Uint8Array | string, headers: Record<string, string>) => {
  const response = await fetch(`${world.url}/v1/traces`, { method: "POST", body: body as string, headers: { ...keyHeaders(tenant.apiKey), ...headers } });
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    retryAfter: response.headers.get("retry-after"),
    bytes: Buffer.from(await response.arrayBuffer()),
  };
};
const bytesOf = (hex: string): Buffer => Buffer.from(hex, "hex");
const encodedSpan = (more: object = {}): { traceId: string; bytes: Uint8Array } => {
  const traceId = newTraceId();
  const fields = { traceId: bytesOf(traceId), spanId: bytesOf(newSpanId()), name: Buffer.from("encoded"), kind: 2 };
  const times = { startTimeUnixNano: nanos(Date.now() - 2_000), endTimeUnixNano: nanos(Date.now() - 1_000) };
  return { traceId, bytes: encodeOtlp("Span", { ...fields, ...times, ...more }) };
};
const encodedRequest = (spans: readonly Uint8Array[]): Uint8Array => encodeOtlp("Request", { resourceSpans: [{ scopeSpans: [{ spans }] }] });

describe.each(["@opentelemetry/exporter-trace-otlp-proto", "@opentelemetry/exporter-trace-otlp-http"])("%s", (exporter) => {
  const program = async (env: Record<string, string>) => {
    const file = join(import.meta.dirname, "exporter-program.mjs");
    const { stdout } = await run(process.execPath, [file, exporter], { env: { PATH: process.env["PATH"], OTEL_EXPORTER_OTLP_ENDPOINT: world.url, ...env } });
    return JSON.parse(stdout) as { traceId: string; failures: string[] };
  };

  test.each([
    ["x-api-key and tenant", (key: Record<string, string>) => `x-api-key=${key["x-api-key"]},x-svc-tenant-id=${key["x-svc-tenant-id"]}`],
    ["a bearer token", (key: Record<string, string>) => `Authorization=Bearer%20${key["x-api-key"]}`],
  ])("sends spans with an API key as %s", async (_, headersOf) => {
    const headers = headersOf(keyHeaders(tenant.apiKey));
    const compression = headers.startsWith("x-") ? "gzip" : "none";
    const env = { OTEL_EXPORTER_OTLP_HEADERS: headers, OTEL_EXPORTER_OTLP_COMPRESSION: compression, OTEL_RESOURCE_ATTRIBUTES: "service.name=program" };
    const { traceId, failures } = await program(env);
    expect(failures).toEqual([]);
    const trace = await readTrace(world, tenant.apiKey, traceId);
    expect(trace).toMatchObject({ rootService: "program", rootOperation: "program run", spanCount: 2, errorCount: 1 });
    const [outer, inner] = ["program run", "program step"].map((name) => trace.spans.find(({ operation }: { operation: string }) => operation === name));
    expect(outer.attributes).toEqual({ files: 3, ratio: 0.5, names: ["a", "b"] });
    expect(inner).toMatchObject({ parentSpanId: outer.spanId, status: "error", statusMessage: "step failed", events: [{ name: "exception" }] });
  });

  test("learns of a wrong key", async () => {
    const { failures } = await program({ OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Bearer%20svk_wrong" });
    expect(failures.join()).toContain("Unauthorized");
  });
});

describe("protobuf", () => {
  test("is answered in protobuf, success and refusal alike", async () => {
    const { traceId, bytes } = encodedSpan();
    const stored = await post(encodedRequest([bytes]), { "content-type": PROTOBUF });
    expect([stored.status, stored.type, stored.bytes.length]).toEqual([200, PROTOBUF, 0]);
    expect(await readTrace(world, tenant.apiKey, traceId)).toMatchObject({ spanCount: 1, rootOperation: "encoded" });
    const broken = await post(Buffer.from([0x0a, 0xff]), { "content-type": PROTOBUF });
    expect([broken.status, broken.type]).toEqual([400, PROTOBUF]);
    expect(decodeOtlp("RpcStatus", broken.bytes)).toMatchObject({ code: 3, message: expect.stringContaining("VALIDATION_FAILED") });
    const refused = await post(encodedRequest([]), { "content-type": PROTOBUF, "x-api-key": "svk_wrong" });
    expect([refused.status, decodeOtlp("RpcStatus", refused.bytes)["code"]]).toEqual([401, 16]);
  });

  test("a broken span costs itself alone", async () => {
    const good = encodedSpan();
    const bad = [
      Buffer.from([0x0a, 0x10, 0x01]),
      Buffer.from("ffffffffffffffffffffff", "hex"),
      encodedSpan({ traceId: bytesOf("12") }).bytes,
      encodedSpan({ spanId: bytesOf("1234567890123456ff") }).bytes,
      encodedSpan({ parentSpanId: bytesOf("12") }).bytes,
    ];
    const answer = await post(encodedRequest([...bad, good.bytes]), { "content-type": PROTOBUF });
    expect(answer.status).toBe(200);
    const { rejectedSpans } = decodeOtlp("Response", answer.bytes)["partialSuccess"] as { rejectedSpans: protobuf.Long };
    expect(Number(rejectedSpans)).toBe(bad.length);
    expect((await readTrace(world, tenant.apiKey, good.traceId)).spanCount).toBe(1);
  });

  test("broken text and values without end are kept as far as they go", async () => {
    const lengthOf = (bytes: Uint8Array): number[] => {
      const writer = protobuf.Writer.create();
      return [...writer.uint32(bytes.length).finish()];
    };
    let deep: Uint8Array = encodeOtlp("AnyValue", { intValue: "-9223372036854775808" });
    for (let depth = 0; depth < 500; depth += 1) deep = encodeOtlp("AnyValue", { arrayValue: Buffer.concat([Buffer.from([0x0a, ...lengthOf(deep)]), deep]) });
    const value = protobuf.Writer.create().uint32(0x0a).bytes(Buffer.from("deep")).uint32(0x12).bytes(deep).finish();
    const { traceId, bytes } = encodedSpan({ name: Buffer.from([0x61, 0xed, 0xa0, 0x80, 0x00]) });
    const withDeep = Buffer.concat([
      bytes,
      protobuf.Writer.create()
        .uint32((9 << 3) | 2)
        .bytes(value)
        .finish(),
    ]);
    expect((await post(encodedRequest([withDeep]), { "content-type": PROTOBUF })).status).toBe(200);
    const { spans } = await readTrace(world, tenant.apiKey, traceId);
    expect(spans[0].operation.startsWith("a\ufffd")).toBe(true);
    expect(spans[0].attributes).toEqual({ deep: [[[[null]]]] });
  });

  test("no random bytes bring the gateway to a 500", async () => {
    const body = Buffer.from(encodedRequest([encodedSpan().bytes, encodedSpan().bytes]));
    let seed = 7;
    const random = (): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 0x7fffffff;
      return seed;
    };
    const statuses = new Set<number>();
    for (let round = 0; round < 80; round += 1) {
      const torn = Buffer.from(body.subarray(0, 1 + (random() % body.length)));
      for (let change = 0; change < 4; change += 1) torn[random() % torn.length] = random() % 256;
      statuses.add((await post(torn, { "content-type": PROTOBUF, "x-forwarded-for": "" })).status);
    }
    expect([...statuses].filter((status) => ![200, 400, 429].includes(status))).toEqual([]);
  });
});

describe("bodies", () => {
  const json = { "content-type": "application/json" };

  test("gzip is read, and a bomb is refused before it is unpacked", async () => {
    const sent = span();
    const zipped = gzipSync(JSON.stringify(request([sent])));
    expect((await post(zipped, { ...json, "content-encoding": "gzip" })).status).toBe(200);
    expect((await readTrace(world, tenant.apiKey, sent.traceId)).spanCount).toBe(1);
    const bomb = gzipSync(Buffer.alloc(64_000_000));
    const refused = await post(bomb, { "content-type": PROTOBUF, "content-encoding": "gzip" });
    expect([refused.status, decodeOtlp("RpcStatus", refused.bytes)["code"]]).toEqual([413, 8]);
    expect((await post(zipped.subarray(0, 40), { ...json, "content-encoding": "gzip" })).status).toBe(400);
    expect((await post("no gzip", { ...json, "content-encoding": "gzip" })).status).toBe(400);
    expect((await post(zipped, { ...json, "content-encoding": "br" })).status).toBe(415);
  });

  test.each([
    ["no JSON", "{", 400],
    ["an array", "[]", 400],
    ["resourceSpans of another type", '{"resourceSpans":7}', 400],
    ["nothing", "", 200],
    ["an empty object", "{}", 200],
    ["null", '{"resourceSpans":[null]}', 200],
    ["__proto__", '{"__proto__":{"resourceSpans":[]},"resourceSpans":[{"__proto__":{"scopeSpans":[]}}]}', 200],
    ["a depth of 100,000", `{"resourceSpans":[${"[".repeat(100_000)}${"]".repeat(100_000)}]}`, 200],
    ["more than 4 MiB", `{"x":"${"x".repeat(4_200_000)}"}`, 413],
  ])("%s is answered clearly", async (_, body, status) => {
    expect((await post(body, json)).status).toBe(status);
  });

  test("another media type is refused", async () => {
    expect((await post("a=b", { "content-type": "application/x-www-form-urlencoded" })).status).toBe(415);
  });

  test("a body that breaks off stores nothing and hurts nobody", async () => {
    const whole = JSON.stringify(request([span()]));
    const { port } = new URL(world.url);
    const headers = Object.entries({ ...keyHeaders(tenant.apiKey), ...json, host: "x", "content-length": String(whole.length) });
    await new Promise<void>((resolve, reject) => {
      const socket = connect(Number(port), "127.0.0.1", () => {
        socket.write(`POST /v1/traces HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${whole.slice(0, 50)}`);
        socket.end();
      });
      socket.on("close", () => resolve());
      socket.on("error", reject);
      socket.resume();
    });
    const { body } = await world.call(tenant.apiKey, "GET", "/v1/traces");
    expect(body.data).toEqual([]);
  });

  test("too many calls are told when to come back, in protobuf too", async () => {
    await world.sql.query(`update tenants set rate_limit_overrides = '{"traces": 1}' where tenant_id = $1`, [tenant.tenantId]);
    const headers = { "content-type": PROTOBUF };
    // Not even unpacked then.
    const bomb = gzipSync(Buffer.alloc(8_000_000));
    const answers = [await post(encodedRequest([]), headers), await post(bomb, { ...headers, "content-encoding": "gzip" })];
    expect(answers.map(({ status }) => status)).toEqual([200, 429]);
    expect(Number(answers[1]?.retryAfter)).toBeGreaterThan(0);
  });
});

test("a key of another tenant cannot name this one", async () => {
  const other = await world.tenant();
  const { "x-api-key": key = "" } = keyHeaders(other.apiKey);
  const answer = await world.call(asKey(key, tenant.tenantId), "POST", "/v1/traces", { body: request([span()]) });
  expect(answer.status).toBe(403);
});
