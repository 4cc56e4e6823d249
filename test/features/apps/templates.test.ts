// The catalogue as a tenant sees it (contract.apps): filters, pages, and what the tenant's plan allows.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AppTemplate, lacksOf } from "../../../protocol/index.ts";
import { accessOf } from "../../../server/core/access.ts";
import type { SqlTx } from "../../../server/core/events.ts";
import { newId } from "../../../server/core/ids.ts";
import type { GroupMachines } from "../../../server/core/ports/machine-groups.ts";
import { createFits } from "../../../server/features/apps/fits.ts";
import { loadAppCatalogue } from "../../../server/features/apps/index.ts";
import { groupMachines } from "../../../server/features/devices/store/machine-groups.ts";
import { packageFile } from "../../../server/version.ts";
import { asKey, type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let viewer: Caller;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", RATE_LIMIT_AGENT: "off" }, { inProcess: true });
  viewer = await withPlan("free");
});
afterAll(() => world.close());

/** A viewer of a new tenant with this plan. */
const withPlan = async (plan: string, limitOverrides = {}): Promise<Caller> => {
  const tenant = await world.tenant();
  await world.sql.query("update tenants set plan = $2, limit_overrides = $3 where tenant_id = $1", [tenant.tenantId, plan, limitOverrides]);
  return tenant.user("viewer");
};
const read = (path: string, as = viewer) => world.call(as, "GET", `/v1/app-templates${path}`);
const listed = async (query: string, as = viewer): Promise<AppTemplate[]> => {
  const { status, body } = await read(`?pageSize=500${query}`, as);
  expect([status, body.code]).toEqual([200, undefined]);
  return body.data;
};
const idsOf = (templates: readonly AppTemplate[]): string[] => templates.map(({ id }) => id);

test("the pages of the list have every application once, in the order of their ids", async () => {
  const all = idsOf(await listed(""));
  expect(all).toEqual([...all].sort());
  const paged: string[] = [];
  for (let cursor: string | null = "*"; cursor !== null; ) {
    const { body } = await read(`?pageSize=7&cursor=${cursor}`);
    expect(body.data.length).toBeLessThanOrEqual(7);
    paged.push(...idsOf(body.data));
    cursor = body.meta.pagination.nextCursor;
  }
  expect(paged).toEqual(all);
});

test("a cursor of another filter is refused", async () => {
  const { body } = await read("?pageSize=1&category=media");
  const { status, body: refused } = await read(`?pageSize=1&category=news&cursor=${body.meta.pagination.nextCursor}`);
  expect([status, refused.code, refused.details.reason]).toEqual([400, "VALIDATION_FAILED", "invalid_cursor"]);
});

test("filters by category and by text, whatever its case", async () => {
  const media = await listed("&category=media");
  expect(idsOf(media)).toEqual(expect.arrayContaining(["jellyfin", "navidrome"]));
  for (const { categories } of media) expect(categories).toContain("media");
  expect(idsOf(await listed("&q=VAULTWARDEN"))).toEqual(["vaultwarden"]);
  expect(idsOf(await listed("&q=bitwarden"))).toEqual(["vaultwarden"]);
  expect(idsOf(await listed("&q=bitwarden&category=media"))).toEqual([]);
  expect((await read("?category=games")).status).toBe(400);
});

test("the tenant's plan decides what is available, and what it lacks names the plan that it needs", async () => {
  const starter = await withPlan("starter");
  const [free, paid] = [await listed("&available=false"), await listed("&available=false", starter)];
  expect(idsOf(free)).toEqual(expect.arrayContaining(["mattermost", "plausible"]));
  expect(idsOf(paid)).toContain("mattermost");
  expect(idsOf(paid)).not.toContain("plausible");
  for (const template of free) expect(template).toMatchObject({ available: false, requiredPlan: template.minPlan });
  const all = await listed("");
  expect(idsOf(await listed("&available=true"))).toEqual(idsOf(all.filter(({ minPlan }) => minPlan === "free")));
  expect(await listed("&available=false", await withPlan("business"))).toEqual([]);
});

test("a tenant without limits may install everything, whatever its plan", async () => {
  expect(await listed("&available=false", await withPlan("free", { "*": null }))).toEqual([]);
  expect(idsOf(await listed("&available=false", await withPlan("free", { apps: null })))).toContain("mattermost");
});

test("one application is returned with its configuration schema and its secrets, and without the plan if it is available", async () => {
  const { status, body } = await read("/key-value");
  expect(status).toBe(200);
  expect(body.data).toMatchObject({
    id: "key-value",
    kind: "process",
    available: true,
    configSchema: { type: "object", properties: { port: { type: "integer", default: 8_701 } }, required: [], additionalProperties: false },
    secrets: [{ name: "KV_TOKEN", required: true, generated: true }],
    ports: [{ name: "http", protocol: "tcp", config: "port", default: 8_701 }],
    volumes: ["data"],
    healthPath: "/health",
  });
  expect(body.data).not.toHaveProperty("requiredPlan");
  expect((await read("/mattermost")).body.data).toMatchObject({ kind: "compose", available: false, requiredPlan: "pro" });
});

test("an id that is none is not found, whatever its form", async () => {
  for (const id of ["unknown", "..%2Fkey-value", "Key-Value", "__proto__"]) {
    const { status, body } = await read(`/${id}`);
    expect([id, status, body.code]).toEqual([id, 404, "APP_TEMPLATE_NOT_FOUND"]);
  }
});

test("a machine lacks what it has reported otherwise, a little less than asked is enough, and what it has not reported counts as enough", () => {
  const needs = { kind: "compose", architectures: ["amd64"], requirements: { memoryMB: 2_048, diskGB: 10 } } as const;
  expect(lacksOf(needs, {})).toEqual([]);
  expect(lacksOf(needs, { arch: "riscv64", runtimes: ["process"], hardware: { memoryBytes: 1e9, diskBytes: 8e9 } })).toEqual([
    "architecture",
    "runtime",
    "memory",
    "disk",
  ]);
  for (const arch of ["x64", "x86_64", "amd64"]) expect(lacksOf(needs, { arch, runtimes: ["process", "compose"] })).toEqual([]);
  for (const arch of ["arm64", "aarch64", "armv7l", "arm", "ia32"]) expect(lacksOf(needs, { arch })).toEqual(["architecture"]);
  expect(lacksOf(needs, { runtimes: [] })).toEqual(["runtime"]);
  // Sold as 2 GB.
  expect(lacksOf(needs, { hardware: { memoryBytes: 1.94e9, diskBytes: 9.2e9 } })).toEqual([]);
});

interface Home {
  readonly tenant: TestTenant;
  readonly devices: readonly Device[];
}
/** A tenant whose devices have these names and have reported this. */
const withDevices = async (...reports: readonly (readonly [name: string, report: object])[]): Promise<Home> => {
  const tenant = await world.tenant();
  const owner = await tenant.user();
  const devices: Device[] = [];
  for (const [name, report] of reports) {
    const device = await tenant.device();
    devices.push(device);
    await world.call(owner, "PATCH", `/v1/devices/${device.deviceId}`, { body: { name } });
    const { status } = await world.call(device.as, "PUT", "/v1/agent/inventory", { body: report });
    expect(status).toBe(200);
  }
  return { tenant, devices };
};
const NAS = ["nas", { arch: "x64", runtimes: ["compose"], hardware: { memoryBytes: 16e9, diskBytes: 4e12 } }] as const;
const PI = ["pi-attic", { arch: "arm", runtimes: ["compose"], hardware: { memoryBytes: 0.93e9, diskBytes: 16e9 } }] as const;
const KIOSK = ["kiosk", { arch: "arm64", runtimes: ["process"], hardware: { memoryBytes: 2e9, diskBytes: 8e9 } }] as const;
const keyWith = async ({ tenant }: Home, ...scopes: readonly string[]): Promise<Caller> => {
  const { body } = await world.call(await tenant.user(), "POST", "/v1/api-keys", { body: { name: newId("key"), role: "viewer", scopes } });
  return asKey(body.data.apiKey, tenant.tenantId);
};
const install = async ({ tenant }: Home, appType: string, { deviceId }: Device, name: string): Promise<string> => {
  const { status, body } = await world.call(await tenant.user(), "POST", "/v1/apps", { body: { appType, deviceId, name } });
  expect(status).toBe(201);
  return body.data.appId;
};

test("an application says how many devices can run it, which one if there is no other, and what the others lack", async () => {
  const home = await withDevices(NAS, PI, KIOSK);
  const as = await home.tenant.user("viewer");
  const [nas, , kiosk] = home.devices;
  const of = async (id: string) => (await read(`/${id}`, as)).body.data.fits;
  // amd64 and arm64 in containers, 6 GB of memory and 20 GB of disk.
  expect(await of("immich")).toEqual({
    devices: 1,
    total: 3,
    only: { deviceId: nas?.deviceId, name: "nas" },
    lacking: { architecture: 1, runtime: 1, memory: 2, disk: 2 },
  });
  expect(await of("vaultwarden")).toEqual({ devices: 2, total: 3, only: null, lacking: { architecture: 0, runtime: 1, memory: 0, disk: 0 } });
  expect(await of("key-value")).toMatchObject({ devices: 1, only: { deviceId: kiosk?.deviceId, name: "kiosk" }, lacking: { runtime: 2 } });
  expect((await listed("", as)).find(({ id }) => id === "immich")?.fits).toEqual(await of("immich"));
  // A removed device is no device.
  await world.call(await home.tenant.user(), "DELETE", `/v1/devices/${kiosk?.deviceId}`);
  expect(await of("key-value")).toEqual({ devices: 0, total: 2, only: null, lacking: { architecture: 0, runtime: 2, memory: 0, disk: 0 } });
});

test("filters by whether a device of the caller can run it, before it pages", async () => {
  const home = await withDevices(KIOSK);
  const as = await home.tenant.user("viewer");
  const all = await listed("", as);
  expect(idsOf(await listed("&fits=true", as))).toEqual(idsOf(all.filter(({ kind }) => kind === "process")));
  expect(idsOf(await listed("&fits=false", as))).toEqual(idsOf(all.filter(({ kind }) => kind === "compose")));
  expect((await read("?fits=true&pageSize=2&cursor=*", as)).body.data).toHaveLength(2);
  expect(await listed("&fits=true", await withPlan("free"))).toEqual([]);
});

test("an application names its first five apps with their devices, and counts all; one of another version can be updated", async () => {
  const home = await withDevices(NAS, PI);
  const [nas, pi] = home.devices as [Device, Device];
  const appIds: string[] = [];
  for (let number = 1; number <= 6; number += 1) appIds.push(await install(home, "vaultwarden", number === 2 ? pi : nas, `Passwords ${number}`));
  const gone = await install(home, "gitea", nas, "Old");
  await world.sql.query("update apps set template_version = '0.1.0' where app_id = $1", [appIds[1]]);
  await world.sql.query("update apps set removed_at = now() where app_id = $1", [gone]);
  const as = await home.tenant.user("viewer");
  const { installed, installedCount } = (await read("/vaultwarden", as)).body.data;
  expect(installedCount).toBe(6);
  expect(installed.map(({ appId }: { appId: string }) => appId)).toEqual([...appIds].sort().slice(0, 5));
  expect(installed.find(({ appId }: { appId: string }) => appId === appIds[1])).toEqual({
    appId: appIds[1],
    name: "Passwords 2",
    deviceId: pi.deviceId,
    deviceName: "pi-attic",
    status: "pending",
    updateAvailable: true,
  });
  const shown = await listed("", as);
  expect(shown.find(({ id }) => id === "vaultwarden")).toMatchObject({ installed, installedCount: 6 });
  for (const { id, installedCount: count } of shown) expect([id, count]).toEqual([id, id === "vaultwarden" ? 6 : 0]);
});

test("a caller who is limited to some devices learns of those only, and one who may not read devices of none", async () => {
  const home = await withDevices(NAS, PI);
  const [nas, pi] = home.devices as [Device, Device];
  await install(home, "vaultwarden", nas, "Passwords");
  const { body } = await world.call(await home.tenant.user(), "POST", "/v1/api-keys", {
    body: { name: newId("key"), role: "viewer", selector: { deviceIds: [pi.deviceId] } },
  });
  const limited = asKey(body.data.apiKey, home.tenant.tenantId);
  expect((await read("/vaultwarden", limited)).body.data).toMatchObject({
    fits: { devices: 1, total: 1, only: { deviceId: pi.deviceId } },
    installed: [],
    installedCount: 0,
  });
  expect((await read("/immich", limited)).body.data.fits).toMatchObject({ devices: 0, total: 1, only: null });
  const blind = await keyWith(home, "app:read");
  expect((await read("/vaultwarden", blind)).body.data).toMatchObject({ fits: null, installed: [{ name: "Passwords", deviceName: null }], installedCount: 1 });
  for (const fits of [true, false]) expect(await listed(`&fits=${fits}`, blind)).toEqual([]);
});

test("ten thousand devices become few groups in one read, whatever words they report, and one read serves all applications", async () => {
  const { tenant, devices } = await withDevices(NAS);
  await world.sql.query(
    `insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, secret, arch, runtimes, hardware)
     select d.device_id || n, d.tenant_id, d.deployment_id, d.agent_id || n, d.fingerprint || n, '', 'odd-' || n, jsonb_build_array('odd-' || n),
       jsonb_build_object('memoryBytes', 1000000::int8 * n, 'diskBytes', 1000000::int8 * n) from devices d, generate_series(1, 9999) n where d.device_id = $1`,
    [devices[0]?.deviceId],
  );
  let reads = 0;
  const sql = {
    query: async (text: string, values: readonly unknown[] = []) => {
      reads += 1;
      return (await world.sql.query(text, [...values])).rows;
    },
  };
  const scope = { tenantId: tenant.tenantId, principal: { kind: "user", userId: "u", email: null, ...accessOf("viewer") } } as const;
  const counted: number[] = [];
  const machineGroups: GroupMachines = async (asked, steps) => {
    const groups = await groupMachines(sql as SqlTx, asked, steps); // as: the test's pool answers with rows
    counted.push(groups.length);
    return groups;
  };
  const catalogue = loadAppCatalogue(packageFile("server/catalogue"));
  const fitsOf = await createFits({ catalogue, machineGroups })(scope);
  for (const { template } of catalogue.entries) expect(fitsOf(template)).toMatchObject({ total: 10_000, lacking: { architecture: 9_999 } });
  expect(reads).toBe(1);
  expect(counted[0]).toBeLessThan(40);
});
