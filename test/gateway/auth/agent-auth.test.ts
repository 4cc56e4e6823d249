// An agent's v1 signature over REST: what it proves, to the second and to the byte, and what a second use of it achieves.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { HEADERS, SUBPROTOCOL, sign, signedHeaders } from "../../../protocol/index.ts";
import { asAgent, type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { head, rawCall } from "../raw.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
let device: Device;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_FAILED_AUTH: "off", RATE_LIMIT_AGENT: "off", RATE_LIMIT_HEARTBEAT: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  device = await tenant.device();
});
afterAll(() => world.close());

/** Sends the same headers with every call. */
const fixed = (headers: Record<string, string>): Caller => ({ kind: "agent", headers: () => headers });
let moments = 0;
/** A time that no other signature of this file uses. */
const moment = (offsetMs = 0): Date => {
  moments += 1;
  return new Date(Date.now() + offsetMs + moments);
};
const signed = (body = "", at = moment()) => signedHeaders(device.identity, body, at);
const me = (headers: Record<string, string>) => world.call(fixed(headers), "GET", "/v1/agent/me");
const verdict = ({ status, body }: Awaited<ReturnType<typeof me>>) => [status, body.code ?? null, body.details?.reason ?? null];

describe("proof", () => {
  test("a signature holds within five minutes on either side of its time", async () => {
    for (const offset of [-298_000, 0, 298_000]) expect(verdict(await me(signed("", moment(offset))))).toEqual([200, null, null]);
    for (const offset of [-301_000, 302_000]) {
      const before = Date.now();
      const answer = await me(signed("", moment(offset)));
      const after = Date.now();
      expect(verdict(answer)).toEqual([401, "INVALID_SIGNATURE", "timestamp_skew"]);
      const serverTime = Date.parse(answer.body.details.serverTime);
      expect(serverTime).toBeGreaterThanOrEqual(before);
      expect(serverTime).toBeLessThanOrEqual(after);
      expect(Math.sign(answer.body.details.skewMs)).toBe(Math.sign(offset));
      expect(Math.abs(answer.body.details.skewMs)).toBeGreaterThan(300_000);
    }
  });

  test("a signature of another form, byte or secret is refused", async () => {
    const good = signed();
    const signature = good[HEADERS.signature] ?? "";
    for (const bad of [
      signature.toUpperCase(),
      `${signature}00`,
      signature.slice(2),
      `0x${signature.slice(2)}`,
      "",
      "g".repeat(64),
      signature.replace(/^./, (char) => (char === "0" ? "1" : "0")),
    ])
      expect([bad, ...verdict(await me({ ...good, [HEADERS.signature]: bad }))]).toEqual([bad, 401, "INVALID_SIGNATURE", "bad_signature"]);
    expect(verdict(await me(signedHeaders({ ...device.identity, secret: "another" }, "", moment())))).toEqual([401, "INVALID_SIGNATURE", "bad_signature"]);
  });

  test("a timestamp in any other form than the protocol's is refused, even if signed", async () => {
    for (const timestamp of [
      "now",
      "1767322800",
      "2026-11-21",
      "2026-11-21 05:00:00Z",
      `${new Date().toISOString()} `.replace("Z ", "z"),
      "+002026-11-21T05:00:00Z",
    ])
      expect([
        timestamp,
        ...verdict(await me({ ...signed(), [HEADERS.timestamp]: timestamp, [HEADERS.signature]: sign(device.identity.secret, "", timestamp) })),
      ]).toEqual([timestamp, 401, "INVALID_SIGNATURE", "bad_timestamp"]);
  });

  test("a signature covers every byte of the body", async () => {
    const beat = (headers: Record<string, string>, rawBody: string) =>
      world.call(fixed(headers), "POST", `/v1/devices/${device.deviceId}/heartbeat`, { rawBody });
    expect((await beat(signed('{"cpu":1}'), '{"cpu":2}')).body.code).toBe("INVALID_SIGNATURE");
    expect((await beat(signed('{"cpu":1}'), '{"cpu": 1}')).body.code).toBe("INVALID_SIGNATURE");
    const text = '{"status":"online","metrics":{"note":"naïve ✓ 😀"}}';
    expect((await beat(signed(text), text)).status).toBe(200);
    // The gateway checks the signature before it parses the body.
    expect((await beat(signed("{"), "{")).body.code).toBe("MALFORMED_JSON");
    expect((await beat(signed("{}"), "{")).body.code).toBe("INVALID_SIGNATURE");
  });

  test("an unknown agent, another tenant's header and a wrong secret get the same refusal", async () => {
    const other = await world.tenant();
    const answers = [
      await me(signedHeaders({ ...device.identity, agentId: "agt_nobody" }, "", moment())),
      await me(signedHeaders({ ...device.identity, tenantId: other.tenantId }, "", moment())),
      await me(signedHeaders({ ...device.identity, secret: "wrong" }, "", moment())),
    ];
    for (const { status, body } of answers)
      expect([status, body.code, body.message, body.details]).toEqual([401, "INVALID_SIGNATURE", answers[0]?.body.message, { reason: "bad_signature" }]);
  });

  test("an agent cannot call another device's path", async () => {
    const neighbour = await tenant.device();
    const answer = await world.call(device.as, "POST", `/v1/devices/${neighbour.deviceId}/heartbeat`, { body: { cpu: 1 } });
    expect(verdict(answer)).toEqual([403, "FORBIDDEN", "not_own_device"]);
  });

  test("a removed device's agent is refused, and a suspended tenant's agent may still send heartbeats", async () => {
    const gone = await tenant.device();
    expect((await world.call(gone.as, "GET", "/v1/agent/me")).status).toBe(200);
    expect((await world.call(owner, "DELETE", `/v1/devices/${gone.deviceId}`)).status).toBe(204);
    expect((await world.call(gone.as, "GET", "/v1/agent/me")).status).toBeGreaterThanOrEqual(401);
    const paused = await world.tenant();
    const heard = await paused.device();
    await world.sql.query("update tenants set status = 'suspended' where tenant_id = $1", [paused.tenantId]);
    expect((await world.call(heard.as, "POST", `/v1/devices/${heard.deviceId}/heartbeat`, { body: { cpu: 1 } })).status).toBe(200);
  });
});

describe("replays", () => {
  const beatPath = () => `/v1/devices/${device.deviceId}/heartbeat`;

  test("a replayed read is served on its own path under either prefix, and on no other path", async () => {
    const headers = signed();
    const at = async (path: string) => verdict(await world.call(fixed(headers), "GET", path));
    for (const path of ["/v1/agent/me", "/v1/agent/me", "/api/v1/agent/me", "/v1/agent/me?"]) expect([path, await at(path)]).toEqual([path, [200, null, null]]);
    for (const path of ["/v1/agent/config", `/v1/devices/${device.deviceId}/commands`, `/v1/devices/${device.deviceId}/secrets`])
      expect([path, await at(path)]).toEqual([path, [401, "INVALID_SIGNATURE", "signature_reused_elsewhere"]]);
  });

  test("a replayed read of secrets is refused, even on its own path and after a restart", async () => {
    const headers = signed();
    const path = `/v1/devices/${device.deviceId}/secrets`;
    expect((await world.call(fixed(headers), "GET", path)).body.data.secrets.DEVICE_TOKEN).toBe(device.identity.secret);
    for (const again of [path, `/api${path}`]) expect(verdict(await world.call(fixed(headers), "GET", again))).toEqual([401, "INVALID_SIGNATURE", "replayed"]);
    expect((await world.sql.query("select route from used_signatures where signature = decode($1, 'hex')", [headers[HEADERS.signature]])).rows).toEqual([
      { route: `GET ${path}` },
    ]);
    const next = await startWorld({}, { beside: world });
    try {
      // These were signed before the second node started, so it cannot know whether and where they were used.
      for (const old of [headers, signed("", new Date(Date.now() - 200_000))])
        expect(verdict(await next.call(fixed(old), "GET", path))).toEqual([401, "INVALID_SIGNATURE", "timestamp_skew"]);
      expect(verdict(await next.call(fixed(signed("", new Date(Date.now() - 199_000))), "GET", "/v1/agent/me"))).toEqual([200, null, null]);
      expect(verdict(await next.call(fixed(signed()), "GET", path))).toEqual([200, null, null]);
    } finally {
      await next.close();
    }
  });

  test("an upgrade's signature opens nothing over REST, and one used over REST opens no socket", async () => {
    const upgrade = async (headers: Record<string, string>): Promise<number> =>
      new Promise((resolve) => {
        const socket = new WebSocket(`${world.url.replace("http", "ws")}/v1/agent/connect`, SUBPROTOCOL, { headers });
        socket.on("error", () => undefined);
        socket.once("open", () => resolve(101));
        socket.once("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
        socket.once("open", () => socket.terminate());
      });
    const opened = signed();
    expect(await upgrade(opened)).toBe(101);
    for (const path of ["/v1/agent/me", `/v1/devices/${device.deviceId}/secrets`])
      expect([path, verdict(await world.call(fixed(opened), "GET", path))]).toEqual([path, [401, "INVALID_SIGNATURE", "signature_reused_elsewhere"]]);
    const read = signed();
    expect((await me(read)).status).toBe(200);
    expect(await upgrade(read)).toBe(401);
  });

  test("a hello's proof opens nothing over REST: a GET with a body is refused", async () => {
    // The proof of a hello is a signature over the nonce, and a body could be that nonce.
    const nonce = "bm9uY2Utb2YtYS13ZWxjb21l";
    const answer = await rawCall(world.url, [
      Buffer.from(head(`GET /v1/devices/${device.deviceId}/secrets`, { ...signed(nonce), "content-length": String(nonce.length) }) + nonce),
    ]);
    expect([answer.answer?.status, answer.answer?.body.code, answer.answer?.body.details?.reason]).toEqual([400, "VALIDATION_FAILED", "body_not_allowed"]);
  });

  test("a read's signature makes no change", async () => {
    const headers = signed();
    await me(headers);
    expect(verdict(await world.call(fixed(headers), "POST", `/v1/devices/${device.deviceId}/secrets/rotate`))).toEqual([
      401,
      "INVALID_SIGNATURE",
      "signature_reused_elsewhere",
    ]);
  });

  test("a replayed heartbeat is served on its own path under either prefix, and on no other path", async () => {
    const rawBody = '{"cpu":3}';
    const headers = signed(rawBody);
    const at = (path: string) => world.call(fixed(headers), "POST", path, { rawBody });
    for (const path of [beatPath(), beatPath(), `/api${beatPath()}`]) expect([path, (await at(path)).status]).toEqual([path, 200]);
    expect(verdict(await at(beatPath().replace("devices", "hosts")))).toEqual([401, "INVALID_SIGNATURE", "signature_reused_elsewhere"]);
  });

  test("a replayed change is refused under both prefixes, and its signature is recorded for all nodes", async () => {
    const target = await tenant.device();
    const headers = signedHeaders(target.identity, "{}", moment());
    const path = `/v1/devices/${target.deviceId}/secrets/rotate`;
    const rotate = () => world.call(fixed(headers), "POST", path, { rawBody: "{}" });
    expect((await rotate()).status).toBe(200);
    expect(verdict(await rotate())).toEqual([401, "INVALID_SIGNATURE", "replayed"]);
    expect(verdict(await world.call(fixed(headers), "POST", `/api${path}`, { rawBody: "{}" }))).toEqual([401, "INVALID_SIGNATURE", "replayed"]);
    expect((await world.sql.query("select route from used_signatures where agent_id = $1", [target.identity.agentId])).rows).toEqual([
      { route: `POST ${path}` },
    ]);
  });

  test("a replayed change over tRPC is refused, whatever response type the call accepts", async () => {
    const target = await tenant.device();
    const body = JSON.stringify({ 0: { deviceId: target.deviceId } });
    const headers = { ...signedHeaders(target.identity, body, moment()), "content-type": "application/json" };
    // Read as text, because one of the answers is JSON lines.
    const rotate = async (more: Record<string, string>) =>
      (await fetch(`${world.url}/trpc/devices.rotateSecret?batch=1`, { method: "POST", body, headers: { ...headers, ...more } })).text();
    expect(await rotate({})).toContain("sharedSecret");
    for (const [name, value] of [
      ["accept", "*/*"],
      ["accept", "text/event-stream"],
      ["trpc-accept", "application/jsonl"],
    ] as const) {
      const answer = await rotate({ [name]: value });
      expect(answer).toContain("INVALID_SIGNATURE");
      expect(answer).not.toContain("sharedSecret");
    }
  });
});

test("after a rotation both secrets are valid until the agent uses the new one, then only that one", async () => {
  const target = await tenant.device();
  const old = target.identity;
  const rotated = await world.call(target.as, "POST", `/v1/devices/${target.deviceId}/secrets/rotate`, { body: {} });
  const fresh = { ...old, secret: rotated.body.sharedSecret as string };
  expect(fresh.secret).not.toBe(old.secret);
  const asks = async (identity: typeof old) => (await world.call(fixed(signedHeaders(identity, "", moment())), "GET", "/v1/agent/me")).status;
  expect([await asks(old), await asks(old), await asks(fresh), await asks(fresh), await asks(old)]).toEqual([200, 200, 200, 200, 401]);
});

test("an agent completes a rotation that somebody else began", async () => {
  const target = await tenant.device();
  const started = await world.call(owner, "POST", `/v1/devices/${target.deviceId}/secrets/rotate`);
  expect([started.status, started.body.sharedSecret]).toEqual([200, undefined]);
  const { body } = await world.call(target.as, "GET", `/v1/devices/${target.deviceId}/secrets`);
  const fresh = asAgent({ ...target.identity, secret: body.data.secrets.DEVICE_TOKEN });
  expect((await world.call(fresh, "GET", "/v1/agent/me")).status).toBe(200);
  expect((await world.call(target.as, "GET", "/v1/agent/me")).body.code).toBe("INVALID_SIGNATURE");
});
