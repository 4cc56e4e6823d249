// The features tenants, API keys and pairing on one database, wired as the application wires them, with a record of the events they emit.
import { randomBytes, randomUUID } from "node:crypto";
import { contract, type TenantId } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import type { Emit, Happened } from "../../../server/core/events.ts";
import { newId, newSecret } from "../../../server/core/ids.ts";
import { unwatched } from "../../../server/core/ports/security.ts";
import type { Overrides } from "../../../server/core/scope.ts";
import { createApiKeys } from "../../../server/features/api-keys/index.ts";
import { createAuditTrail } from "../../../server/features/audit/index.ts";
import { deploymentGroups } from "../../../server/features/deployments/index.ts";
import type { Enrol } from "../../../server/features/devices/index.ts";
import { createToLimit } from "../../../server/features/fleets/device-limits.ts";
import { createPairing } from "../../../server/features/pairing/index.ts";
import { type Counters, createPlan, createTenants } from "../../../server/features/tenants/index.ts";
import { createMemoryRateLimiter } from "../../../server/platform/cluster/rate-limit.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { insertEvents } from "../../../server/platform/outbox/outbox-rows.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { callable } from "../../kit/gateway/call.ts";
import { createTestDatabase, namedStatements } from "../../kit/stores/database.ts";

export const PORTAL = "https://portal.example";

export const openTenancy = async ({ planLimits }: { planLimits?: Readonly<Record<string, Overrides>> } = {}) => {
  const db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 8, log: silentLog, namedStatements });
  const emitted: Happened[] = [];
  const emit: Emit = async (tx, events) => {
    await insertEvents(tx, events);
    emitted.push(...events);
  };
  const secretBox = createSecretBox(randomBytes(32));
  const audit = createAuditTrail({ secretBox });
  const limiter = createMemoryRateLimiter({ clock: systemClock });
  const counters: Counters = {
    hosts: async (tx: Pick<Db, "query">, { tenantId }: { tenantId: string }) =>
      (await tx.query<{ n: number }>("select count(*) as n from devices where tenant_id = $1", [tenantId]))[0]?.n ?? 0,
  };
  const plan = createPlan({ replaced: planLimits, counters });
  const enrol = enrolInto(plan);
  const tenants = createTenants({
    db,
    clock: systemClock,
    emit,
    audit,
    deployments: deploymentGroups,
    counters,
    ownedTenantsPerUser: 3,
    beginTrial: async () => undefined,
    endBilling: async () => undefined,
    deleteRows: async () => "done",
    countBackups: async () => 0,
    appStates: async () => new Map(),
    deviceStates: async (scope) => ({ online: (await counters.hosts?.(db, scope)) ?? 0, offline: 0, provisioning: 0 }),
    deviceIds: async () => [],
    recentEvents: async () => [],
    toLimit: createToLimit(db),
    nodeId: "test",
    flags: () => ({ isOn: async () => true, on: async () => [] }),
    loadCalls: () => ({ operationOf: () => null, get: async () => ({ status: 200, code: null }) }),
    onError: () => undefined,
  });
  const apiKeys = createApiKeys({
    watch: unwatched,
    db,
    clock: systemClock,
    emit,
    audit,
    memberships: tenants.memberships,
    checkSelector: async () => undefined,
    toLimit: createToLimit(db),
    plan,
    secretBox,
  });
  const pairing = createPairing({
    db,
    clock: systemClock,
    emit,
    audit,
    enrol,
    plan,
    secretBox,
    tenants: tenants.lookup,
    flags: { isOn: async () => true, on: async () => [] },
    memberships: tenants.memberships,
    deployments: deploymentGroups,
    devices: {
      exists: async ({ tenantId }, deviceId) =>
        (await db.query("select 1 from devices where tenant_id = $1 and device_id = $2", [tenantId, deviceId])).length > 0,
      withFingerprints: async () => [],
      reissue: async () => null,
    },
    limiter,
    guessBuckets: (ip) => [{ name: "guesses", key: ip, limit: 10, windowSeconds: 60 }],
    failures: { take: (ip) => limiter.take([{ name: "failures", key: ip, limit: 3, windowSeconds: 60 }]) },
    settings: {
      publicUrl: () => "https://api.example",
      portalUrl: () => PORTAL,
      socketUrl: () => "wss://api.example/v1/agent/connect",
      returnHosts: ["app.example"],
    },
  });
  Object.assign(counters, apiKeys.counters, pairing.counters);
  return {
    db,
    emitted,
    plan,
    tenants,
    apiKeys,
    pairing,
    call: {
      tenants: callable(contract.tenants, tenants.handlers, db),
      apiKeys: callable(contract.apiKeys, apiKeys.handlers, db),
      pairing: callable(contract.pairing, pairing.handlers, db),
    },
    /** A fresh tenant with its owner; plan limits hold unless lifted. */
    newTenant: async ({ lifted = false } = {}): Promise<{ tenantId: TenantId; userId: string; email: string; slug: string }> => {
      const userId = `u-${randomUUID()}`;
      const email = `${userId}@users.example`;
      const { tenantId, slug } = await tenants.ensureTenant({ name: "Test", slug: `t-${randomUUID().slice(0, 13)}`, userId, email, unlimited: true });
      if (!lifted) await db.query("update tenants set limit_overrides = '{}' where tenant_id = $1", [tenantId]);
      return { tenantId, userId, email, slug };
    },
    join: async (tenantId: TenantId, role: string) => {
      const userId = `u-${randomUUID()}`;
      await db.query("insert into memberships (member_id, tenant_id, user_id, role) values ($1, $2, $3, $4)", [newId("mem"), tenantId, userId, role]);
      return userId;
    },
  };
};
export type Tenancy = Awaited<ReturnType<typeof openTenancy>>;

/** Stands in for the devices feature and keeps its contract: plan limits, one living device per fingerprint, a new secret each time. */
const enrolInto =
  (plan: ReturnType<typeof createPlan>): Enrol =>
  async (tx, scope, devices) => {
    const enrolled = [];
    for (const { fingerprint, tags, deploymentId } of devices) {
      await plan.require(tx, scope, "hosts", 1);
      const ids = { device_id: newId("dev"), agent_id: newId("agt") };
      const [row] = await tx.query<typeof ids>(
        `insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, secret, tags)
       values ($1, $2, coalesce($3, (select deployment_id from deployments where tenant_id = $2 and is_default)), $4, $5, '\\x00', $6)
       on conflict (tenant_id, fingerprint) where deleted_at is null do update set updated_at = now() returning device_id, agent_id`,
        [ids.device_id, scope.tenantId, deploymentId ?? null, ids.agent_id, fingerprint, tags ?? []],
      );
      enrolled.push({ ...(row ?? ids), tenant_id: scope.tenantId, shared_secret: newSecret(), fingerprint });
    }
    return enrolled;
  };
