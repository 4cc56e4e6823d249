// What reads show of an app beside its record: its picture, where it answers, and since when it runs.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppSpec, type AppStatus, type TimelineStep } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { lanAddresses, runningSince } from "../../../server/features/apps/details.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { asKey, startWorld, type World } from "../../kit/gateway/world.ts";
import { DEFAULTS, openRig, type Rig, reportOf } from "./kit.ts";

type Given = Parameters<typeof lanAddresses>[0] & Parameters<typeof runningSince>[0];
const spec = AppSpec.parse({
  kind: "process",
  program: "web-server",
  health: { http: { port: "web", path: "/" } },
  ports: [
    { name: "dns", protocol: "udp", config: "admin" },
    { name: "web", config: "port" },
  ],
});
const given = (more: Partial<Given>): Given => ({
  ...{ status: "running", desiredState: "running", config: { port: 8_080, admin: 9_090 }, reported: null, timeline: [], spec },
  ...more,
});
const machine = (...addresses: readonly string[]) => ({ hostname: "attic", addresses: addresses.map((address) => ({ kind: "lan" as const, address })) });

describe("an app", () => {
  test("answers at its machine's nearest address, pages first, with the port that its agent reports", () => {
    const reported = reportOf("app_a", { ports: { web: 18_080 } });
    expect(lanAddresses(given({ reported }), machine("192.168.1.20", "10.0.0.1"))).toEqual([
      { kind: "lan", name: "web", url: "http://192.168.1.20:18080/", reachable: true },
      { kind: "lan", name: "dns", url: "udp://192.168.1.20:9090", reachable: null },
    ]);
    expect(lanAddresses(given({}), machine("fd12::7"))[0]).toMatchObject({ url: "http://[fd12::7]:8080/", reachable: false });
    expect(lanAddresses(given({ reported: reportOf("app_a", { health: "unknown" }) }), machine())[0]).toMatchObject({
      url: "http://attic:8080/",
      reachable: null,
    });
    expect(lanAddresses(given({ status: "error", reported: reportOf("app_a") }), machine())[0]?.reachable).toBe(false);
  });

  test("has no address that a hostname could have forged, none when it is removed, and none without a machine", () => {
    for (const hostname of ["evil.example/#", "user@host", "a b", "", null, "-x", "x:1"])
      expect(lanAddresses(given({}), { hostname, addresses: [] })).toEqual([]);
    expect(lanAddresses(given({ desiredState: "removed" }), machine())).toEqual([]);
    expect(lanAddresses(given({}), undefined)).toEqual([]);
    expect(lanAddresses(given({ config: {} }), machine())).toEqual([]);
  });

  test("runs since its agent's word, or else since its last step to running; a clock that is ahead counts for nothing", () => {
    const now = new Date("2026-01-01T12:00:00Z");
    const step = (to: string, at: string): TimelineStep => ({ ...{ at, to, from: null, by: "system", revision: 1 }, commandId: null, reason: null });
    const timeline = [step("running", "2026-01-01T01:00:00.000Z"), step("stopping", "2026-01-01T02:00:00.000Z"), step("running", "2026-01-01T03:00:00.000Z")];
    const since = (startedAt: string | undefined, status: AppStatus = "running") =>
      runningSince(given({ status, timeline, reported: startedAt === undefined ? null : { ...reportOf("app_a"), startedAt } }), now);
    expect(since("2026-01-01T09:00:00+01:00")).toBe("2026-01-01T08:00:00.000Z");
    expect(since(undefined)).toBe("2026-01-01T03:00:00.000Z");
    expect(since("2026-01-01T13:00:00Z")).toBe("2026-01-01T03:00:00.000Z");
    expect(since("2026-01-01T09:00:00Z", "stopped")).toBeNull();
    expect(runningSince(given({ timeline: [] }), now)).toBeNull();
  });
});

describe("of an agent", () => {
  let world: World;
  let rig: Rig;
  beforeAll(async () => {
    world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off" });
    rig = await openRig(world);
  });
  afterAll(async () => {
    await rig.stop();
    await world.close();
  });

  test("reads show picture, addresses, start and response time; an old agent tells neither of the last two", async () => {
    await rig.ask("PUT /agent/inventory", { ipAddresses: ["192.168.1.20"] }, rig.device.as);
    const { appId, deploymentId } = await rig.deploy();
    await rig.until(`/deployments/${deploymentId}`, "active");
    const path = `/apps/${appId}`;
    const app = await rig.ask(`GET ${path}`);
    expect(app).toMatchObject({
      icon: "database",
      hue: "red",
      actor: { kind: "user" },
      addresses: [{ kind: "lan", name: "http", url: `http://192.168.1.20:${DEFAULTS.port}/`, reachable: true }],
    });
    expect(app.runningSince).toBe((await rig.ask(`GET ${path}/timeline`)).items.at(-1).at);
    expect(app.reported).not.toHaveProperty("responseMs");
    const startedAt = "2026-01-01T00:00:00.000Z";
    await rig.report(rig.orders.at(-1)?.desiredVersion ?? 0, reportOf(appId, { startedAt, responseMs: 12.5 }));
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ runningSince: startedAt, reported: { responseMs: 12.5 } });
    expect((await rig.ask("GET /apps"))[0]).toMatchObject({ icon: "database", runningSince: startedAt, update: null, lastBackupAt: null });
  });

  test("reads say which version the catalogue has and when the last good backup was made, the latter to those who may read backups", async () => {
    const { appId } = await rig.deploy();
    const at = new Date("2026-01-01T00:00:00.000Z");
    for (const [status, made] of [
      ["completed", at],
      ["failed", new Date()],
    ] as const) {
      const row = { backup_id: newId("bak"), tenant_id: rig.tenant.tenantId, app_id: appId, device_id: rig.device.deviceId };
      await insertRow(world.sql, "backups", { ...row, status, completed_at: made, verification: JSON.stringify({ status: "none" }) });
    }
    await world.sql.query("update apps set template_version = '0.0.1' where app_id = $1", [appId]);
    expect(await rig.ask(`GET /apps/${appId}`)).toMatchObject({ update: { version: "1.0.0", notes: expect.any(String) }, lastBackupAt: at.toISOString() });
    const made = await world.call(rig.owner, "POST", "/v1/api-keys", { body: { name: "apps", scopes: ["app:read"] } });
    const { body } = await world.call(asKey(made.body.data.apiKey, rig.tenant.tenantId), "GET", `/v1/apps/${appId}`);
    expect(body.data).toMatchObject({ update: { version: "1.0.0" }, lastBackupAt: null });
  });
});
