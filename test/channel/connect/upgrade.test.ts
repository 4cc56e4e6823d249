// Admission of upgrades: which agents may open a socket, and the answer to those that may not.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CONNECT_PATHS, HEADERS, sign, signedHeaders } from "../../../protocol/index.ts";
import { head, openRaw } from "../../gateway/raw.ts";
import {
  type AgentSocket,
  attempt,
  type ConnectOptions,
  connect,
  freshTime,
  greet,
  online,
  type Refusal,
  startNode,
  type TestDevice,
  type TestNode,
} from "../harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const refused = async (device: Pick<TestDevice, "identity">, options: ConnectOptions = {}, at: TestNode = node): Promise<Refusal> => {
  const answer = await attempt(at, device, options);
  if (!("status" in answer)) throw new Error("the socket was opened");
  return answer;
};

describe("a good signature", () => {
  test.each(CONNECT_PATHS)("opens a socket at %s and is welcomed with a nonce", async (path) => {
    const socket = await connect(node, await node.device(), { path });
    const { data } = await socket.next("welcome");
    expect(socket.socket.protocol).toBe("mooring-agent.v1");
    expect(Buffer.from(data.nonce, "base64url")).toHaveLength(32);
    expect(data.limits).toEqual({ maxFrameBytes: 131_072, maxOutputBytes: 65_536, maxInFlight: 32, inboundPerSec: 20 });
    socket.end();
  });

  test("is accepted up to exactly five minutes ahead or behind, and not a millisecond beyond", async () => {
    const own = await startNode();
    const device = await own.device();
    const now = own.clock.freeze().getTime();
    const shifted = (ms: number) => attempt(own, device, { at: new Date(now + ms) });
    for (const ms of [-300_000, 300_000]) ((await shifted(ms)) as AgentSocket).end();
    for (const ms of [-300_001, 300_001]) {
      const { status, body, headers } = (await shifted(ms)) as Refusal;
      expect([status, body.code, body.details]).toEqual([
        401,
        "INVALID_SIGNATURE",
        { reason: "timestamp_skew", serverTime: new Date(now).toISOString(), skewMs: ms },
      ]);
      expect(headers["date"]).toBeDefined();
    }
    await own.close();
  });

  test("works once: a replayed upgrade is refused", async () => {
    const device = await node.device();
    const signed = signedHeaders(device.identity, "", freshTime(node));
    const socket = await connect(node, device, { signed });
    expect((await refused(device, { signed })).body).toMatchObject({ code: "INVALID_SIGNATURE", details: { reason: "replayed" } });
    socket.end();
  });
});

describe("a refusal names its reason", () => {
  test.each(Object.values(HEADERS))("a missing %s", async (name) => {
    const device = await node.device();
    const { [name]: _, ...signed } = signedHeaders(device.identity, "", freshTime(node));
    const { status, body } = await refused(device, { signed });
    expect([status, body.code, body.details.reason]).toEqual([401, "UNAUTHORIZED", "missing_header"]);
  });

  test("a wrong signature, one in upper case and one of another length", async () => {
    const device = await node.device();
    const signed = signedHeaders(device.identity, "", freshTime(node));
    const good = signed[HEADERS.signature] ?? "";
    for (const signature of [good.replace(/^./, (first) => (first === "0" ? "1" : "0")), good.toUpperCase(), good.slice(2), `${good}00`]) {
      const { status, body } = await refused(device, { signed: { ...signed, [HEADERS.signature]: signature } });
      expect([status, body.code, body.details.reason]).toEqual([401, "INVALID_SIGNATURE", "bad_signature"]);
    }
  });

  test("a timestamp that is not in the strict form, even if signed correctly", async () => {
    const device = await node.device();
    for (const timestamp of ["2026-01-02", String(Date.now()), "+002026-01-02T03:04:05Z", "2026-13-02T03:04:05Z"]) {
      const { body } = await refused(device, {
        signed: {
          ...signedHeaders(device.identity, "", freshTime(node)),
          [HEADERS.timestamp]: timestamp,
          [HEADERS.signature]: sign(device.identity.secret, "", timestamp),
        },
      });
      expect(body.details.reason).toBe("bad_timestamp");
    }
  });

  test("an unknown agent and an agent of another tenant, with the same answer", async () => {
    const device = await node.device();
    const other = await node.tenant();
    const unknown = await refused({ identity: { ...device.identity, agentId: "agt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R" } });
    const foreign = await refused({ identity: { ...device.identity, tenantId: other } });
    for (const { status, body } of [unknown, foreign]) expect([status, body.code, body.details]).toEqual([401, "UNAUTHORIZED", { reason: "unknown_agent" }]);
  });

  test("a browser's Origin", async () => {
    expect(await refused(await node.device(), { headers: { origin: "https://example.org" } })).toMatchObject({
      status: 403,
      body: { code: "FORBIDDEN", details: { reason: "origin_not_allowed" } },
    });
  });

  test("none of the offered subprotocols", async () => {
    expect(await refused(await node.device(), { protocols: ["mqtt"] })).toMatchObject({
      status: 426,
      body: { code: "PROTOCOL_UNSUPPORTED", details: { supported: ["mooring-agent.v1"] } },
    });
  });

  test("a second credential beside the signature", async () => {
    expect((await refused(await node.device(), { headers: { "x-api-key": "k" } })).body).toMatchObject({
      code: "VALIDATION_FAILED",
      details: { reason: "multiple_credentials" },
    });
  });

  test("a suspended tenant", async () => {
    const device = await node.device(await node.tenant({ status: "suspended" }));
    expect(await refused(device)).toMatchObject({ status: 403, body: { code: "TENANT_SUSPENDED" } });
  });

  test("the two prefixes answer in the two shapes", async () => {
    const identity = { agentId: "agt_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", tenantId: "ten_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", secret: "x" };
    const b = await refused({ identity }, { path: CONNECT_PATHS[0] });
    const a = await refused({ identity }, { path: CONNECT_PATHS[1] });
    expect(b.body.error).toMatchObject({ code: "UNAUTHORIZED" });
    expect(typeof a.body.error).toBe("string");
    for (const { body } of [a, b]) expect(body).toMatchObject({ success: false, code: "UNAUTHORIZED", retryable: false, requestId: expect.any(String) });
  });
});

describe("limits", () => {
  test("repeated failures from one address get 429, while a good credential from there still connects", async () => {
    const own = await startNode({ settings: { failuresPerMinute: 60, failureBurst: 3 } });
    const device = await own.device();
    const wrong = { identity: { ...device.identity, secret: "wrong" } };
    for (let count = 0; count < 3; count += 1) expect((await refused(wrong, {}, own)).status).toBe(401);
    const limited = await refused(wrong, {}, own);
    expect(limited).toMatchObject({ status: 429, body: { code: "RATE_LIMIT_EXCEEDED", retryable: true } });
    expect(limited.headers).toMatchObject({ "retry-after": "1", "x-ratelimit-limit": "60", "x-ratelimit-remaining": "0" });
    (await connect(own, device)).end();
    await own.close();
  });

  test("the connect rate limit slows one agent and not its neighbour", async () => {
    const own = await startNode({ settings: { connectsPerMinute: 10, connectBurst: 2 } });
    const tenantId = await own.tenant();
    const [device, neighbour] = [await own.device(tenantId), await own.device(tenantId)];
    for (let count = 0; count < 2; count += 1) (await connect(own, device)).end();
    expect(await refused(device, {}, own)).toMatchObject({ status: 429, headers: { "retry-after": "6" } });
    (await connect(own, neighbour)).end();
    await own.close();
  });

  test("a full node refuses upgrades with a time to come back, and keeps its agents", async () => {
    const own = await startNode({ settings: { maxConnections: 1 } });
    const device = await own.device();
    const socket = await online(own, device);
    const full = await refused(await own.device(), {}, own);
    expect(full).toMatchObject({ status: 503, body: { code: "SERVICE_UNAVAILABLE", retryable: true } });
    expect(Number(full.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(socket.isOpen()).toBe(true);
    await own.close();
  });

  test("a draining node refuses upgrades and closes its sockets with 1012 and a time to come back", async () => {
    const own = await startNode();
    const socket = await online(own, await own.device());
    own.channel.refuseUpgrades();
    expect(await refused(await own.device(), {}, own)).toMatchObject({ status: 503, body: { code: "NODE_DRAINING" } });
    await own.close();
    expect((await socket.next("drain")).data.reconnectAfterMs).toBeLessThanOrEqual(5_000);
    expect(await socket.closed()).toEqual({ code: 1012, reason: expect.stringMatching(/^drain;ra=\d+$/) });
  });
});

describe("the opening handshake", () => {
  const at = (): string => node.url.replace("ws:", "http:");
  const GOOD = {
    Connection: "keep-alive, Upgrade",
    Upgrade: "WebSocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "mqtt, mooring-agent.v1",
  };
  const shake = async (changes: Readonly<Record<string, string | null>>, path: string = CONNECT_PATHS[0]) => {
    const device = await node.device();
    const all = { ...GOOD, ...signedHeaders(device.identity, "", freshTime(node)), ...changes };
    const raw = await openRaw(at());
    await raw.write(
      head(
        `GET ${path}`,
        Object.entries(all).filter((each): each is [string, string] => each[1] !== null),
      ),
    );
    await raw.until(() => raw.seen.text.includes("\r\n\r\n"));
    return raw;
  };
  const answerOf = async (raw: Awaited<ReturnType<typeof shake>>) => {
    await raw.closed();
    const [top = "", body = ""] = raw.seen.text.split("\r\n\r\n");
    return { status: raw.statuses()[0], top: top.toLowerCase(), body: JSON.parse(body) };
  };

  test("is answered with the subprotocol that was offered among others", async () => {
    const raw = await shake({});
    expect(raw.seen.text).toMatch(/^HTTP\/1.1 101 .*\r\n(.+\r\n)*Sec-WebSocket-Protocol: mooring-agent\.v1\r\n/);
    expect(raw.seen.text).not.toMatch(/uwebsockets/i);
    raw.end();
  });

  test("is answered without a subprotocol when none was offered", async () => {
    const raw = await shake({ "Sec-WebSocket-Protocol": null });
    expect(raw.seen.text).toMatch(/^HTTP\/1.1 101 /);
    expect(raw.seen.text).not.toMatch(/^sec-websocket-protocol/im);
    raw.end();
  });

  test.each<[string, Readonly<Record<string, string | null>>, string]>([
    ["without Upgrade", { Upgrade: null }, "no_upgrade"],
    ["with an Upgrade to something else", { Upgrade: "h2c" }, "no_upgrade"],
    ["without Connection: Upgrade", { Connection: "keep-alive" }, "no_upgrade"],
    ["of version 8", { "Sec-WebSocket-Version": "8" }, "websocket_version"],
    ["of version 14", { "Sec-WebSocket-Version": "14" }, "websocket_version"],
    ["of two versions", { "Sec-WebSocket-Version": "13, 8" }, "websocket_version"],
    ["of no version", { "Sec-WebSocket-Version": null }, "websocket_version"],
    ["without a known subprotocol", { "Sec-WebSocket-Protocol": "mqtt, mooring-agent.v2" }, "subprotocol"],
  ])("%s is answered 426 with the supported protocol", async (_, changes, reason) => {
    for (const path of CONNECT_PATHS) {
      const { status, top, body } = await answerOf(await shake(changes, path));
      expect([status, body.code, body.details]).toEqual(["426", "PROTOCOL_UNSUPPORTED", { reason, supported: ["mooring-agent.v1"] }]);
      for (const line of ["upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13", "sec-websocket-protocol: mooring-agent.v1"])
        expect(top).toContain(line);
    }
  });

  test.each(["!!!!!!!!!!!!!!!!!!!!!!==", "dGhlIHNhbXBsZSBub25jZTEy", "dGhlIHNhbXBsZSBub25jZQ=x"])(
    "with the key %j, which is not 16 bytes, is answered 400",
    async (key) => {
      const { status, body } = await answerOf(await shake({ "Sec-WebSocket-Key": key }));
      expect([status, body.code, body.details]).toEqual(["400", "VALIDATION_FAILED", { reason: "websocket_key", header: "sec-websocket-key" }]);
    },
  );

  test("with a body is refused, because the body could be read as frames", async () => {
    for (const changes of [{ "Content-Length": "7" }, { "Transfer-Encoding": "chunked" }])
      expect((await answerOf(await shake(changes))).body.details).toEqual({ reason: "upgrade_with_body" });
    const raw = await shake({ "Content-Length": "0" });
    expect(raw.statuses()).toEqual(["101"]);
    raw.end();
  });

  test("that is refused ends its connection, because the peer may have sent frames already", async () => {
    const raw = await shake({ "x-svc-signature": "0".repeat(64) });
    await raw.closed();
    expect(raw.statuses()).toEqual(["401"]);
  });
});

test("the first socket causes no warning of the library, and the process ends with its listener", async () => {
  const script = fileURLToPath(new URL("lone-sockets.ts", import.meta.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--import", "tsx", script], { timeout: 15_000 });
  expect([stdout, stderr]).toEqual(["all were answered", ""]);
});

test("a removed device is refused as revoked", async () => {
  const device = await node.device();
  const socket = await connect(node, device);
  await greet(node, socket, device);
  const scope = { tenantId: device.tenantId };
  await node.db.sqlTx((tx) => tx.query("update devices set deleted_at = now(), secret = '', pending_secret = null where device_id = $1", [device.deviceId]));
  node.devices.registry.announce([device.identity.agentId]);
  expect(await node.devices.find(scope, device.deviceId)).toBeUndefined();
  expect(await refused(device)).toMatchObject({ status: 403, body: { code: "FORBIDDEN", details: { reason: "device_revoked" } } });
  socket.end();
});
