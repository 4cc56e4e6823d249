// Rollouts of an app: orders as each app's own update, success as its agent reports it, and the way back.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countStatements } from "../../kit/checks/statements.ts";
import { asKey, type World } from "../../kit/gateway/world.ts";
import { APP, type AppFleet, appsOf, failsItsCheck, NEW, OLD, openAppFleet, poll, runApps, statesOf } from "./apps-kit.ts";
import { advance, call, create, type Fleet, membersOf, openFleet, read, startRolloutWorld, step } from "./kit.ts";

let world: World;
beforeAll(async () => {
  world = await startRolloutWorld();
});
afterAll(() => world.close());

const createApp = (fleet: AppFleet, settings: object, more: object = {}): Promise<string> => create(fleet, { ...APP, targetVersion: null, ...settings }, more);
const versionsOf = async (fleet: AppFleet): Promise<readonly string[]> => (await appsOf(fleet)).map(({ status, version }) => `${status} ${version}`);
const times = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value);

describe("a rollout of an app", () => {
  test("brings the version with its configuration to each app, and is done when the agents report that it runs", async () => {
    const fleet = await openAppFleet(world, 6);
    const rolloutId = await createApp(fleet, { phases: [{ count: 2 }, { percent: 50 }], configuration: { maxKeys: 77 } });
    await runApps(fleet);
    expect(await read(fleet, rolloutId)).toMatchObject({ status: "completed", target: { version: NEW }, counts: { succeeded: 6, failed: 0, pending: 0 } });
    expect(await versionsOf(fleet)).toEqual(times(6, `running ${NEW}`));
    const { rows } = await world.sql.query("select distinct config ->> 'maxKeys' as keys from apps where tenant_id = $1", [fleet.tenant.tenantId]);
    expect(rows).toEqual([{ keys: "77" }]);
    // What has the version and the configuration takes no part in the next one.
    const again = await createApp(fleet, { configuration: { maxKeys: 77 } });
    await runApps(fleet);
    expect(await read(fleet, again)).toMatchObject({ status: "completed", statusReason: "NOTHING_TO_DO", counts: { skipped: 6 } });
  });

  test("whose version fails its health check stops at 5 of 8, and is taken back", async () => {
    const fleet = await openAppFleet(world, 8);
    const rolloutId = await createApp(fleet, { onFailure: "rollback" });
    await runApps(fleet, failsItsCheck);
    const rollout = await read(fleet, rolloutId);
    expect(rollout).toMatchObject({ status: "rolled_back", statusReason: "THRESHOLD_EXCEEDED", counts: { failed: 5, aborted: 3, pending: 0 } });
    expect(await versionsOf(fleet)).toEqual(times(8, `running ${OLD}`));
    expect(await call(fleet, "GET", `/rollouts/${rolloutId}/failures`)).toEqual([
      {
        ...{ code: "HEALTH_CHECK_FAILED", count: 5, message: "the page answers 500", lines: ["starting", "cannot start"], common: [] },
        devices: times(5, { deviceId: expect.any(String), name: null, appId: expect.stringMatching(/^app_/), commandId: expect.stringMatching(/^cmd_/) }),
      },
    ]);
    // The lines are of the app's log.
    const { apiKey } = await call(fleet, "POST", "/api-keys", { name: "board", role: "operator", scopes: ["rollout:read"] });
    const board = { world, owner: asKey(apiKey, fleet.tenant.tenantId) };
    expect(await call(board, "GET", `/rollouts/${rolloutId}/failures`)).toMatchObject([{ code: "HEALTH_CHECK_FAILED", lines: [] }]);
  });

  test("is preceded by the backups that a policy asks for, in each app's own lane", async () => {
    const fleet = await openAppFleet(world, 2);
    const target = { fleetIds: [fleet.fleetId] };
    await call(fleet, "POST", "/backup-destinations", { name: "shelf", kind: "local", isDefault: true });
    await call(fleet, "POST", "/backup-policies", { name: "before updates", schedule: "0 2 * * *", target, retention: { keepLast: 3 }, beforeUpdates: true });
    await createApp(fleet, {});
    await step(fleet, 2);
    expect(await call(fleet, "GET", "/backups")).toMatchObject(times(2, { trigger: "pre_update", status: "pending" }));
    const { rows } = await world.sql.query(
      "select c.type from commands c join command_queue q using (tenant_id, device_id, seq) where c.tenant_id = $1 order by c.device_id, q.lane, c.seq",
      [fleet.tenant.tenantId],
    );
    expect(rows.map(({ type }) => type)).toEqual(["backup.create", "app.deploy", "backup.create", "app.deploy"]);
  });

  test("is rolled back by a child rollout: each device to what it had, and what somebody changed since stays", async () => {
    const fleet = await openAppFleet(world, 4);
    const rolloutId = await createApp(fleet, {});
    await runApps(fleet);
    const [changed] = await membersOf(fleet, rolloutId);
    const { rows } = await world.sql.query("select app_id from apps where device_id = $1", [changed?.device_id]);
    await call(fleet, "PATCH", `/apps/${rows[0].app_id}`, { config: { maxKeys: 5 } });
    await poll(fleet, fleet.devices);
    const child = await call(fleet, "POST", `/rollouts/${rolloutId}/rollback`, {});
    expect(child).toMatchObject({ status: "scheduled", rollbackOf: rolloutId });
    await runApps(fleet);
    expect(await read(fleet, child.rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 3, skipped: 1, failed: 0 } });
    expect((await statesOf(fleet, child.rolloutId)).toSorted()).toEqual(["skipped CHANGED_MEANWHILE", ...times(3, "succeeded")]);
    expect((await versionsOf(fleet)).toSorted()).toEqual([...times(3, `running ${OLD}`), `running ${NEW}`]);
    expect(await read(fleet, rolloutId)).toMatchObject({ status: "rolled_back" });
    const refused = await world.call(fleet.owner, "POST", `/v1/rollouts/${child.rolloutId}/rollback`, { body: {} });
    expect([refused.status, refused.body.code]).toEqual([409, "INVALID_STATE_TRANSITION"]);
  });

  test("that is paused takes back what no device has got, and each app is what it was", async () => {
    const fleet = await openAppFleet(world, 4);
    const rolloutId = await createApp(fleet, {});
    await step(fleet, 2);
    expect(await versionsOf(fleet)).toEqual(times(4, `updating ${NEW}`));
    await call(fleet, "POST", `/rollouts/${rolloutId}/pause`, {});
    await step(fleet, 3);
    expect((await read(fleet, rolloutId)).counts).toMatchObject({ ordered: 0, pending: 4 });
    expect(await appsOf(fleet)).toMatchObject(times(4, { status: "running", version: OLD, revision: 1 }));
    await call(fleet, "POST", `/rollouts/${rolloutId}/resume`, {});
    await runApps(fleet);
    expect(await read(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 4 } });
  });

  test("counts a device that answers after its time as succeeded, as long as its phase lasts", async () => {
    const fleet = await openAppFleet(world, 3);
    const rolloutId = await createApp(fleet, { deviceTimeoutMinutes: 5, phases: [{ count: 3, soakMinutes: 60, minSuccessPercent: 50 }] });
    await step(fleet, 2);
    const [slow, ...others] = fleet.devices;
    await world.call(slow?.as ?? fleet.owner, "GET", `/v1/devices/${slow?.deviceId}/commands`);
    await poll(fleet, others);
    advance(301_000);
    await step(fleet, 2);
    expect((await statesOf(fleet, rolloutId)).toSorted()).toEqual([...times(2, "succeeded"), "timed_out DEVICE_TIMEOUT"]);
    const { rows } = await world.sql.query("select command_id, app_id from apps where device_id = $1", [slow?.deviceId]);
    const app = {
      appId: rows[0].app_id,
      revision: 2,
      state: "running",
      health: "healthy",
      failure: null,
      restarts: 0,
      cpuPercent: 1,
      memoryBytes: 1,
      ports: {},
    };
    const acked = await world.call(slow?.as ?? fleet.owner, "POST", `/v1/devices/${slow?.deviceId}/commands/${rows[0].command_id}/ack`, {
      body: { status: "succeeded", output: { app } },
    });
    expect(acked.status).toBe(200);
    await step(fleet, 2);
    expect(await read(fleet, rolloutId)).toMatchObject({ counts: { succeeded: 3, timedOut: 0 }, phases: [{ succeeded: 3, failed: 0 }] });
    advance(-301_000);
  });
});

describe("an app of a rollout", () => {
  test("that somebody is changing waits, and is ordered a minute later", async () => {
    const fleet = await openAppFleet(world, 2);
    const [busy] = await appsOf(fleet);
    await world.sql.query("update apps set status = 'restarting' where device_id = $1", [busy?.device_id]);
    const rolloutId = await createApp(fleet, {});
    await runApps(fleet);
    expect((await statesOf(fleet, rolloutId)).toSorted()).toEqual(["pending BUSY", "succeeded"]);
    await world.sql.query("update apps set status = 'running' where device_id = $1", [busy?.device_id]);
    advance(61_000);
    await runApps(fleet);
    expect(await read(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 2 } });
    advance(-61_000);
  });

  test("that is gone, or one of two on its device, takes no part", async () => {
    const fleet = await openAppFleet(world, 3);
    const [gone, twice] = fleet.deviceIds;
    await world.sql.query("update apps set removed_at = now(), status = 'removed' where device_id = $1", [gone]);
    await call(fleet, "POST", "/apps", { appType: "key-value", deviceId: twice, name: "another", config: { port: 8_801 } });
    const rolloutId = await createApp(fleet, {});
    await runApps(fleet);
    expect((await statesOf(fleet, rolloutId)).toSorted()).toEqual(["skipped NOT_APPLICABLE", "skipped SEVERAL_APPS", "succeeded"]);
  });
});

/** Fewer than a step may order; more would cost no further statement. */
const SLICE = 40;
/** The ramp orders them before. */
const FIRST = 5;

/** A whole slice in one step, as if that many had succeeded. */
const statementsOfASlice = async (fleet: Fleet, settings: object): Promise<number> => {
  // The steps of other tests' rollouts would be counted, too.
  await world.sql.query("delete from many_work where tenant_id <> $1", [fleet.tenant.tenantId]);
  const rolloutId = await create(fleet, { ...settings, maxParallel: 500 });
  await step(fleet);
  await world.sql.query("update rollouts set phases = jsonb_set(phases, '{0,succeeded}', '500') where rollout_id = $1", [rolloutId]);
  const before = (await membersOf(fleet, rolloutId)).filter(({ status }) => status === "ordered").length;
  const { count } = await countStatements(() => step(fleet));
  const ordered = (await membersOf(fleet, rolloutId)).filter(({ status }) => status === "ordered").length - before;
  expect(ordered).toBe(SLICE);
  return count;
};

describe(`a step that orders ${SLICE} devices`, () => {
  test("takes less than one statement a device for agents", async () => {
    const fleet = await openFleet(world, SLICE + FIRST);
    const statements = await statementsOfASlice(fleet, {});
    expect(statements).toBeLessThanOrEqual(SLICE);
  });

  test("takes no statement for each app, its snapshot, command, events, deployment and revision", async () => {
    const fleet = await openAppFleet(world, 1, { deployed: true });
    const more = await openFleet(world, SLICE + FIRST - 1, { tenant: fleet.tenant, fleetId: fleet.fleetId });
    const [template] = fleet.deviceIds;
    for (const table of ["deployments", "apps"])
      await world.sql.query(
        `insert into ${table} select (jsonb_populate_record(t, jsonb_build_object('device_id', d.id, 'app_id', replace(d.id, 'dev_', 'app_'),
             'deployment_id', replace(d.id, 'dev_', 'dep_'), 'name', d.id))).* from ${table} t, unnest($2::text[]) as d(id) where t.device_id = $1`,
        [template, more.deviceIds],
      );
    const statements = await statementsOfASlice(fleet, { ...APP, targetVersion: null });
    // One by one it would be twelve for each; the job's claims and its second look are among these.
    expect(statements).toBeLessThan(2.5 * SLICE);
    const updating = (await appsOf(fleet)).filter(({ status, version }) => status === "updating" && version === NEW);
    expect(updating.length).toBeGreaterThanOrEqual(SLICE);
    const count = async (sql: string): Promise<number> =>
      (await world.sql.query(`select count(*)::int as count from ${sql}`, [fleet.tenant.tenantId])).rows[0].count;
    expect(await count("app_snapshots where tenant_id = $1 and automatic")).toBe(updating.length);
    expect(await count("deployments where tenant_id = $1 and status = 'updating' and revision = 2")).toBe(updating.length);
    expect(await count("deployment_revisions where tenant_id = $1 and revision = 2")).toBe(updating.length);
    expect(await count("outbox_events where tenant_id = $1 and type = 'app.snapshot_created'")).toBe(updating.length);
  });
});
