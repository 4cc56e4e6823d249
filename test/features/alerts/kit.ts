// A gateway whose jobs do not run by themselves, and the jobs of alerts beside it, so that each test evaluates and sends when it means to.
import type { Alert, AlertRule } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import type { Outbound, OutboundAnswer, OutboundCall } from "../../../server/core/ports/outbound.ts";
import { createEvaluation } from "../../../server/features/alerts/evaluate.ts";
import { createNotifier } from "../../../server/features/alerts/notify.ts";
import { createSend } from "../../../server/features/alerts/send.ts";
import { openDb } from "../../../server/platform/database/db.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { createMails } from "../../../server/platform/mail/mail.ts";
import { createSmtp } from "../../../server/platform/mail/smtp.ts";
import { createOutbox } from "../../../server/platform/outbox/outbox.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { type Caller, startWorld, type TestTenant } from "../../kit/gateway/world.ts";
import { startSmtpServer } from "../../kit/net/smtp.ts";
import { namedStatements } from "../../kit/stores/database.ts";

export const PORTAL = "https://portal.example";

const answer = (statusCode: number, body = ""): OutboundAnswer => ({
  statusCode,
  headers: {},
  body: Buffer.from(body),
  truncated: false,
  address: "192.0.2.1",
  durationMs: 1,
});

export const openAlerts = async () => {
  const smtp = await startSmtpServer();
  const world = await startWorld(
    {
      RATE_LIMIT_STANDARD: "off",
      RATE_LIMIT_TENANT: "off",
      SMTP_URL: smtp.url,
      MAIL_FROM: "Mooring <mooring@gateway.example>",
      PORTAL_URL: PORTAL,
      WEBHOOK_ALLOW_CIDRS: "127.0.0.1/32",
      WEBHOOK_ALLOW_HTTP: "true",
    },
    { settings: { withoutJobs: true } },
  );
  const db = await openDb({ clock: systemClock, url: world.databaseUrl, poolSize: 4, log: silentLog, namedStatements });
  const secretBox = createSecretBox(Buffer.alloc(32, 7));
  const outbox = createOutbox({ db, onError: () => undefined });
  const mails = createMails({ db, clock: systemClock, secretBox, send: createSmtp({ url: smtp.url, from: "mooring@gateway.example" }), log: silentLog });
  const calls: OutboundCall[] = [];
  const replies = { next: async (_call: OutboundCall): Promise<OutboundAnswer> => answer(200) };
  const outbound: Outbound = {
    send: (call) => {
      calls.push(call);
      return replies.next(call);
    },
    refusal: async () => null,
  };
  const emit = outbox.emit;
  const evaluation = createEvaluation({ db, emit, portalUrl: () => PORTAL });
  const errors: unknown[] = [];
  const notifier = createNotifier({
    db,
    clock: systemClock,
    send: createSend({ db, secretBox, outbound, mails, clock: systemClock }),
    onError: (error) => errors.push(error),
  });
  const signal = new AbortController().signal;
  const evaluate = async (): Promise<void> => {
    while (await evaluation.run());
  };
  const send = async (): Promise<void> => {
    while ((await notifier.run(signal)) === true);
    while ((await mails.jobs.find(({ name }) => name === "mails.send")?.run(signal)) === true);
  };
  const past = (table: string, column: string, seconds: number, where: string, values: readonly unknown[]) =>
    world.sql.query(`update ${table} set ${column} = ${column} - interval '${seconds} seconds' where ${where}`, [...values]);

  const open = async () => {
    const tenant = await world.tenant();
    const owner = await tenant.user("owner");
    await evaluate();
    return ofTenant(tenant, owner);
  };
  const ofTenant = (tenant: TestTenant, owner: Caller) => {
    const { tenantId } = tenant;
    const call = (method: string, path: string, body?: unknown, as = owner) => world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
    const made = async <T>(path: string, body: object): Promise<T> => {
      const { status, body: reply } = await call("POST", path, body);
      if (status >= 300) throw new Error(`${path} failed: ${JSON.stringify(reply)}`);
      return reply.data;
    };
    return {
      tenant,
      owner,
      call,
      made,
      alerts: async (query = "", as = owner): Promise<Alert[]> => (await call("GET", `/alerts${query}`, undefined, as)).body.data,
      rule: (body: object) => made<AlertRule>("/alert-rules", { name: "Busy", metric: "device.cpu", threshold: 90, clearForSeconds: 0, ...body }),
      /** The rules that it began with are off, so that only those of the test speak. */
      quiet: () => world.sql.query("update alert_rules set enabled = false where tenant_id = $1 and created_by = 'system'", [tenantId]),
      devices: async (count: number): Promise<string[]> => {
        const made = (await call("POST", "/devices/provision", { count })).body.data;
        const ids = made.map(({ device_id }: { device_id: string }) => device_id);
        await world.sql.query("update devices set name = 'box ' || right(device_id, 4) where device_id = any($1)", [ids]);
        await report(ids, { cpu: 10, memory: 10, disk: 10 });
        return ids;
      },
      elapse: (seconds: number) => past("alert_states", "since", seconds, "tenant_id = $1", [tenantId]),
      /** So that due notifications are ordered at the next evaluation. */
      dueNow: () => past("alerts", "notify_at", 86_400, "tenant_id = $1 and notify_at is not null", [tenantId]),
      rows: async (text: string) => (await world.sql.query(text, [tenantId])).rows,
      eventTypes: async () =>
        (await world.sql.query("select type from outbox_events where tenant_id = $1 and type like 'alert.%' order by position", [tenantId])).rows.map(
          ({ type }) => type,
        ),
    };
  };
  const report = async (deviceIds: readonly string[], metrics: object): Promise<void> => {
    await world.sql.query("update devices set status = 'online' where device_id = any($1)", [deviceIds]);
    await world.sql.query("update device_presence set last_seen_at = now(), last_heartbeat_at = now(), metrics = $2 where device_id = any($1)", [
      deviceIds,
      metrics,
    ]);
  };
  return {
    world,
    db,
    smtp,
    calls,
    replies,
    answer,
    errors,
    evaluation,
    evaluate,
    send,
    open,
    report,
    silent: async (deviceIds: readonly string[]): Promise<void> => {
      await world.sql.query("update devices set status = 'offline' where device_id = any($1)", [deviceIds]);
      await world.sql.query("update device_presence set last_seen_at = now() - interval '11 minutes' where device_id = any($1)", [deviceIds]);
    },
    close: async () => {
      await world.close();
      await outbox.close();
      await db.close();
      await smtp.close();
    },
  };
};
export type AlertsRig = Awaited<ReturnType<typeof openAlerts>>;
