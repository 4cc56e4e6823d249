// The internal listener, as balancers, Prometheus and operators use it, and under careless and hostile input.
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ListenError } from "../../server/gateway/http/listen-error.ts";
import { listenInternal } from "../../server/gateway/internal.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { anonymous, startWorld, type World } from "../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ INTERNAL_TOKEN: "the token of this test" });
});
afterAll(() => world.close());

const TOKEN = "Authorization: Bearer the token of this test\r\n";

/** Sends bytes on a new connection and returns everything that arrives until the other side closes it. */
const raw = async (bytes: string, port = world.app.internalPort()): Promise<{ readonly status: number; readonly head: string; readonly body: string }> => {
  const socket = connect(port, "127.0.0.1");
  socket.setTimeout(15_000, () => socket.destroy(new Error("silence")));
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  socket.write(bytes);
  await once(socket, "close");
  const [head = "", body = ""] = text.split("\r\n\r\n", 2);
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]), head, body };
};
const get = (path: string, more = "", version = "1.0"): ReturnType<typeof raw> =>
  raw(`GET ${path} HTTP/${version}\r\nHost: x\r\nConnection: close\r\n${more}\r\n`);

describe("health checks", () => {
  test.each(["/livez", "/readyz", "/health", "/health/live", "/health/ready", "/health/full", "/health/deep", "/v1/health/ready", "/readyz?full"])(
    "%s needs no token and answers over HTTP/1.0 and 1.1",
    async (path) => {
      for (const version of ["1.0", "1.1"]) {
        const { status, head, body } = await get(path, "", version);
        expect([version, status]).toEqual([version, 200]);
        expect(head.toLowerCase()).toContain(`content-length: ${Buffer.byteLength(body)}`);
        expect(JSON.parse(body)).toMatchObject({ success: true });
      }
    },
  );

  test("a health check without Host or any other header is answered", async () => {
    expect((await raw("GET /readyz HTTP/1.0\r\n\r\n")).status).toBe(200);
  });

  test("HAProxy's default check, OPTIONS /, answers as readiness does", async () => {
    expect(JSON.parse((await raw("OPTIONS / HTTP/1.0\r\n\r\n")).body)).toMatchObject({ ready: true });
  });

  test("HEAD answers like GET without the body", async () => {
    const { status, head, body } = await raw("HEAD /readyz HTTP/1.0\r\n\r\n");
    expect([status, body]).toEqual([200, ""]);
    expect(Number(/content-length: (\d+)/i.exec(head)?.[1])).toBeGreaterThan(20);
  });

  test.each(["/livez", "/readyz"])("%s is served at the root of the public listener too", async (path) => {
    const [root, prefixed] = [await world.call(anonymous, "GET", path), await world.call(anonymous, "GET", `/v1${path}`)];
    expect([root.status, Object.keys(root.body)]).toEqual([200, Object.keys(prefixed.body)]);
    expect((await world.call(anonymous, "POST", path)).status).toBe(405);
  });
});

describe("operator routes", () => {
  test.each(["/metrics", "/internal/metrics", "/internal/node", "/", "/v1/devices", "/nowhere"])("%s needs the token", async (path) => {
    for (const more of ["", "Authorization: Bearer wrong\r\n", "Authorization: the token of this test\r\n"]) expect((await get(path, more)).status).toBe(401);
  });

  test("both metrics paths answer in the format that Prometheus reads", async () => {
    for (const path of ["/metrics", "/internal/metrics"]) {
      const { head, body } = await get(path, TOKEN);
      expect(head).toMatch(/content-type: text\/plain; version=0\.0\.4/i);
      expect(body.split("\n").find((line) => !line.startsWith("#"))).toBe("mooring_commands_past_deadline 0");
    }
  });

  test("the node describes itself, and no other route of the public listener is served here", async () => {
    expect(JSON.parse((await get("/internal/node", TOKEN)).body)).toMatchObject({ draining: false });
    for (const path of ["/", "/v1/devices", "/trpc/devices.list"]) expect((await get(path, TOKEN)).status).toBe(404);
    expect((await get("/internal/drain", TOKEN)).status).toBe(404);
  });

  test("the settings are shown with secrets masked", async () => {
    const { status, body } = await get("/internal/config", TOKEN);
    const { settings } = JSON.parse(body);
    expect([status, settings.NODE_ENV, settings.MASTER_KEY, settings.INTERNAL_TOKEN]).toEqual([200, "test", "********", "********"]);
    expect(body).not.toContain("the token of this test");
    expect((await get("/internal/config")).status).toBe(401);
  });

  test("a background job runs on order, and an unknown one is refused", async () => {
    const order = (name: string, more = TOKEN) => raw(`POST /internal/jobs/${name}/run HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`);
    expect(await order("nodes.forget")).toMatchObject({ status: 202, body: '{"name":"nodes.forget"}' });
    for (const name of ["unknown", "__proto__", "..%2f", "a/b"]) expect((await order(name)).status).toBe(404);
    expect((await order("nodes.forget", "")).status).toBe(401);
  });

  test("drain turns readiness to 503 and leaves liveness at 200", async () => {
    const own = await startWorld({ INTERNAL_TOKEN: "the token of this test" });
    const port = own.app.internalPort();
    const drained = await raw(`POST /internal/drain HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n${TOKEN}\r\n`, port);
    expect([drained.status, JSON.parse(drained.body)]).toEqual([202, { draining: true }]);
    expect((await raw("GET /readyz HTTP/1.0\r\n\r\n", port)).status).toBe(503);
    expect((await raw("OPTIONS / HTTP/1.0\r\n\r\n", port)).status).toBe(503);
    expect((await raw("GET /livez HTTP/1.0\r\n\r\n", port)).status).toBe(200);
    await own.close();
  });
});

describe("bounds", () => {
  test("a head that is too large, malformed or ambiguous is refused", async () => {
    expect((await get("/readyz", `X: ${"x".repeat(20_000)}\r\n`)).status).toBe(431);
    expect((await raw("nonsense\r\n\r\n")).status).toBe(400);
    expect((await raw("POST /internal/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")).status).toBe(400);
  });

  test("a large body is refused by its length, and cut off if it states none", async () => {
    expect((await raw(`POST /internal/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n${TOKEN}\r\n`)).status).toBe(413);
    const chunk = `1000\r\n${"x".repeat(4_096)}\r\n`;
    const endless = raw(`POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(50)}`).catch(() => ({ status: 0 }));
    expect((await endless).status).not.toBe(200);
  });

  test("closing does not wait for idle connections", async () => {
    const own = await startWorld({ INTERNAL_TOKEN: "the token of this test", SHUTDOWN_SECONDS: "60" });
    const idle = connect(own.app.internalPort(), "127.0.0.1");
    await once(idle, "connect");
    idle.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(idle, "data");
    const ended = once(idle, "close");
    await withTimeout(own.close(), 20_000, "the gateway did not close");
    await ended;
  });
});

describe("port", () => {
  const routes = {
    token: "t",
    metrics: { text: async () => "", contentType: "text/plain" },
    node: () => ({ who: "me" }),
    drain: () => undefined,
    config: () => ({}),
    runJob: () => false,
    front: {
      receive: () => {
        throw new Error("nobody asks for health here");
      },
    },
  };
  const holder = async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return { server, port: address.port };
  };

  test("a taken port fails with one sentence that names both settings", async () => {
    const { server, port } = await holder();
    const refused = await listenInternal({ host: "127.0.0.1", port, routes }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ListenError);
    expect((refused as Error).message).toBe(`cannot listen on 127.0.0.1:${port}: the port is taken. Set INTERNAL_PORT (0: any free one) or INTERNAL_HOST`);
    server.close();
  });

  test("an address of another machine fails with that reason", async () => {
    await expect(listenInternal({ host: "192.0.2.1", port: 0, routes })).rejects.toThrow("this machine does not have that address");
  });

  test("a worker's heir takes over the port when its predecessor stops accepting, and answers a handler's failure with 503", async () => {
    const first = await listenInternal({ host: "127.0.0.1", port: 0, routes });
    const heir = await listenInternal({ host: "127.0.0.1", port: first.port, routes, inherits: true });
    first.stopAccepting();
    await eventually(async () => {
      const { body } = await raw(`GET /internal/node HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer t\r\n\r\n`, first.port);
      expect(JSON.parse(body)).toEqual({ who: "me" });
    });
    expect((await raw("GET /readyz HTTP/1.0\r\n\r\n", first.port)).status).toBe(503);
    await Promise.all([first.close(), heir.close()]);
  });

  test("an heir that closes while its predecessor holds the port never listens", async () => {
    const { server, port } = await holder();
    const heir = await listenInternal({ host: "127.0.0.1", port, routes, inherits: true });
    await heir.close();
    server.close();
    await once(server, "close");
    await expect(raw("GET / HTTP/1.0\r\n\r\n", port)).rejects.toThrow("ECONNREFUSED");
  });
});
