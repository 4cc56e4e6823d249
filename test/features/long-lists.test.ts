// Lists over tables that nothing bounds: a page looks at a bounded number of rows, found or not, and its cursor stands where it stopped.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../server/core/ids.ts";
import { WALK_ROWS } from "../../server/core/rows/walk.ts";
import { type Answer, type Caller, type Device, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

/** A page over all rows looks at these, and at one page more. */
const ROWS = WALK_ROWS + 10;

let world: World;
let tenant: TestTenant;
let owner: Caller;
let device: Device;
let webhookId: string;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  device = await tenant.device();
  // While the audit log has nothing but what calls have written.
  const { body } = await world.call(owner, "POST", "/v1/webhooks", { body: { url: "https://example.com/hook", events: ["device.changed"] } });
  ({ webhookId } = body.data);
}, 120_000);
afterAll(() => world.close());

const idOf = (prefix: string): string => `'${prefix}_' || lpad(n::text, 26, '0')`;
/** Row n is the nth oldest one; `rare` is true for the oldest only. */
const fill = (table: string, columns: Readonly<Record<string, string>>): Promise<unknown> =>
  world.sql.query(
    `insert into ${table} (tenant_id, ${Object.keys(columns).join(", ")})
     select '${tenant.tenantId}', ${Object.values(columns).join(", ")} from (select n, n = 1 as rare, now() - interval '1 hour' + n * interval '1 ms' as at from generate_series(1, ${ROWS}) n) r`,
  );

interface Walked {
  /** How many items each page has. */
  readonly sizes: readonly number[];
  readonly first: Answer;
}
const walk = async (path: string): Promise<Walked> => {
  const sizes: number[] = [];
  let first: Answer | undefined;
  for (let cursor: string | null = "*"; cursor !== null && sizes.length < 5; ) {
    const answer: Answer = await world.call(owner, "GET", `/v1${path}${path.includes("?") ? "&" : "?"}pageSize=100&cursor=${cursor}`);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    first ??= answer;
    sizes.push(answer.body.data.length);
    cursor = answer.body.meta.pagination.nextCursor;
  }
  if (first === undefined) throw new Error("there is a first page");
  return { sizes, first };
};

const ZEROS = "decode(repeat('00', 32), 'hex')";
const COMMANDS = {
  ...{ command_id: idOf("cmd"), seq: "n + 1000", lane: "'x'", payload: "'{}'", issued_at: "at", available_at: "at", exec_timeout_s: "60" },
  ...{ type: "case when rare then 'echo' else 'ping' end", created_by: "case when rare then 'key_rare' else 'key_often' end" },
  ...{
    status: "case when rare then 'canceled' else 'succeeded' end",
    finished_at: "at",
    attempt: "1",
    output_truncated: "false",
    late: "false",
    history: "'[]'",
  },
};

describe("a filter that only the oldest row of a long list meets", () => {
  test.each(["status=canceled", "type=echo", "createdBy=key_rare"])("commands by %s", async (filter) => {
    const { rows } = await world.sql.query("select 1 from commands where tenant_id = $1 limit 1", [tenant.tenantId]);
    if (rows.length === 0) await fill("commands", { ...COMMANDS, device_id: `'${device.deviceId}'` });
    for (const path of [`/commands?${filter}`, `/commands?deviceId=${device.deviceId}&${filter}`, `/commands/partial?fields=status&${filter}`]) {
      const { sizes, first } = await walk(path);
      expect(sizes, path).toEqual([0, 1]);
      expect(first.body.meta.pagination).toMatchObject({ hasMore: true, hasNext: true });
      expect((await walk(`${path}&order=oldest`)).sizes, path).toEqual([1, 0]);
    }
    const ofDevice = `/devices/${device.deviceId}/commands?${filter}`;
    expect((await walk(ofDevice)).sizes).toEqual([0, 1]);
    const { body } = await world.call(owner, "GET", `/v1${ofDevice}`);
    expect([body.data, body.meta.pagination.hasMore, body.meta.pagination.total]).toEqual([[], true, undefined]);
  });

  test("deliveries by status and type", async () => {
    await fill("webhook_deliveries", {
      ...{ delivery_id: idOf("whd"), webhook_id: `'${webhookId}'`, event_id: idOf("evt"), position: "n", body: "'{}'", subject_id: "'x'", created_at: "at" },
      ...{ event_type: "case when rare then 'app.created' else 'device.changed' end", status: "case when rare then 'exhausted' else 'succeeded' end" },
    });
    for (const filter of ["status=exhausted", "eventType=app.created"])
      expect((await walk(`/webhooks/${webhookId}/deliveries?${filter}`)).sizes).toEqual([0, 1]);
  });

  test("audit records by actor, action and resource; a time is found without a look at the others", async () => {
    await world.sql.query("delete from audit_chains where tenant_id = $1", [tenant.tenantId]);
    await world.sql.query(
      `begin; select set_config('mooring.audit_retention', 'on', true); delete from audit_logs where tenant_id = '${tenant.tenantId}'; commit`,
    );
    await fill("audit_logs", {
      ...{
        audit_id: idOf("aud"),
        sequence: "n",
        at: "at - interval '1 day' + n * interval '1 s'",
        actor_type: "'user'",
        actor_id: "case when rare then 'usr_rare' else 'usr_often' end",
      },
      ...{
        action: "case when rare then 'devices.delete' else 'devices.update' end",
        resource_type: "case when rare then 'app' else 'device' end",
        resource_id: "case when rare then 'rare' else 'often' end",
      },
      ...{ outcome: "'success'", hash: ZEROS, previous_hash: ZEROS, changes: "'[]'", omitted: "0" },
    });
    for (const filter of ["actor=usr_rare", "action=devices.delete", "resource=rare", "resource=app"])
      expect((await walk(`/audit-logs?${filter}`)).sizes, filter).toEqual([0, 1]);
    const { rows } = await world.sql.query("select at from audit_logs where tenant_id = $1 and sequence = 2", [tenant.tenantId]);
    expect((await walk(`/audit-logs?to=${rows[0].at.toISOString()}`)).sizes).toEqual([1]);
    const { body } = await world.call(owner, "GET", "/v1/audit-logs?pageSize=10");
    expect([body.data.length, body.meta.pagination.hasMore, body.meta.pagination.total]).toEqual([10, true, undefined]);
    const far = await world.call(owner, "GET", `/v1/audit-logs?offset=${WALK_ROWS}`);
    expect([far.status, far.body.details.reason]).toEqual([400, "too_far"]);
  });

  test("alerts by status, severity and rule, in both orders", async () => {
    const ruleId = newId("arl");
    await fill("alerts", {
      ...{
        alert_id: idOf("alr"),
        rule_id: `case when rare then '${ruleId}' else '${newId("arl")}' end`,
        rule_name: "'x'",
        type: "'device.offline'",
        target_id: "'x'",
        value: "1",
      },
      ...{ severity: "case when rare then 'info' else 'warning' end", status: "case when rare then 'acknowledged' else 'resolved' end" },
      ...{ started_at: "at", last_seen_at: "at", updated_at: "at" },
    });
    for (const filter of ["status=acknowledged", "severity=info", `ruleId=${ruleId}`])
      for (const sort of ["-startedAt", "-lastSeenAt"]) expect((await walk(`/alerts?sort=${sort}&${filter}`)).sizes, `${sort} ${filter}`).toEqual([0, 1]);
  });

  test("security events and alerts", async () => {
    const type = "'auth.failed_burst'";
    await fill("security_events", {
      ...{
        event_id: idOf("sev"),
        type,
        severity: "case when rare then 'high' else 'low' end",
        entity_type: "'ip'",
        entity_id: "case when rare then 'rare' else 'often' end",
      },
      ...{ minute: "at", first_at: "at", last_at: "at", count: "1", pending: "false" },
    });
    await fill("security_alerts", {
      ...{
        alert_id: idOf("sal"),
        rule_id: `'${newId("srl")}'`,
        type,
        severity: "case when rare then 'high' else 'low' end",
        status: "case when rare then 'acknowledged' else 'resolved' end",
      },
      ...{ entity_type: "'ip'", entity_id: "'x'", count: "1", last_event_at: "at", created_at: "at" },
    });
    for (const filter of ["severity=high", "entityId=rare"]) expect((await walk(`/security/events?${filter}`)).sizes).toEqual([0, 1]);
    for (const filter of ["severity=high", "status=acknowledged"])
      for (const sort of ["-createdAt", "-lastEventAt"]) expect((await walk(`/security/alerts?sort=${sort}&${filter}`)).sizes).toEqual([0, 1]);
  });

  test("traces by what failed, and how long it took", async () => {
    await fill("traces", {
      ...{
        trace_id: "lpad(to_hex(n), 32, '0')",
        start_us: "(extract(epoch from now()) * 1e6)::int8 - 1800000000 + n",
        end_us: "(extract(epoch from now()) * 1e6)::int8",
        duration_us: "case when rare then 9000000 else 1 end",
      },
      ...{
        rooted: "true",
        root_us: "0",
        root_service: "'x'",
        root_operation: "'x'",
        span_count: "1",
        error_count: "case when rare then 1 else 0 end",
        services: "'{x}'",
      },
      ...{ operations: "'{x}'", device_ids: "'{}'", app_ids: "'{}'", request_ids: "'{}'", expires_at: "now() + interval '1 day'" },
    });
    for (const filter of ["status=error", "minDurationMs=1000"]) expect((await walk(`/traces?${filter}`)).sizes, filter).toEqual([0, 1]);
  });

  test("events by type and subject, in both directions", async () => {
    const { tenantId } = tenant;
    await world.sql.query(
      `begin; delete from outbox_dispatches where tenant_id = '${tenantId}';
       insert into outbox_events (event_id, position, tenant_id, type, subject_id, data)
         select 'evt_' || lpad(n::text, 26, '0'), 1000000000 + n, '${tenantId}', case when n = 2 then 'app.created' else 'device.changed' end, case when n = 2 then 'rare' else 'often' end, '{}'
           from generate_series(1, ${ROWS}) n;
       delete from outbox_pending where tenant_id = '${tenantId}';
       insert into outbox_dispatches (tenant_id, last_sequence, positions, highest_position)
         select '${tenantId}', n * 10, array(select 1000000000 + (n - 1) * 10 + k from generate_series(1, 10) k), 1000000000 + n * 10 from generate_series(1, ${ROWS / 10}) n;
       commit`,
    );
    for (const filter of ["types=app.created", "subjectId=rare"]) {
      expect((await walk(`/events?${filter}`)).sizes, filter).toEqual([0, 1]);
      expect((await walk(`/events?${filter}&after=evt_${"1".padStart(26, "0")}`)).sizes, filter).toEqual([1, 0]);
    }
    expect((await walk(`/events?types=app.created&after=evt_${"2".padStart(26, "0")}`)).sizes).toEqual([0, 0]);
  });
});
