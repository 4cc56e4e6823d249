// Stock proxies in front of a gateway, each with its configuration from docs/deploy/: requests of browsers, scripts and agents pass unchanged.
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { SUBPROTOCOL, signedHeaders } from "../../protocol/index.ts";
import { freshTime, greet, wrapSocket } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { type Authority, createAuthority, type Issued } from "../kit/net/certificates.ts";
import { isSecure, KINDS, type Kind, type RunningProxy, startProxy } from "./proxies.ts";

/** The proxies use 127.0.0.1, so callers need another address. */
const CALLER = "127.0.0.2";
const START_MS = 60_000;
let authority: Authority;
let issued: Issued;
let world: World;
let tenant: TestTenant;
beforeAll(async () => {
  authority = await createAuthority();
  issued = await authority.issue("proxy");
  world = await startWorld({ TRUSTED_PROXIES: "127.0.0.1/32", RATE_LIMIT_ANONYMOUS: "off" });
  tenant = await world.tenant();
}, START_MS);
afterAll(async () => {
  await world.close();
  await authority.remove();
});

interface Asked {
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: object;
  readonly from?: string;
}
interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
  readonly body: any;
}

const ask = (url: string, method: string, { headers = {}, body, from = CALLER }: Asked = {}): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const length = "transfer-encoding" in headers || text === undefined ? {} : { "content-length": String(Buffer.byteLength(text)) };
    const all = { ...headers, ...(text === undefined ? {} : { "content-type": "application/json" }), ...length };
    const options = { method, headers: all as Record<string, string>, localAddress: from, agent: false };
    const onAnswer = (response: IncomingMessage): void => {
      let read = "";
      response
        .setEncoding("utf8")
        .on("data", (part: string) => {
          read += part;
        })
        .on("end", () => {
          const isJson = String(response.headers["content-type"]).includes("json");
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: isJson && read !== "" ? JSON.parse(read) : read });
        });
    };
    const asked = url.startsWith("https") ? httpsRequest(url, { ...options, ca: authority.ca }, onAnswer) : httpRequest(url, options, onAnswer);
    asked.setTimeout(15_000, () => asked.destroy(new Error("no answer")));
    asked.once("error", reject).end(text);
  });

describe.each(KINDS)("behind %s", (kind: Kind) => {
  let proxy: RunningProxy;
  const at = (path: string): string => `${proxy.url}${path}`;
  beforeAll(async () => {
    proxy = await startProxy(kind, { port: Number(new URL(world.url).port), internalPort: world.app.internalPort(), issued });
    // HAProxy and Caddy send nothing to a node before its health check has passed.
    await eventually(async () => expect((await ask(at("/livez"), "GET")).status).toBe(200));
  }, START_MS);
  afterAll(() => proxy.close());
  const owner = async () => (await tenant.user()).headers("");

  test("a call gets the gateway's answer through the proxy", async () => {
    const answer = await ask(at("/v1/devices"), "GET", { headers: await owner() });
    expect([answer.status, answer.body.success]).toEqual([200, true]);
    expect((await ask(at("/v1/nowhere"), "GET", { headers: await owner() })).body).toMatchObject({ success: false, code: "NOT_FOUND" });
  });

  test("HEAD and a change with a chunked body pass", async () => {
    expect((await ask(at("/v1/devices"), "HEAD", { headers: await owner() })).status).toBe(200);
    const made = await ask(at("/v1/api-keys"), "POST", {
      headers: { ...(await owner()), "transfer-encoding": "chunked" },
      body: { name: `c-${kind}`, role: "viewer" },
    });
    expect(made.status).toBe(201);
  });

  test("a browser's preflight gets 204 with its headers", async () => {
    const headers = { origin: "https://portal.example", "access-control-request-method": "DELETE", "access-control-request-headers": "authorization" };
    const answer = await ask(at("/v1/devices"), "OPTIONS", { headers });
    expect([answer.status, answer.headers["access-control-allow-origin"], answer.headers["access-control-allow-headers"]]).toEqual([204, "*", "authorization"]);
  });

  test("DELETE gets 204 once the change is made", async () => {
    const made = await ask(at("/v1/api-keys"), "POST", { headers: await owner(), body: { name: `d-${kind}`, role: "viewer" } });
    const deleted = await ask(at(`/v1/api-keys/${made.body.data.keyId}`), "DELETE", { headers: await owner() });
    expect([deleted.status, deleted.body]).toEqual([204, ""]);
    const listed = await ask(at("/v1/api-keys?pageSize=100"), "GET", { headers: await owner() });
    const found = listed.body.data.find(({ keyId }: { keyId: string }) => keyId === made.body.data.keyId);
    expect(found === undefined || found.revokedAt !== null).toBe(true);
  });

  test("an agent connects, sends a heartbeat, receives a command and acknowledges it", async () => {
    const device = await tenant.device();
    const node = { url: proxy.url.replace(/^http/, "ws"), clock: { now: () => new Date() } };
    const headers = signedHeaders(device.identity, "", freshTime(node));
    const socket = wrapSocket(new WebSocket(`${node.url}/v1/agent/connect`, [SUBPROTOCOL], { headers, ca: authority.ca, localAddress: CALLER }));
    await greet(node, socket, device);
    socket.say("heartbeat", { cpu: 1 });
    await socket.next("heartbeat_ack");
    const queued = await ask(at(`/v1/devices/${device.deviceId}/commands`), "POST", { headers: await owner(), body: { type: "ping" } });
    expect(queued.status).toBe(201);
    const { data } = await socket.next("command");
    socket.say("ack", { commandId: data.command.commandId, status: "succeeded" });
    await socket.next("ack_ok");
    const ended = await ask(at(`/v1/commands/${data.command.commandId}`), "GET", { headers: await owner() });
    expect(ended.body.data.status).toBe("succeeded");
    socket.end();
  });

  test("the proxy does not buffer live events", async () => {
    const { body } = await ask(at("/v1/auth/stream-ticket"), "POST", { headers: await owner(), body: {} });
    const input = encodeURIComponent(JSON.stringify({ types: ["api_key.*"] }));
    const params = encodeURIComponent(JSON.stringify({ ticket: body.data.ticket }));
    const options = { headers: { accept: "text/event-stream" }, localAddress: CALLER, agent: false, ca: authority.ca };
    const begun = await new Promise<string>((resolve, reject) => {
      const asked = (isSecure(kind) ? httpsRequest : httpRequest)(at(`/trpc/live.watch?input=${input}&connectionParams=${params}`), options, (response) => {
        response.setEncoding("utf8").once("data", (part: string) => {
          resolve(part);
          asked.destroy();
        });
      });
      asked.setTimeout(10_000, () => asked.destroy(new Error("nothing came")));
      asked.on("error", reject).end();
    });
    expect(begun).toContain("event: connected");
  });

  test("the gateway sees the caller's address from the proxy, and a caller cannot forge it", async () => {
    const made = await ask(at("/v1/api-keys"), "POST", { headers: await owner(), body: { name: `ip-${kind}`, role: "viewer", ipAllowlist: ["127.0.0.3/32"] } });
    const key = { "x-api-key": made.body.data.apiKey, "x-svc-tenant-id": tenant.tenantId };
    expect((await ask(at("/v1/devices"), "GET", { headers: key, from: "127.0.0.3" })).status).toBe(200);
    expect((await ask(at("/v1/devices"), "GET", { headers: key })).body).toMatchObject({ code: "API_KEY_IP_DENIED" });
    for (const forged of ["127.0.0.3", ["127.0.0.3", "127.0.0.3"]]) {
      const { status, body } = await ask(at("/v1/devices"), "GET", { headers: { ...key, "x-forwarded-for": forged } });
      expect([forged, status, body.code]).toEqual([forged, 403, "API_KEY_IP_DENIED"]);
    }
  });
});

describe.each(["haproxy-plain.cfg", "haproxy.cfg"] as const)("health check of %s", (kind) => {
  test("the proxy's check finds the node healthy and takes it out once it drains", { timeout: START_MS }, async () => {
    const own = await startWorld({ LEAVE_NOTICE_SECONDS: "30", INTERNAL_TOKEN: "the token of this test" });
    const proxy = await startProxy(kind, { port: Number(new URL(own.url).port), internalPort: own.app.internalPort(), issued });
    try {
      await eventually(async () => expect(await proxy.server()).toEqual({ status: "UP", check: "L7OK", code: "200" }));
      expect((await ask(`${proxy.url}/livez`, "GET")).status).toBe(200);
      await fetch(`http://127.0.0.1:${own.app.internalPort()}/internal/drain`, { method: "POST", headers: { authorization: "Bearer the token of this test" } });
      await eventually(async () => expect(await proxy.server()).toEqual({ status: "DOWN", check: "L7STS", code: "503" }), 20_000);
      expect((await ask(`${proxy.url}/livez`, "GET")).status).toBe(503);
    } finally {
      await proxy.close();
      await own.close();
    }
  });
});
