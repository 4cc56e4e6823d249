// Version 2 of the agents' signature: it proves one request, once, and nothing else.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAgent, createHttp, createMemoryJournal, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { HEADERS_V2, signedHeaders, signedHeadersV2 } from "../../../protocol/index.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type Answer, type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let device: Device;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_FAILED_AUTH: "off", RATE_LIMIT_AGENT: "off" });
  tenant = await world.tenant();
  device = await tenant.device();
});
afterAll(() => world.close());

let last = Date.now();
const moment = (aheadMs = 0): Date => {
  last = Math.max(last + 1, Date.now());
  return new Date(last + aheadMs);
};
const fixed = (headers: Record<string, string>): Caller => ({ kind: "agent", headers: () => headers });
const sign = (method: string, target: string, body = "", at = moment()) => signedHeadersV2(device.identity, { method, target, body }, at);
const verdict = ({ status, body }: Answer) => (status < 300 ? status : [status, body.code, body.error.details.reason]);
const ME = "/v1/agent/me";

test("a v2 signature is accepted under both prefixes, and the answer names the supported versions", async () => {
  const answer = await world.call(fixed(sign("GET", ME)), "GET", ME);
  expect([answer.status, answer.headers.get("x-svc-sig-versions")]).toEqual([200, "1,2"]);
  expect((await world.call(fixed(sign("GET", ME)), "GET", `/api${ME}`)).status).toBe(200);
  expect((await world.call(tenant.apiKey, "GET", "/v1/devices")).headers.get("x-svc-sig-versions")).toBe("1,2");
});

test.each([HEADERS_V2.version, HEADERS_V2.nonce, HEADERS_V2.signature])(
  "a v2 request without %s is refused although its v1 signature is valid",
  async (name) => {
    const { [name]: _, ...rest } = sign("GET", ME);
    expect(verdict(await world.call(fixed(rest), "GET", ME))).toEqual([401, "UNAUTHORIZED", "missing_header"]);
  },
);

test.each([
  ["a v2 request with another version", { [HEADERS_V2.version]: "3" }],
  ["a v2 request with a wrong signature", { [HEADERS_V2.signature]: "0".repeat(64) }],
  ["a v2 request with another nonce", { [HEADERS_V2.nonce]: "AAECAwQFBgcICQoLDA0ODw" }],
  ["a v2 request with a malformed nonce", { [HEADERS_V2.nonce]: "short" }],
])("%s is refused although its v1 signature is valid", async (_, change) => {
  expect(verdict(await world.call(fixed({ ...sign("GET", ME), ...change }), "GET", ME))).toEqual([401, "INVALID_SIGNATURE", "bad_signature"]);
});

test("a key id alone makes the gateway demand a v2 signature", async () => {
  expect((await world.call(fixed({ ...signedHeaders(device.identity, "", moment()), [HEADERS_V2.keyId]: "k_1" }), "GET", ME)).status).toBe(401);
});

test("a v2 signature holds only for its own path and query", async () => {
  const path = `/v1/devices/${device.deviceId}/commands`;
  const headers = sign("GET", `${path}?limit=1`);
  expect(verdict(await world.call(fixed(headers), "GET", `${path}?limit=2`))).toEqual([401, "INVALID_SIGNATURE", "bad_signature"]);
  expect(verdict(await world.call(fixed(headers), "GET", ME))).toEqual([401, "INVALID_SIGNATURE", "bad_signature"]);
  // A refused request does not use up the nonce.
  expect((await world.call(fixed(headers), "GET", `${path}?limit=1`)).status).toBe(200);
});

test("a nonce is good for one request, be it a read, a heartbeat or a change, whatever its request id", async () => {
  const heartbeat = JSON.stringify({ status: "online" });
  const calls = [
    ["GET", ME, ""],
    ["POST", `/v1/devices/${device.deviceId}/heartbeat`, heartbeat],
    ["POST", `/v1/devices/${device.deviceId}/secrets/rotate`, "{}"],
  ] as const;
  for (const [method, path, body] of calls) {
    const as = fixed({ ...sign(method, path, body), "x-request-id": "the-same-for-both" });
    const ask = () => world.call(as, method, path, body === "" ? {} : { rawBody: body });
    expect((await ask()).status).toBe(200);
    expect(verdict(await ask())).toEqual([401, "INVALID_SIGNATURE", "replayed"]);
  }
});

test("of eight copies of one request at once, one is served", async () => {
  const as = fixed(sign("GET", ME));
  const statuses = await Promise.all(Array.from({ length: 8 }, async () => (await world.call(as, "GET", ME)).status));
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
});

test("a change records its nonce in the database", async () => {
  const headers = sign("POST", `/v1/devices/${device.deviceId}/secrets/rotate`, "{}");
  await world.call(fixed(headers), "POST", `/v1/devices/${device.deviceId}/secrets/rotate`, { rawBody: "{}" });
  const nonce = Buffer.from(headers[HEADERS_V2.nonce] ?? "", "base64url");
  expect((await world.sql.query("select 1 from used_signatures where agent_id = $1 and signature = $2", [device.identity.agentId, nonce])).rows).toHaveLength(
    1,
  );
});

test("the v1 signature inside a v2 request proves nothing by itself", async () => {
  const secrets = `/v1/devices/${device.deviceId}/secrets`;
  const headers = sign("GET", ME);
  expect((await world.call(fixed(headers), "GET", ME)).status).toBe(200);
  const stripped = Object.fromEntries(Object.entries(headers).filter(([name]) => !(Object.values(HEADERS_V2) as string[]).includes(name)));
  for (const path of [ME, secrets])
    expect(verdict(await world.call(fixed(stripped), "GET", path))).toEqual([401, "INVALID_SIGNATURE", "signature_reused_elsewhere"]);
});

test("a v2 timestamp may lag by five minutes but not lead by more than one", async () => {
  expect((await world.call(fixed(sign("GET", ME, "", moment(-290_000))), "GET", ME)).status).toBe(200);
  expect(verdict(await world.call(fixed(sign("GET", ME, "", moment(70_000))), "GET", ME))).toEqual([401, "INVALID_SIGNATURE", "timestamp_skew"]);
});

test("the reference agent signs with v2 over socket, poll and acks", async () => {
  const http = createHttp(world.url);
  for (const mode of ["socket", "poll"] as const) {
    const own = await tenant.device();
    const settled: string[] = [];
    const agent = createAgent({
      url: world.url,
      http,
      time,
      mode,
      signatureVersion: 2,
      random: Math.random,
      deviceId: own.deviceId,
      identity: own.identity,
      firstWindowMs: 0,
      journal: createMemoryJournal(time.wallMs),
      handlers: {},
      on: { settled: ({ status }) => void settled.push(status ?? "") },
    });
    const queued = await world.call(tenant.apiKey, "POST", `/v1/devices/${own.deviceId}/commands`, { body: { type: "unheard-of" } });
    expect(queued.status).toBe(201);
    agent.start();
    await eventually(() => expect(settled).toContain("rejected"));
    await agent.stop();
  }
  http.close();
});
