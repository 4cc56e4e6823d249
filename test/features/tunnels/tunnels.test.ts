// Visitors reach a service of a device through its tunnel, over a real agent: those who may, whatever they send, and nothing is held back on the way.

import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { createCarrier, systemTime } from "../../../agent-sim/agent/index.ts";
import { connectToService } from "../../../agent-sim/host/services.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { askAs } from "../../kit/gateway/ask.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../../kit/gateway/simulated-device.ts";
import { type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
let device: Device;
let machine: SimulatedDevice;
const edgePort = (): number => world.app.edgePort();

/** What the service saw last, and the answers that it holds. */
const held: ServerResponse[] = [];
const sockets = new WebSocketServer({ noServer: true });
const origin = createServer((message: IncomingMessage, response) => {
  const { pathname } = new URL(message.url ?? "/", "http://origin");
  if (pathname === "/headers") return void response.end(JSON.stringify(message.headers));
  if (pathname === "/echo") return void message.pipe(response);
  if (pathname === "/held") {
    response.setHeader("Content-Type", new URL(message.url ?? "/", "http://origin").searchParams.get("type") ?? "text/plain");
    response.write("first");
    held.push(response);
    return;
  }
  if (pathname === "/break") {
    response.writeHead(200, { "Content-Length": "100" });
    response.write("half");
    message.socket.once("data", () => undefined);
    held.push(response);
    return;
  }
  if (pathname === "/cookie") {
    response.setHeader("Set-Cookie", ["a=1; Domain=localhost; Path=/", "b=2; HttpOnly"]);
    return void response.end("cookies");
  }
  response.end(`hello ${message.method} ${message.url}`);
});
origin.on("upgrade", (message, socket, head) =>
  sockets.handleUpgrade(message, socket, head, (peer) => peer.on("message", (data, binary) => peer.send(data, { binary }))),
);

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}
/** The answer once its head is there. */
const visit = async (hostname: string, path: string, { method = "GET", headers = {}, body }: Sent = {}): Promise<IncomingMessage> => {
  const sent = request({ host: "127.0.0.1", port: edgePort(), path, method, agent: false, headers: { host: `${hostname}:${edgePort()}`, ...headers } });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return response;
};
const bodyOf = async (response: Promise<IncomingMessage>): Promise<string> => text(await response);

interface Made {
  readonly tunnelId: string;
  readonly hostname: string;
  readonly status: string;
}
const ask = (method: string, path: string, body?: object, as = owner) => askAs(world, as, method, path, body);
const open = async (more: object = {}): Promise<Made> => {
  const made = (await ask("POST", `/devices/${device.deviceId}/tunnels`, {
    targetPort: (origin.address() as { port: number }).port,
    access: { mode: "public" },
    ...more,
  })) as Made;
  await eventually(async () => expect(await ask("GET", `/tunnels/${made.tunnelId}`)).toMatchObject({ status: "active" }));
  return made;
};

let shop: Made;
beforeAll(async () => {
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  world = await startWorld({}, { spread: true });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  machine = await startSimulatedDevice(world, tenant);
  ({ device } = machine);
  shop = await open();
});
afterAll(async () => {
  await machine.stop();
  await world.close();
  origin.closeAllConnections();
  origin.close();
});

describe("a public tunnel carries", () => {
  test("a request with its query, and the visitor's address", async () => {
    expect(await bodyOf(visit(shop.hostname, "/a%20b?c=d&e"))).toBe("hello GET /a%20b?c=d&e");
    const seen = JSON.parse(
      await bodyOf(
        visit(shop.hostname, "/headers", { headers: { "x-forwarded-for": "203.0.113.9", "x-own": "kept", connection: "x-hop", "x-hop": "dropped" } }),
      ),
    );
    expect(seen).toMatchObject({ "x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http", "x-own": "kept", host: `${shop.hostname}:${edgePort()}` });
    expect(seen).not.toHaveProperty("x-hop");
  });

  test("an upload of two mebibytes, with a length and in chunks", async () => {
    const body = Buffer.alloc(2_097_152, "u");
    for (const headers of [{ "content-length": String(body.length) }, { "transfer-encoding": "chunked" }])
      expect((await bodyOf(visit(shop.hostname, "/echo", { method: "POST", body, headers }))).length).toBe(body.length);
  });

  test.each(["text/event-stream", "text/html", "application/json", "application/octet-stream", "image/png"])(
    "the first byte of %s while the service still holds the rest",
    async (type) => {
      const response = await visit(shop.hostname, `/held?type=${encodeURIComponent(type)}`);
      const [first] = (await once(response, "data")) as [Buffer];
      expect([first.toString(), held.length]).toEqual(["first", 1]);
      held.pop()?.end(" last");
      expect(await text(response)).toBe(" last");
    },
  );

  test("a WebSocket, in both directions", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${edgePort()}/`, { headers: { host: `${shop.hostname}:${edgePort()}` } });
    await once(socket, "open");
    socket.send("x".repeat(300_000));
    const [data] = (await once(socket, "message")) as [Buffer];
    expect(data.length).toBe(300_000);
    socket.close();
    await once(socket, "close");
  });

  test("cookies, but none for a wider domain", async () => {
    expect((await visit(shop.hostname, "/cookie")).headers["set-cookie"]).toEqual(["a=1; Path=/", "b=2; HttpOnly"]);
  });

  test("a service that breaks off in the middle as a broken transfer", async () => {
    const response = await visit(shop.hostname, "/break");
    await once(response, "data");
    held.pop()?.socket?.resetAndDestroy();
    await expect(text(response)).rejects.toThrow("aborted");
  });
});

test("requests and bytes are counted in both directions, those of a WebSocket too", async () => {
  const { hostname, tunnelId } = await open();
  const usage = async () => {
    await runJob(world, "tunnels.usage");
    return (await ask("GET", `/tunnels/${tunnelId}`)).usage;
  };
  expect(await usage()).toEqual({ requests: 0, bytesIn: 0, bytesOut: 0, lastUsedAt: null });
  await bodyOf(visit(hostname, "/echo", { method: "POST", body: "u".repeat(5_000), headers: { "content-length": "5000" } }));
  expect(await usage()).toMatchObject({ requests: 1, bytesIn: 5_000, bytesOut: 5_000, lastUsedAt: expect.any(String) });
  const socket = new WebSocket(`ws://127.0.0.1:${edgePort()}/`, { headers: { host: `${hostname}:${edgePort()}` } });
  await once(socket, "open");
  socket.send("x".repeat(1_000));
  await once(socket, "message");
  socket.terminate();
  const { requests, bytesIn, bytesOut } = await usage();
  expect([requests, bytesIn > 6_000, bytesOut > 6_000]).toEqual([2, true, true]);
});

describe("who may come in:", () => {
  test("a private tunnel lets in members by key, sends browsers to sign in, and refuses everybody else", async () => {
    const { hostname, tunnelId } = await open({ access: { mode: "private" } });
    expect((await visit(hostname, "/")).statusCode).toBe(401);
    const key = tenant.apiKey.headers("")["x-api-key"] ?? "";
    expect(await bodyOf(visit(hostname, "/", { headers: { "x-mooring-key": key } }))).toBe("hello GET /");
    const other = (await world.tenant()).apiKey.headers("")["x-api-key"] ?? "";
    expect((await visit(hostname, "/", { headers: { "x-mooring-key": other } })).statusCode).toBe(403);
    const sent = await visit(hostname, "/page?x", { headers: { accept: "text/html" } });
    expect([sent.statusCode, sent.headers.location]).toEqual([303, `${world.url}/v1/tunnels/${tunnelId}/enter?path=%2Fpage%3Fx`]);
    const entered = await world.call(owner, "GET", `/v1/tunnels/${tunnelId}/enter?path=%2Fpage%3Fx`);
    const back = new URL(entered.headers.get("location") ?? "");
    expect([entered.status, back.hostname]).toEqual([303, hostname]);
    const welcome = await visit(hostname, back.pathname + back.search);
    expect([welcome.statusCode, welcome.headers.location]).toEqual([303, "/page?x"]);
    // Whoever finds the address in a history or a log comes too late.
    expect((await visit(hostname, back.pathname + back.search)).statusCode).toBe(401);
    const cookie = welcome.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
    expect(await bodyOf(visit(hostname, "/page?x", { headers: { cookie } }))).toBe("hello GET /page?x");
    // It is another tunnel's.
    const second = await open({ access: { mode: "private" } });
    expect((await visit(second.hostname, "/", { headers: { cookie } })).statusCode).toBe(401);
    expect(JSON.parse(await bodyOf(visit(hostname, "/headers", { headers: { cookie: `${cookie}; own=1` } }))).cookie).toBe("own=1");
  });

  test("a token opens its tunnel, by header and once by query, until it is rotated", async () => {
    const { hostname, tunnelId } = await open({ access: { mode: "token" } });
    const { token } = (await ask("GET", `/tunnels/${tunnelId}/credentials`)) as { readonly token: string };
    expect((await visit(hostname, "/")).statusCode).toBe(401);
    expect((await visit(hostname, "/", { headers: { "x-mooring-token": token } })).statusCode).toBe(200);
    const sent = await visit(hostname, `/a?mooring_token=${token}&b=1`);
    expect([sent.statusCode, sent.headers.location]).toEqual([303, "/a?b=1"]);
    const cookie = sent.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
    expect((await visit(hostname, "/a", { headers: { cookie } })).statusCode).toBe(200);
    await ask("POST", `/tunnels/${tunnelId}/credentials/rotate`);
    await eventually(async () => expect((await visit(hostname, "/a", { headers: { cookie } })).statusCode).toBe(401));
    expect((await visit(hostname, "/", { headers: { "x-mooring-token": token } })).statusCode).toBe(401);
  });

  test("an allow-list, the end of its time and a stop are kept", async () => {
    const closed = await open({ access: { mode: "public", allow: ["203.0.113.0/24"] } });
    expect((await visit(closed.hostname, "/")).statusCode).toBe(403);
    await ask("PATCH", `/tunnels/${closed.tunnelId}`, { access: { mode: "public", allow: ["127.0.0.1"] } });
    await eventually(async () => expect((await visit(closed.hostname, "/")).statusCode).toBe(200));
    await ask("PATCH", `/tunnels/${closed.tunnelId}`, { status: "stopped" });
    await eventually(async () => expect((await visit(closed.hostname, "/")).statusCode).toBe(404));
    await ask("PATCH", `/tunnels/${closed.tunnelId}`, { status: "active", expiresAt: "2020-01-01T00:00:00Z" });
    await eventually(async () => expect(await bodyOf(visit(closed.hostname, "/"))).toContain("TUNNEL_EXPIRED"));
    await ask("DELETE", `/tunnels/${closed.tunnelId}`);
    await eventually(async () => expect(await bodyOf(visit(closed.hostname, "/"))).toContain("NOT_FOUND"));
  });

  test("only who may publish opens a tunnel to everybody", async () => {
    const operator = await tenant.user("operator");
    const refused = await world.call(operator, "POST", `/v1/devices/${device.deviceId}/tunnels`, { body: { targetPort: 80, access: { mode: "public" } } });
    expect(refused.status).toBe(403);
    expect((await world.call(operator, "PATCH", `/v1/tunnels/${shop.tunnelId}`, { body: { access: { mode: "public" } } })).status).toBe(403);
  });
});

test("a connector serves a global tunnel with its token, and is out when the token is rotated", async () => {
  const made = (await ask("POST", "/tunnels", { name: "global", config: { access: { mode: "public" } } })) as Made;
  expect((await visit(made.hostname, "/")).statusCode).toBe(502);
  const { token } = (await ask("GET", `/tunnels/${made.tunnelId}/credentials`)) as { readonly token: string };
  const connector = createCarrier({
    url: () => `http://127.0.0.1:${edgePort()}/v1/agent/tunnel`,
    headers: () => ({ authorization: `Bearer ${token}` }),
    dial: () => connectToService(`http://127.0.0.1:${(origin.address() as { port: number }).port}`),
    time: systemTime,
    random: () => 1,
  });
  connector.start();
  await eventually(async () => expect(await ask("GET", `/tunnels/${made.tunnelId}`)).toMatchObject({ status: "active" }));
  expect(await bodyOf(visit(made.hostname, "/from-a-connector"))).toBe("hello GET /from-a-connector");
  expect(await ask("GET", `/tunnels/${made.tunnelId}/connections`)).toMatchObject([{ kind: "raw" }]);
  await ask("POST", `/tunnels/${made.tunnelId}/credentials/rotate`);
  await eventually(async () => expect((await visit(made.hostname, "/")).statusCode).toBe(502));
  connector.stop();
});

test("its health is told when it changes: degraded, recovered, down", async () => {
  const { tunnelId } = await open();
  const set = (change: string) => world.sql.query(`update tunnels set ${change} where tunnel_id = $1`, [tunnelId]);
  const told = async () =>
    (
      await world.sql.query(
        "select type from outbox_events where subject_id = $1 and type in ('tunnel.degraded', 'tunnel.recovered', 'tunnel.down') order by position",
        [tunnelId],
      )
    ).rows.map(({ type }) => type);
  const becomes = async (change: string, health: string): Promise<void> => {
    await set(change);
    await eventually(async () => {
      await runJob(world, "tunnels.health");
      expect(await ask("GET", `/tunnels/${tunnelId}`)).toMatchObject({ health });
    });
  };
  await becomes("failure = null", "healthy");
  const before = await told();
  await becomes(`failure = '{"reason":"refused","message":"nothing listens"}'`, "degraded");
  await becomes("failure = null", "healthy");
  // A device without a carrier, as after it has gone for a while.
  const other = await tenant.device();
  await becomes(`device_id = '${other.deviceId}', last_seen_at = now() - interval '1 minute'`, "down");
  await eventually(async () => expect(await told()).toEqual([...before, "tunnel.degraded", "tunnel.recovered", "tunnel.down"]));
  const rule = { name: "tunnels", metric: "tunnel.down", operator: "gt", threshold: 0, forSeconds: 0, clearForSeconds: 0, severity: "critical" };
  await ask("POST", "/alert-rules", rule);
  const alerts = async () => {
    await runJob(world, "alerts.evaluate");
    return (await ask("GET", "/alerts")).filter(({ type }: { readonly type: string }) => type === "tunnel.down");
  };
  expect(await alerts()).toMatchObject([{ status: "open", target: { kind: "resource", id: tunnelId } }]);
  await ask("PATCH", `/tunnels/${tunnelId}`, { status: "stopped" });
  expect(await alerts()).toMatchObject([{ status: "resolved" }]);
});

test("a service that is a unix socket in the agent's folder is visited like any other, and hears of localhost", async () => {
  const path = join(machine.folder, "sockets");
  await mkdir(path, { recursive: true });
  const local = createServer((message, response) => void response.end(`${message.headers.host} ${message.url}`)).listen(join(path, "shop.sock"));
  await once(local, "listening");
  const { hostname } = await open({ targetPort: undefined, service: "unix:sockets/shop.sock", hostHeader: "service" });
  expect(await bodyOf(visit(hostname, "/cart?n=1"))).toBe("localhost /cart?n=1");
  local.close();
  const refused = await world.call(owner, "POST", `/v1/devices/${device.deviceId}/tunnels`, { body: { service: "unix:sockets/../device.json" } });
  expect([refused.status, refused.body.details]).toEqual([422, { reason: "path" }]);
});

test("a service that nothing listens at makes the tunnel an error that says so, and visitors get 502", async () => {
  const made = (await ask("POST", `/devices/${device.deviceId}/tunnels`, { targetPort: 1, access: { mode: "public" } })) as Made;
  await eventually(async () => expect(await ask("GET", `/tunnels/${made.tunnelId}`)).toMatchObject({ status: "error", failure: { reason: "refused" } }));
  const response = await visit(made.hostname, "/");
  expect([response.statusCode, JSON.parse(await text(response)).code]).toEqual([502, "SERVICE_UNREACHABLE"]);
});

test("a device offers nothing but itself, whatever the gateway asks", async () => {
  const made = (await ask("POST", `/devices/${device.deviceId}/tunnels`, { service: "http://10.0.0.1:80", access: { mode: "public" } })) as Made;
  await eventually(async () => expect(await ask("GET", `/tunnels/${made.tunnelId}`)).toMatchObject({ failure: { reason: "not_allowed" } }));
  expect((await visit(made.hostname, "/")).statusCode).toBe(502);
});

test("an origin that ends idle connections makes no request hang or fail", async () => {
  const hasty = createServer((_message, response) => void response.end("answer")).listen(0, "127.0.0.1");
  hasty.on("connection", (socket) => socket.on("data", () => setImmediate(() => socket.end())));
  await once(hasty, "listening");
  const { hostname } = await open({ targetPort: (hasty.address() as { port: number }).port });
  for (let n = 0; n < 12; n += 1) expect((await visit(hostname, "/")).statusCode).toBe(200);
  hasty.close();
});

test("a visitor who leaves ends the request at the service", async () => {
  const socket = connect(edgePort(), "127.0.0.1");
  socket.write(`GET /held HTTP/1.1\r\nHost: ${shop.hostname}\r\n\r\n`);
  await once(socket, "data");
  const [response] = held.splice(0);
  socket.destroy();
  if (response?.destroyed !== true) await once(response ?? socket, "close");
});

test("visitors who left while it was looked up whether they may come in take nobody's place", async () => {
  const { hostname } = await open({ access: { mode: "private" } });
  const { apiKey } = (await ask("POST", "/api-keys", { name: "fresh", role: "operator" })) as { readonly apiKey: string };
  const holder = await world.sql.connect();
  await holder.query("begin; lock table api_keys in access exclusive mode");
  const head = `GET /headers HTTP/1.1\r\nHost: ${hostname}\r\nx-mooring-key: ${apiKey}\r\n\r\n`;
  const hasty = Array.from({ length: 40 }, () =>
    connect(edgePort(), "127.0.0.1", function (this: Socket) {
      this.write(head, () => this.destroy());
    }),
  );
  await Promise.all(hasty.map((socket) => once(socket, "close")));
  // The edge has seen all of them leave once it answers somebody who came later.
  expect((await visit(shop.hostname, "/")).statusCode).toBe(200);
  await holder.query("rollback");
  holder.release();
  const statuses = await Promise.all(Array.from({ length: 32 }, async () => (await visit(hostname, "/", { headers: { "x-mooring-key": apiKey } })).statusCode));
  expect(statuses).toEqual(statuses.map(() => 200));
});

describe("a tunnel with limits of its own", () => {
  test("takes so many requests in a minute, a tenth of them at once, and says when to come again", async () => {
    const { hostname, tunnelId } = await open({ limits: { requestsPerMinute: 20 } });
    const statuses = [];
    for (let n = 0; n < 4; n += 1) statuses.push((await visit(hostname, "/")).statusCode);
    expect(statuses).toEqual([200, 200, 429, 429]);
    const refused = await visit(hostname, "/");
    expect([refused.headers["retry-after"], JSON.parse(await text(refused)).code]).toEqual(["3", "RATE_LIMIT_EXCEEDED"]);
    await ask("PATCH", `/tunnels/${tunnelId}`, { limits: {} });
    await eventually(async () => expect((await visit(hostname, "/")).statusCode).toBe(200));
    expect(await ask("GET", `/tunnels/${tunnelId}`)).toMatchObject({ limits: { requestsPerMinute: null, connections: null, idleSeconds: null } });
  });

  test("has so many open requests and WebSockets of all visitors together", async () => {
    const { hostname } = await open({ limits: { connections: 2 } });
    const first = await visit(hostname, "/held");
    const socket = new WebSocket(`ws://127.0.0.1:${edgePort()}/`, { headers: { host: hostname } });
    await once(socket, "open");
    expect(JSON.parse(await bodyOf(visit(hostname, "/"))).code).toBe("TUNNEL_FULL");
    const third = new WebSocket(`ws://127.0.0.1:${edgePort()}/`, { headers: { host: hostname } });
    const [error] = (await once(third, "error")) as [Error];
    expect(error.message).toContain("429");
    for (const response of held.splice(0)) response.end();
    await text(first);
    await eventually(async () => expect((await visit(hostname, "/")).statusCode).toBe(200));
    socket.terminate();
  });

  test("ends an answer and a WebSocket that carry nothing for so long", async () => {
    const { hostname } = await open({ limits: { idleSeconds: 1 } });
    const socket = new WebSocket(`ws://127.0.0.1:${edgePort()}/`, { headers: { host: hostname } });
    await once(socket, "open");
    const answer = await visit(hostname, "/held");
    const [, [error]] = await Promise.all([once(socket, "close"), once(answer.resume(), "error") as Promise<[Error]>]);
    expect(error.message).toBe("aborted");
    for (const response of held.splice(0)) response.destroy();
  });

  test.each([{ requestsPerMinute: 0 }, { connections: 10_001 }, { idleSeconds: 0 }, { bytes: 1 }])("%j is refused", async (limits) => {
    const refused = await world.call(owner, "POST", `/v1/devices/${device.deviceId}/tunnels`, { body: { targetPort: 80, limits } });
    expect([refused.status, refused.body.code]).toEqual([400, "VALIDATION_FAILED"]);
  });
});
