// Devices reach networks by way of other devices, over real agents: where somebody has approved it, through a router that answers, and no longer than they may.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { DeviceHostOptions } from "../../../agent-sim/host/open.ts";
import type { MeshRoute } from "../../../protocol/index.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../../kit/gateway/simulated-device.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { freePort } from "../../kit/net/free-port.ts";

const run = promisify(execFile);
let world: World;
let tenant: TestTenant;
let owner: Caller;
let operator: Caller;
let [routerA, routerB, consumer] = [] as unknown as [SimulatedDevice, SimulatedDevice, SimulatedDevice];
const machines: SimulatedDevice[] = [];
const held: Socket[] = [];

/** An HTTP service on an address of the router's own, which says who it is and holds what it is told to. */
const service = createServer({ allowHalfOpen: true }, (socket) => {
  held.push(socket);
  socket.on("error", () => undefined);
  socket.on("data", (chunk) => {
    if (chunk.toString("latin1").startsWith("GET /")) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nreached!");
    else socket.write(chunk);
  });
  socket.on("end", () => socket.end());
});
const portOf = (server: Server): number => (server.address() as { readonly port: number }).port;

const openMachine = async (lookup?: DeviceHostOptions["lookup"]): Promise<SimulatedDevice> => {
  const machine = await startSimulatedDevice(world, tenant, { socksPort: 0, lookup });
  machines.push(machine);
  return machine;
};
const ask = async (method: string, path: string, body?: object, as = owner) => world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
const routeOf = async (routeId: string): Promise<MeshRoute> => (await ask("GET", `/mesh-routes/${routeId}`)).body?.data;
const make = async (more: object): Promise<string> => {
  const body = {
    name: "service",
    kind: "host",
    host: "127.0.0.77",
    port: portOf(service),
    routers: [{ deviceId: routerA.device.deviceId }],
    consumers: { deviceIds: [consumer.device.deviceId] },
    ...more,
  };
  const answer = await ask("POST", "/mesh-routes", body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body.data.routeId;
};
const approve = async (routeId: string): Promise<void> => {
  expect((await ask("POST", `/mesh-routes/${routeId}/approve`)).status).toBe(200);
  await eventually(async () => expect((await routeOf(routeId)).status).toBe("active"), { stepMs: 200 });
};
const remove = (routeId: string) => ask("DELETE", `/mesh-routes/${routeId}`);
/** Through the consumer's proxy; what curl prints, or the code with which it ends. */
const curl = async (url: string): Promise<string> => {
  const { socksPort } = consumer.host;
  if (socksPort === null) return "no proxy";
  const asked = ["-s", "-m", "20", "--socks5-hostname", `127.0.0.1:${socksPort}`, url];
  return run("curl", asked).then(
    ({ stdout }) => stdout,
    (error: { readonly code: number }) => `curl ${error.code}`,
  );
};
/** Curl is a process, so it is not asked too often. */
const curlUntil = (url: string, isIt: (said: string) => boolean): Promise<void> =>
  eventually(async () => expect(await curl(url)).toSatisfy(isIt), { stepMs: 300 });
const isReached = (said: string): boolean => said === "reached!";
const closed = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once("close", resolve));
const there = (): string => `http://127.0.0.77:${portOf(service)}/`;

/** A connection through the proxy that stays open. */
const openThrough = async (host: string, port: number): Promise<Socket> => {
  const socket = connect({ port: consumer.host.socksPort ?? 0, host: "127.0.0.1" });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const name = Buffer.from(host);
  socket.write(Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]));
  let got = Buffer.alloc(0);
  while (got.length < 12) got = Buffer.concat([got, (await once(socket, "data"))[0] as Buffer]);
  expect([...got.subarray(0, 4)]).toEqual([5, 0, 5, 0]);
  return socket;
};

beforeAll(async () => {
  service.listen(0, "127.0.0.77");
  await once(service, "listening");
  world = await startWorld({}, { spread: true });
  tenant = await world.tenant();
  [owner, operator] = [await tenant.user("owner"), await tenant.user("operator")];
  routerA = await openMachine((name, _options, done) =>
    done(null, [{ address: name === "rebound.plant.example" ? "127.0.0.1" : "169.254.169.254", family: 4 }]),
  );
  routerB = await openMachine();
  consumer = await openMachine();
});
afterAll(async () => {
  for (const machine of machines) await machine.stop();
  await world.close();
  for (const socket of held) socket.destroy();
  service.close();
});

afterEach(async () => {
  for (const { routeId } of (await ask("GET", "/mesh-routes")).body?.data ?? []) await remove(routeId);
});

test("a consumer reaches a host by the proxy and by a port of its own, once somebody has approved it", async () => {
  const listenPort = await freePort();
  const routeId = await make({ listenPort });
  expect(await routeOf(routeId)).toMatchObject({ approval: "pending", status: "down", activeRouter: null });
  expect((await ask("POST", `/mesh-routes/${routeId}/approve`, undefined, operator)).status).toBe(403);
  await approve(routeId);
  await curlUntil(there(), isReached);
  await eventually(async () => expect((await run("curl", ["-s", "-m", "20", `http://127.0.0.1:${listenPort}/`])).stdout).toBe("reached!"));
  // Python speaks to the proxy by itself, without a library.
  const python = `import socket,sys\ns=socket.create_connection(("127.0.0.1",${consumer.host.socksPort}))\ns.sendall(bytes([5,1,0,5,1,0,1,127,0,0,77])+(${portOf(service)}).to_bytes(2,"big"))\ngot=b""\nwhile len(got)<12: got+=s.recv(64)\ns.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")\nout=b""\nwhile True:\n  part=s.recv(1024)\n  if not part: break\n  out+=part\nsys.stdout.write(out.decode()[-8:])`;
  expect((await run("python3", ["-c", python])).stdout).toBe("reached!");
  const effective = (await ask("GET", `/mesh/effective?deviceId=${consumer.device.deviceId}`)).body?.data;
  expect(effective).toMatchObject([{ routeId, role: "consumer", router: routerA.device.deviceId, usable: true, reason: null }]);
  const peers = (await ask("GET", "/mesh/peers")).body?.data;
  expect(peers).toEqual([{ deviceId: routerA.device.deviceId, routes: [routeId], connected: true }]);
  await runJob(world, "mesh-routes.usage");
  const { connections, bytesIn, bytesOut } = (await routeOf(routeId)).usage;
  expect([connections >= 3, bytesIn > 0, bytesOut > 0]).toEqual([true, true, true]);
  await remove(routeId);
  await curlUntil(there(), (said) => !isReached(said));
});

test("bytes pass in both directions, each ends by itself, and a service that breaks off is no end", async () => {
  const routeId = await make({});
  await approve(routeId);
  await curlUntil(there(), isReached);
  const socket = await openThrough("127.0.0.77", portOf(service));
  const body = Buffer.alloc(1_048_576, "m");
  socket.end(body);
  expect((await text(socket)).length).toBe(body.length);
  const broken = await openThrough("127.0.0.77", portOf(service));
  const ended = closed(broken);
  broken.write("x");
  await once(broken, "data");
  const errors: unknown[] = [];
  broken.on("error", (error) => errors.push(error));
  held.at(-1)?.resetAndDestroy();
  await ended;
  expect(errors).toMatchObject([{ code: "ECONNRESET" }]);
});

describe("nobody reaches", () => {
  test("what no route leads to, another port of a host, or anything by a name in place of its address", async () => {
    const routeId = await make({});
    await approve(routeId);
    await curlUntil(there(), isReached);
    // 97: the proxy refuses.
    for (const url of [
      `http://127.0.0.77:${portOf(service) === 9 ? 10 : 9}/`,
      "http://127.0.0.1:80/",
      "http://169.254.169.254/",
      "http://2130706509:80/",
      "http://localhost:80/",
    ])
      expect([url, await curl(url)]).toEqual([url, "curl 97"]);
  });

  test("a name that the router resolves to itself or to the metadata of its cloud", async () => {
    const routeId = await make({ kind: "domain", host: undefined, port: undefined, domains: ["*.plant.example"] });
    await approve(routeId);
    await curlUntil(`http://rebound.plant.example:${portOf(service)}/`, (said) => said === "curl 97");
    expect(await curl("http://metadata.plant.example/")).toBe("curl 97");
  });
});

test("when the router goes, the next connection takes the other one", async () => {
  const lost = await openMachine();
  const routeId = await make({ routers: [{ deviceId: lost.device.deviceId, metric: 2 }] });
  await approve(routeId);
  // The router that answers is kept, whatever the metric of another one.
  await ask("PATCH", `/mesh-routes/${routeId}`, { routers: [{ deviceId: lost.device.deviceId, metric: 2 }, { deviceId: routerB.device.deviceId }] });
  await approve(routeId);
  expect(await routeOf(routeId)).toMatchObject({ activeRouter: lost.device.deviceId });
  await curlUntil(there(), isReached);
  const socket = await openThrough("127.0.0.77", portOf(service));
  // Listened for before the stop: the connection may be closed by the time that has ended.
  const gone = closed(socket);
  await lost.stop();
  await gone;
  await curlUntil(there(), isReached);
  for (let misses = 0; misses < 2; misses += 1) {
    await world.sql.query("update mesh_routers set checked_at = now() - interval '10 seconds' where route_id = $1", [routeId]);
    await world.sql.query("update mesh_routes set probe_at = now() where route_id = $1", [routeId]);
    await runJob(world, "mesh-routes.probes");
  }
  await eventually(async () => expect(await routeOf(routeId)).toMatchObject({ status: "degraded", activeRouter: routerB.device.deviceId }));
});

test("a route whose only router has gone is down, and says so once", async () => {
  const lost = await openMachine();
  const routeId = await make({ routers: [{ deviceId: lost.device.deviceId }] });
  await approve(routeId);
  await lost.stop();
  await eventually(async () => {
    await world.sql.query("update mesh_routers set checked_at = now() - interval '10 seconds' where route_id = $1", [routeId]);
    await world.sql.query("update mesh_routes set probe_at = now() where route_id = $1", [routeId]);
    await runJob(world, "mesh-routes.probes");
    expect(await routeOf(routeId)).toMatchObject({ status: "down", activeRouter: null });
  });
  const told = await world.sql.query("select 1 from outbox_events where type = 'mesh_route.down' and subject_id = $1", [routeId]);
  expect(told.rows).toHaveLength(1);
});

test("a consumer that is removed loses the route, and what it has open", async () => {
  const other = await tenant.device();
  const routeId = await make({});
  await approve(routeId);
  await curlUntil(there(), isReached);
  const socket = await openThrough("127.0.0.77", portOf(service));
  const gone = closed(socket);
  const { body } = await ask("PATCH", `/mesh-routes/${routeId}`, { consumers: { deviceIds: [other.deviceId] } });
  expect(body.data).toMatchObject({ approval: "pending", status: "down" });
  await gone;
  await approve(routeId);
  await curlUntil(there(), (said) => !isReached(said));
});
