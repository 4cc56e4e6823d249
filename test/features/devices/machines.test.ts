// What lists of devices show of their machines: where they are in their networks, and how many apps they have, for whoever may know.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpAnswer, NoAnswer, thisMachine } from "../../../agent-sim/agent/index.ts";
import { createInventorySync } from "../../../agent-sim/host/inventory-sync.ts";
import { accessOf } from "../../../server/core/access.ts";
import { newId } from "../../../server/core/ids.ts";
import { reachable } from "../../../server/features/devices/addresses.ts";
import { createWithApps } from "../../../server/features/devices/app-counts.ts";
import { createFastTime } from "../../agent-sim/clocks.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { asKey, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

describe("of the addresses that an agent reports", () => {
  test("those stay that others can reach, the near ones first, each once", () => {
    const reported = ["2001:4860:4860::8888", "fe80::1", "127.0.0.1", "8.8.8.8", "192.168.1.20", "::ffff:192.168.1.20", "fd12::7", "100.64.3.4", "169.254.1.1"];
    expect(reachable(reported)).toEqual([
      { kind: "lan", address: "192.168.1.20" },
      { kind: "lan", address: "100.64.3.4" },
      { kind: "lan", address: "fd12::7" },
      { kind: "public", address: "8.8.8.8" },
      { kind: "public", address: "2001:4860:4860::8888" },
    ]);
  });

  test("nothing stays that is no address, and sixteen at most", () => {
    expect(reachable(["", "10.0.0", "010.0.0.1", "0x7f.1", "10.0.0.1/24", "evil.example/#", "10.0.0.1:80", "<b>"])).toEqual([]);
    expect(reachable(Array.from({ length: 64 }, (_, n) => `10.0.0.${n}`))).toHaveLength(16);
  });
});

describe("devices", () => {
  let world: World;
  let tenant: TestTenant;
  let device: Device;
  beforeAll(async () => {
    world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off" }, { inProcess: true });
    tenant = await world.tenant();
    device = await tenant.device();
  });
  afterAll(() => world.close());

  const read = async (path: string, as = tenant.user("viewer")) => (await world.call(await as, "GET", path)).body.data;
  const inventory = (body: object) => world.call(device.as, "PUT", "/v1/agent/inventory", { body });
  const install = async (name: string) => {
    const body = { appType: "key-value", deviceId: device.deviceId, name };
    return (await world.call(await tenant.user(), "POST", "/v1/apps", { body })).body.data.appId;
  };

  test("show the addresses that their agent reported last; an agent that tells none changes nothing", async () => {
    const path = `/v1/devices/${device.deviceId}`;
    expect((await read(path)).addresses).toEqual([]);
    expect((await inventory({ ipAddresses: ["127.0.0.1", "192.168.1.20"] })).status).toBe(200);
    await inventory({ hostname: "attic" });
    expect(await read(path)).toMatchObject({ hostname: "attic", addresses: [{ kind: "lan", address: "192.168.1.20" }] });
    const listed = (await read("/v1/devices")).find(({ deviceId }: { deviceId: string }) => deviceId === device.deviceId);
    expect(listed.addresses).toEqual([{ kind: "lan", address: "192.168.1.20" }]);
    await inventory({ ipAddresses: [] });
    expect((await read(path)).addresses).toEqual([]);
    expect((await inventory({ ipAddresses: Array.from({ length: 65 }, () => "10.0.0.1") })).status).toBe(400);
  });

  test("show model, hardware and kinds of apps that their agent reported last; what is impossible is refused", async () => {
    const path = `/v1/devices/${device.deviceId}`;
    const known = { model: "NUC 13 Pro", hardware: { cpuCores: 8, memoryBytes: 17_179_869_184, diskBytes: 512_110_190_592 }, runtimes: [] };
    for (const name of Object.keys(known)) expect(await read(path)).not.toHaveProperty(name);
    await inventory(known);
    await inventory({ osVersion: "Debian 13" });
    expect(await read(path)).toMatchObject({ ...known, osVersion: "Debian 13" });
    for (const bad of [{ cpuCores: 0 }, { cpuCores: 1.5 }, { memoryBytes: -1 }, { diskBytes: "much" }])
      expect((await inventory({ hardware: bad })).status).toBe(400);
    expect(await read(path)).toMatchObject(known);
  });

  test("count their apps and those in error, in every read, for callers who may read apps", async () => {
    const [broken] = [await install("one"), await install("two")];
    await world.sql.query("update apps set status = 'error' where app_id = $1", [broken]);
    const apps = { total: 2, error: 1 };
    const { deviceId } = device;
    expect((await read(`/v1/devices/${deviceId}`)).apps).toEqual(apps);
    const listed = async (path: string) => (await read(path)).find((each: { readonly deviceId: string }) => each.deviceId === deviceId);
    for (const path of ["/v1/devices", "/v1/hosts"]) expect((await listed(path)).apps).toEqual(apps);
    expect(await listed("/v1/devices/partial?fields=apps")).toEqual({ deviceId, apps });
    const other = await tenant.device();
    expect((await read(`/v1/devices/${other.deviceId}`)).apps).toEqual({ total: 0, error: 0 });
    const made = await world.call(await tenant.user(), "POST", "/v1/api-keys", { body: { name: newId("key"), role: "viewer", scopes: ["device:read"] } });
    expect(await read(`/v1/devices/${deviceId}`, Promise.resolve(asKey(made.body.data.apiKey, tenant.tenantId)))).not.toHaveProperty("apps");
  });

  test("of a page are counted in one read, and none runs for a page without devices", async () => {
    const asked: (readonly string[])[] = [];
    const countApps = async (_sql: unknown, _scope: unknown, deviceIds: readonly string[]) => {
      asked.push(deviceIds);
      return new Map([["dev_a", { total: 3, error: 1 }]]);
    };
    const withApps = createWithApps({ db: { query: async () => [] }, countApps });
    const scope = { tenantId: tenant.tenantId, principal: { kind: "user", userId: "u", email: null, ...accessOf("viewer") } } as Parameters<typeof withApps>[0]; // as: it reads permissions only
    const page = (await read("/v1/devices")) as Parameters<typeof withApps>[1];
    const devices = ["dev_a", "dev_b"].flatMap((deviceId) => page.slice(0, 1).map((each) => ({ ...each, deviceId: deviceId as typeof each.deviceId })));
    expect((await withApps(scope, devices)).map(({ apps }) => apps)).toEqual([
      { total: 3, error: 1 },
      { total: 0, error: 0 },
    ]);
    expect(await withApps(scope, [])).toEqual([]);
    expect(asked).toEqual([["dev_a", "dev_b"]]);
  });

  test("show what their agent tells at its start, again after a lost answer, and after a change", async () => {
    const other = await tenant.device();
    let lost = 1;
    const call = async (method: string, path: string, body?: unknown): Promise<HttpAnswer> => {
      const answer = await world.call(other.as, method, path, { body: body as object }); // as: an inventory
      if (lost-- > 0) throw new NoAnswer("the answer got lost");
      return { ...answer, headers: {} };
    };
    const inventory = { ...thisMachine.inventory(), model: "NUC 13 Pro", ipAddresses: ["10.0.0.7"] };
    const sync = createInventorySync({
      machine: { inventory: () => ({ ...inventory, ...(lost < 0 ? { model: "NUC 14 Pro" } : {}) }) },
      call,
      time: createFastTime(1_000),
    });
    sync.start();
    await eventually(async () => {
      expect(await read(`/v1/devices/${other.deviceId}`)).toMatchObject({
        model: "NUC 14 Pro",
        hardware: inventory.hardware,
        osVersion: inventory.osVersion,
        addresses: [{ kind: "lan", address: "10.0.0.7" }],
      });
    });
    sync.stop();
  });
});
