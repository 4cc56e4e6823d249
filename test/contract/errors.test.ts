// Provokes every error code, one shape of it over HTTP, and checks status, retryable, both shapes of the body, and headers.
import { get as httpGet } from "node:http";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { CONNECT_PATHS, ERROR_CODES, ERRORS, type ErrorCode, isRetryable, signedHeaders } from "../../protocol/index.ts";
import { newId } from "../../server/core/ids.ts";
import { EXPORT_SCENARIOS } from "../features/data-exports/scenarios.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { eventsDispatched } from "../kit/gateway/dispatched.ts";
import { mintWith } from "../kit/gateway/tokens.ts";
import { type Answer, anonymous, asBearer, asKey, emailOf, startWorld, type World } from "../kit/gateway/world.ts";
import { freePort } from "../kit/net/free-port.ts";
import { BACKUP_ERRORS } from "./backup-errors.ts";
import { BULK_SCENARIOS } from "./bulk-scenarios.ts";
import { COST_AND_IMPORT_SCENARIOS } from "./cost-and-import-scenarios.ts";
import { DOMAIN_SCENARIOS } from "./domain-scenarios.ts";
import { fleetErrors } from "./samples/rollouts.ts";
import { initiate, invite, openStock, ownerOfManyViews, pair, prepare, SAMPLES, VIEW } from "./samples.ts";
import { call, done, fresh, own, type Probe, type Scenario, type Send, type Stage } from "./scenario.ts";
import { TUNNEL_SCENARIOS } from "./tunnel-scenarios.ts";

const FREE = {
  RATE_LIMIT_ANONYMOUS: "off",
  RATE_LIMIT_PAIRING: "off",
  RATE_LIMIT_FAILED_AUTH: "off",
  TENANTS_PER_USER: "1",
  COMMAND_QUEUE_PER_DEVICE: "2",
  TRUSTED_PROXIES: "127.0.0.0/8",
  BACKUP_DIR: "off",
  // Nobody listens there: certificates are ordered, and none comes.
  ACME_DIRECTORY_URL: "https://127.0.0.1:1/directory",
};

/** Its identity provider is down, and it accepts one socket a second and three anonymous calls a minute. */
const openOddWorld = async () => {
  return startWorld({ OIDC_ISSUER: `http://127.0.0.1:${await freePort()}`, ACCEPT_PER_SECOND: "1", RATE_LIMIT_ANONYMOUS: "3" }, { inProcess: true });
};

let stage: Stage;
beforeAll(async () => {
  const settings = { dataExports: { places: 0 }, imports: { places: 0 } };
  const [world, odd] = await Promise.all([startWorld(FREE, { spread: true, inProcess: true, settings }), openOddWorld()]);
  world.sql.on("error", () => undefined);
  // The document of this prefix takes seconds to read, which a call on its way would take for a busy database.
  await world.call(anonymous, "GET", "/api/v1/errors");
  stage = { world, odd, stock: await openStock(world) };
});
afterAll(async () => {
  await Promise.all([stage.world.close(), stage.odd.close()]);
});

const command = async ({ world, stock }: Stage, deviceId: string): Promise<string> =>
  (await done(world, stock.owner, `POST /devices/${deviceId}/commands`, { body: { type: "ping" } })).commandId;

const appOf = async ({ stock }: Stage): Promise<unknown> => (await SAMPLES["apps.get"](stock, ""))["appId"];

/** Nobody listens there. */
const hookUrl = (): string => `http://127.0.0.2:8443/${newId("wh")}`;
const newWebhook = ({ world, stock }: Stage) => done(world, stock.owner, "POST /webhooks", { body: { url: hookUrl(), events: ["webhook.recovered"] } });

/** An upgrade request, which fetch cannot make. */
const upgrade =
  (world: World, headers: Readonly<Record<string, string>>): Send =>
  (prefix, more) =>
    new Promise((resolve, reject) => {
      const path = prefix === "/v1" ? CONNECT_PATHS[0] : CONNECT_PATHS[1];
      const request = httpGet(
        `${world.url}${path}`,
        {
          headers: {
            connection: "Upgrade",
            upgrade: "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
            ...headers,
            ...more,
          },
        },
        (response) => {
          let text = "";
          response
            .setEncoding("utf8")
            .on("data", (part: string) => {
              text += part;
            })
            .on("end", () =>
              resolve({
                status: response.statusCode ?? 0,
                headers: new Headers(Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)])),
                body: JSON.parse(text),
              }),
            );
        },
      );
      request.on("upgrade", () => reject(new Error("the upgrade was accepted"))).on("error", reject);
    });
const somebody = { agentId: "agt_nobody", tenantId: "ten_nobody", secret: "none" };

/** PostgreSQL refuses each new API key for this reason. */
const withFailingKeys = async (at: Stage, sqlState: string, probe: Probe): Promise<void> => {
  const { sql } = at.world;
  await sql.query(`create function refuse_keys() returns trigger language plpgsql as $$ begin raise exception using errcode = '${sqlState}'; end $$;
    create trigger refuse_keys before insert on api_keys for each row execute function refuse_keys()`);
  try {
    await probe(own(at, "POST", "/api-keys", { body: { name: "k" } }));
  } finally {
    await sql.query("drop function refuse_keys cascade");
  }
};

/** Refuses every connection to the database while `run` runs. */
const withoutDatabase = async ({ world }: Stage, run: () => Promise<void>): Promise<void> => {
  const { name } = (await world.sql.query("select current_database() as name")).rows[0];
  const admin = new pg.Client({ connectionString: inject("databaseUrl") });
  await admin.connect();
  const shut = () => admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()", [name]);
  try {
    await admin.query(`alter database ${name} allow_connections false`);
    await shut();
    await run();
  } finally {
    await admin.query(`alter database ${name} allow_connections true`);
    await admin.end();
    await eventually(async () => expect((await world.call(anonymous, "GET", "/v1/health")).status).toBe(200));
    await eventually(() => world.sql.query("select 1"));
  }
};

/** Sent within an event stream, which REST lacks; test/gateway/trpc.test.ts covers it. */
type Streamed = "STREAM_LIMIT_REACHED";
/** Answers of a batch's items; test/features/batch/items.test.ts covers them. */
type OfItems = "BATCH_DEADLINE" | "BATCH_DEPENDENCY_FAILED";

const SCENARIOS: Readonly<Record<Exclude<ErrorCode, Streamed | OfItems>, Scenario>> = {
  ...BACKUP_ERRORS,
  ...COST_AND_IMPORT_SCENARIOS,
  VALIDATION_FAILED: (at, probe) => probe(own(at, "GET", "/devices?page=0")),
  MALFORMED_JSON: (at, probe) => probe(own(at, "POST", "/api-keys", { rawBody: "{" })),
  IDEMPOTENCY_KEY_INVALID: (at, probe) => probe(own(at, "POST", "/api-keys", { body: { name: "k" }, headers: { "idempotency-key": "k".repeat(256) } })),
  UNAUTHORIZED: ({ world }, probe) => probe(call(world, "GET", "/devices")),
  INVALID_SIGNATURE: ({ world, stock }, probe) =>
    probe(
      call(world, "GET", "/agent/me", {
        as: { kind: "agent", headers: (body) => ({ ...signedHeaders(stock.device.identity, body, new Date()), "x-svc-signature": "0".repeat(64) }) },
      }),
    ),
  ACTIVATION_TOKEN_INVALID: async ({ world, stock }, probe) =>
    probe(
      call(world, "POST", "/pairing/activate", {
        body: { pairing_code: (await prepare(stock)).code, activation_token: "wrong", user_email: "owner@example.com" },
      }),
    ),
  ENROLLMENT_TOKEN_INVALID: async ({ world, stock }, probe) =>
    probe(call(world, "POST", "/pairing/auto-activate", { body: { pairing_code: (await initiate(stock)).code, enrollment_token: "wrong" } })),
  FORBIDDEN: async ({ world, stock }, probe) => probe(call(world, "POST", "/api-keys", { as: await stock.tenant.user("viewer"), body: { name: "k" } })),
  TENANT_SUSPENDED: async (at, probe) => {
    const { tenant, owner } = await fresh(at);
    await done(at.world, at.stock.operator, `POST /admin/tenants/${tenant.tenantId}/suspend`, { body: { reason: "unpaid" } });
    await probe(call(at.world, "POST", "/api-keys", { as: owner, body: { name: "k" } }));
    expect((await at.world.call(owner, "GET", "/v1/api-keys")).status).toBe(200);
  },
  TENANT_LIMIT_REACHED: ({ world, stock }, probe) =>
    probe(call(world, "POST", "/tenants", { as: stock.owner, body: { name: "Second", slug: "second-of-one", userId: stock.tenant.ownerId } })),
  PLAN_LIMIT_EXCEEDED: async ({ world }, probe) => {
    // The API creates tenants with the limits of their plan, bootstrap without limits.
    const userId = newId("usr");
    const as = asBearer((await world.app.mint({ userId, ttlSeconds: 600 })).token);
    const { tenantId } = await done(world, as, "POST /tenants", { body: { name: "Limited", slug: "limited", userId } });
    await probe(call(world, "POST", "/devices/provision", { as, body: { count: 6 }, headers: { "x-svc-tenant-id": tenantId } }));
  },
  PRIVILEGE_ESCALATION: async ({ world, stock }, probe) =>
    probe(call(world, "POST", "/api-keys", { as: await stock.tenant.user("admin"), body: { name: "k", role: "owner" } })),
  ROLE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/roles/rol_unknown")),
  MEMBER_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/members/mem_unknown")),
  PERMISSION_UNKNOWN: (at, probe) => probe(own(at, "POST", "/roles", { body: { name: "dancers", permissions: ["device:dance"] } })),
  ROLE_NAME_RESERVED: (at, probe) => probe(own(at, "POST", "/roles", { body: { name: "Owner", permissions: ["device:read"] } })),
  ROLE_IMMUTABLE: (at, probe) => probe(own(at, "DELETE", "/roles/rol_00000000000000viewer")),
  WEBHOOK_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/webhooks/wh_unknown")),
  DELIVERY_NOT_FOUND: async (at, probe) => {
    const { webhookId } = await newWebhook(at);
    await probe(own(at, "GET", `/webhooks/${webhookId}/deliveries/whd_unknown`));
  },
  EVENT_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/events/evt_unknown")),
  WEBHOOK_ALREADY_EXISTS: async (at, probe) => {
    const { url, events } = await newWebhook(at);
    await probe(own(at, "POST", "/webhooks", { body: { url, events } }));
  },
  WEBHOOK_DISABLED: async (at, probe) => {
    const { webhookId } = await newWebhook(at);
    const { deliveryId } = await done(at.world, at.stock.owner, `POST /webhooks/${webhookId}/test`);
    await done(at.world, at.stock.owner, `PATCH /webhooks/${webhookId}`, { body: { status: "disabled" } });
    await probe(own(at, "POST", `/webhooks/${webhookId}/deliveries/${deliveryId}/redeliver`));
  },
  WEBHOOK_URL_NOT_ALLOWED: (at, probe) => probe(own(at, "POST", "/webhooks", { body: { url: "http://10.0.0.1/", events: ["*"] } })),
  EVENT_TYPE_UNKNOWN: (at, probe) => probe(own(at, "POST", "/webhooks", { body: { url: hookUrl(), events: ["device.exploded"] } })),
  REPLAY_TOO_LARGE: async (at, probe) => {
    const { tenantId } = at.stock.tenant;
    await at.world.sql.query(
      `insert into outbox_events (event_id, tenant_id, type, subject_id, data, created_at)
       select 'evt_bulk' || n, $1, 'webhook.recovered', 's', '{}', '2020-01-02' from generate_series(1, 10001) as n`,
      [tenantId],
    );
    await eventsDispatched(at.world, tenantId);
    // After the relay has passed by, so that nothing of it was sent.
    const { webhookId } = await newWebhook(at);
    const body = { since: "2020-01-01T00:00:00Z", until: "2020-02-01T00:00:00Z", status: "missing" };
    await probe(own(at, "POST", `/webhooks/${webhookId}/replay`, { body }));
    await at.world.sql.query("delete from outbox_events where tenant_id = $1 and created_at < '2020-02-01'", [tenantId]);
  },
  PLAN_UPGRADE_REQUIRED: async ({ world }, probe) => {
    const userId = newId("usr");
    const as = asBearer((await world.app.mint({ userId, ttlSeconds: 600 })).token);
    const { tenantId } = await done(world, as, "POST /tenants", { body: { name: "Small", slug: "small-plan", userId } });
    const headers = { "x-svc-tenant-id": tenantId };
    const templates = await done(world, as, "GET /app-templates?available=false", { headers });
    await probe(call(world, "POST", "/deployments", { as, body: { appName: templates[0].id }, headers }));
  },
  APP_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/apps/app_unknown")),
  SNAPSHOT_NOT_FOUND: async (at, probe) => probe(own(at, "POST", `/apps/${await appOf(at)}/rollback`, { body: { snapshotId: "snp_unknown" } })),
  SNAPSHOT_INCOMPATIBLE: async (at, probe) => {
    const { appId, snapshotId } = await SAMPLES["apps.rollback"](at.stock, "");
    await at.world.sql.query("update app_snapshots set app_type = 'another' where snapshot_id = $1", [snapshotId]);
    await probe(own(at, "POST", `/apps/${appId}/rollback`, { body: { snapshotId } }));
  },
  APP_CONFIG_INVALID: async (at, probe) => probe(own(at, "PATCH", `/apps/${await appOf(at)}`, { body: { config: { port: "none", more: 1 } } })),
  DEPLOYMENT_ALREADY_EXISTS: (at, probe) => probe(own(at, "POST", "/deployments", { body: { name: "default" } })),
  DEPLOYMENT_IN_USE: async (at, probe) => {
    const { rows } = await at.world.sql.query("select deployment_id from deployments where tenant_id = $1 and is_default", [at.stock.tenant.tenantId]);
    await probe(own(at, "DELETE", `/deployments/${rows[0].deployment_id}`));
  },
  NO_PREVIOUS_REVISION: async (at, probe) => {
    const { deploymentId } = await SAMPLES["deployments.rollback"](at.stock, "");
    await probe(own(at, "POST", `/deployments/${deploymentId}/rollback`, { body: { toRevision: 9 } }));
  },
  APP_TEMPLATE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/app-templates/unknown")),
  AGENT_PACKAGE_NOT_FOUND: ({ world, stock }, probe) => probe(call(world, "GET", "/agent/updates/packages/unknown.package.json", { as: stock.device.as })),
  ...fleetErrors<Stage, Probe>((at, probe, [method, path, body]) => probe(own(at, method, path, body === undefined ? {} : { body }))),
  ROLE_IN_USE: async (at, probe) => {
    const { owner, tenant } = await fresh(at);
    const { roleId } = await done(at.world, owner, "POST /roles", { body: { name: "guards", permissions: ["device:read"] } });
    await tenant.token("viewer");
    const [, { memberId }] = await done(at.world, owner, "GET /members");
    await done(at.world, owner, `PATCH /members/${memberId}`, { body: { roleId } });
    await probe(call(at.world, "DELETE", `/roles/${roleId}`, { as: owner }));
  },
  LAST_OWNER: async (at, probe) => {
    const { owner } = await fresh(at);
    const [{ memberId }] = await done(at.world, owner, "GET /members");
    await probe(call(at.world, "DELETE", `/members/${memberId}`, { as: owner }));
  },
  ENTITY_BLOCKED: async (at, probe) => {
    const { owner, tenant } = await fresh(at);
    await tenant.token("viewer");
    await done(at.world, owner, "POST /security/blocked-entities", { body: { entityType: "user", entityValue: tenant.ownerId.replace("owner", "viewer") } });
    const viewer = await tenant.user("viewer");
    await eventually(async () => expect((await at.world.call(viewer, "GET", "/v1/devices")).status).toBe(403));
    await probe(call(at.world, "GET", "/devices", { as: viewer }));
  },
  SECURITY_ALERT_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/security/alerts/sal_unknown")),
  SECURITY_RULE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/security/rules/srl_unknown")),
  SECURITY_RULE_BUILT_IN: (at, probe) => probe(own(at, "DELETE", "/security/rules/srl_B0AuthFailedBurst0000000")),
  SECURITY_LIMIT_REACHED: async (at, probe) => {
    const { owner } = await fresh(at);
    const rule = { name: "one of many", type: "device.cloned", conditions: { count: 1, windowSeconds: 60, severity: "high" } };
    for (let made = 0; made < 50; made += 1) await done(at.world, owner, "POST /security/rules", { body: rule });
    await probe(call(at.world, "POST", "/security/rules", { as: owner, body: rule }));
  },
  BLOCKED_ENTITY_NOT_FOUND: (at, probe) => probe(own(at, "DELETE", "/security/blocked-entities/bke_unknown")),
  ENTITY_ALREADY_BLOCKED: async (at, probe) => {
    const body = { entityType: "key", entityValue: newId("key") };
    await done(at.world, at.stock.owner, "POST /security/blocked-entities", { body });
    await probe(own(at, "POST", "/security/blocked-entities", { body }));
  },
  CANNOT_BLOCK_SELF: (at, probe) =>
    probe(own(at, "POST", "/security/blocked-entities", { body: { entityType: "user", entityValue: at.stock.tenant.ownerId } })),
  API_KEY_IP_DENIED: async ({ world, stock }, probe) => {
    const { apiKey } = await done(world, stock.owner, "POST /api-keys", { body: { name: "elsewhere", ipAllowlist: ["192.0.2.0/24"] } });
    await probe(call(world, "GET", "/devices", { as: asKey(apiKey, stock.tenant.tenantId) }));
  },
  NOT_FOUND: ({ world }, probe) => probe(call(world, "GET", "/no/such/place")),
  DEVICE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/devices/dev_unknown")),
  TENANT_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/tenants/ten_unknown", { headers: { "x-svc-tenant-id": at.stock.tenant.tenantId } })),
  DEPLOYMENT_NOT_FOUND: (at, probe) => probe(own(at, "POST", "/pairing/enrollment-tokens", { body: { name: "t", deploymentId: "dep_unknown" } })),
  COMMAND_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/commands/cmd_unknown")),
  PAIRING_CODE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/pairing/BBBB-BBBB/progress")),
  ENROLLMENT_NOT_FOUND: async (at, probe) => probe(own(at, "GET", `/devices/${(await at.stock.tenant.device()).deviceId}/enrollment`)),
  ENROLLMENT_TOKEN_NOT_FOUND: (at, probe) => probe(own(at, "DELETE", "/pairing/enrollment-tokens/ent_unknown")),
  API_KEY_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/api-keys/key_unknown")),
  ERROR_CODE_NOT_FOUND: ({ world }, probe) => probe(call(world, "GET", "/errors/NO_SUCH_CODE")),
  METHOD_NOT_ALLOWED: ({ world }, probe) => probe(call(world, "PUT", "/devices")),
  VERSION_CONFLICT: (at, probe) => probe(own(at, "PATCH", `/devices/${at.stock.device.deviceId}`, { body: { name: "late" }, headers: { "if-match": '"99"' } })),
  INVALID_STATE_TRANSITION: async ({ world, stock }, probe) =>
    probe(call(world, "PATCH", `/pairing/${(await initiate(stock)).code}/progress`, { body: { currentStep: "completed" } })),
  IDEMPOTENCY_IN_PROGRESS: async ({ world, stock }, probe) => {
    // The first call has claimed its key and waits for a locked row when the second arrives.
    const holder = await world.sql.connect();
    const request = { body: { name: "held" }, headers: { "idempotency-key": newId("k") } };
    const path = `/devices/${stock.device.deviceId}`;
    await holder.query("begin");
    await holder.query("select 1 from devices where device_id = $1 for update", [stock.device.deviceId]);
    const first = world.call(stock.owner, "PATCH", `/v1${path}`, request);
    const waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await eventually(async () => expect((await world.sql.query(waiting)).rowCount).toBe(1));
    await probe(call(world, "PATCH", path, { as: stock.owner, ...request })).finally(async () => {
      await holder.query("rollback");
      holder.release();
    });
    expect((await first).status).toBe(200);
  },
  TENANT_SLUG_TAKEN: async (at, probe) => {
    const { tenant } = await fresh(at);
    const { slug } = (await at.world.sql.query("select slug from tenants where tenant_id = $1", [tenant.tenantId])).rows[0];
    await probe(own(at, "PATCH", `/tenants/${at.stock.tenant.tenantId}`, { body: { slug } }));
  },
  TENANT_NOT_EMPTY: async (at, probe) => {
    const { tenant, owner } = await fresh(at);
    await tenant.device();
    const { slug } = (await at.world.sql.query("select slug from tenants where tenant_id = $1", [tenant.tenantId])).rows[0];
    await probe(call(at.world, "DELETE", `/tenants/${tenant.tenantId}?confirm=${slug}`, { as: owner }));
  },
  PLAN_CHANGE_REQUIRES_BILLING: (at, probe) => probe(own(at, "PATCH", `/tenants/${at.stock.tenant.tenantId}`, { body: { plan: "business" } })),
  PAIRING_CODE_EXPIRED: async (at, probe) => {
    const { code, fingerprint } = await initiate(at.stock);
    await at.world.sql.query("update pairings set expires_at = now() - interval '1 minute' where fingerprint = $1", [fingerprint]);
    await probe(own(at, "POST", "/pairing/prepare-activation", { body: { pairing_code: code, tenant_id: at.stock.tenant.tenantId } }));
  },
  PAIRING_ALREADY_ACTIVATED: async (at, probe) =>
    probe(own(at, "POST", "/pairing/prepare-activation", { body: { pairing_code: (await pair(at.stock)).code, tenant_id: at.stock.tenant.tenantId } })),
  LOAD_TEST_RUNNING: async (at, probe) => {
    const { tenant, owner } = await fresh(at);
    const path = `/tenants/${tenant.tenantId}/load-test`;
    await done(at.world, owner, `POST ${path}`, { body: { duration: 30, concurrency: 1 } });
    await probe(call(at.world, "POST", path, { as: owner, body: {} }));
    await done(at.world, owner, `DELETE ${path}`);
  },
  IMPERSONATION_NOT_FOUND: ({ world, stock }, probe) => probe(call(world, "GET", "/admin/impersonations/imp_unknown", { as: stock.operator })),
  ANNOUNCEMENT_NOT_FOUND: ({ world, stock }, probe) => probe(call(world, "GET", "/admin/announcements/ann_unknown", { as: stock.operator })),
  ANNOUNCEMENT_PERIOD_INVALID: ({ world, stock }, probe) =>
    probe(call(world, "POST", "/admin/announcements", { as: stock.operator, body: { title: "late", endsAt: "2020-01-01T00:00:00Z" } })),
  ANNOUNCEMENT_NOT_DISMISSIBLE: async (at, probe) => {
    const { announcementId } = await done(at.world, at.stock.operator, "POST /admin/announcements", { body: { title: "stays", severity: "critical" } });
    await probe(own(at, "POST", `/account/announcements/${announcementId}/dismiss`));
  },
  ANNOUNCEMENT_LIMIT_REACHED: async ({ world, stock }, probe) => {
    await world.sql.query(
      `insert into announcements (announcement_id, severity, title, body, starts_at, created_by)
       select 'ann_' || lpad(n::text, 26, '0'), 'info', 'one of many', '', now() + interval '1 year', 'user:usr_x' from generate_series(1, 100) n`,
    );
    await probe(call(world, "POST", "/admin/announcements", { as: stock.operator, body: { title: "one more" } }));
    await world.sql.query("delete from announcements");
  },
  FLAG_NOT_FOUND: ({ world, stock }, probe) => probe(call(world, "PUT", "/admin/flags/unknown", { as: stock.operator, body: { enabled: true } })),
  JOB_NOT_FOUND: ({ world, stock }, probe) => probe(call(world, "POST", "/admin/jobs/unknown/run", { as: stock.operator })),
  PAIRING_REJECTED: async (at, probe) => {
    const { code } = await initiate(at.stock);
    await done(at.world, at.stock.owner, "POST /pairing/reject", { body: { code } });
    await probe(own(at, "POST", "/pairing/approve", { body: { code } }));
  },
  PAIRING_APPROVAL_REQUIRED: async ({ world, stock }, probe) => {
    const { token } = await done(world, stock.owner, "POST /pairing/enrollment-tokens", { body: { name: "asks", approval: "required" } });
    await probe(call(world, "POST", "/pairing/auto-activate", { body: { enrollment_token: token, pairing_code: (await initiate(stock)).code } }));
  },
  ENROLLMENT_TOKEN_EXHAUSTED: async ({ world, stock }, probe) => {
    const { token } = await done(world, stock.owner, "POST /pairing/enrollment-tokens", { body: { name: "once" } });
    await done(world, anonymous, "POST /pairing/auto-activate", { body: { enrollment_token: token, pairing_code: (await initiate(stock)).code } });
    await probe(call(world, "POST", "/pairing/auto-activate", { body: { enrollment_token: token, pairing_code: (await initiate(stock)).code } }));
  },
  DEVICE_ALREADY_PAIRED: (at, probe) => probe(own(at, "POST", "/devices/provision", { body: { fingerprints: [at.stock.device.fingerprint] } })),
  DUPLICATE_IDENTITY: async ({ world, stock }, probe) => {
    const { as, deviceId } = await stock.tenant.device();
    const poll = (process: string) => call(world, "GET", `/devices/${deviceId}/commands`, { as, headers: { "x-svc-instance-id": process } });
    await poll("first")("/v1", {});
    await probe(poll("second"));
  },
  DEVICE_OFFLINE: async (at, probe) =>
    probe(own(at, "POST", `/devices/${(await at.stock.tenant.device()).deviceId}/commands`, { body: { type: "ping", ifOffline: "fail" } })),
  ROTATION_IN_PROGRESS: async (at, probe) => {
    const { deviceId } = await at.stock.tenant.device();
    await done(at.world, at.stock.owner, `POST /devices/${deviceId}/secrets/rotate`);
    await probe(own(at, "POST", `/devices/${deviceId}/secrets/rotate`));
  },
  COMMAND_ALREADY_FINAL: async (at, probe) => {
    const device = await at.stock.tenant.device();
    const commandId = await command(at, device.deviceId);
    await done(at.world, device.as, `POST /devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status: "succeeded" } });
    await probe(own(at, "POST", `/commands/${commandId}/cancel`));
  },
  PAYLOAD_TOO_LARGE: ({ world, stock }, probe) =>
    probe(call(world, "POST", `/devices/${stock.device.deviceId}/heartbeat`, { as: stock.device.as, body: { metrics: { text: "x".repeat(17_000) } } })),
  URI_TOO_LONG: ({ world }, probe) => probe(call(world, "GET", `/devices?q=${"x".repeat(8_192)}`)),
  UNSUPPORTED_MEDIA_TYPE: (at, probe) =>
    probe(own(at, "POST", "/api-keys", { rawBody: "name=k", headers: { "content-type": "application/x-www-form-urlencoded" } })),
  IDEMPOTENCY_KEY_REUSED: async (at, probe) => {
    const headers = { "idempotency-key": newId("k") };
    await done(at.world, at.stock.owner, "POST /api-keys", { body: { name: "first" }, headers });
    await probe(own(at, "POST", "/api-keys", { body: { name: "second" }, headers }));
  },
  PLAN_UNCHANGED: async (at, probe) => {
    const { owner } = await fresh(at);
    await done(at.world, owner, "POST /billing/checkout", { body: { plan: "pro" } });
    await probe(call(at.world, "POST", "/billing/checkout", { as: owner, body: { plan: "pro" } }));
  },
  PLAN_DOWNGRADE_BLOCKED: async (at, probe) => {
    const { tenant, owner } = await fresh(at);
    for (let count = 0; count < 6; count += 1) await tenant.device();
    await at.world.sql.query("update tenants set limit_overrides = '{}' where tenant_id = $1", [tenant.tenantId]);
    await done(at.world, owner, "POST /billing/checkout", { body: { plan: "pro" } });
    await probe(call(at.world, "POST", "/billing/checkout", { as: owner, body: { plan: "starter" } }));
  },
  NO_ACTIVE_SUBSCRIPTION: async (at, probe) => probe(call(at.world, "POST", "/billing/cancel", { as: (await fresh(at)).owner, body: {} })),
  BILLING_NOT_CONFIGURED: async (_at, probe) => {
    const selling = await startWorld({ STRIPE_SECRET_KEY: "sk_test_nothing_is_sold" });
    try {
      const owner = await (await selling.tenant()).user("owner");
      await probe(call(selling, "POST", "/billing/checkout", { as: owner, body: { plan: "pro" } }));
    } finally {
      await selling.close();
    }
  },
  RETURN_URL_NOT_ALLOWED: async ({ world, stock }, probe) => {
    const { code, token } = await prepare(stock);
    await probe(
      call(world, "POST", "/pairing/activate", {
        body: { pairing_code: code, activation_token: token, user_email: "owner@example.com", return_to: "https://elsewhere.example/" },
      }),
    );
  },
  COMMAND_TYPE_UNKNOWN: (at, probe) => probe(own(at, "POST", `/devices/${at.stock.device.deviceId}/commands`, { body: { type: "svc.reserved" } })),
  COMMAND_PAYLOAD_INVALID: (at, probe) => {
    const payload = JSON.parse(`${'{"a":'.repeat(12)}1${"}".repeat(12)}`);
    return probe(own(at, "POST", `/devices/${at.stock.device.deviceId}/commands`, { body: { type: "ping", payload } }));
  },
  PROTOCOL_UNSUPPORTED: async ({ world }, probe) => {
    await probe(upgrade(world, { "sec-websocket-protocol": "mooring-agent.v99" }));
    await probe(call(world, "GET", "/agent/connect"));
  },
  RATE_LIMIT_EXCEEDED: async ({ odd }, probe) => {
    for (let count = 0; count < 3; count += 1) await done(odd, anonymous, "GET /info");
    await probe(call(odd, "GET", "/info"));
  },
  COMMAND_QUEUE_FULL: async (at, probe) => {
    const { deviceId } = await at.stock.tenant.device();
    for (let count = 0; count < 2; count += 1) await command(at, deviceId);
    await probe(own(at, "POST", `/devices/${deviceId}/commands`, { body: { type: "ping" } }));
  },
  INTERNAL_ERROR: async (at, probe) => {
    const { deviceId } = await at.stock.tenant.device();
    await at.world.sql.query("update devices set secret = '\\x00' where device_id = $1", [deviceId]);
    await probe(own(at, "GET", `/devices/${deviceId}/secrets`));
  },
  SERVICE_UNAVAILABLE: ({ odd }, probe) =>
    probe(async (prefix, headers) => {
      // On a machine of any speed, other upgrades use up what the node admits in this second.
      const knock = upgrade(odd, signedHeaders(somebody, "", new Date()));
      await Promise.all(Array.from({ length: 4 }, () => knock(prefix, {})));
      return knock(prefix, headers);
    }),
  DATABASE_BUSY: async (at, probe) => {
    const holder = await at.world.sql.connect();
    try {
      await holder.query("begin; lock table api_keys in exclusive mode");
      await probe(own(at, "POST", "/api-keys", { body: { name: "k" } }));
    } finally {
      await holder.query("rollback");
      holder.release();
    }
  },
  DATABASE_READ_ONLY: (at, probe) => withFailingKeys(at, "25006", probe),
  DATABASE_FULL: (at, probe) => withFailingKeys(at, "53100", probe),
  DATABASE_UNAVAILABLE: (at, probe) => withoutDatabase(at, () => probe(own(at, "GET", "/devices"))),
  IDENTITY_PROVIDER_UNAVAILABLE: async ({ odd, stock }, probe) => probe(call(odd, "GET", "/devices", { as: asBearer(await stock.tenant.token()) })),
  SIGN_IN_FAILED: ({ world }, probe) => probe(call(world, "POST", "/auth/sign-in", { body: { token: "never made" } })),
  SIGN_IN_NOT_CONFIGURED: ({ world }, probe) => probe(call(world, "GET", "/auth/login")),
  SESSION_NOT_FOUND: (at, probe) => probe(own(at, "DELETE", "/account/sessions/ses_unknown")),
  ADMIN_REQUIRED: (at, probe) => probe(own(at, "GET", "/admin/nodes")),
  AUDIT_LOG_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/audit-logs/aud_unknown")),
  REAUTHENTICATION_REQUIRED: async ({ world }, probe) => {
    const signInAt = Math.floor(Date.now() / 1_000) - 601;
    await probe(call(world, "DELETE", "/account", { as: asBearer(await mintWith(world, { sub: newId("usr"), auth_time: signInAt })) }));
  },
  ALREADY_MEMBER: (at, probe) => probe(own(at, "POST", "/invites", { body: { email: emailOf(at.stock.tenant.ownerId), roleId: "viewer" } })),
  INVITE_ALREADY_PENDING: async (at, probe) => {
    await invite(at.stock, "pending@users.example");
    await probe(own(at, "POST", "/invites", { body: { email: "Pending@users.example", roleId: "viewer" } }));
  },
  INVITE_ALREADY_USED: async (at, probe) => {
    const { token } = await invite(at.stock);
    await done(at.world, anonymous, "POST /invites/decline", { body: { token } });
    await probe(call(at.world, "GET", `/invites/lookup?token=${token}`));
  },
  INVITE_EMAIL_MISMATCH: async (at, probe) => probe(own(at, "POST", "/invites/accept", { body: { token: (await invite(at.stock)).token } })),
  INVITE_EXPIRED: async (at, probe) => {
    const { inviteId, token } = await invite(at.stock);
    await at.world.sql.query("update invites set expires_at = now() - interval '1 second' where invite_id = $1", [inviteId]);
    await probe(call(at.world, "GET", `/invites/lookup?token=${token}`));
  },
  INVITE_RESENT_TOO_OFTEN: async (at, probe) => {
    const { inviteId } = await invite(at.stock);
    for (let sent = 0; sent < 5; sent += 1) await done(at.world, at.stock.owner, `POST /invites/${inviteId}/resend`, { body: {} });
    await probe(own(at, "POST", `/invites/${inviteId}/resend`, { body: {} }));
  },
  INVITE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/invites/inv_unknown")),
  TRACE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/traces/4bf92f3577b34da6a3ce929d0e0e4736")),
  TRACE_RANGE_TOO_LARGE: (at, probe) => probe(own(at, "GET", "/traces?from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z")),
  ALERT_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/alerts/alr_unknown")),
  ALERT_RULE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/alert-rules/arl_unknown")),
  SILENCE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/alert-silences/sil_unknown")),
  CHANNEL_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/alert-channels/chn_unknown")),
  ALERT_ALREADY_RESOLVED: async (at, probe) => {
    const { alertId } = await SAMPLES["alerts.get"](at.stock, at.stock.tenant.ownerId);
    await done(at.world, at.stock.owner, `POST /alerts/${alertId}/resolve`, { body: {} });
    await probe(own(at, "POST", `/alerts/${alertId}/acknowledge`, { body: {} }));
  },
  ALERT_LIMIT_REACHED: async (at, probe) => {
    const { tenant, owner } = await fresh(at);
    await at.world.sql.query(
      `insert into alert_channels (channel_id, tenant_id, type, name, config, address, send_resolved, created_by, updated_at)
       select 'chn_' || md5($1 || n), $1, 'email', 'c', '', 'a', false, 'system', now() from generate_series(1, 500) n`,
      [tenant.tenantId],
    );
    await probe(call(at.world, "POST", "/alert-channels", { as: owner, body: await SAMPLES["alerts.createChannel"](at.stock, "") }));
  },
  CHANNEL_URL_NOT_ALLOWED: (at, probe) =>
    probe(own(at, "POST", "/alert-channels", { body: { type: "slack", name: "c", config: { url: "https://10.0.0.1/hook" } } })),
  VIEW_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/views/vw_unknown")),
  VIEW_LIMIT_REACHED: async (at, probe) => probe(call(at.world, "POST", "/views", { as: await ownerOfManyViews(at.world, await fresh(at)), body: VIEW })),
  ...DOMAIN_SCENARIOS,
  ...TUNNEL_SCENARIOS,
  ...BULK_SCENARIOS,
  ...EXPORT_SCENARIOS,
  NODE_NOT_FOUND: ({ world, stock }, probe) => probe(call(world, "POST", "/admin/nodes/node_unknown/drain", { as: stock.operator })),
  NODE_DRAINING: async (_, probe) => {
    const leaving = await openOddWorld();
    leaving.app.channel.refuseUpgrades();
    await probe(upgrade(leaving, signedHeaders(somebody, "", new Date()))).finally(leaving.close);
  },
};

const OPTIONAL = new Set(["details", "retryAfter"]);
const FLAT = ["code", "error", "message", "meta", "requestId", "retryable", "success", "timestamp"];

/** Checks what both shapes have in common. */
const checkBody = (code: ErrorCode, { status, headers, body }: Answer): void => {
  expect([status, body.success, body.code, body.retryable]).toEqual([ERRORS[code].status, false, code, isRetryable(code)]);
  const names = Object.keys(body).filter((name) => !OPTIONAL.has(name));
  expect(names.sort()).toEqual(FLAT);
  expect(body.requestId).toBe(headers.get("x-request-id"));
  expect(body.meta).toEqual({ timestamp: body.timestamp, requestId: body.requestId });
  expect(new Date(body.timestamp).toISOString()).toBe(body.timestamp);
  expect(body.message).not.toMatch(/[{}]/);
  expect(JSON.stringify(body)).not.toMatch(/node_modules|\.ts:|select |insert /i);
};

const checkHeaders = (code: ErrorCode, { status, headers, body }: Answer): void => {
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(headers.get("cache-control")).toBe("no-store");
  if (status === 429 || status === 503) {
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(body.retryAfter).toBe(Number(headers.get("retry-after")));
  }
  if (status === 401) expect(headers.get("www-authenticate")).toBe("Bearer");
  if (status === 405) expect(headers.get("allow")).toBe("GET, HEAD, OPTIONS");
  if (code === "RATE_LIMIT_EXCEEDED") {
    expect([headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")]).toEqual(["3", "0"]);
    expect(Number(headers.get("x-ratelimit-reset"))).toBeGreaterThan(Date.now() / 1_000);
  }
};

const probeFor =
  (code: ErrorCode): Probe =>
  async (send) => {
    // At once: some refusals come only after a time limit.
    const [b, a, chosen] = await Promise.all([send("/v1", {}), send("/api/v1", {}), send("/v1", { "x-svc-error-shape": "a" })]);
    for (const answer of [b, a, chosen]) {
      checkBody(code, answer);
      checkHeaders(code, answer);
    }
    expect(b.body.error).toEqual({ code, message: b.body.message, details: b.body.details ?? {} });
    expect(a.body.error).toBe(a.body.message);
    expect(chosen.body.error).toBe(chosen.body.message);
  };

describe("error codes", () => {
  test.each(Object.keys(SCENARIOS).map((code) => [code as keyof typeof SCENARIOS] as const))("%s has its status, body and headers", async (code) => {
    let probed = 0;
    await SCENARIOS[code](stage, async (send) => {
      probed += 1;
      await probeFor(code)(send);
    });
    expect(probed).toBeGreaterThan(0);
  });

  test("GET /errors lists exactly the codes of the contract", async () => {
    const { body } = await stage.world.call(anonymous, "GET", "/v1/errors");
    expect(body.data.map((each: { code: string }) => each.code)).toEqual(ERROR_CODES);
  });
});
