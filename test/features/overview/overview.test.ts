// The overview: counts, lines of a day, groups, changes under way, folded activity and the first steps, for each caller what the caller sees.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DAY_POINTS, POINT_SECONDS } from "../../../protocol/index.ts";
import type { DispatchedEvent } from "../../../server/core/events.ts";
import { newId } from "../../../server/core/ids.ts";
import { activityOf } from "../../../server/features/overview/activity.ts";
import { newApp } from "../../contract/samples/apps.ts";
import { newRollout } from "../../contract/samples/rollouts.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { asKey, type Caller, startWorld, type World } from "../../kit/gateway/world.ts";
import { insert, type Own, openTenant } from "./kit.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off" }, { inProcess: true });
});
afterAll(() => world.close());

const overview = async (as: Caller, query = "") => {
  const { status, body } = await world.call(as, "GET", `/v1/overview${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.data;
};
const BY_IDS = JSON.stringify({ kind: "ids", fleetId: null, selector: null });
const addDevice = async (stock: Own, status: string, tags: readonly string[], seenAt: Date | null = null): Promise<void> => {
  const deviceId = newId("dev");
  await insert(stock, "devices", { device_id: deviceId, status, tags });
  await insert(stock, "device_presence", { device_id: deviceId, last_seen_at: seenAt });
};

test("counts what the tenant has, and says which first steps are done", async () => {
  const stock = await openTenant(world);
  await addDevice(stock, "online", []);
  await addDevice(stock, "offline", []);
  await newApp(stock, { status: "error", deviceId: stock.device.deviceId });
  const before = await overview(stock.owner);
  expect(before).toMatchObject({
    devices: { total: 3, online: 1, offline: 1, provisioning: 1 },
    apps: { total: 1, error: 1 },
    commands: { open: 0, overdue: 0 },
    setup: { done: ["device", "app"], hidden: false },
  });
  await insert(stock, "alert_channels", { channel_id: newId("chn") });
  await insert(stock, "backup_policies", { policy_id: newId("bpl"), target: "{}", retention: "{}" });
  const hidden = await world.call(stock.owner, "PATCH", `/v1/tenants/${stock.tenant.tenantId}/settings`, { body: { setupHidden: true } });
  expect(hidden.body.data).toMatchObject({ setupHidden: true });
  expect((await overview(stock.owner)).setup).toEqual({ done: ["device", "app", "channel", "backup"], hidden: true });
});

test("a point of each half hour is counted once for all tenants, and a day of them is a line with gaps where nobody counted", async () => {
  const stock = await openTenant(world);
  await addDevice(stock, "offline", []);
  await world.sql.query("delete from overview_points");
  await runJob(world, "overview.count");
  await addDevice(stock, "offline", []);
  await runJob(world, "overview.count");
  const { day } = await overview(stock.owner);
  expect(day.stepSeconds).toBe(POINT_SECONDS);
  expect(Date.parse(day.until) % (POINT_SECONDS * 1_000)).toBe(0);
  const gap = Array.from({ length: DAY_POINTS - 1 }, () => null);
  expect(day.offline).toEqual([...gap, 1]);
  expect(day.lateBackups).toEqual([...gap, 0]);
  await world.sql.query("update overview_points set at = at - interval '23 hours 30 minutes' where tenant_id = $1", [stock.tenant.tenantId]);
  expect((await overview(stock.owner)).day.offline).toEqual([1, ...gap]);
  await world.sql.query("update overview_points set at = at - interval '30 minutes' where tenant_id = $1", [stock.tenant.tenantId]);
  expect((await overview(stock.owner)).day.offline).toEqual([null, ...gap]);
});

test("an app is late when its last good backup is older than 26 hours, or none was good", async () => {
  const stock = await openTenant(world);
  const saved = async (hours: number, status = "completed"): Promise<void> => {
    const { appId } = await newApp(stock, { deviceId: stock.device.deviceId });
    const at = new Date(Date.now() - hours * 3_600_000);
    await insert(stock, "backups", {
      backup_id: newId("bak"),
      app_id: appId,
      device_id: stock.device.deviceId,
      status,
      completed_at: at,
      verification: JSON.stringify({ status: "none" }),
    });
  };
  for (const hours of [1, 25, 28]) await saved(hours);
  await saved(2, "failed");
  await world.sql.query("delete from overview_points");
  await runJob(world, "overview.count");
  const { day } = await overview(stock.owner);
  expect([day.freshBackups.at(-1), day.lateBackups.at(-1)]).toEqual([2, 2]);
});

describe("groups", () => {
  test("are of the key that most devices have, the worst first, or of the key that one asks for", async () => {
    const stock = await openTenant(world);
    const [first, last] = [new Date("2026-01-01T00:00:00Z"), new Date("2026-01-02T00:00:00Z")];
    await addDevice(stock, "offline", ["site:porto", "rack:1"], first);
    await addDevice(stock, "offline", ["site:porto", "plain"], last);
    await addDevice(stock, "online", ["site:porto"]);
    for (let at = 0; at < 7; at += 1) await addDevice(stock, "online", [`site:s${at}`]);
    const { groups } = await overview(stock.owner);
    expect(groups).toMatchObject({ key: "site", keys: ["site", "rack"], total: 8 });
    expect(groups.items).toHaveLength(6);
    expect(groups.items[0]).toEqual({
      ...{ tag: "site:porto", devices: 3, online: 1, offline: 2, provisioning: 0 },
      offlineSince: { first: first.toISOString(), last: last.toISOString() },
    });
    expect((await overview(stock.owner, "?groupBy=rack")).groups).toMatchObject({ key: "rack", total: 1, items: [{ tag: "rack:1", devices: 1 }] });
    expect((await overview(stock.owner, "?groupBy=__proto__")).groups).toMatchObject({ key: "__proto__", total: 0, items: [] });
  });
  test("without such a tag have no key", async () => {
    const { owner } = await openTenant(world);
    expect((await overview(owner)).groups).toEqual({ key: null, keys: [], items: [], total: 0 });
  });
});

test("changes under way are rollouts and bulk operations that have not ended", async () => {
  const stock = await openTenant(world);
  const rolloutId = await newRollout(stock, { status: "running" });
  await newRollout(stock, { status: "completed" });
  const operationId = newId("blk");
  await insert(stock, "bulk_operations", {
    ...{ operation_id: operationId, operation: "device.tag", status: "running", target: BY_IDS, params: "{}", total: 10, succeeded: 4, failed: 1, pending: 5 },
    expires_at: new Date(Date.now() + 60_000),
  });
  await insert(stock, "bulk_operations", { operation_id: newId("blk"), operation: "device.tag", status: "completed", target: BY_IDS, params: "{}" });
  expect((await overview(stock.owner)).changes).toMatchObject([
    { kind: "rollout", id: rolloutId, status: "running", phase: 1, phases: 2, done: 1, failed: 1, total: 1 },
    { kind: "bulkOperation", id: operationId, status: "running", phase: null, done: 5, failed: 1, total: 10 },
  ]);
});

test("a caller who is limited to some devices counts these only, and gets no line over all", async () => {
  const stock = await openTenant(world);
  await addDevice(stock, "offline", ["site:porto"]);
  const made = await world.call(stock.owner, "POST", "/v1/api-keys", {
    body: { name: "one", scopes: ["device:read"], selector: { deviceIds: [stock.device.deviceId] } },
  });
  const limited = asKey(made.body.data.apiKey, stock.tenant.tenantId);
  expect(await overview(limited)).toMatchObject({
    ...{ devices: { total: 1, offline: 0 }, apps: null, commands: null, day: null, changes: [], activity: [] },
    groups: { key: null, total: 0 },
  });
});

describe("activity", () => {
  const event = (type: string, secondsAgo: number, data: Record<string, unknown> = {}, subjectId: string = newId("dev")): DispatchedEvent => ({
    ...{ eventId: newId("evt"), position: 1, sequence: 1, tenantId: newId("ten"), type, subjectId, data, requestId: null, traceparent: null },
    createdAt: new Date(Date.UTC(2026, 0, 1) - secondsAgo * 1_000),
  });
  const knownBy = (events: readonly DispatchedEvent[], tags: readonly string[]) =>
    new Map(events.map(({ subjectId }, at) => [subjectId, { name: `d${at}`, tags }]));

  test("folds events of a type that follow closely into one line, with what their devices share", () => {
    const away = [1, 2, 100, 350].map((ago) => event("device.offline", ago));
    const single = event("app.failed", 50, { name: "Immich" }, newId("app"));
    const before = event("device.offline", 2_000);
    const all = [...away, single, before].toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
    // What fewer others have says more.
    const totals = new Map([
      ["a till", 99],
      ["site:porto", 4],
    ]);
    const lines = activityOf(all, knownBy(away, ["a till", "site:porto"]), totals);
    expect(lines).toMatchObject([
      { type: "device.offline", count: 4, tag: "site:porto", subject: null },
      { type: "app.failed", count: 1, tag: null, subject: { kind: "other", name: "Immich" } },
      { type: "device.offline", count: 1, subject: { kind: "device", id: before.subjectId, name: null } },
    ]);
  });
  test("names no tag that only some have, and never more than twelve lines", () => {
    const away = [1, 2].map((ago) => event("device.offline", ago));
    expect(activityOf(away, knownBy(away.slice(0, 1), ["site:porto"]), new Map())[0]?.tag).toBeNull();
    expect(
      activityOf(
        Array.from({ length: 20 }, (_, at) => event(`fleet.t${at}`, at)),
        new Map(),
        new Map(),
      ),
    ).toHaveLength(12);
  });
  test("leaves out commands that succeeded", async () => {
    const stock = await openTenant(world);
    for (const [at, type] of ["command.completed", "device.offline", "command.failed"].entries())
      await world.sql.query("insert into outbox_events (event_id, tenant_id, type, subject_id, data) values ($1, $2, $3, $4, '{}')", [
        newId("evt"),
        stock.tenant.tenantId,
        type,
        `${stock.device.deviceId.slice(0, -1)}${at}`,
      ]);
    await eventually(async () =>
      expect((await overview(stock.owner)).activity).toMatchObject([{ type: "command.failed" }, { type: "device.offline" }, { type: "device.created" }]),
    );
  });
});
