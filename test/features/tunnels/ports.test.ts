// Tunnels of TCP: a port of the edge leads to a service of a device for whoever may come from their address, and for nobody else.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { askAs } from "../../kit/gateway/ask.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../../kit/gateway/simulated-device.ts";
import { type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { freePort } from "../../kit/net/free-port.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
let device: Device;
let machine: SimulatedDevice;
let ports: readonly number[];

/** Says what it got, once the visitor has said all of it. */
const asked: Socket[] = [];
const origin = createServer({ allowHalfOpen: true }, (socket) => {
  asked.push(socket);
  socket.on("error", () => undefined);
  socket.write("ready ");
  let bytes = 0;
  socket.on("data", ({ length }: Buffer) => {
    bytes += length;
  });
  socket.on("end", () => socket.end(`got ${bytes}`));
});

interface Made {
  readonly tunnelId: string;
  readonly port: number;
  readonly url: string;
}
const call = (method: string, path: string, body?: object, as = owner) => world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
const ask = (method: string, path: string, body?: object) => askAs(world, owner, method, path, body);
const order = (more: object = {}): object => ({
  targetPort: (origin.address() as AddressInfo).port,
  protocol: "tcp",
  access: { mode: "private", allow: ["127.0.0.1"] },
  ...more,
});
/** What the service says to a visitor who sends this; null: the connection was refused or reset. */
const visit = async (port: number, sent: Buffer | string): Promise<string | null> => {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  socket.end(sent);
  return text(socket).catch(() => null);
};
const open = async (more: object = {}): Promise<Made> => {
  const made = (await ask("POST", `/devices/${device.deviceId}/tunnels`, order(more))) as Made;
  await eventually(async () => expect(await ask("GET", `/tunnels/${made.tunnelId}`)).toMatchObject({ status: "active" }));
  await eventually(async () => expect(await visit(made.port, "")).toBe("ready got 0"));
  return made;
};
const remove = ({ tunnelId }: Made): Promise<unknown> => ask("DELETE", `/tunnels/${tunnelId}`);

beforeAll(async () => {
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  ports = [await freePort(), await freePort()].sort((one, other) => one - other);
  world = await startWorld({ TUNNEL_TCP_PORTS: ports.join() });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  machine = await startSimulatedDevice(world, tenant);
  ({ device } = machine);
});
afterAll(async () => {
  await machine.stop();
  await world.close();
  for (const socket of asked) socket.destroy();
  origin.close();
});

test("bytes go both ways, a side may end first, and all of it is counted", async () => {
  const made = await open();
  expect(made).toMatchObject({ protocol: "tcp", port: ports[0], url: `tcp://127.0.0.1:${ports[0]}` });
  const before = (await ask("GET", `/tunnels/${made.tunnelId}`)).usage;
  expect(await visit(made.port, Buffer.alloc(5_000_000, 7))).toBe("ready got 5000000");
  await runJob(world, "tunnels.usage");
  const { usage } = await ask("GET", `/tunnels/${made.tunnelId}`);
  expect([usage.bytesIn - before.bytesIn, usage.requests - before.requests]).toEqual([5_000_000, expect.any(Number)]);
  expect(usage.bytesOut).toBeGreaterThan(before.bytesOut);
  await remove(made);
});

test("whose address may not come is reset, also when it was there before", async () => {
  const made = await open();
  const staying = connect({ host: "127.0.0.1", port: made.port });
  staying.on("error", () => undefined);
  await once(staying, "data");
  const gone = once(staying, "close");
  await ask("PATCH", `/tunnels/${made.tunnelId}`, { access: { mode: "private", allow: ["203.0.113.0/24"] } });
  await gone;
  expect(await visit(made.port, "x")).toBeNull();
  await ask("PATCH", `/tunnels/${made.tunnelId}`, { access: { mode: "public" } });
  await eventually(async () => expect(await visit(made.port, "x")).toBe("ready got 1"));
  await remove(made);
});

test("a stop, the end of its time and a deletion end its connections and close its port, and a start opens it again", async () => {
  const made = await open();
  const ends: readonly [object, object][] = [
    [{ status: "stopped" }, { status: "active" }],
    [{ expiresAt: "2020-01-01T00:00:00Z" }, { expiresAt: null }],
  ];
  for (const [end, begin] of ends) {
    const staying = connect({ host: "127.0.0.1", port: made.port });
    staying.on("error", () => undefined);
    await once(staying, "data");
    const gone = once(staying, "close");
    await ask("PATCH", `/tunnels/${made.tunnelId}`, end);
    await gone;
    expect(await visit(made.port, "x")).toBeNull();
    await ask("PATCH", `/tunnels/${made.tunnelId}`, begin);
    await eventually(async () => expect(await visit(made.port, "x")).toBe("ready got 1"));
  }
  await remove(made);
  await eventually(async () => expect(await visit(made.port, "x")).toBeNull());
});

test("so many connections at once as it may have, and none that says nothing for too long", async () => {
  const made = await open({ limits: { connections: 1, idleSeconds: 1 } });
  const first = connect({ host: "127.0.0.1", port: made.port });
  first.on("error", () => undefined);
  await once(first, "data");
  const ended = once(first, "close");
  expect(await visit(made.port, "x")).toBeNull();
  await ended;
  await eventually(async () => expect(await visit(made.port, "x")).toBe("ready got 1"));
  await remove(made);
});

test("two at once get two ports, a third one is refused by name, and a port is free again after its tunnel", async () => {
  const path = `/devices/${device.deviceId}/tunnels`;
  const made = (await Promise.all([1, 2].map(() => ask("POST", path, order())))) as Made[];
  expect(made.map(({ port }) => port).sort((one, other) => one - other)).toEqual(ports);
  expect((await call("POST", path, order())).body).toMatchObject({ code: "TUNNEL_SERVICE_INVALID", details: { reason: "tcp_ports_taken" } });
  const other = await world.tenant();
  const foreign = await call("POST", `/devices/${(await other.device()).deviceId}/tunnels`, order(), await other.user("owner"));
  expect(foreign.body).toMatchObject({ details: { reason: "tcp_ports_taken" } });
  await Promise.all(made.map(remove));
  const again = (await ask("POST", path, order())) as Made;
  expect(again.port).toBe(ports[0]);
  await remove(again);
});

test.each([
  ["without an address that may come", { access: { mode: "private" } }, "tcp_needs_allow"],
  ["with a token, which nothing could bring", { access: { mode: "token", allow: ["127.0.0.1"] } }, "tcp_without_token"],
  ["to a public address", { targetPort: undefined, service: "tcp://203.0.113.9:22" }, "address"],
  ["without a port", { targetPort: undefined, service: "tcp://127.0.0.1" }, "port"],
  ["with a path", { targetPort: undefined, service: "tcp://127.0.0.1:22/x" }, "path"],
  ["to another scheme", { targetPort: undefined, service: "udp://127.0.0.1:22" }, "scheme"],
])("%s it is refused", async (_, more, reason) => {
  const answer = await call("POST", `/devices/${device.deviceId}/tunnels`, order(more));
  expect([answer.status, answer.body?.code, answer.body?.details?.reason]).toEqual([422, "TUNNEL_SERVICE_INVALID", reason]);
});

test("a change cannot make it one of HTTP, nor take its addresses", async () => {
  const made = await open();
  const refusal = async (change: object): Promise<unknown> => (await call("PATCH", `/tunnels/${made.tunnelId}`, change)).body?.details?.reason;
  expect(await refusal({ service: "http://127.0.0.1:80" })).toBe("protocol");
  expect(await refusal({ access: { mode: "private", allow: [] } })).toBe("tcp_needs_allow");
  expect(await refusal({ access: { mode: "token", allow: ["127.0.0.1"] } })).toBe("tcp_without_token");
  const operator = await tenant.user("operator");
  expect((await call("PATCH", `/tunnels/${made.tunnelId}`, { access: { mode: "public" } }, operator)).status).toBe(403);
  await remove(made);
});

test("a service that nothing listens at resets its visitors", async () => {
  const dead = await freePort();
  const made = (await ask("POST", `/devices/${device.deviceId}/tunnels`, order({ targetPort: dead }))) as Made;
  await eventually(async () => expect(await ask("GET", `/tunnels/${made.tunnelId}`)).toMatchObject({ status: "error", failure: { reason: "refused" } }));
  expect(await visit(made.port, "x")).toBeNull();
  await remove(made);
});
