// History of what an app uses: a sample a minute from its agent's reports, in a ring of a day, answered in buckets of five minutes.
import pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { ReportedApp } from "../../../protocol/index.ts";
import type { SqlTx } from "../../../server/core/events.ts";
import { keepFigures } from "../../../server/features/apps/store/app-figures.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { openRig, reportOf } from "./kit.ts";
import { insertApp } from "./logs-kit.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off", RATE_LIMIT_AGENT: "off" });
});
afterAll(() => world.close());

const sql = { query: async (text: string, values: unknown[] = []) => (await world.sql.query(text, values)).rows } as SqlTx; // as: the rows are the statement's
const MINUTE_MS = 60_000;
const SLOT_MS = 5 * MINUTE_MS;
/** A tenant whose device has one app. The agent reports by signed calls alone. */
const open = async () => {
  const rig = await openRig(world, { online: false });
  const appId = await insertApp(world, rig.tenant, rig.device);
  const scope = { tenantId: rig.tenant.tenantId };
  const keep = (at: number, more: Partial<ReportedApp>) => keepFigures(sql, scope, { version: 1, apps: [reportOf(appId, more)] }, new Date(at));
  const read = async (range = "24h") => rig.ask(`GET /apps/${appId}/metrics?range=${range}`);
  const full = async (range?: string) => (await read(range)).buckets.filter(({ count }: { count: number }) => count > 0);
  return { ...rig, appId, keep, read, full };
};

test("what an agent reports of an app is a sample of its minute, once, and no foreign tenant reads it", async () => {
  const { appId, report, full, read, device } = await open();
  const said = reportOf(appId, { cpuPercent: 1.5, memoryBytes: 1_048_576, responseMs: 12.5 });
  await report(1, said);
  await report(1, said);
  const buckets = await full("1h");
  // Two, if a minute began between the reports.
  expect(buckets.reduce((sum: number, { count }: { count: number }) => sum + count, 0)).toBeLessThanOrEqual(2);
  expect(buckets[0]).toMatchObject({
    cpuPercent: { avg: 1.5, max: 1.5 },
    memoryBytes: { avg: 1_048_576, max: 1_048_576 },
    responseMs: { avg: 12.5, max: 12.5 },
  });
  expect(await read("1h")).toMatchObject({ appId, range: "1h", bucketSeconds: 300 });
  expect((await read("1h")).buckets).toHaveLength(12);
  expect((await read()).buckets).toHaveLength(288);
  const other = await open();
  expect(await other.refusal(`GET /apps/${appId}/metrics`)).toEqual([404, "APP_NOT_FOUND", { appId }]);
  // An agent knows its own device's apps and no others.
  await other.report(1, said);
  expect(await full("1h")).toEqual(buckets);
  expect(device.deviceId).not.toBe(other.device.deviceId);
});

test("five minutes are added up exactly: averages over the samples that have the figure, and the most", async () => {
  const { keep, full } = await open();
  const at = Math.floor(Date.now() / SLOT_MS) * SLOT_MS - SLOT_MS;
  await keep(at, { cpuPercent: 10, memoryBytes: 1_000, responseMs: 4 });
  await keep(at + 30_000, { cpuPercent: 99, memoryBytes: 9_000 });
  await keep(at + MINUTE_MS, { cpuPercent: 20, memoryBytes: null });
  await keep(at + 4 * MINUTE_MS, { cpuPercent: 33.33, memoryBytes: 4_000, responseMs: 8 });
  await keep(at + 2 * MINUTE_MS, { cpuPercent: 99 });
  await keep(at + SLOT_MS, { cpuPercent: null, memoryBytes: null });
  expect(await full("1h")).toEqual([
    {
      timestamp: new Date(at).toISOString(),
      count: 3,
      cpuPercent: { avg: 21.11, max: 33.33 },
      memoryBytes: { avg: 2_500, max: 4_000 },
      responseMs: { avg: 6, max: 8 },
    },
  ]);
});

test("a new day writes over the last one, so an app never has more than 288 rows", async () => {
  const { appId, keep, full } = await open();
  const now = Math.floor(Date.now() / SLOT_MS) * SLOT_MS;
  await keep(now - 24 * 3_600_000, { cpuPercent: 90, memoryBytes: 5, responseMs: 100 });
  await keep(now - 24 * 3_600_000 - SLOT_MS, { cpuPercent: 80 });
  expect(await full()).toEqual([]);
  await keep(now, { cpuPercent: 10, memoryBytes: null });
  expect(await full()).toEqual([{ timestamp: new Date(now).toISOString(), count: 1, cpuPercent: { avg: 10, max: 10 } }]);
  expect((await world.sql.query("select slot from app_metrics where app_id = $1", [appId])).rows).toHaveLength(2);
});

test("a report of 400 apps is as many statements as one of a single app", async () => {
  const [one, many] = [await open(), await open()];
  await world.sql.query(
    `insert into apps (app_id, tenant_id, device_id, app_type, template_version, name, status, config, spec, desired_version, created_by, reported)
     select overlay(app_id placing lpad(n::text, 4, '0') from 27), tenant_id, device_id, app_type, template_version, name, status, config, spec, 1, created_by,
       jsonb_set(reported, '{appId}', to_jsonb(overlay(app_id placing lpad(n::text, 4, '0') from 27))) from apps, generate_series(1, 399) n where app_id = $1`,
    [many.appId],
  );
  const { rows } = await world.sql.query("select app_id from apps where device_id = $1", [many.device.deviceId]);
  expect(rows).toHaveLength(400);
  const countOf = async ({ report }: Awaited<ReturnType<typeof open>>, appIds: readonly string[]): Promise<number> => {
    const spy = vi.spyOn(pg.Client.prototype, "query");
    try {
      await report(1, ...appIds.map((appId, at) => reportOf(appId, { cpuPercent: at, memoryBytes: 1_000 * at, responseMs: at })));
      return spy.mock.calls.filter(([given]) => /\b(apps|app_metrics|desired_versions)\b/.test(JSON.stringify(given))).length;
    } finally {
      spy.mockRestore();
    }
  };
  const [single, all] = [
    await countOf(one, [one.appId]),
    await countOf(
      many,
      rows.map(({ app_id }) => app_id),
    ),
  ];
  expect(all).toBe(single);
  expect(single).toBeLessThanOrEqual(5);
  const kept = await world.sql.query("select 1 from app_metrics join apps using (tenant_id, app_id) where device_id = $1", [many.device.deviceId]);
  expect(kept.rows).toHaveLength(400);
});

test("figures beyond all reason cost no report", async () => {
  const { appId, report, full } = await open();
  await report(1, reportOf(appId, { cpuPercent: 1e308, memoryBytes: Number.MAX_SAFE_INTEGER, responseMs: 600_000 }));
  expect((await full("1h"))[0].cpuPercent).toEqual({ avg: 1_000_000, max: 1_000_000 });
});

test("the history of an app goes with it", async () => {
  const { appId, keep } = await open();
  await keep(Date.now(), {});
  await world.sql.query("delete from apps where app_id = $1", [appId]);
  expect((await world.sql.query("select 1 from app_metrics where app_id = $1", [appId])).rows).toEqual([]);
});
