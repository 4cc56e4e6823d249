// Apps: what people order of them, what their agent says of them, and what neither may do.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { asOrdered, DEFAULTS, failureIn, openRig, type Rig, reportOf, TEMPLATE } from "./kit.ts";

/** An order that an outcome causes waits for the sweep. */
const SOON = { timeout: 15_000 };

let world: World;
const open: Rig[] = [];
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off" });
});
afterAll(async () => {
  await Promise.all(open.map((rig) => rig.stop()));
  await world.close();
});
const rigged = async (options?: { readonly online: boolean }): Promise<Rig> => {
  const rig = await openRig(world, options);
  open.push(rig);
  return rig;
};
const running = async (more: object = {}) => {
  const rig = await rigged();
  const { appId } = await rig.ask("POST /apps", { appType: TEMPLATE, deviceId: rig.device.deviceId, ...more });
  const path = `/apps/${appId}`;
  const app = await rig.until(path, "running");
  return { rig, path, app, appId: appId as string };
};
const desiredOf = (rig: Rig) => rig.ask("GET /agent/desired-state", undefined, rig.device.as);

describe("an app", () => {
  test("is installed on its own, restarted, updated and removed", async () => {
    const { rig, path, app, appId } = await running({ name: "kv", config: { maxKeys: 3 } });
    expect(app).toMatchObject({ id: appId, deploymentId: null, name: "kv", revision: 1, drift: false, reported: { state: "running", ports: { http: 8_701 } } });
    expect(await rig.ask(`POST ${path}/restart`)).toMatchObject({ status: "restarting" });
    await rig.until(path, "running");
    expect(await rig.ask(`PATCH ${path}`, { config: { maxKeys: 4 }, name: "renamed" })).toMatchObject({ status: "updating", revision: 2, name: "renamed" });
    await rig.until(path, "running");
    await rig.ask(`DELETE ${path}?keepVolumes=true`);
    await expect.poll(() => rig.refusal(`GET ${path}`), SOON).toEqual([404, "APP_NOT_FOUND", { appId }]);
    expect(rig.orders.map(({ verb, app: { revision, keepVolumes } }) => [verb, revision, keepVolumes])).toEqual([
      ["deploy", 1, false],
      ["restart", 1, false],
      ["deploy", 2, false],
      ["remove", 2, true],
    ]);
    expect(await rig.eventsOf(appId)).toEqual(
      ["created", "changed", "installed", "changed", "running", "snapshot_created", "changed", "updated", "changed", "removed"].map((name) => `app.${name}`),
    );
  });

  test("goes back to a snapshot, and keeps the newest five that the server took", async () => {
    const { rig, path } = await running({ config: { maxKeys: 100 } });
    const kept = await rig.ask(`POST ${path}/snapshots`, { metadata: { reason: "mine" } });
    for (let keys = 1; keys <= 6; keys += 1) {
      await rig.ask(`PATCH ${path}`, { config: { maxKeys: keys } });
      await rig.until(path, "running");
    }
    const list = await rig.ask(`GET ${path}/snapshots`);
    expect(list.map(({ revision, automatic }: { revision: number; automatic: boolean }) => [revision, automatic])).toEqual([
      ...[6, 5, 4, 3, 2].map((revision) => [revision, true]),
      [1, false],
    ]);
    expect(await rig.ask(`POST ${path}/rollback`, { snapshotId: kept.snapshotId })).toMatchObject({ status: "rolling_back", revision: 8 });
    expect(await rig.until(path, "running")).toMatchObject({ config: { maxKeys: 100 } });
    await rig.ask(`DELETE ${path}/snapshots/${kept.snapshotId}`);
    expect(await rig.refusal(`POST ${path}/rollback`, { snapshotId: kept.snapshotId })).toEqual([404, "SNAPSHOT_NOT_FOUND", { snapshotId: kept.snapshotId }]);
  });

  test("refuses a configuration that does not fit, with the path of each fault", async () => {
    const rig = await rigged({ online: false });
    const order = (config: object) => rig.refusal("POST /apps", { appType: TEMPLATE, deviceId: rig.device.deviceId, config });
    const [status, code, details] = await order({ port: "none", maxKeys: 0, colour: "red" });
    expect([status, code]).toEqual([422, "APP_CONFIG_INVALID"]);
    expect(details.issues.map(({ path }: { path: string }) => path).sort()).toEqual(["colour", "maxKeys", "port"]);
    expect((await order({ port: "x".repeat(66_000) }))[2].issues).toMatchObject([{ path: "", code: "too_big" }]);
    const deep = JSON.parse(`${'{"a":'.repeat(12)}1${"}".repeat(12)}`);
    expect((await order(deep))[2].issues).toMatchObject([{ path: "", code: "too_deep" }]);
    expect(await rig.refusal("POST /apps", { appType: "unknown", deviceId: rig.device.deviceId })).toEqual([
      404,
      "APP_TEMPLATE_NOT_FOUND",
      { templateId: "unknown" },
    ]);
    expect((await rig.ask("GET /apps")).length).toBe(0);
  });

  test("is not ordered from an absent device if the caller asks for that", async () => {
    const rig = await rigged({ online: false });
    const { appId } = await rig.ask("POST /apps", { appType: TEMPLATE, deviceId: rig.device.deviceId });
    expect((await rig.refusal(`POST /apps/${appId}/stop?requireOnline=true`)).slice(0, 2)).toEqual([409, "DEVICE_OFFLINE"]);
  });
});

describe("secrets", () => {
  test("reach people with the permission and the agent of the hosting device, and no record, event or log", async () => {
    const { rig, path, app } = await running({ secrets: { KV_TOKEN: "first-secret" } });
    expect(app).toMatchObject({ secretsVersion: 1, secretKeys: ["KV_TOKEN"] });
    const set = await rig.ask(`PUT ${path}/secrets`, { secrets: { KV_TOKEN: "second-secret" } });
    expect(set).toEqual({ appId: app.appId, keys: ["KV_TOKEN"], secretsVersion: 2 });
    await rig.until(path, "running");
    expect(rig.orders.at(-1)).toMatchObject({ verb: "restart", app: { secretsVersion: 2 } });
    expect(await rig.ask(`GET ${path}/secrets`)).toEqual({ KV_TOKEN: "second-secret" });
    expect(await rig.ask(`GET ${path}/secrets`, undefined, rig.device.as)).toEqual({ KV_TOKEN: "second-secret" });
    const neighbour = await rig.tenant.device();
    expect((await rig.refusal(`GET ${path}/secrets`, undefined, neighbour.as)).slice(0, 2)).toEqual([404, "APP_NOT_FOUND"]);
    expect((await rig.refusal(`GET ${path}/secrets`, undefined, await rig.tenant.user("operator"))).slice(0, 2)).toEqual([403, "FORBIDDEN"]);
    await rig.ask(`PUT ${path}/secrets`, { secrets: { KV_TOKEN: null } });
    await rig.until(path, "running");
    expect(await rig.ask(`GET ${path}/secrets`)).toEqual({});
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ secretKeys: [] });
    for (const [table, as] of [
      ["outbox_events", "data"],
      ["audit_logs", "changes"],
      ["commands", "payload"],
      ["apps", "t"],
      ["idempotency_keys", "t"],
    ] as const) {
      const { rows } = await world.sql.query(`select count(*)::int as found from ${table} t where (${as})::text like '%-secret%'`);
      expect([table, rows[0].found]).toEqual([table, 0]);
    }
  });

  test("are masked in the last lines of a failed app", async () => {
    const { rig, path } = await running({ secrets: { KV_TOKEN: "tell-nobody" } });
    const said = { message: "token tell-nobody refused", lines: ["token=tell-nobody"] };
    rig.answer(({ app }) => reportOf(app.appId, { state: "failed", failure: failureIn(app.revision, said) }));
    await rig.ask(`POST ${path}/restart`);
    const { failure } = await rig.until(path, "error");
    expect([failure.message, failure.lines]).toEqual(["token *** refused", ["token=***"]]);
  });
});

describe("a report", () => {
  test("fails a running app that crashed later, and a later one tells that it runs again", async () => {
    const rig = await rigged();
    const { deploymentId } = await rig.deploy();
    const at = `/deployments/${deploymentId}`;
    const { appId } = await rig.until(at, "active");
    await rig.report(1, reportOf(appId, { state: "failed", failure: failureIn(1, { stage: "running", reason: "EXITED" }) }));
    expect(await rig.until(at, "failed")).toMatchObject({ failure: { stage: "running", reason: "EXITED", commandId: null } });
    expect(await rig.ask(`GET /apps/${appId}`)).toMatchObject({ status: "error", drift: true });
    await rig.report(1, reportOf(appId));
    expect(await rig.until(at, "active")).toMatchObject({ failure: null });
    expect((await rig.eventsOf(appId)).slice(-2)).toEqual(["app.failed", "app.running"]);
  });

  test("of an earlier revision that runs again rolls the deployment back", async () => {
    const rig = await rigged();
    const { deploymentId } = await rig.deploy();
    const at = `/deployments/${deploymentId}`;
    const { appId } = await rig.until(at, "active");
    await rig.ask(`POST ${at}/redeploy`, { configuration: { maxKeys: 7 } });
    await rig.until(at, "active");
    await rig.report(2, reportOf(appId, { revision: 1, failure: failureIn(2, { stage: "running", reason: "HEALTH_CHECK_FAILED" }) }));
    expect(await rig.ask(`GET ${at}`)).toMatchObject({ status: "active", currentRevision: 1, failure: { revision: 2 }, configuration: DEFAULTS });
    expect((await rig.eventsOf(deploymentId)).at(-1)).toBe("deployment.rolled_back");
  });

  test("tells once that an app differs from what should be, since when, and that it does no more", async () => {
    const { rig, path, app } = await running();
    const version = 1;
    await rig.report(version, reportOf(app.appId, { state: "stopped" }));
    const { driftSince, reportedAt } = await rig.ask(`GET ${path}`);
    expect(driftSince).toBe(reportedAt);
    await rig.report(version, reportOf(app.appId, { state: "stopped", restarts: 1 }));
    await rig.report(version);
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ drift: true, driftSince, reported: null });
    await rig.report(version, reportOf(app.appId));
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ drift: false, driftSince: null });
    expect((await rig.eventsOf(app.appId)).slice(-2)).toEqual(["app.drifted", "app.repaired"]);
    await rig.report(version, reportOf(app.appId, { state: "failed", failure: failureIn(1) }));
    expect((await rig.eventsOf(app.appId)).slice(-2)).toEqual(["app.repaired", "app.failed"]);
  });

  test("shows drift, and never overwrites a change that it does not know yet", async () => {
    const { rig, path, appId } = await running();
    await rig.report(1, reportOf(appId, { state: "stopped" }));
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ status: "running", drift: true, reported: { state: "stopped" } });
    await rig.report(1);
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ status: "running", drift: true, reported: null });
    await rig.report(1, reportOf(appId, { revision: 9 }));
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ reported: null });
    await rig.ask(`POST ${path}/stop`);
    await rig.until(path, "stopped");
    const old = reportOf(appId, { state: "failed", failure: failureIn(1) });
    expect(await rig.report(1, old, reportOf(newId("app")))).toEqual({
      desiredVersion: 3,
      ignored: [expect.stringMatching(/^app_/)],
      unusable: [],
      refused: [],
    });
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ status: "stopped", drift: false, reported: { state: "stopped" } });
  });

  test("changes nothing while a command is open, except that the agent has begun", async () => {
    const rig = await rigged({ online: false });
    const { appId } = await rig.ask("POST /apps", { appType: TEMPLATE, deviceId: rig.device.deviceId });
    await rig.report(1, reportOf(appId));
    expect(await rig.ask(`GET /apps/${appId}`)).toMatchObject({ status: "pending" });
    await rig.report(1, reportOf(appId, { state: "installing", revision: 0 }));
    expect(await rig.ask(`GET /apps/${appId}`)).toMatchObject({ status: "installing" });
    expect((await rig.ask(`GET /apps/${appId}/timeline`)).waitsFor).toMatchObject({ deviceId: rig.device.deviceId });
  });

  test("is taken app by app: one that does not fit is named and changes nothing, and a field that may be null may be missing", async () => {
    const { rig, path, appId } = await running();
    const { appId: second } = await rig.ask("POST /apps", { appType: TEMPLATE, deviceId: rig.device.deviceId });
    await rig.until(`/apps/${second}`, "running");
    const { desiredVersion } = await rig.report(0);
    const unfit = { ...reportOf(appId), state: "dancing" as never };
    const answer = await rig.report(desiredVersion, unfit, { appId: second, revision: 1, state: "running" } as never);
    expect(answer.unusable).toEqual([{ appId, message: expect.stringContaining("state") }]);
    expect(await rig.ask(`GET ${path}`)).toMatchObject({ status: "running", reported: { state: "running" } });
    expect(await rig.ask(`GET /apps/${second}`)).toMatchObject({
      reported: { state: "running", health: "unknown", restarts: 0, memoryBytes: null, ports: {} },
    });
  });

  test("is answered 304 for a desired state that the agent has", async () => {
    const { rig } = await running();
    const first = await world.call(rig.device.as, "GET", "/v1/agent/desired-state");
    const etag = first.headers.get("etag") ?? "";
    expect((await world.call(rig.device.as, "GET", "/v1/agent/desired-state", { headers: { "if-none-match": etag } })).status).toBe(304);
    expect((await desiredOf(rig)).hash).toMatch(/^[0-9a-f]{32}$/);
  });
});

describe("callers", () => {
  test("of another tenant meet none of it, whatever field names it", async () => {
    const [ours, theirs] = [await rigged({ online: false }), await rigged({ online: false })];
    const { deploymentId, appId } = await ours.deploy();
    const waiting = await ours.ask("POST /deployments", { appName: TEMPLATE });
    const { deviceId } = ours.device;
    const foreign = { appType: TEMPLATE, deviceId: theirs.device.deviceId };
    const codes = await Promise.all([
      theirs.refusal(`GET /apps/${appId}`),
      theirs.refusal(`POST /apps/${appId}/stop`),
      theirs.refusal(`GET /deployments/${deploymentId}`),
      theirs.refusal(`POST /deployments/${deploymentId}/cancel`),
      theirs.refusal("POST /apps", { ...foreign, deviceId }),
      theirs.refusal("POST /apps", { ...foreign, deploymentId: waiting.deploymentId }),
      theirs.refusal("POST /apps", { ...foreign, tenantId: ours.tenant.tenantId }),
      theirs.refusal("POST /deployments", { appId: TEMPLATE, deviceId }),
      theirs.refusal("POST /deployments", { appId: TEMPLATE, tenantId: ours.tenant.tenantId }),
      theirs.refusal(`GET /tenants/${ours.tenant.tenantId}/deployments`),
      theirs.refusal(`PATCH /deployments/${waiting.deploymentId}`, { deviceId: theirs.device.deviceId }),
    ]);
    expect(codes.map(([status, code]) => `${status} ${code}`)).toEqual(
      ["APP", "APP", "DEPLOYMENT", "DEPLOYMENT", "DEVICE", "DEPLOYMENT", "TENANT", "DEVICE", "TENANT", "TENANT", "DEPLOYMENT"].map(
        (what) => `404 ${what}_NOT_FOUND`,
      ),
    );
    expect(await theirs.report(1, reportOf(appId, { state: "failed", failure: failureIn(1) }))).toEqual({
      desiredVersion: 0,
      ignored: [appId],
      unusable: [],
      refused: [],
    });
    expect(await ours.ask(`GET /apps/${appId}`)).toMatchObject({ status: "pending" });
  });

  test("that change one app at once: one change happens, the others hear what it left", async () => {
    const { rig, path, app } = await running();
    const answers = await Promise.all(Array.from({ length: 6 }, () => world.call(rig.owner, "POST", `/v1${path}/stop`)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
    expect(answers.find(({ status }) => status === 409)?.body.code).toBe("INVALID_STATE_TRANSITION");
    await rig.until(path, "stopped");
    expect(await rig.refusal(`POST ${path}/start`, undefined, rig.owner, { "if-match": `"${app.version}"` })).toMatchObject([409, "VERSION_CONFLICT", {}]);
    expect((await rig.refusal(`PATCH ${path}`, { name: "late", version: app.version })).slice(0, 2)).toEqual([409, "VERSION_CONFLICT"]);
    expect(rig.orders.map(({ verb }) => verb)).toEqual(["deploy", "stop"]);
  });

  test("that repeat a call under its key get the first answer, and the agent one order", async () => {
    const rig = await rigged();
    const body = { appId: TEMPLATE, deviceId: rig.device.deviceId, name: "once" };
    const headers = { "idempotency-key": newId("k") };
    const [first, again] = [await rig.ask("POST /deployments", body, rig.owner, headers), await rig.ask("POST /deployments", body, rig.owner, headers)];
    expect(again).toEqual(first);
    await rig.until(`/deployments/${first.deploymentId}`, "active");
    expect(rig.orders).toHaveLength(1);
    expect((await rig.refusal("POST /deployments", body)).slice(0, 2)).toEqual([409, "DEPLOYMENT_ALREADY_EXISTS"]);
  });

  test("leave nothing behind when the transaction fails", async () => {
    const rig = await rigged();
    await world.sql.query(`create function refuse_apps() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
      create trigger refuse_apps after insert on apps for each row when (new.name = 'refused') execute function refuse_apps()`);
    const body = { appType: TEMPLATE, deviceId: rig.device.deviceId, name: "refused" };
    expect((await world.call(rig.owner, "POST", "/v1/apps", { body })).status).toBe(500);
    await world.sql.query("drop trigger refuse_apps on apps; drop function refuse_apps");
    expect(await desiredOf(rig)).toMatchObject({ version: 0, apps: [] });
    const { rows } = await world.sql.query("select 1 from commands where device_id = $1", [rig.device.deviceId]);
    expect(rows).toEqual([]);
    rig.answer(asOrdered);
    await rig.until(`/apps/${(await rig.ask("POST /apps", { ...body, name: "accepted" })).appId}`, "running");
  });
});

test("a plan shows what would change and changes nothing", async () => {
  const rig = await rigged();
  const { deploymentId } = await rig.deploy({ configuration: { maxKeys: 5 } });
  const path = `/deployments/${deploymentId}`;
  const before = await rig.until(path, "active");
  expect(await rig.ask(`POST ${path}/plan`, {})).toEqual({ deploymentId, action: "none", changes: [], drift: false, revision: 1 });
  expect(await rig.ask(`POST ${path}/plan`, { configuration: { maxKeys: 6 } })).toEqual({
    deploymentId,
    action: "update",
    changes: [{ path: "configuration.maxKeys", from: 5, to: 6 }],
    drift: false,
    revision: 2,
  });
  expect((await rig.refusal(`POST ${path}/plan`, { configuration: { maxKeys: 0 } })).slice(0, 2)).toEqual([422, "APP_CONFIG_INVALID"]);
  expect(await rig.ask(`GET ${path}`)).toEqual(before);
  const { dashboard } = await rig.ask(`GET ${path}/dashboard/export`);
  expect(dashboard.panels).toHaveLength((await rig.ask(`GET ${path}/dashboard`)).panelCount);
});
