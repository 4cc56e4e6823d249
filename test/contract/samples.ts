// A valid input for every operation, and the records that it refers to. Without a sample for an operation the tests do not compile.
import { randomBytes } from "node:crypto";
import { type Contract, contract, type ErrorCode, type Operation, type Rest } from "../../protocol/index.ts";
import { newId } from "../../server/core/ids.ts";
import { type Answer, anonymous, asAgent, type Caller, type Device, emailOf, type TestTenant, type World } from "../kit/gateway/world.ts";
import { signedEvent } from "../kit/net/stripe.ts";
import { APP_SAMPLES } from "./samples/apps.ts";
import { BACKUP_SAMPLES } from "./samples/backups.ts";
import { BULK_SAMPLES } from "./samples/bulk-operations.ts";
import { COST_SAMPLES } from "./samples/costs.ts";
import { IMPORT_SAMPLES } from "./samples/imports.ts";
import { INSTALLATION_SAMPLES } from "./samples/installation.ts";
import { ROLLOUT_SAMPLES } from "./samples/rollouts.ts";
import { REACH_SAMPLES } from "./samples/tunnels.ts";
import type { Stock } from "./stock.ts";

export type { Stock };

export type OperationId = { [G in keyof Contract]: `${G}.${Extract<keyof Contract[G]["operations"], string>}` }[keyof Contract];

export interface Case {
  readonly id: OperationId;
  readonly op: Operation;
}

export const CASES: readonly Case[] = Object.entries(contract).flatMap(([group, { operations }]) =>
  Object.entries(operations as Record<string, Operation>).map(([name, op]) => ({ id: `${group}.${name}` as OperationId, op })),
);
export const REST_CASES = CASES.filter(({ op }) => op.rest.length > 0);

/** Fail with every credential here, which lacks an identity provider or a certificate authority: see test/gateway/auth/sign-in.test.ts and test/features/domains. */
export const NEEDS_PROVIDER: ReadonlyMap<OperationId, ErrorCode> = new Map([
  ["sessions.callback", "SIGN_IN_NOT_CONFIGURED"],
  ["domains.putCertificate", "CERTIFICATE_NOT_CONFIGURED"],
  ["domains.renewCertificate", "CERTIFICATE_NOT_CONFIGURED"],
]);
/** An access token does not do. */
export const SESSION_ONLY: ReadonlySet<OperationId> = new Set(["sessions.token"]);

const data = ({ status, body }: Answer) => {
  if (status >= 300) throw new Error(`setup failed with ${status}: ${JSON.stringify(body)}`);
  return body.data;
};

export const initiate = async ({ world }: Pick<Stock, "world">, fingerprint = newId("fp")) => {
  const made = data(await world.call(anonymous, "POST", "/v1/pairing/initiate", { body: { device_fingerprint: fingerprint } }));
  return { fingerprint, code: made.pairing_code as string, pollToken: made.pollToken as string };
};

export const prepare = async ({ world, tenant, owner }: Pick<Stock, "world" | "tenant" | "owner">) => {
  const { code, fingerprint } = await initiate({ world });
  const prepared = data(await world.call(owner, "POST", "/v1/pairing/prepare-activation", { body: { pairing_code: code, tenant_id: tenant.tenantId } }));
  return { code, fingerprint, token: prepared.activation_token as string };
};

export const pair = async (stock: Pick<Stock, "world" | "tenant" | "owner">): Promise<{ device: Device; code: string }> => {
  const { code, token, fingerprint } = await prepare(stock);
  const made = data(
    await stock.world.call(anonymous, "POST", "/v1/pairing/activate", {
      body: { pairing_code: code, activation_token: token, user_email: "owner@example.com" },
    }),
  );
  const identity = { agentId: made.agent_id, tenantId: made.tenant_id, secret: made.shared_secret };
  return { code, device: { deviceId: made.device_id, fingerprint, identity, as: asAgent(identity) } };
};

/** A trace of one span. */
const sentTrace = async (world: World, as: Caller): Promise<string> => {
  const [traceId, startTimeUnixNano] = [randomBytes(16).toString("hex"), `${Date.now()}000000`];
  const span = { traceId, spanId: randomBytes(8).toString("hex"), name: "sample", startTimeUnixNano, endTimeUnixNano: startTimeUnixNano };
  await world.call(as, "POST", "/v1/traces", { body: { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] } });
  return traceId;
};

export const openStock = async (world: World): Promise<Stock> => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const { device, code } = await pair({ world, tenant, owner });
  return {
    world,
    tenant,
    owner,
    operator: await world.operator(),
    session: (await world.session(newId("usr"))).as,
    device,
    pairingCode: code,
  };
};

const created = async ({ world, owner }: Stock, path: string, body: object): Promise<Record<string, string>> =>
  data(await world.call(owner, "POST", path, { body }));
const command = async (stock: Stock): Promise<string> =>
  (await created(stock, `/v1/devices/${stock.device.deviceId}/commands`, { type: "ping" }))["commandId"] ?? "";
const enrollmentToken = (stock: Stock) => created(stock, "/v1/pairing/enrollment-tokens", { name: "sample" });
const spare = async (stock: Stock): Promise<string> => (await stock.tenant.device()).deviceId;
/** A live node other than the one that serves the test. */
const otherNode = async ({ world }: Stock): Promise<string> => {
  const nodeId = newId("node");
  await world.sql.query("insert into gateway_nodes (node_id, address, host, pid, version) values ($1, 'http://elsewhere', 'elsewhere', 1, '0')", [nodeId]);
  return nodeId;
};
/** The id of a new record, created by POST. */
const ofNew =
  (path: string, field: string, body: object = { name: "sample" }) =>
  async (stock: Stock) => ({ [field]: (await created(stock, path, body))[field] });
/** Views of one person are nobody else's. */
export const VIEW = { place: "devices", name: "sample", search: "status=offline", shared: true };
/** A tenant has at most so many. */
export const ownerOfManyViews = async ({ sql }: World, { tenant, owner }: Pick<Stock, "tenant" | "owner">): Promise<Caller> => {
  await sql.query(
    `insert into saved_views (view_id, tenant_id, place, name, search, shared, created_by, updated_at)
     select 'vw_' || md5($1 || n), $1, 'devices', 'v', '', true, 'system', now() from generate_series(1, 500) n`,
    [tenant.tenantId],
  );
  return owner;
};
const onDevice = async ({ device }: Stock) => ({ deviceId: device.deviceId });
const nothing = async () => ({});
const ofTenant = async ({ tenant }: Pick<Stock, "tenant">) => ({ tenantId: tenant.tenantId });
const slugOf = async ({ sql }: World, { tenantId }: TestTenant): Promise<string> =>
  (await sql.query("select slug from tenants where tenant_id = $1", [tenantId])).rows[0].slug;
/** An earlier case may have scheduled the stock's own tenant for deletion, or left a load test running. */
export const restored = async ({ world, tenant, owner }: Stock): Promise<void> => {
  const { tenantId, ownerId } = tenant;
  const roles = tenant.roles();
  // One statement, since the walls ask before each of their calls. Nor may the owner be the owner any more, or the viewer a member.
  const { rows } = await world.sql.query<{ leaving: boolean; demoted: boolean }>(
    `with cleared as (delete from load_tests where tenant_id = $1), rejoined as (
       insert into memberships (member_id, tenant_id, user_id, role)
       select member_id, $1, user_id, role from unnest($3::text[], $4::text[], $5::text[]) as gone(member_id, user_id, role)
       on conflict do nothing)
     select exists (select from tenants where tenant_id = $1 and status = 'pending_deletion') as leaving,
       exists (select from memberships where tenant_id = $1 and user_id = $2 and role <> 'owner') as demoted`,
    [tenantId, ownerId, roles.map(() => newId("mem")), roles.map((role) => tenant.userId(role)), roles],
  );
  if (rows[0]?.leaving === true) data(await world.call(owner, "POST", `/v1/tenants/${tenantId}/restore`));
  if (rows[0]?.demoted === true)
    data(await world.call(await tenant.user("admin"), "POST", `/v1/tenants/${tenantId}/transfer-ownership`, { body: { userId: ownerId } }));
};

/** The last samples' roles go, because a tenant has 50 at most. */
const newRole = async (stock: Stock): Promise<Input> => {
  const { tenantId } = stock.tenant;
  await stock.world.sql.query("delete from roles r where tenant_id = $1 and not exists (select from memberships m where m.role_id = r.role_id)", [tenantId]);
  return { roleId: (await created(stock, "/v1/roles", { name: newId("night"), permissions: ["device:read"] }))["roleId"] };
};
/** One that has the stock's device. */
const newFleet = async (stock: Stock): Promise<Input> => ({
  fleetId: (await created(stock, "/v1/fleets", { name: "sample", deviceIds: [stock.device.deviceId] }))["fleetId"],
});
const newSecurityAlert = async ({ world }: Pick<Stock, "world">, tenantId: string): Promise<Input> => {
  const alertId = newId("sal");
  await world.sql.query(
    `insert into security_alerts (alert_id, tenant_id, rule_id, type, severity, entity_type, entity_id, count, last_event_at)
     values ($1, $2, 'srl_B0AuthFailedBurst0000000', 'auth.failed_burst', 'medium', 'ip', $3, 20, now())`,
    [alertId, tenantId, alertId],
  );
  return { alertId };
};
const ALERT_RULE = { name: "noise", type: "auth.failed_burst", conditions: { count: 5, windowSeconds: 60, severity: "low" } };
/** The last samples' rules go, because a tenant has 50 at most. */
const newRule = async (stock: Stock): Promise<Input> => {
  await stock.world.sql.query("delete from security_rules where tenant_id = $1", [stock.tenant.tenantId]);
  return { securityRuleId: (await created(stock, "/v1/security/rules", ALERT_RULE))["id"] };
};
const freshBlock = (): Input => ({ entityType: "device", entityValue: newId("dev"), reason: "stolen" });
/** By the lowest role that may block: nobody frees whom a higher one has blocked. */
const newBlock = async ({ world, tenant }: Stock): Promise<Input> => ({
  blockedEntityId: data(await world.call(await tenant.user("admin"), "POST", "/v1/security/blocked-entities", { body: freshBlock() })).id,
});
const newBlockEverywhere = async ({ world, operator }: Stock): Promise<Input> => ({
  blockedEntityId: data(await world.call(operator, "POST", "/v1/admin/security/blocked-entities", { body: freshBlock() })).id,
});
/** A member that no other sample needs; the user's own membership, if the user is to leave. */
const newMember = async ({ world, tenant }: Pick<Stock, "world" | "tenant">): Promise<Input> => {
  const memberId = newId("mem");
  const values = [memberId, tenant.tenantId, newId("usr")];
  await world.sql.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, 'viewer')", values);
  return { memberId };
};

/** One that the tenant does not have. */
const otherPlan = async ({ world, owner }: Stock): Promise<Input> => {
  const { billing } = data(await world.call(owner, "GET", "/v1/billing"));
  return { plan: billing.plan === "pro" ? "team" : "pro" };
};
const subscribed = async (stock: Stock, input: Input): Promise<Input> => {
  const { billing } = data(await stock.world.call(stock.owner, "GET", "/v1/billing"));
  // Another sample may order at the same moment; either order will do.
  if (billing.status !== "active") await stock.world.call(stock.owner, "POST", "/v1/billing/checkout", { body: await otherPlan(stock) });
  return input;
};

const newEmail = (): string => emailOf(newId("usr"));
/** The world has no mail server, so the answer contains the link. */
export const invite = async (stock: Pick<Stock, "world" | "owner">, email = newEmail()): Promise<{ inviteId: string; token: string }> => {
  const { inviteId, link } = data(await stock.world.call(stock.owner, "POST", "/v1/invites", { body: { email, roleId: "viewer" } }));
  return { inviteId, token: new URL(link).searchParams.get("token") ?? "" };
};
/** An invite of this user by another tenant. */
const acceptable = async ({ world }: Stock, userId: string): Promise<Input> => {
  const other = await world.tenant();
  return { token: (await invite({ world, owner: await other.user("owner") }, emailOf(userId))).token };
};

/** Nobody listens there, so every delivery fails at once. */
const newHookUrl = (): string => `http://127.0.0.2:8443/${newId("wh")}`;
const newWebhook = async (stock: Stock): Promise<Input> => ({
  webhookId: (await created(stock, "/v1/webhooks", { url: newHookUrl(), events: ["webhook.recovered"] }))["webhookId"],
});
/** One about the stock's device, so that callers who are limited to it see it. */
const newEvent = async ({ world, tenant, device }: Stock): Promise<string> => {
  const eventId = newId("evt");
  await world.sql.query(`insert into outbox_events (event_id, tenant_id, type, subject_id, data) values ($1, $2, 'device.offline', $3, '{}')`, [
    eventId,
    tenant.tenantId,
    device.deviceId,
  ]);
  // The relay does the same, and may have done so already.
  await world.sql.query(
    `with waiting as (delete from outbox_pending where positions = (select array_agg(position) from outbox_events where event_id = $1) returning tenant_id, positions)
     insert into outbox_dispatches (tenant_id, last_sequence, positions, highest_position)
     select tenant_id, (extract(epoch from clock_timestamp()) * 1000000)::bigint, positions, positions[1] from waiting`,
    [eventId],
  );
  return eventId;
};
const newDelivery = async (stock: Stock): Promise<Input> => {
  const { webhookId } = await newWebhook(stock);
  const deliveryId = newId("whd");
  await stock.world.sql.query(
    `insert into webhook_deliveries (delivery_id, tenant_id, webhook_id, event_id, event_type, subject_id, position, status, body, next_attempt_at)
     values ($1, $2, $3, $4, 'device.offline', 'dev_1', 1, 'exhausted', '{}', null)`,
    [deliveryId, stock.tenant.tenantId, webhookId, newId("evt")],
  );
  return { webhookId, deliveryId };
};

type Input = Record<string, unknown>;

const RULE = { name: "Busy", metric: "device.cpu", threshold: 90 };
const CHANNEL = { type: "email", name: "On call", config: { to: ["oncall@users.example"] } };
const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
const silenceBody = () => ({ matchers: [{ name: "tag", value: "site:lisbon" }], endsAt: inDays(1), comment: "The site moves" });
const newSilence = async (stock: Stock): Promise<Input> => ({ silenceId: (await created(stock, "/v1/alert-silences", silenceBody()))["silenceId"] });
/** Only the evaluation opens alerts. */
const newAlert = async ({ world, tenant, device }: Stock): Promise<Input> => {
  const alertId = newId("alr");
  await world.sql.query(
    `with a as (insert into alerts (alert_id, tenant_id, rule_id, rule_name, type, severity, target_id, value, target_count, active_count, updated_at)
       values ($1, $2, 'arl_01J9ZQD2G4J6M8P0R3T5W7Y9A1', 'Busy', 'device.cpu', 'warning', $3, 91, 1, 1, now()) returning tenant_id, alert_id, target_id)
     insert into alert_targets (tenant_id, alert_id, target_id, device_id, value) select tenant_id, alert_id, target_id, target_id, 91 from a`,
    [alertId, tenant.tenantId, device.deviceId],
  );
  return { alertId };
};

export const SAMPLES: { readonly [Id in OperationId]: (stock: Stock, userId: string) => Promise<Input> } = {
  "health.check": nothing,
  "health.full": nothing,
  "health.ready": nothing,
  "health.live": nothing,
  "health.deep": nothing,
  "health.status": nothing,
  "pairing.initiate": async () => ({ device_fingerprint: newId("fp"), device_name: "kitchen", platform: "linux" }),
  "pairing.prepareActivation": async (stock) => ({ pairing_code: (await initiate(stock)).code, tenant_id: stock.tenant.tenantId }),
  "pairing.lookup": async (stock) => ({ code: (await initiate(stock)).code }),
  "pairing.requests": nothing,
  "pairing.approve": async (stock) => ({ code: (await initiate(stock)).code, name: "attic" }),
  "pairing.reject": async (stock) => ({ code: (await initiate(stock)).code }),
  "pairing.collect": async (stock) => {
    const { code, fingerprint, pollToken } = await initiate(stock);
    data(await stock.world.call(stock.owner, "POST", "/v1/pairing/approve", { body: { code } }));
    return { pairing_code: code, device_fingerprint: fingerprint, pollToken };
  },
  "pairing.activate": async (stock) => {
    const { code, token } = await prepare(stock);
    return { pairing_code: code, activation_token: token, user_email: "owner@example.com" };
  },
  "pairing.status": async ({ device }) => ({ device_fingerprint: device.fingerprint }),
  "pairing.autoActivate": async (stock) => ({ enrollment_token: (await enrollmentToken(stock))["token"], pairing_code: (await initiate(stock)).code }),
  "pairing.updateProgress": async (stock) => ({ pairingCode: (await initiate(stock)).code, currentStep: "preflight_check", stepStatus: "in_progress" }),
  "pairing.progress": async ({ pairingCode }) => ({ pairingCode }),
  "pairing.updateDeviceProgress": async ({ device }) => ({ deviceId: device.deviceId, currentStep: "preflight_check", stepStatus: "in_progress" }),
  "pairing.deviceProgress": onDevice,
  "pairing.installCommand": async () => ({}),
  "pairing.createToken": async () => ({ name: "install script" }),
  "pairing.listTokens": nothing,
  "pairing.revokeToken": async (stock) => ({ tokenId: (await enrollmentToken(stock))["tokenId"] }),
  "devices.list": nothing,
  "devices.listHosts": nothing,
  "devices.listPartial": async () => ({ fields: ["name", "status"] }),
  "devices.getMany": async ({ device }) => ({ ids: [device.deviceId] }),
  "devices.summary": nothing,
  "devices.get": onDevice,
  "devices.wait": async ({ device }) => ({ deviceId: device.deviceId, status: ["online", "offline", "provisioning"], timeout: 0 }),
  "devices.update": async ({ device }) => ({ deviceId: device.deviceId, name: "attic" }),
  "devices.remove": async (stock) => ({ deviceId: await spare(stock) }),
  "devices.heartbeat": async ({ device }) => ({ deviceId: device.deviceId, cpu: 12.5, memory: 40, disk: 70 }),
  "devices.metrics": onDevice,
  "devices.secrets": onDevice,
  "devices.rotateSecret": async (stock) => ({ deviceId: await spare(stock) }),
  "devices.liftSignatureLock": onDevice,
  "devices.openRepair": onDevice,
  "devices.closeRepair": onDevice,
  "devices.disconnect": onDevice,
  "devices.provision": async () => ({ count: 1 }),
  "commands.queue": async ({ device }) => ({ deviceId: device.deviceId, type: "ping" }),
  "commands.queueMany": async ({ device }) => ({ deviceIds: [device.deviceId], type: "ping" }),
  "commands.list": onDevice,
  "commands.listAll": nothing,
  "commands.listPartial": async () => ({ fields: ["type", "status"] }),
  "commands.getMany": async (stock) => ({ ids: [await command(stock)] }),
  "commands.summary": nothing,
  "commands.types": nothing,
  "commands.poll": onDevice,
  "commands.get": async (stock) => ({ commandId: await command(stock) }),
  "commands.getOnDevice": async (stock) => ({ deviceId: stock.device.deviceId, commandId: await command(stock) }),
  "commands.ack": async (stock) => ({ deviceId: stock.device.deviceId, commandId: await command(stock), status: "succeeded", output: { pong: true } }),
  "commands.cancel": async (stock) => ({ deviceId: stock.device.deviceId, commandId: await command(stock) }),
  "commands.purge": async (stock) => ({ deviceId: await spare(stock) }),
  "commands.timeline": async (stock) => ({ commandId: await command(stock) }),
  "agent.me": nothing,
  "agent.config": nothing,
  "agent.reportInventory": async () => ({ hostname: "kitchen", arch: "x64" }),
  "tenants.create": async () => ({ name: "Another", slug: newId("s").toLowerCase().replace("_", "-"), userId: "replaced by the caller" }),
  "tenants.list": nothing,
  "tenants.get": async ({ tenant }) => ({ tenantId: tenant.tenantId }),
  "tenants.update": async ({ tenant }) => ({ tenantId: tenant.tenantId, name: "Renamed" }),
  "tenants.remove": async ({ world, tenant }) => ({ tenantId: tenant.tenantId, confirm: await slugOf(world, tenant), force: true }),
  "tenants.restore": async (stock) => {
    const { world, tenant, owner } = stock;
    const confirm = await slugOf(world, tenant);
    data({ ...(await world.call(owner, "DELETE", `/v1/tenants/${tenant.tenantId}?confirm=${confirm}&force=true`)), body: {} });
    return ofTenant(stock);
  },
  "tenants.settings": ofTenant,
  "tenants.updateSettings": async (stock) => ({ ...(await ofTenant(stock)), defaultTimezone: "Europe/Lisbon" }),
  "tenants.dashboard": ofTenant,
  "tenants.summary": ofTenant,
  "tenants.metrics": async (stock) => ({ ...(await ofTenant(stock)), metric: "resources", range: "1h" }),
  "roles.permissions": nothing,
  "roles.list": nothing,
  "roles.get": newRole,
  "roles.create": async (stock) => {
    await newRole(stock);
    return { name: newId("night"), permissions: ["device:read"] };
  },
  "roles.update": async (stock) => ({ ...(await newRole(stock)), description: "Restarts apps" }),
  "roles.remove": newRole,
  "roles.listMembers": nothing,
  "roles.getMember": newMember,
  "roles.updateMember": async (stock) => ({ ...(await newMember(stock)), ...(await newRole(stock)) }),
  "roles.removeMember": newMember,
  "roles.transferOwnership": async ({ tenant }) => {
    await tenant.token("admin");
    return { tenantId: tenant.tenantId, userId: tenant.userId("admin") };
  },
  "tenants.loadTest": ofTenant,
  "tenants.startLoadTest": async (stock) => ({ ...(await ofTenant(stock)), duration: 300, concurrency: 1, endpoints: ["/v1/info"] }),
  "tenants.cancelLoadTest": async (stock) => {
    await stock.world.sql.query(
      `insert into load_tests (tenant_id, load_test_id, status, duration, concurrency, endpoints, started_by, node_id, started_at, deadline_at)
       values ($1, 'ltr_1', 'running', 300, 1, '{/v1/info}', 'user:u', 'elsewhere', now(), now() + interval '1 hour')`,
      [stock.tenant.tenantId],
    );
    return ofTenant(stock);
  },
  "apiKeys.list": nothing,
  "apiKeys.get": ofNew("/v1/api-keys", "keyId"),
  "apiKeys.create": async () => ({ name: "script" }),
  "apiKeys.update": async (stock) => ({ ...(await ofNew("/v1/api-keys", "keyId")(stock)), name: "renamed" }),
  "apiKeys.rotate": ofNew("/v1/api-keys", "keyId"),
  "apiKeys.revoke": ofNew("/v1/api-keys", "keyId"),
  "billing.plans": nothing,
  "billing.get": nothing,
  "billing.usage": nothing,
  "billing.checkout": otherPlan,
  "billing.portal": nothing,
  "billing.cancel": async (stock) => subscribed(stock, {}),
  "billing.resume": async (stock) => subscribed(stock, {}),
  "billing.preview": async () => ({ plan: "team", interval: "annual" }),
  "billing.invoices": nothing,
  "billing.providerEvents": async () => signedEvent({ id: newId("evt"), type: "customer.created", created: 1_795_339_770, data: { object: {} } }),
  "general.info": nothing,
  "general.changelog": nothing,
  "general.deprecations": nothing,
  "general.errors": nothing,
  "general.error": async () => ({ code: "DEVICE_NOT_FOUND" }),
  "general.authConfig": nothing,
  "general.me": nothing,
  "general.streamTicket": nothing,
  "general.rateLimit": nothing,
  "live.watch": nothing,
  "audit.list": nothing,
  "audit.get": async ({ world, owner }) => ({ auditId: (await world.call(owner, "GET", "/v1/audit-logs")).body.data[0].auditId }),
  "audit.export": nothing,
  "audit.exportLines": nothing,
  "general.changelogFeed": nothing,
  "audit.listInstallation": nothing,
  "sessions.login": async ({ world }) => ({ token: (await world.app.signInLink({ userId: newId("usr") })).token }),
  "sessions.callback": nothing,
  "sessions.signIn": async ({ world }) => ({ token: (await world.app.signInLink({ userId: newId("usr") })).token }),
  "sessions.current": nothing,
  "sessions.token": nothing,
  "sessions.logout": nothing,
  "sessions.list": nothing,
  "sessions.end": async ({ world }, userId) => ({ sessionId: (await world.session(userId)).sessionId }),
  "sessions.endOthers": nothing,
  "admin.drainNode": async (stock) => ({ nodeId: await otherNode(stock) }),
  "account.get": nothing,
  "account.update": async () => ({ name: "Kim", preferences: { theme: "dark" } }),
  "account.tenants": nothing,
  "account.switchTenant": ofTenant,
  "account.notifications": nothing,
  "account.updateNotifications": async () => ({ items: [{ event: "member.joined", email: true, inApp: false }] }),
  "account.export": nothing,
  // The last owner of a tenant cannot leave, and other samples make the caller the owner of more.
  "account.remove": async ({ world }) => {
    await world.sql.query(
      "insert into memberships (member_id, tenant_id, user_id, role) select 'mem_' || md5(tenant_id), tenant_id, 'co-owner', 'owner' from tenants on conflict do nothing",
    );
    return {};
  },
  "account.restore": nothing,
  "invites.list": nothing,
  "invites.get": async (stock) => ({ inviteId: (await invite(stock)).inviteId }),
  "invites.create": async () => ({ email: newEmail(), roleId: "viewer" }),
  "invites.resend": async (stock) => ({ inviteId: (await invite(stock)).inviteId }),
  "invites.revoke": async (stock) => ({ inviteId: (await invite(stock)).inviteId }),
  "invites.lookup": async (stock) => ({ token: (await invite(stock)).token }),
  "invites.accept": async (stock) => acceptable(stock, stock.tenant.ownerId),
  "invites.decline": async (stock) => ({ token: (await invite(stock)).token }),
  "fleets.list": nothing,
  "fleets.get": newFleet,
  "fleets.create": async ({ device }) => ({ name: "sample", deviceIds: [device.deviceId] }),
  "fleets.update": async (stock) => ({ ...(await newFleet(stock)), name: "renamed" }),
  "fleets.remove": newFleet,
  "fleets.listDevices": newFleet,
  "fleets.addDevice": async (stock) => ({ ...(await newFleet(stock)), deviceId: await spare(stock) }),
  "fleets.removeDevice": async (stock) => ({ ...(await newFleet(stock)), deviceId: stock.device.deviceId }),
  "fleets.summary": newFleet,
  "traces.ingest": async () => ({ resourceSpans: [] }),
  "traces.list": nothing,
  "traces.services": nothing,
  "traces.operations": nothing,
  "traces.get": async ({ world, device }) => ({ traceId: await sentTrace(world, device.as) }),
  "security.listEvents": nothing,
  "security.listAlerts": nothing,
  "security.getAlert": (stock) => newSecurityAlert(stock, stock.tenant.tenantId),
  "security.acknowledge": (stock) => newSecurityAlert(stock, stock.tenant.tenantId),
  "security.resolve": async (stock) => ({ ...(await newSecurityAlert(stock, stock.tenant.tenantId)), resolution: "mitigated", note: "password changed" }),
  "security.metrics": nothing,
  "security.listRules": nothing,
  "security.getRule": newRule,
  "security.createRule": async (stock) => {
    await newRule(stock);
    return ALERT_RULE;
  },
  "security.updateRule": async (stock) => ({ ...(await newRule(stock)), enabled: false }),
  "security.removeRule": newRule,
  "security.listBlocked": nothing,
  "security.block": async () => freshBlock(),
  "security.unblock": newBlock,
  "security.installationEvents": nothing,
  "security.installationAlerts": nothing,
  "security.acknowledgeForInstallation": (stock) => newSecurityAlert(stock, "-"),
  "security.resolveForInstallation": async (stock) => ({ ...(await newSecurityAlert(stock, "-")), resolution: "accepted" }),
  "security.listBlockedEverywhere": nothing,
  "security.blockEverywhere": async () => freshBlock(),
  "security.unblockEverywhere": newBlockEverywhere,
  "alerts.list": nothing,
  "alerts.summary": nothing,
  "alerts.get": newAlert,
  "alerts.listTargets": newAlert,
  "alerts.acknowledge": newAlert,
  "alerts.resolve": newAlert,
  "alerts.snooze": async (stock) => ({ ...(await newAlert(stock)), until: inDays(1) }),
  "alerts.listRules": nothing,
  "alerts.getRule": ofNew("/v1/alert-rules", "ruleId", RULE),
  "alerts.createRule": async () => RULE,
  "alerts.updateRule": async (stock) => ({ ...(await ofNew("/v1/alert-rules", "ruleId", RULE)(stock)), name: "renamed" }),
  "alerts.removeRule": ofNew("/v1/alert-rules", "ruleId", RULE),
  "alerts.testRule": ofNew("/v1/alert-rules", "ruleId", RULE),
  "alerts.preview": async () => ({ metric: "device.cpu", threshold: 90 }),
  "alerts.listSilences": nothing,
  "alerts.getSilence": newSilence,
  "alerts.createSilence": async () => silenceBody(),
  "alerts.removeSilence": newSilence,
  "alerts.listChannels": nothing,
  "alerts.getChannel": ofNew("/v1/alert-channels", "channelId", CHANNEL),
  "alerts.createChannel": async () => CHANNEL,
  "alerts.updateChannel": async (stock) => ({ ...(await ofNew("/v1/alert-channels", "channelId", CHANNEL)(stock)), name: "renamed" }),
  "alerts.removeChannel": ofNew("/v1/alert-channels", "channelId", CHANNEL),
  "alerts.testChannel": ofNew("/v1/alert-channels", "channelId", CHANNEL),
  "webhooks.list": nothing,
  "webhooks.eventTypes": nothing,
  "webhooks.get": newWebhook,
  "webhooks.create": async () => ({ url: newHookUrl(), events: ["device.offline"] }),
  "webhooks.update": async (stock) => ({ ...(await newWebhook(stock)), description: "renamed" }),
  "webhooks.remove": newWebhook,
  "webhooks.rotateSecret": newWebhook,
  "webhooks.test": newWebhook,
  "webhooks.listDeliveries": newWebhook,
  "webhooks.getDelivery": newDelivery,
  "webhooks.redeliver": newDelivery,
  "webhooks.replay": async (stock) => ({ ...(await newWebhook(stock)), since: "2026-01-01T00:00:00Z", status: "missing" }),
  "webhooks.listEvents": async () => ({ types: ["device.*"] }),
  "webhooks.getEvent": async (stock) => ({ eventId: await newEvent(stock) }),
  ...APP_SAMPLES,
  ...REACH_SAMPLES,
  ...BULK_SAMPLES,
  ...COST_SAMPLES,
  ...IMPORT_SAMPLES,
  ...INSTALLATION_SAMPLES,
  ...ROLLOUT_SAMPLES,
  ...BACKUP_SAMPLES,
  "batch.run": async () => ({ requests: [{ id: "devices", method: "GET", path: "/devices?limit=1" }] }),
  "attention.list": nothing,
  "overview.get": nothing,
  "views.list": nothing,
  "views.get": ofNew("/v1/views", "viewId", VIEW),
  "views.create": async () => VIEW,
  "views.update": async (stock) => ({ ...(await ofNew("/v1/views", "viewId", VIEW)(stock)), name: "renamed" }),
  "views.remove": ofNew("/v1/views", "viewId", VIEW),
};

/** A value as text for a path or query. String() throws for a fuzzed object such as `{ toString: false }`. */
const asText = (value: unknown): string => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value));

/** An input as a REST request: fields in the path, the rest in query or body. */
export const toRequest = (
  op: Operation,
  input: Input,
  rest: Rest = op.rest[0] ?? "GET /",
): { method: string; path: string; body?: Input; rawBody?: string | Uint8Array; headers?: Record<string, string> } => {
  const [method = "", template = ""] = rest.split(" ");
  const left = { ...input };
  const headers: Record<string, string> = {};
  for (const [field, name] of Object.entries(op.headers)) {
    if (field in left) headers[name] = encodeURI(asText(left[field]).toWellFormed());
    delete left[field];
  }
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    // A URL cannot contain a lone surrogate.
    const value = asText(left[name]).toWellFormed();
    delete left[name];
    return encodeURIComponent(value);
  });
  if (["POST", "PUT", "PATCH"].includes(method) && op.rawBody === undefined) return { method, path, body: left, headers };
  const raw = asText(left[op.rawBody ?? ""]);
  const rawBody = op.rawBody === undefined ? {} : { rawBody: op.rawType === "application/gzip" ? Buffer.from(raw, "base64") : raw };
  delete left[op.rawBody ?? ""];
  const query = new URLSearchParams(
    Object.entries(left).map(([name, value]): [string, string] => [name, Array.isArray(value) ? value.map(asText).join(",") : asText(value)]),
  );
  return { method, path: query.size === 0 ? path : `${path}?${query}`, headers, ...rawBody };
};

export const send = ({ world }: Pick<Stock, "world">, as: Caller, prefix: "/v1" | "/api/v1", request: ReturnType<typeof toRequest>): Promise<Answer> =>
  world.call(as, request.method, `${prefix}${request.path === "/" ? "" : request.path}`, {
    ...(request.headers === undefined ? {} : { headers: request.headers }),
    ...(request.body === undefined ? {} : { body: request.body }),
    ...(request.rawBody === undefined ? {} : { rawBody: request.rawBody }),
  });

/** For the calls that are to use a socket in a world whose others do not. */
export const overHttp = ({ world }: Pick<Stock, "world">): Pick<Stock, "world"> => ({ world: { ...world, call: world.callOverHttp } });

/** Its input serves again. A query that redirects uses its token up. */
export const isRead = ({ op }: Case): boolean => op.kind === "query" && op.replay === "repeatable" && op.status !== 303;

/** A caller that the operation accepts. */
export const callerFor = ({ id, op }: Case, { owner, operator, tenant, device, session }: Stock): Caller => {
  if (SESSION_ONLY.has(id)) return session;
  const [first] = op.auth;
  if (first === "public") return anonymous;
  if (op.permission === "platform") return operator;
  if (first === "agent") return device.as;
  return first === "apiKey" ? tenant.apiKey : owner;
};

const ownMembership = async ({ world, tenant }: Stock, userId: string): Promise<Input> => {
  const { rows } = await world.sql.query("select member_id from memberships where tenant_id = $1 and user_id = $2", [tenant.tenantId, userId]);
  return { memberId: rows[0]?.member_id };
};

/** An operation's sample input. In tenants.create the owner must be the caller. */
export const sample = async ({ id }: Case, stock: Stock, userId = stock.tenant.ownerId): Promise<Input> => {
  await restored(stock);
  if (id === "invites.accept") return acceptable(stock, userId);
  // A member without the permission to remove others may only leave.
  if (id === "roles.removeMember" && userId !== stock.tenant.ownerId) return ownMembership(stock, userId);
  const input = await SAMPLES[id](stock, userId);
  return id === "tenants.create" ? { ...input, userId } : input;
};
