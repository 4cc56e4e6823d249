// What events leave behind is kept for its time and no longer: each job deletes what is too old, and nothing else.
import { encodeTime } from "ulid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { newTraceId, readTrace, send, span } from "../traces/kit.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({}, { settings: { withoutJobs: true } });
});
afterAll(() => world.close());

/** Until nothing is left to do. */
const runJob = async (name: string): Promise<void> => {
  const job = world.app.jobs.find((each) => each.name === name);
  if (job === undefined) throw new Error(`there is no job ${name}`);
  while ((await job.run(new AbortController().signal)) === true);
};
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ago = (ms: number): Date => new Date(Date.now() - ms);
const insert = async (table: string, row: Readonly<Record<string, unknown>>): Promise<void> => {
  const places = Object.keys(row).map((_, at) => `$${at + 1}`);
  await world.sql.query(`insert into ${table} (${Object.keys(row).join(", ")}) values (${places.join(", ")})`, Object.values(row));
};
/** The values of a column in rows of these tenants, sorted. */
const left = async (table: string, column: string, ...tenants: readonly TestTenant[]): Promise<string[]> => {
  const ids = tenants.map(({ tenantId }) => tenantId);
  const { rows } = await world.sql.query(`select ${column} as value from ${table} where tenant_id = any($1)`, [ids]);
  return rows.map(({ value }) => String(value)).sort();
};

const newWebhook = async (tenant: TestTenant): Promise<string> => {
  const body = { url: `http://127.0.0.2:8080/${newId("x")}`, events: ["fleet.*"] };
  return (await world.call(await tenant.user("owner"), "POST", "/v1/webhooks", { body })).body.data.webhookId;
};
/** An id of an event that happened so long ago. */
const eventAt = (age: number): string => `evt_${encodeTime(Date.now() - age, 10)}${newId("evt").slice(-16)}`;
/** The name stands as the event's type, where a test sees it again. */
const delivery = ({ tenantId }: TestTenant, webhookId: string, [name, status, age]: readonly [string, string, number]) =>
  insert("webhook_deliveries", {
    ...{ delivery_id: newId("whd"), tenant_id: tenantId, webhook_id: webhookId, event_id: eventAt(age), event_type: name, subject_id: "s" },
    ...{ position: 1, status, body: "{}", created_at: ago(age) },
  });

test("deliveries go with the days of their tenant's plan once they are over, and what waits stays", async () => {
  const [short, long] = [await world.tenant(), await world.tenant()];
  await world.sql.query("update tenants set limit_overrides = limit_overrides || '{\"eventRetentionDays\": 3}' where tenant_id = $1", [short.tenantId]);
  const [shortHook, longHook] = [await newWebhook(short), await newWebhook(long)];
  for (const status of ["succeeded", "exhausted", "cancelled", "blocked"]) {
    await delivery(short, shortHook, [`old ${status}`, status, 3 * DAY + 2 * HOUR]);
    await delivery(short, shortHook, [`young ${status}`, status, 3 * DAY - HOUR]);
  }
  for (const status of ["pending", "retrying"]) await delivery(short, shortHook, [`waits as ${status}`, status, 40 * DAY]);
  await delivery(long, longHook, ["old elsewhere", "succeeded", 30 * DAY + 2 * HOUR]);
  await delivery(long, longHook, ["young elsewhere", "succeeded", 30 * DAY - HOUR]);
  await runJob("webhooks.forgetOld");
  expect(await left("webhook_deliveries", "event_type", short)).toEqual([
    "waits as pending",
    "waits as retrying",
    "young blocked",
    "young cancelled",
    "young exhausted",
    "young succeeded",
  ]);
  expect(await left("webhook_deliveries", "event_type", long)).toEqual(["young elsewhere"]);
  expect(await left("webhooks", "webhook_id", short, long)).toEqual([shortHook, longHook].sort());
});

test("a deleted webhook goes with all of its deliveries, and the figures of a webhook after a day", async () => {
  const tenant = await world.tenant();
  const [gone, kept] = [await newWebhook(tenant), await newWebhook(tenant)];
  for (const [webhookId, name] of [
    [gone, "gone"],
    [kept, "kept"],
  ] as const)
    for (const status of ["pending", "succeeded"]) await delivery(tenant, webhookId, [`${name} ${status}`, status, 0]);
  for (const [at, hours] of [25, 27].entries())
    await insert("webhook_hours", { tenant_id: tenant.tenantId, webhook_id: kept, hour: ago(hours * HOUR), succeeded: at });
  expect((await world.call(await tenant.user("owner"), "DELETE", `/v1/webhooks/${gone}`)).status).toBe(204);
  for (const name of ["webhooks.forgetDeleted", "webhooks.forgetHours"]) await runJob(name);
  expect(await left("webhook_deliveries", "event_type", tenant)).toEqual(["kept pending", "kept succeeded"]);
  expect(await left("webhooks", "webhook_id", tenant)).toEqual([kept]);
  expect(await left("webhook_hours", "succeeded", tenant)).toEqual(["0"]);
});

const alert = async ({ tenantId }: TestTenant, name: string, resolvedAt: Date | null): Promise<void> => {
  const alertId = newId("alr");
  await insert("alerts", {
    ...{ alert_id: alertId, tenant_id: tenantId, rule_id: newId("arl"), rule_name: name, type: "device.cpu", severity: "warning", target_id: "t", value: 1 },
    ...{ status: resolvedAt === null ? "open" : "resolved", started_at: ago(200 * DAY), created_at: ago(200 * DAY), resolved_at: resolvedAt },
  });
  await insert("alert_targets", { tenant_id: tenantId, alert_id: alertId, target_id: name, value: 1 });
};

test("alerts go 90 days after their end with what they were about, and those that are open stay", async () => {
  const tenant = await world.tenant();
  await alert(tenant, "old", ago(90 * DAY + HOUR));
  await alert(tenant, "young", ago(90 * DAY - HOUR));
  await alert(tenant, "open", null);
  for (const [comment, endsAt] of [
    ["old", ago(90 * DAY + HOUR)],
    ["young", ago(90 * DAY - HOUR)],
    ["active", ago(-HOUR)],
  ] as const)
    await insert("alert_silences", {
      ...{ silence_id: newId("sil"), tenant_id: tenant.tenantId, matchers: "[]", comment, created_by: "user:ada", starts_at: ago(200 * DAY) },
      ends_at: endsAt,
    });
  await runJob("alerts.retention");
  expect(await left("alerts", "rule_name", tenant)).toEqual(["open", "young"]);
  expect(await left("alert_targets", "target_id", tenant)).toEqual(["open", "young"]);
  expect(await left("alert_silences", "comment", tenant)).toEqual(["active", "young"]);
});

test("messages of alerts go after 30 days, those that wait for longer than a day are given up, and events that rules wait for go after an hour", async () => {
  const tenant = await world.tenant();
  const { tenantId } = tenant;
  const channel = { type: "email", name: "On call", config: { to: ["oncall@users.example"] } };
  const made = await world.call(await tenant.user("owner"), "POST", "/v1/alert-channels", { body: channel });
  for (const [name, status, age] of [
    ["old sent", "sent", 30 * DAY + HOUR],
    ["old failed", "failed", 30 * DAY + HOUR],
    ["young sent", "sent", 30 * DAY - HOUR],
    ["late", "queued", DAY + HOUR],
    ["new", "queued", DAY - HOUR],
  ] as const)
    await insert("alert_notifications", {
      ...{ notification_id: newId("anf"), tenant_id: tenantId, channel_id: made.body.data.channelId, alert_id: name, message: "{}", status },
      created_at: ago(age),
    });
  for (const [name, age] of [
    ["old", HOUR + 60_000],
    ["young", HOUR - 60_000],
  ] as const)
    await insert("alert_signals", { tenant_id: tenantId, event_id: newId("evt"), type: "device.offline", target_id: name, at: ago(age) });
  await runJob("alerts.retention");
  expect(await left("alert_notifications", "alert_id || ' ' || status", tenant)).toEqual(["late failed", "new queued", "young sent sent"]);
  expect(await left("alert_signals", "target_id", tenant)).toEqual(["young"]);
});

test("security events go after 30 days, their alerts 180 days after their end", async () => {
  const tenant = await world.tenant();
  const about = { tenant_id: tenant.tenantId, type: "secrets.read", severity: "low", entity_type: "user" };
  for (const [name, age] of [
    ["old", 30 * DAY + HOUR],
    ["young", 30 * DAY - HOUR],
  ] as const)
    await insert("security_events", {
      ...{ ...about, event_id: newId("sev"), entity_id: name, minute: ago(age), first_at: ago(age), last_at: ago(age), count: 1, pending: false },
    });
  for (const [name, resolvedAt] of [
    ["old", ago(180 * DAY + HOUR)],
    ["young", ago(180 * DAY - HOUR)],
    ["open", null],
  ] as const)
    await insert("security_alerts", {
      ...{ ...about, alert_id: newId("sal"), rule_id: newId("srl"), entity_id: name, count: 1, last_event_at: ago(300 * DAY), created_at: ago(300 * DAY) },
      ...{ status: resolvedAt === null ? "open" : "resolved", resolved_at: resolvedAt },
    });
  for (const name of ["security.forget", "security.forget-alerts"]) await runJob(name);
  expect(await left("security_events", "entity_id", tenant)).toEqual(["young"]);
  expect(await left("security_alerts", "entity_id", tenant)).toEqual(["open", "young"]);
});

test("a trace that is over leaves another tenant's trace of the same id alone, and names go after 30 days", async () => {
  const [tenant, other] = [await world.tenant(), await world.tenant()];
  const traceId = newTraceId();
  for (const { apiKey } of [tenant, other]) await send(world, apiKey, [span({ traceId }), span({ traceId })]);
  await world.sql.query("update traces set expires_at = now() - interval '1 second' where tenant_id = $1", [tenant.tenantId]);
  const [service, today] = ["shop", Math.floor(Date.now() / DAY)];
  for (const [operation, age] of [
    ["old", 30 * DAY + HOUR],
    ["young", 30 * DAY - HOUR],
  ] as const)
    await insert("trace_operations", { tenant_id: tenant.tenantId, service, operation, last_seen_at: ago(age) });
  for (const days of [1, 4]) await insert("trace_usage", { tenant_id: tenant.tenantId, day: today - days, spans: days });
  for (const name of ["traces.forget", "traces.forget-names"]) await runJob(name);
  expect(await readTrace(world, tenant.apiKey, traceId)).toBe(null);
  expect(await left("trace_spans", "span_id", tenant)).toEqual([]);
  expect((await readTrace(world, other.apiKey, traceId)).spans).toHaveLength(2);
  expect(await left("trace_operations", "operation", tenant)).toEqual(["work", "young"]);
  expect(await left("trace_usage", "spans", tenant)).toEqual(["1", "2"]);
});
