// Lists over very many rows: how long each filter takes, and what other tenants notice of one key that reads such lists side by side.
import { z } from "zod";
import { quantile } from "../arithmetic.ts";
import { type BenchGateway, type BenchTenant, createTenant, provision, startBenchGateway } from "../gateway.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";

export interface ListsPlan {
  /** Ended commands of one tenant; the other tables have a fifth as many. */
  readonly commands: number;
  readonly devices: number;
  readonly readers: number;
  readonly createsPerSecond: number;
  readonly windowMs: number;
}

type Row = Readonly<Record<string, string>>;

const idOf = (prefix: string): string => `'${prefix}_' || lpad(n::text, 26, '0')`;
const ZEROS = "decode(repeat('00', 32), 'hex')";
/** Row 1 is the oldest and the only rare one. */
const rareOr = (rare: string, often: string): string => `case when n = 1 then '${rare}' else '${often}' end`;

const commandRow = (deviceIds: readonly string[]): Row => ({
  ...{ command_id: idOf("cmd"), device_id: `('{${deviceIds.join(",")}}'::text[])[1 + n % ${deviceIds.length}]`, seq: "1000000 + n", lane: "'main'" },
  ...{ payload: `'{"text": "a payload as long as most"}'`, issued_at: "at", available_at: "at", exec_timeout_s: "60", type: rareOr("echo", "ping") },
  ...{ created_by: rareOr("key_rare", "key_often"), status: rareOr("canceled", "succeeded"), finished_at: "at", attempt: "1", output_truncated: "false" },
  ...{ late: "false", history: "'[]'", output: `'{"ok": true}'` },
});
export const auditRow: Row = {
  ...{ audit_id: idOf("aud"), sequence: "n + 1000", at: "at", actor_type: "'user'", actor_id: rareOr("usr_rare", "usr_often"), changes: "'[]'", omitted: "0" },
  ...{ action: rareOr("devices.delete", "devices.update"), resource_type: rareOr("app", "device"), resource_id: rareOr("rare", "often"), outcome: "'success'" },
  ...{ hash: ZEROS, previous_hash: ZEROS },
};
const deliveryRow = (webhookId: string): Row => ({
  ...{ delivery_id: idOf("whd"), webhook_id: `'${webhookId}'`, event_id: idOf("evt"), position: "n", body: "'{}'", subject_id: "'x'", created_at: "at" },
  ...{ event_type: rareOr("app.created", "device.changed"), status: rareOr("exhausted", "succeeded") },
});
const alertRow: Row = {
  ...{ alert_id: idOf("alr"), rule_id: `'arl_' || lpad((n % 7)::text, 26, '0')`, rule_name: "'x'", type: "'device.offline'", target_id: "'x'", value: "1" },
  ...{ severity: rareOr("info", "warning"), status: rareOr("acknowledged", "resolved"), started_at: "at", last_seen_at: "at", updated_at: "at" },
};
const securityEventRow: Row = {
  ...{ event_id: idOf("sev"), type: "'auth.failed_burst'", severity: rareOr("high", "low"), entity_type: "'ip'", entity_id: rareOr("rare", "often") },
  ...{ minute: "at", first_at: "at", last_at: "at", count: "1", pending: "false" },
};

export const fill = async (stage: BenchStage, tenantId: string, table: string, { row, rows }: { readonly row: Row; readonly rows: number }): Promise<void> => {
  await stage.query(
    `insert into ${table} (tenant_id, ${Object.keys(row).join(", ")}) select $1, ${Object.values(row).join(", ")}
       from (select n, now() - interval '1 hour' + n * interval '1 ms' as at from generate_series(1, ${rows}) n) r`,
    [tenantId],
  );
  await stage.admin(`vacuum analyze ${table}`);
};

const Created = z.object({ data: z.object({ webhookId: z.string() }) });

export const call = (gateway: BenchGateway, { apiKey }: BenchTenant, path: string, body?: unknown): Promise<Response> =>
  fetch(`${gateway.url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${apiKey}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000),
  });

/** Every filter by which a page can be almost empty. */
const pathsOf = (deviceId: string, webhookId: string): readonly string[] => [
  ...["status=canceled", "type=echo", "type=none", "createdBy=key_rare", "open=true", "open=false", "blocked=true", "status=canceled&order=oldest"].map(
    (filter) => `/v1/commands?${filter}`,
  ),
  ...["", "&status=canceled", "&type=none"].map((filter) => `/v1/commands?deviceId=${deviceId}${filter}`),
  ...["", "?status=canceled", "?type=none"].map((filter) => `/v1/devices/${deviceId}/commands${filter}`),
  "/v1/commands",
  "/v1/commands/summary",
  ...["", "?actor=usr_rare", "?action=devices.delete", "?resource=rare"].map((filter) => `/v1/audit-logs${filter}`),
  ...["", "?status=exhausted", "?eventType=app.created"].map((filter) => `/v1/webhooks/${webhookId}/deliveries${filter}`),
  ...["", "?status=acknowledged", "?severity=info", "?severity=info&sort=-lastSeenAt"].map((filter) => `/v1/alerts${filter}`),
  ...["", "?severity=high", "?entityId=rare"].map((filter) => `/v1/security/events${filter}`),
  ...["", "?types=app.created"].map((filter) => `/v1/events${filter}`),
];

const VISITS = 5;
/** The median of some visits of each list, in the order of the lists. */
const timesOf = async (gateway: BenchGateway, tenant: BenchTenant, paths: readonly string[]) => {
  const times: { readonly path: string; readonly ms: number }[] = [];
  for (const path of paths) {
    const visits: number[] = [];
    for (let visit = 0; visit < VISITS; visit += 1) {
      const started = performance.now();
      const answer = await call(gateway, tenant, path);
      const text = await answer.text();
      if (answer.status !== 200) throw new InvalidRun(`${path} answers ${answer.status} ${text.slice(0, 200)}`);
      visits.push(performance.now() - started);
    }
    times.push({ path, ms: quantile(visits, 0.5) });
    process.stderr.write(`  ${quantile(visits, 0.5).toFixed(0).padStart(5)} ms  ${path}\n`);
  }
  return times;
};

interface Creates {
  readonly p99: number;
  readonly made: number;
  readonly failed: number;
  /** The readiness answers that were not 200. */
  readonly unready: number;
}
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Creates commands at a steady pace, however long each takes, and looks at readiness every second. */
export const createsFor = async (
  gateway: BenchGateway,
  tenant: BenchTenant,
  { deviceId, plan }: { readonly deviceId: string; readonly plan: ListsPlan },
): Promise<Creates> => {
  const times: number[] = [];
  let [failed, unready] = [0, 0];
  const create = async (): Promise<void> => {
    const started = performance.now();
    const status = await call(gateway, tenant, `/v1/devices/${deviceId}/commands`, { type: "ping" }).then(
      async (answer) => {
        await answer.text();
        return answer.status;
      },
      () => 0,
    );
    times.push(performance.now() - started);
    if (status < 200 || status > 299) failed += 1;
  };
  const look = async (): Promise<void> => {
    const { status } = await fetch(`${gateway.url}/v1/health/ready`);
    if (status !== 200) unready += 1;
  };
  const under: Promise<void>[] = [];
  const count = Math.round((plan.windowMs / 1_000) * plan.createsPerSecond);
  const started = performance.now();
  for (let n = 0; n < count; n += 1) {
    await pause(Math.max(0, started + (n * 1_000) / plan.createsPerSecond - performance.now()));
    under.push(create());
    if (n % plan.createsPerSecond === 0) under.push(look());
  }
  await Promise.all(under);
  return { p99: quantile(times, 0.99), made: times.length, failed, unready };
};

/** One key reads the lists over and over, so many at a time. Returns how to end it, which answers with the number of answers by status. */
const startReaders = (gateway: BenchGateway, tenant: BenchTenant, paths: readonly string[], readers: number) => {
  let isOn = true;
  const answers: Record<string, number> = {};
  const read = async (from: number): Promise<void> => {
    for (let n = from; isOn; n += 1) {
      const answer = await call(gateway, tenant, paths[n % paths.length] ?? "/v1/commands");
      await answer.text();
      answers[answer.status] = (answers[answer.status] ?? 0) + 1;
      if (answer.status !== 200) await pause(50);
    }
  };
  const all = Promise.all(Array.from({ length: readers }, (_, reader) => read(reader)));
  return async (): Promise<Readonly<Record<string, number>>> => {
    isOn = false;
    await all;
    return answers;
  };
};

export const lists = (stage: BenchStage, plan: ListsPlan): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const gateway = await startBenchGateway(scope);
    const [large, other] = [await createTenant(scope, { unlimited: true }), await createTenant(scope, { unlimited: true })];
    const deviceIds = (await provision(gateway, large, plan.devices)).map(({ deviceId }) => deviceId);
    const [{ deviceId = "" } = {}] = await provision(gateway, other, 1);
    const made = await call(gateway, large, "/v1/webhooks", { url: "https://example.com/hook", events: ["device.changed"] });
    const { webhookId } = Created.parse(await made.json()).data;
    const fifth = Math.round(plan.commands / 5);
    process.stderr.write(`  writing ${plan.commands} commands\n`);
    await fill(scope, large.tenantId, "commands", { row: commandRow(deviceIds), rows: plan.commands });
    for (const [table, row] of [
      ["audit_logs", auditRow],
      ["webhook_deliveries", deliveryRow(webhookId)],
      ["alerts", alertRow],
      ["security_events", securityEventRow],
    ] as const)
      await fill(scope, large.tenantId, table, { row, rows: fifth });
    const paths = pathsOf(deviceIds[0] ?? "", webhookId);
    const times = await timesOf(gateway, large, paths);
    const [slowest] = times.toSorted((a, b) => b.ms - a.ms);

    const writes = { deviceId, plan };
    await createsFor(gateway, other, { deviceId, plan: { ...plan, windowMs: 2_000 } });
    const alone = await createsFor(gateway, other, writes);
    const end = startReaders(gateway, large, paths.slice(0, 7), plan.readers);
    const beside = await createsFor(gateway, other, writes);
    const answers = await end();
    const note = `p99 ${alone.p99.toFixed(1)} ms alone, ${beside.p99.toFixed(1)} ms beside ${plan.readers} readers, whose answers were ${JSON.stringify(answers)}`;
    return [
      { id: "lists-slowest", value: slowest?.ms ?? null, rounds: times, note: slowest?.path ?? "" },
      { id: "lists-beside", value: beside.p99 / alone.p99, rounds: [alone, beside], note },
      { id: "lists-failed", value: beside.failed, note: `of ${beside.made}` },
      { id: "lists-unready", value: beside.unready },
    ];
  });
