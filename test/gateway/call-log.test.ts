// One log line per request and one trace from the call to the ack: an operator finds them with nothing but a request id or a trace id.
import { request as httpRequest } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { HEADERS } from "../../protocol/index.ts";
import type { Log } from "../../server/platform/telemetry/log.ts";
import { type AgentSocket, attempt, connect, greet } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { anonymous, asBearer, type Device, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

interface Line {
  readonly message: string;
  readonly level: keyof Log;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever was logged
  readonly [field: string]: any;
}
const lines: Line[] = [];
const noted =
  (level: keyof Log) =>
  (fields: object, message: string): void =>
    void lines.push({ ...fields, message, level });
const log: Log = { debug: noted("debug"), info: noted("info"), warn: noted("warn"), error: noted("error") };

let world: World;
let tenant: TestTenant;
let device: Device;
beforeAll(async () => {
  world = await startWorld(
    { RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_FAILED_AUTH: "off", RATE_LIMIT_CONNECT: "off", RATE_LIMIT_PAIRING: "off", ACCEPT_PER_SECOND: "2000" },
    { log },
  );
  tenant = await world.tenant();
  device = await tenant.device();
});
afterAll(() => world.close());
beforeEach(() => {
  lines.length = 0;
});

const about = (requestId: string | null): readonly Line[] => lines.filter((line) => line["requestId"] === requestId);
const calls = (): readonly Line[] => lines.filter(({ message }) => message.startsWith("call"));

describe("log lines", () => {
  const big = "x".repeat(1_100_000);
  type Refusal = readonly [string, string, string, { readonly headers?: Record<string, string>; readonly rawBody?: string }, number, string];
  const refusals: readonly Refusal[] = [
    ["an unknown route", "GET", "/v1/nowhere", {}, 404, "NOT_FOUND"],
    ["a path outside every prefix", "GET", "/elsewhere", {}, 404, "NOT_FOUND"],
    ["a wrong method", "PUT", "/api/v1/tenants", {}, 405, "METHOD_NOT_ALLOWED"],
    ["a wrong content type", "POST", "/v1/pairing/initiate", { rawBody: "a=1", headers: { "content-type": "text/plain" } }, 415, "UNSUPPORTED_MEDIA_TYPE"],
    ["malformed JSON", "POST", "/v1/pairing/initiate", { rawBody: "{" }, 400, "MALFORMED_JSON"],
    ["a body too large", "POST", "/v1/pairing/initiate", { rawBody: JSON.stringify({ big }) }, 413, "PAYLOAD_TOO_LARGE"],
    ["half a credential", "GET", "/v1/devices", { headers: { "x-api-key": "svc_live_x" } }, 401, "UNAUTHORIZED"],
    ["half a signature", "GET", "/v1/devices", { headers: { [HEADERS.agentId]: "agt_x" } }, 401, "UNAUTHORIZED"],
    ["two credentials", "GET", "/v1/devices", { headers: { authorization: "Bearer x", "x-api-key": "y" } }, 400, "VALIDATION_FAILED"],
    ["no credential", "GET", "/v1/devices", {}, 401, "UNAUTHORIZED"],
    ["an agent address without an upgrade", "GET", "/v1/agent/connect", {}, 426, "PROTOCOL_UNSUPPORTED"],
    ["an address too long", "GET", `/v1/devices?q=${"y".repeat(8_200)}`, {}, 414, "URI_TOO_LONG"],
    ["an unknown procedure", "GET", "/trpc/no.where", {}, 404, "NOT_FOUND"],
    ["a procedure with the wrong method", "POST", "/trpc/devices.list", { rawBody: "{}" }, 405, "METHOD_NOT_ALLOWED"],
    ["a broken batch", "GET", "/trpc/devices.list,devices.list?batch=1&input=%7B", {}, 400, "MALFORMED_JSON"],
  ];
  const idOf = (body: { requestId?: string; error?: { data?: { app?: { requestId?: string } } } } | null, headers: Headers): string | null =>
    body?.requestId ?? body?.error?.data?.app?.requestId ?? headers.get("x-request-id");

  test("every refusal leaves exactly one line with its request id, status and code", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...refusals), fc.option(fc.stringMatching(/^[A-Za-z0-9_-]{8,64}$/), { nil: undefined }), async (refusal, given) => {
        const [, method, path, { headers = {}, ...rest }, status, code] = refusal;
        lines.length = 0;
        const answer = await world.call(anonymous, method, path, {
          headers: { ...headers, ...(given === undefined ? {} : { "x-request-id": given }) },
          ...rest,
        });
        expect(answer.status).toBe(status);
        const requestId = idOf(answer.body, answer.headers);
        expect(requestId).toEqual(given ?? expect.stringMatching(/^req_/));
        expect(about(requestId)).toHaveLength(1);
        expect(about(requestId)[0]).toMatchObject({ message: "call", level: "info", status, code, method });
      }),
      { numRuns: 60, examples: refusals.map((refusal): [Refusal, undefined] => [refusal, undefined]) },
    );
  });

  test("a call's line names operation, tenant and caller, but no headers, paths or queries", async () => {
    const { headers } = await world.call(tenant.apiKey, "GET", `/v1/devices/${device.deviceId}?`);
    const [line, ...more] = about(headers.get("x-request-id"));
    expect(more).toEqual([]);
    expect(line).toMatchObject({
      operations: ["devices.get"],
      transport: "rest",
      status: 200,
      code: null,
      tenantId: tenant.tenantId,
      actor: expect.stringMatching(/^key_/),
    });
    expect(Object.keys(line ?? {}).sort()).toEqual(
      ["message", "level", "requestId", "method", "status", "code", "operations", "transport", "tenantId", "actor", "durationMs"].sort(),
    );
  });

  test("a batch leaves one line that names its procedures", async () => {
    const token = await tenant.token();
    const answer = await world.call(
      asBearer(token),
      "GET",
      "/trpc/devices.list,devices.stats,no.where?batch=1&input=%7B%220%22%3A%7B%7D%2C%221%22%3A%7B%7D%7D",
    );
    expect(calls()).toHaveLength(1);
    expect(calls()[0]).toMatchObject({ status: answer.status, requestId: answer.headers.get("x-request-id"), code: "NOT_FOUND", transport: "trpc" });
    expect(calls()[0]?.["operations"]).toContain("devices.list");
  });

  test("a peer that disconnects before the end of its body leaves a line, not an error", async () => {
    const { hostname, port } = new URL(world.url);
    const headers = { "content-type": "application/json", "content-length": "1000" };
    const left = httpRequest({ hostname, port, method: "POST", path: "/v1/pairing/initiate", headers });
    left.on("error", () => undefined);
    left.write('{"device_');
    await new Promise((resolve) => left.once("finish", resolve).once("socket", (socket) => socket.once("connect", () => setImmediate(resolve))));
    left.destroy();
    await eventually(() => expect(calls()).toHaveLength(1));
    expect(calls()[0]).toMatchObject({ level: "info", status: null, code: null, aborted: true });
  });

  test("each accepted upgrade leaves a line, and a flood of refused ones leaves a sample with the count of the rest", async () => {
    const socket = await connect(at(), device);
    expect(lines.find(({ message }) => message === "accepted an agent socket")).toMatchObject({
      deviceId: device.deviceId,
      tenantId: tenant.tenantId,
      requestId: expect.any(String),
    });
    socket.end();
    const wrong = { ...device, identity: { ...device.identity, secret: "wrong" } };
    const one = await attempt(at(), wrong);
    expect(lines.find(({ message }) => message === "refused an agent socket")).toMatchObject({
      requestId: "body" in one ? one.body.requestId : null,
      status: 401,
      reason: "bad_signature",
    });
    await Promise.all(Array.from({ length: 200 }, () => attempt(at(), wrong)));
    await eventually(async () => {
      await attempt(at(), wrong);
      const refused = lines.filter(({ message }) => message === "refused an agent socket");
      expect(refused.length).toBeLessThan(180);
      expect(refused.reduce((sum, { unlogged = 0 }) => sum + unlogged, 0)).toBeGreaterThan(20);
    });
  });
});

const at = () => ({ url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } });
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
/** The call's own span is the parent of what it causes. */
const CONTINUED = new RegExp(`^00-${TRACE_ID}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`);

describe("traces", () => {
  // With a queue and a socket of its own.
  beforeEach(async () => {
    device = await tenant.device();
  });

  const queue = async (traceparent: string, transport: "rest" | "trpc" = "rest"): Promise<string> => {
    const headers = { traceparent };
    const input = { type: "ping" };
    const answer =
      transport === "rest"
        ? await world.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands`, { headers, body: input })
        : await world.call(tenant.apiKey, "POST", "/trpc/commands.queue", { headers, body: { deviceId: device.deviceId, ...input } });
    expect(answer.status).toBeLessThan(300);
    return answer.body.data?.commandId ?? answer.body.result.data.commandId;
  };
  const traced = (commandId: string): readonly string[] =>
    lines.filter((line) => line.message === "command" && line["commandId"] === commandId && line["traceId"] === TRACE_ID).map((line) => line["to"]);
  const timelineOf = async (commandId: string) => (await world.call(tenant.apiKey, "GET", `/v1/commands/${commandId}/timeline`)).body.data;
  const online = async (): Promise<AgentSocket> => {
    const socket = await connect(at(), device);
    await greet(at(), socket, device);
    return socket;
  };

  test.each(["rest", "trpc"] as const)("one trace follows a command that is queued over %s through delivery and ack over a socket", async (transport) => {
    const socket = await online();
    const commandId = await queue(TRACEPARENT, transport);
    const { data } = await socket.next("command");
    expect(data.delivery.traceparent).toMatch(CONTINUED);
    socket.say("ack", { commandId, status: "received" });
    await socket.next("ack_ok");
    socket.say("ack", { commandId, status: "succeeded" });
    await socket.next("ack_ok");
    expect(calls().find((line) => line["operations"].includes("commands.queue"))).toMatchObject({ traceId: TRACE_ID });
    expect(traced(commandId)).toEqual(["sent", "acknowledged", "succeeded"]);
    expect(await timelineOf(commandId)).toMatchObject({ traceparent: expect.stringMatching(CONTINUED), status: "succeeded" });
    socket.end();
  });

  test("one trace follows a command through delivery and ack over polls", async () => {
    const commandId = await queue(TRACEPARENT);
    // For a moment a command is left to the socket of the test before, if the database still shows it.
    const polled = await eventually(async () => {
      const { data } = (await world.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands`)).body;
      expect(data).not.toEqual([]);
      return data;
    });
    expect(polled).toMatchObject([{ commandId, delivery: { traceparent: expect.stringMatching(CONTINUED) } }]);
    const ack = await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status: "succeeded" } });
    expect(ack.status).toBe(200);
    expect(traced(commandId)).toEqual(["sent", "succeeded"]);
    expect(await timelineOf(commandId)).toMatchObject({ traceparent: expect.stringMatching(CONTINUED) });
  });

  test("a traceparent of a later version is read as far as version 00 goes", async () => {
    const commandId = await queue(`cc-${TRACE_ID}-00f067aa0ba902b7-01-what-is-yet-to-come`);
    expect(await timelineOf(commandId)).toMatchObject({ traceparent: expect.stringMatching(CONTINUED) });
  });

  test.each([
    ["a meaningless traceparent", "nonsense"],
    ["a traceparent in capitals", TRACEPARENT.toUpperCase()],
    ["a traceparent with an empty trace id", `00-${"0".repeat(32)}-00f067aa0ba902b7-01`],
    ["a traceparent with an empty parent id", `00-${TRACE_ID}-${"0".repeat(16)}-01`],
    ["a traceparent of the forbidden version", `ff-${TRACE_ID}-00f067aa0ba902b7-01`],
    ["a traceparent of version 00 with a suffix", `${TRACEPARENT}-more`],
  ])("%s is ignored, not refused", async (_, given) => {
    const commandId = await queue(given);
    expect(await timelineOf(commandId)).toMatchObject({ traceparent: null });
    expect(lines.filter((line) => line["traceId"] !== undefined)).toEqual([]);
  });
});
