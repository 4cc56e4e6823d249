// Devices offer networks that they can lead to: each offer becomes one route that waits for approval, and nobody gets through without it.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { startSimulatedDevice } from "../../kit/gateway/simulated-device.ts";
import { type Answer, type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;

beforeAll(async () => {
  world = await startWorld();
  tenant = await world.tenant();
  owner = await tenant.user("owner");
});
afterAll(() => world.close());

const report = (device: Device, advertises: unknown): Promise<Answer> =>
  world.call(device.as, "PUT", "/v1/agent/reported-state", { body: { version: 0, apps: [], advertises } });
const refusedOf = async (device: Device, advertises: readonly string[]): Promise<unknown> => {
  const { status, body } = await report(device, advertises);
  expect(status, JSON.stringify(body)).toBe(200);
  return body?.data.refused;
};
const routesOf = async (deviceId: string, as = owner): Promise<readonly Readonly<Record<string, unknown>>[]> => {
  const { body } = await world.call(as, "GET", "/v1/mesh-routes?pageSize=100");
  return body?.data.filter(({ advertisedBy }: { readonly advertisedBy: string | null }) => advertisedBy === deviceId);
};

test("each network becomes a route of the device that waits for approval, however often it is offered", async () => {
  const device = await tenant.device();
  const offer = ["10.20.0.0/16", "192.168.20.0/24", "10.20.0.0/16"];
  expect(await Promise.all([refusedOf(device, offer), refusedOf(device, offer)])).toEqual([[], []]);
  expect(await refusedOf(device, offer)).toEqual([]);
  const routes = await routesOf(device.deviceId);
  expect(routes.map(({ network }) => network).sort()).toEqual(["10.20.0.0/16", "192.168.20.0/24"]);
  for (const route of routes) {
    const expected = {
      kind: "subnet",
      approval: "pending",
      status: "down",
      createdBy: device.identity.agentId,
      routers: [{ deviceId: device.deviceId, metric: 100 }],
    };
    expect(route).toMatchObject({ ...expected, consumers: { deviceIds: [], tags: [], fleetIds: [], all: true } });
  }
  const { rows } = await world.sql.query("select count(*)::int as told from outbox_events where subject_id = any($1) and type = 'mesh_route.created'", [
    routes.map(({ routeId }) => routeId),
  ]);
  expect(rows).toEqual([{ told: 2 }]);
});

test("what people made of a route stays: rejected, renamed, or for others", async () => {
  const device = await tenant.device();
  await refusedOf(device, ["10.30.0.0/16"]);
  const [{ routeId } = {}] = await routesOf(device.deviceId);
  const change = { name: "the other plant", consumers: { tags: ["site:porto"] } };
  expect((await world.call(owner, "PATCH", `/v1/mesh-routes/${routeId}`, { body: change })).status).toBe(200);
  expect((await world.call(owner, "POST", `/v1/mesh-routes/${routeId}/reject`)).status).toBe(200);
  expect(await refusedOf(device, ["10.30.0.0/16"])).toEqual([]);
  expect(await routesOf(device.deviceId)).toMatchObject([{ routeId, name: "the other plant", approval: "rejected", consumers: { tags: ["site:porto"] } }]);
});

test("networks to which no route may lead are refused one by one, and the others become routes", async () => {
  const device = await tenant.device();
  const offer = ["0.0.0.0/0", "127.0.0.0/8", "169.254.169.254/32", "8.8.8.0/24", "10.40.0.1/16", "'; --", "10.40.0.0/16"];
  expect(await refusedOf(device, offer)).toEqual([
    { network: "0.0.0.0/0", reason: "prefix_too_short" },
    { network: "127.0.0.0/8", reason: "loopback" },
    { network: "169.254.169.254/32", reason: "link_local" },
    { network: "8.8.8.0/24", reason: "public" },
    { network: "10.40.0.1/16", reason: "host_bits_set" },
    { network: "'; --", reason: "not_a_network" },
  ]);
  expect((await routesOf(device.deviceId)).map(({ network }) => network)).toEqual(["10.40.0.0/16"]);
  for (const wrong of ["10.0.0.0/8", [7], Array.from({ length: 11 }, (_, at) => `10.${at}.0.0/16`), ["x".repeat(65)]])
    expect((await report(device, wrong)).status, JSON.stringify(wrong)).toBe(400);
});

test("of two devices with one network the second is told that there is a route, and another tenant's is none of them", async () => {
  const [first, second] = [await tenant.device(), await tenant.device()];
  const other = await world.tenant();
  const foreign = await other.device();
  expect(await refusedOf(first, ["10.50.0.0/16"])).toEqual([]);
  expect(await refusedOf(second, ["10.50.0.0/16"])).toEqual([{ network: "10.50.0.0/16", reason: "conflict" }]);
  expect(await routesOf(second.deviceId)).toEqual([]);
  expect(await refusedOf(foreign, ["10.50.0.0/16"])).toEqual([]);
  expect(await routesOf(foreign.deviceId, await other.user("owner"))).toHaveLength(1);
});

test("the plan's number of routes holds for offers, too", async () => {
  const small = await world.tenant();
  await world.sql.query(`update tenants set limit_overrides = '{"meshRoutes": 1}' where tenant_id = $1`, [small.tenantId]);
  const device = await small.device();
  expect(await refusedOf(device, ["10.60.0.0/16", "10.61.0.0/16"])).toEqual([{ network: "10.61.0.0/16", reason: "plan_limit" }]);
});

test("the reference agent offers what a file in its folder names", async () => {
  const machine = await startSimulatedDevice(world, tenant, {}, (folder) => writeFile(join(folder, "mesh.advertise"), "# the plant\n10.70.0.0/16 # floor\n\n"));
  try {
    await eventually(async () => expect((await routesOf(machine.device.deviceId)).map(({ network }) => network)).toEqual(["10.70.0.0/16"]), { stepMs: 200 });
  } finally {
    await machine.stop();
  }
});
