// The operators' list of what is stuck: each kind appears when it is stuck, with its tenant, its reason and what to do.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STUCK_KINDS, type StuckItem } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { insertOpenCommand } from "../../kit/gateway/open-commands.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

let world: World;
let operator: Caller;
let tenant: TestTenant;
beforeAll(async () => {
  world = await startWorld({}, { settings: { withoutJobs: true } });
  operator = await world.operator();
  tenant = await world.tenant();
});
afterAll(() => world.close());

const stuck = async (query = ""): Promise<readonly StuckItem[]> => (await world.call(operator, "GET", `/v1/admin/stuck${query}`)).body.data;
const sql = (text: string, values: readonly unknown[] = []) => world.sql.query(text, [...values]);

const command = async (status: string, { deadline = "1 hour", available = "0 s", lane = "x", seq = 1, deviceId = newId("dev") } = {}) => {
  const commandId = newId("cmd");
  await insertOpenCommand(sql, { commandId, tenantId: tenant.tenantId, deviceId, seq, lane, status, deadline, available: `-${available}` });
  return commandId;
};
const present = (deviceId: string, connectivity: string) =>
  sql("insert into device_presence (device_id, tenant_id, connectivity) values ($1, $2, $3)", [deviceId, tenant.tenantId, connectivity]);

const mail = async (status: string) => {
  const mailId = newId("mal");
  await sql(
    "insert into mails (mail_id, recipient, status, attempts, last_error, created_at) values ($1, 'a@users.example', $2, 3, 'no', now() - interval '1 hour')",
    [mailId, status],
  );
  return mailId;
};

/** Makes each kind stuck and returns the id that the list must show. No job runs, so nothing repairs it. */
const MAKE: Record<StuckItem["kind"], () => Promise<string>> = {
  command_overdue: () => command("queued", { deadline: "-2 minutes" }),
  command_blocked: async () => {
    const deviceId = newId("dev");
    await present(deviceId, "realtime");
    await command("running", { deviceId, seq: 1 });
    return command("queued", { deviceId, seq: 2, available: "20 minutes" });
  },
  outcome_untold: async () => {
    const commandId = await command("queued");
    await sql("delete from command_queue where command_id = $1", [commandId]);
    await sql("update commands set status = 'succeeded', finished_at = now() - interval '1 minute' where command_id = $1", [commandId]);
    await sql("insert into untold_outcomes (command_id, tenant_id, attempts, retry_at) values ($1, $2, 3, now() + interval '1 hour')", [
      commandId,
      tenant.tenantId,
    ]);
    return commandId;
  },
  event_undispatched: async () => {
    const eventId = newId("evt");
    await sql(
      "insert into outbox_events (event_id, tenant_id, type, subject_id, data, created_at) values ($1, $2, 'tenant.updated', 's', '{}', now() - interval '5 minutes')",
      [eventId, tenant.tenantId],
    );
    return eventId;
  },
  deletion_overdue: async () => {
    const { tenantId } = await world.tenant();
    await sql("update tenants set status = 'pending_deletion', delete_after = now() - interval '2 hours' where tenant_id = $1", [tenantId]);
    return tenantId;
  },
  webhook_delivery_late: async () => {
    const webhookId = newId("wh");
    await sql("insert into webhooks (webhook_id, tenant_id, url, secret, secret_hint, created_by) values ($1, $2, 'https://a.example', '\\x00', '', 's')", [
      webhookId,
      tenant.tenantId,
    ]);
    await sql("insert into webhook_endpoints (webhook_id, tenant_id, next_due_at) values ($1, $2, now() - interval '2 minutes')", [webhookId, tenant.tenantId]);
    return webhookId;
  },
  metrics_behind: async () => {
    await sql(
      "insert into metric_progress (step_seconds, at) values (3600, now() - interval '9 hours') on conflict (step_seconds) do update set at = excluded.at",
    );
    return "step 3600";
  },
  subscription_overdue: async () => {
    const subscriptionId = newId("sub");
    await sql(
      `insert into subscriptions (subscription_id, tenant_id, provider, plan, interval, status, current_period_end)
       values ($1, $2, 'local', 'pro', 'monthly', 'active', now() - interval '2 hours')`,
      [subscriptionId, tenant.tenantId],
    );
    return subscriptionId;
  },
  subscription_uncanceled: async () => {
    const [{ tenantId }, subscriptionId] = [await world.tenant(), newId("sub")];
    await sql("update tenants set status = 'deleted', status_since = now() - interval '1 hour' where tenant_id = $1", [tenantId]);
    await sql(
      `insert into subscriptions (subscription_id, tenant_id, provider, plan, interval, status, current_period_end)
       values ($1, $2, 'stripe', 'pro', 'monthly', 'active', now() + interval '2 hours')`,
      [subscriptionId, tenantId],
    );
    return subscriptionId;
  },
  load_test_lost: async () => {
    await sql(
      `insert into load_tests (tenant_id, load_test_id, status, duration, concurrency, endpoints, started_by, node_id, started_at, deadline_at)
       values ($1, 'ltr_1', 'running', 1, 1, '{}', 'user:u', 'gone', now(), now() - interval '10 minutes')`,
      [tenant.tenantId],
    );
    return tenant.tenantId;
  },
  mail_failed: () => mail("failed"),
  mail_late: () => mail("queued"),
  alert_unsent: async () => {
    const [channelId, notificationId] = [newId("chn"), newId("anf")];
    await sql(
      `with c as (insert into alert_channels (channel_id, tenant_id, type, name, config, address, send_resolved, created_by, updated_at)
         values ($1, $2, 'slack', 'c', '', 'a', true, 'system', now()) returning tenant_id, channel_id)
       insert into alert_notifications (notification_id, tenant_id, channel_id, alert_id, message, created_at)
       select $3, tenant_id, channel_id, 'alr_1', '{}', now() - interval '1 hour' from c`,
      [channelId, tenant.tenantId, notificationId],
    );
    return notificationId;
  },
  many_step_failing: async () => {
    await sql(
      `insert into many_work (tenant_id, record_id, kind, priority, engine, step_at, failures, last_error)
       values ($1, 'rlt_1', 'rollout', 1, 1, now() + interval '30 seconds', 5, 'Error: no')`,
      [tenant.tenantId],
    );
    return "rlt_1";
  },
  job_failing: async () => {
    await sql(
      "insert into job_runs (node_id, name, started_at, duration_ms, runs, failures, failed_since, error) values ('n', 'some.job', now(), 1, 9, 3, now(), 'Error: no')",
    );
    return "some.job";
  },
  node_silent: async () => {
    await sql("insert into gateway_nodes (node_id, address, host, pid, version, seen_at) values ('silent', '', 'box', 1, '', now() - interval '1 minute')");
    return "silent";
  },
};

describe("each kind", () => {
  test.each(STUCK_KINDS)("%s is listed with its reason", async (kind) => {
    const id = await MAKE[kind]();
    const found = await stuck(`?kind=${kind}`);
    expect(found).toContainEqual(
      expect.objectContaining({ kind, id, since: expect.any(String), reason: expect.stringMatching(/\w{3}/), whatToDo: expect.stringMatching(/\w{3}/) }),
    );
    for (const item of found) expect(item.kind).toBe(kind);
  });

  test("a blocked command names the one that it waits for, and one of an absent device is not stuck", async () => {
    const deviceId = newId("dev");
    await present(deviceId, "realtime");
    const ahead = await command("running", { deviceId, seq: 1, lane: "app" });
    const behind = await command("queued", { deviceId, seq: 2, lane: "app", available: "1 hour" });
    const absent = newId("dev");
    await present(absent, "none");
    const waiting = await command("queued", { deviceId: absent, available: "1 hour" });
    const found = await stuck("?kind=command_blocked");
    expect(found.find(({ id }) => id === behind)?.blockedBy).toBe(ahead);
    expect(found.map(({ id }) => id)).not.toContain(waiting);
  });

  test("the list can be limited to a tenant, and shows at most 100 of a kind, oldest first", async () => {
    const other = await world.tenant();
    expect((await stuck(`?tenantId=${other.tenantId}`)).length).toBe(0);
    expect((await stuck(`?tenantId=${tenant.tenantId}`)).every(({ tenantId }) => tenantId === tenant.tenantId)).toBe(true);
    const overdue = [];
    for (let n = 0; n < 101; n += 1) overdue.push(await command("queued", { deadline: "-1 hour" }));
    const { body } = await world.call(operator, "GET", "/v1/admin/stuck?kind=command_overdue");
    await sql("delete from command_queue where command_id = any($1)", [overdue]);
    expect([body.data.length, body.truncated ?? body.meta?.truncated]).toEqual([100, true]);
    const times = body.data.map(({ since }: StuckItem) => since);
    expect(times).toEqual([...times].sort());
  });
});
