// Metrics: one sample a minute of each device's newest report, added up to hours and days, kept as long as the settings say; the dashboard; the settings.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nextProgress, readingOf } from "../../../server/features/tenants/metrics-rules.ts";
import { prepare } from "../../contract/samples.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { anonymous, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off" });
});
afterAll(() => world.close());

const NEVER = new AbortController().signal;
const run = async (name: string): Promise<void> => {
  const job = world.app.jobs.find((each) => each.name === name);
  if (job === undefined) throw new Error(`no job ${name}`);
  while ((await job.run(NEVER)) === true);
};
const ofTenant = async (tenant: TestTenant, path: string) => (await world.call(tenant.apiKey, "GET", `/v1/tenants/${tenant.tenantId}${path}`)).body.data;
const metrics = (tenant: TestTenant, metric: string, range = "1h") => ofTenant(tenant, `/metrics?metric=${metric}&range=${range}`);
/** Rolls up anew, as if the minute had just begun. */
const roll = async (): Promise<void> => {
  await world.sql.query("delete from metric_progress");
  await run("metrics.roll-up");
};
const RETENTION = { 60: 60 * 3_600, 3600: 60 * 86_400, 86400: 400 * 86_400 };

describe("rules", () => {
  test.each(["1h", "60m", "2h", "24h", "36h", "60h", "61h", "3d", "7d", "30d", "60d", "61d", "90d"])(
    "%s is answered with 60 to 300 buckets up to now",
    (range) => {
      const now = new Date("2026-03-04T05:06:07.890Z");
      const { from, bucketSeconds, count, sources } = readingOf(range, now, RETENTION);
      expect(count).toBeGreaterThanOrEqual(60);
      expect(count).toBeLessThanOrEqual(300);
      const end = from.getTime() + count * bucketSeconds * 1_000;
      expect(end).toBeGreaterThan(now.getTime());
      expect(end - bucketSeconds * 1_000).toBeLessThanOrEqual(now.getTime());
      expect(sources[0]?.from).toEqual(from);
      for (const [index, source] of sources.entries()) if (index > 0) expect(source.from).toEqual(sources[index - 1]?.until);
    },
  );

  test("the roll-up takes the present minute, continues a batch, and catches up with hours that it missed", () => {
    const now = new Date("2026-03-04T05:06:07.890Z");
    const at = (text: string) => new Date(`2026-03-04T${text}:00.000Z`);
    const minute = { step: 60, at: at("05:06"), after: null };
    const day = { step: 86_400, at: new Date("2026-03-03T00:00:00.000Z"), after: null };
    expect(nextProgress([], now)).toEqual({ step: 60, at: at("05:06"), after: "" });
    expect(nextProgress([{ ...minute, after: "dev_1" }], now)).toEqual({ step: 60, at: at("05:06"), after: "dev_1" });
    expect(nextProgress([minute], now)).toEqual({ step: 3_600, at: at("04:00"), after: "" });
    expect(nextProgress([minute, { step: 3_600, at: at("02:00"), after: null }], now)).toEqual({ step: 3_600, at: at("03:00"), after: "" });
    expect(nextProgress([minute, { step: 3_600, at: at("04:00"), after: null }, day], now)).toBeNull();
  });
});

describe("roll-up", () => {
  test("a device's heartbeat becomes a sample of its minute, once, for the device and for its tenant alone", async () => {
    const [tenant, other] = [await world.tenant(), await world.tenant()];
    const [one, two, silent] = [await tenant.device(), await tenant.device(), await tenant.device()];
    const beat = (device: typeof one, body: object) => world.call(device.as, "POST", `/v1/devices/${device.deviceId}/heartbeat`, { body });
    await beat(one, { cpu: 10, memory: 50, disk: 70 });
    await beat(two, { metrics: { cpu: 30, memory: "much", disk: 1e308, other: { deep: [] } } });
    await roll();
    await roll();
    const resources = await metrics(tenant, "resources");
    const full = resources.buckets.filter(({ count }: { count: number }) => count > 0);
    // Two, if a minute began between the rounds.
    expect(full.length).toBeLessThanOrEqual(2);
    expect(resources).toMatchObject({ metric: "resources", tenantId: tenant.tenantId, range: "1h", summary: { samples: 2 * full.length, bucketSeconds: 60 } });
    expect(resources.buckets).toHaveLength(60);
    expect(full[0]).toEqual({ timestamp: expect.any(String), count: 2, cpu: { avg: 20, max: 30 }, memory: { avg: 50, max: 50 }, disk: { avg: 70, max: 70 } });
    expect((await metrics(tenant, "health")).buckets.reduce((most: number, { count }: { count: number }) => Math.max(most, count), 0)).toBe(2);
    const ofDevice = (await world.call(tenant.apiKey, "GET", `/v1/devices/${two.deviceId}/metrics?range=1h`)).body.data;
    expect(ofDevice).toMatchObject({ deviceId: two.deviceId, bucketSeconds: 60 });
    expect(ofDevice.buckets.filter(({ count }: { count: number }) => count > 0)).toEqual([
      { timestamp: expect.any(String), count: 1, cpu: { avg: 30, max: 30 } },
    ]);
    expect((await metrics(other, "resources")).summary.samples).toBe(0);
    expect((await world.call(other.apiKey, "GET", `/v1/devices/${two.deviceId}/metrics`)).body.code).toBe("DEVICE_NOT_FOUND");
    expect((await world.sql.query("select 1 from device_metrics where device_id = $1", [silent.deviceId])).rows).toEqual([]);
  });

  test("minutes are added up to hours and hours to days, weighted by their samples", async () => {
    const tenant = await world.tenant();
    const { deviceId } = await tenant.device();
    const insert = (at: string, step: number, samples: number, cpu: number | null) =>
      world.sql.query(`insert into device_metrics (tenant_id, device_id, step_seconds, at, samples, cpu_avg, cpu_max) values ($1, $2, $3, ${at}, $4, $5, $5)`, [
        tenant.tenantId,
        deviceId,
        step,
        samples,
        cpu,
      ]);
    const lastHour = "date_trunc('hour', now()) - interval '1 hour'";
    await insert(lastHour, 60, 1, 10);
    await insert(`${lastHour} + interval '59 minutes'`, 60, 3, 50);
    await insert(`${lastHour} + interval '30 minutes'`, 60, 1, null);
    const yesterday = "date_trunc('day', now() at time zone 'UTC') at time zone 'UTC' - interval '1 day'";
    await insert(`${yesterday} + interval '1 hour'`, 3_600, 2, 10);
    await insert(`${yesterday} + interval '2 hours'`, 3_600, 2, 20);
    await roll();
    const rolled = async (step: number, at: string) =>
      (await world.sql.query(`select samples, cpu_avg, cpu_max from device_metrics where device_id = $1 and step_seconds = ${step} and at = ${at}`, [deviceId]))
        .rows;
    expect(await rolled(3_600, lastHour)).toEqual([{ samples: 5, cpu_avg: 40, cpu_max: 50 }]);
    const [day] = await rolled(86_400, yesterday);
    // Between midnight and one o'clock the last hour is one of yesterday's.
    expect(day?.samples).toBeGreaterThanOrEqual(4);
  });

  test("rows end with their retention, each step's by its own", async () => {
    const { tenantId } = await world.tenant();
    for (const [step, hours] of [
      [60, 59],
      [60, 61],
      [3_600, 61],
      [3_600, 61 * 24],
      [86_400, 61 * 24],
      [86_400, 401 * 24],
    ])
      await world.sql.query("insert into tenant_metrics (tenant_id, step_seconds, at) values ($1, $2, now() - make_interval(hours => $3))", [
        tenantId,
        step,
        hours,
      ]);
    await run("metrics.retention");
    const { rows } = await world.sql.query("select step_seconds as step from tenant_metrics where tenant_id = $1 order by 1", [tenantId]);
    expect(rows).toEqual([{ step: 60 }, { step: 3_600 }, { step: 86_400 }]);
  });

  test("every event counts as activity of its minute", async () => {
    const tenant = await world.tenant();
    await tenant.device();
    await eventually(async () => {
      const { summary, buckets } = await metrics(tenant, "activity");
      const { rows } = await world.sql.query("select count(*)::int as n from outbox_events where tenant_id = $1", [tenant.tenantId]);
      expect(rows[0].n).toBeGreaterThan(0);
      expect([summary.events, buckets.at(-1).count + buckets.at(-2).count]).toEqual([rows[0].n, rows[0].n]);
    });
  });

  test.each(["59m", "91d", "0h", "1000h", "-1h", "24", "24w", "1e1h", "24h\u0000"])("the range %j is refused", async (range) => {
    const tenant = await world.tenant();
    const answer = await world.call(tenant.apiKey, "GET", `/v1/tenants/${tenant.tenantId}/metrics?range=${encodeURIComponent(range)}`);
    expect(answer.body.code).toBe("VALIDATION_FAILED");
  });
});

test("the dashboard counts what there is and shows the newest events first", async () => {
  const tenant = await world.tenant();
  const [one] = [await tenant.device(), await tenant.device()];
  await world.call(one.as, "POST", `/v1/devices/${one.deviceId}/heartbeat`, { body: { cpu: 10 } });
  await eventually(async () => {
    const shown = await ofTenant(tenant, "/dashboard");
    expect(shown).toMatchObject({
      deployments: { total: 1, active: 1, failed: 0 },
      apps: { total: 0, running: 0, stopped: 0 },
      devices: { total: 2, online: 1, offline: 0, provisioning: 1 },
      counts: { devices: 2, apps: 0, deployments: 1, backups: 0 },
    });
    expect(shown.recentActivity[0]).toMatchObject({ type: "device.online", subjectId: one.deviceId });
  });
  expect(await ofTenant(tenant, "/summary")).toEqual({ devices: 2, apps: 0, deployments: 1, backups: 0 });
});

describe("settings", () => {
  const patch = (tenant: TestTenant, body: object) => world.call(tenant.apiKey, "PATCH", `/v1/tenants/${tenant.tenantId}/settings`, { body });

  test("a tenant has defaults, changes what it sends, and refuses a change of an older version", async () => {
    const tenant = await world.tenant();
    expect(await ofTenant(tenant, "/settings")).toMatchObject({ offlineAfterSeconds: null, defaultTimezone: "UTC", allowedReturnHosts: [], version: 1 });
    expect((await patch(tenant, { defaultTimezone: "Europe/Lisbon", version: 1 })).body.data).toMatchObject({ defaultTimezone: "Europe/Lisbon", version: 2 });
    expect((await patch(tenant, { offlineAfterSeconds: 600, version: 1 })).body).toMatchObject({ code: "VERSION_CONFLICT", details: { currentVersion: 2 } });
    const race = await Promise.all(Array.from({ length: 8 }, (_, index) => patch(tenant, { offlineAfterSeconds: 60 + index, version: 2 })));
    expect(race.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 409)]);
    expect(await ofTenant(tenant, "/settings")).toMatchObject({ defaultTimezone: "Europe/Lisbon", version: 3 });
    const { rows } = await world.sql.query("select count(*)::int as n from outbox_events where tenant_id = $1 and type = 'tenant.updated'", [tenant.tenantId]);
    expect(rows).toEqual([{ n: 2 }]);
  });

  test.each([
    { offlineAfterSeconds: 59 },
    { offlineAfterSeconds: 3_601 },
    { offlineAfterSeconds: 2 ** 31 },
    { defaultTimezone: "Mars/Olympus" },
    { defaultTimezone: "+02:00" },
    { defaultTimezone: "__proto__" },
    { defaultTimezone: "a\u0000" },
    { allowedReturnHosts: ["https://x"] },
    { allowedReturnHosts: ["\ud800"] },
    { allowedReturnHosts: Array.from({ length: 21 }, (_, index) => `h${index}.example`) },
    { version: 2 ** 31 },
    { sessionPolicy: {} },
  ])("%j is refused", async (body) => {
    expect((await patch(await world.tenant(), body)).body.code).toBe("VALIDATION_FAILED");
  });

  test("a silent device stays online as long as its tenant's settings say, and no longer", async () => {
    const [patient, other] = [await world.tenant(), await world.tenant()];
    await patch(patient, { offlineAfterSeconds: 600 });
    const devices = [await patient.device(), await patient.device(), await other.device()] as const;
    for (const { as, deviceId } of devices) await world.call(as, "POST", `/v1/devices/${deviceId}/heartbeat`, { body: { cpu: 1 } });
    const silence = (deviceId: string, seconds: number) =>
      world.sql.query(
        "update device_presence set last_seen_at = now() - make_interval(secs => $2), offline_after = now() - interval '1 second' where device_id = $1",
        [deviceId, seconds],
      );
    await silence(devices[0].deviceId, 590);
    await silence(devices[1].deviceId, 601);
    await silence(devices[2].deviceId, 200);
    await run("devices.offline");
    const { rows } = await world.sql.query("select device_id, status from devices where device_id = any($1)", [devices.map(({ deviceId }) => deviceId)]);
    const statusOf = new Map(rows.map(({ device_id, status }) => [device_id, status]));
    expect(devices.map(({ deviceId }) => statusOf.get(deviceId))).toEqual(["online", "offline", "offline"]);
  });

  test("return_to may lead to a host that the tenant allows, and to no other", async () => {
    const tenant = await world.tenant();
    const owner = await tenant.user("owner");
    const { code, token } = await prepare({ world, tenant, owner });
    const activate = (host: string) =>
      world.call(anonymous, "POST", "/v1/pairing/activate", {
        body: { pairing_code: code, activation_token: token, user_email: "owner@example.com", return_to: `https://${host}/done` },
      });
    expect((await activate("own.example")).body.code).toBe("RETURN_URL_NOT_ALLOWED");
    await patch(tenant, { allowedReturnHosts: ["own.example"] });
    expect((await activate("other.example")).body.code).toBe("RETURN_URL_NOT_ALLOWED");
    expect((await activate("own.example")).body.data).toMatchObject({ return_to: "https://own.example/done", tenant_id: tenant.tenantId });
  });
});
