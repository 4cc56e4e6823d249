// Tenants: a user creates one and becomes its owner; members read and change it; its owner ends it.
import { contract, type Role, type Tenant } from "../../../protocol/index.ts";
import type { ToLimit } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { userOf } from "../../core/people/user-of.ts";
import { type AuditTrail, operatorTx } from "../../core/ports/audit.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { DeploymentGroups } from "../deployments/index.ts";
import { createAnyTenant } from "./any-tenant.ts";
import { createEnsureTenant } from "./bootstrap.ts";
import { createDashboard, type DashboardDeps } from "./dashboard.ts";
import { createLoadTests, type LoadTestDeps } from "./load-test.ts";
import { createMembers } from "./members.ts";
import { createMetricHistory, type MetricRetention, type MetricsDeps } from "./metrics.ts";
import type { Counters } from "./plan-limits.ts";
import { DEFAULT_PLAN } from "./plan-table.ts";
import { createSettings, isSetupHidden, timezoneOf } from "./settings.ts";
import { isReservedSlug } from "./slugs.ts";
import { createStanding } from "./standing.ts";
import { findEveryMember } from "./store/members.ts";
import { isSlugReserved, reserveSlug } from "./store/suspension-and-deletion.ts";
import { countMembers, countOwned, findTenant, insertTenant, lockUser, pageOfTenants, type StoredTenant, updateTenant, upsertMember } from "./store/tenants.ts";
import { createStuck } from "./stuck.ts";
import { createSuspensionAndDeletion, type SuspensionAndDeletionDeps } from "./suspension-and-deletion.ts";
import { createTenantLookup } from "./tenant-lookup.ts";

export type { AnyTenant } from "./any-tenant.ts";
export type { EnsuredTenant, EnsureTenant } from "./bootstrap.ts";
export type { DeviceStates } from "./dashboard.ts";
export type { JoiningMember, MemberRow, Members, MemberTenant, Recipient, RoleOfMember } from "./members.ts";
export { type Counters, type CountUsed, createPlan, type LimitCrossing, type Plan, type PlanDeps } from "./plan-limits.ts";
export type { TenantStanding } from "./standing.ts";

export interface TenantsDeps extends DashboardDeps, LoadTestDeps, Pick<SuspensionAndDeletionDeps, "deleteRows" | "endBilling"> {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly audit: AuditTrail;
  readonly toLimit: ToLimit;
  readonly deployments: DeploymentGroups;
  /** For the usage of administrators' lists; the same functions that the plan asks. */
  readonly counters: Counters;
  readonly ownedTenantsPerUser: number;
  /** Begins the trial of a tenant in the transaction that creates it. */
  readonly beginTrial: (tx: Tx, scope: SystemScope) => Promise<void>;
  /** Between the order to delete a tenant and the deletion. */
  readonly deletionDays?: number;
  readonly metricRetention?: MetricRetention;
  /** All devices that the caller sees. */
  readonly deviceIds: MetricsDeps["deviceIds"];
}

const DELETION_DAYS = 30;

export const createTenants = (deps: TenantsDeps) => {
  const { db, clock, audit } = deps;
  const { lookup, memberships, forgetTenant, forgetMember, forgetMembers } = createTenantLookup(deps);
  const counting = createCounting(deps);
  const life = createSuspensionAndDeletion({ ...deps, ...counting, forgetTenant, deletionDays: deps.deletionDays ?? DELETION_DAYS });
  const metrics = createMetricHistory(deps);
  const loadTests = createLoadTests(deps);
  return {
    handlers: implement(contract.tenants, {
      ...createHandlers({ ...deps, ...counting, forgetTenant, forgetMember }),
      ...life.handlers,
      ...createSettings({ ...deps, forgetTenant }),
      ...createDashboard(deps),
      ...metrics.handlers,
      ...loadTests.handlers,
    }),
    jobs: [...life.jobs, ...metrics.jobs, loadTests.job],
    consumer: metrics.consumer,
    lookup,
    memberships,
    members: createMembers(forgetMember, forgetMembers),
    forgetTenant,
    deviceMetrics: metrics.ofDevice,
    timezoneOf,
    isSetupHidden: (scope: SystemScope) => isSetupHidden(db, scope),
    counters: { members: countMembers },
    standing: createStanding(life, forgetTenant),
    nameOf: async (db: Tx, scope: SystemScope): Promise<string | null> => (await findTenant(db, scope))?.name ?? null,
    /** For administrators of the installation. */
    anyTenant: createAnyTenant({ ...deps, ...counting, ...life, forgetTenant }),
    stuck: createStuck(deps),
    ensureTenant: createEnsureTenant({ db, clock, audit, deployments: deps.deployments, forgetTenant, forgetMember }),
    /** The newest members of all tenants, for the one who runs the installation. */
    everyMember: (limit: number) => findEveryMember(db, limit),
    /** For the operator's command line: makes the user a member with this role. */
    ensureMember: async ({ tenantId, userId, role }: { readonly tenantId: string; readonly userId: string; readonly role: Role }): Promise<void> => {
      const tenant = await lookup.find(tenantId);
      if (tenant === null) throw new AppError("TENANT_NOT_FOUND", { details: { tenantId } });
      await operatorTx(db, audit)("cli.token", (tx) => upsertMember(tx, tenant, { memberId: newId("mem"), userId, email: null, role }));
      forgetMember(tenantId, userId);
    },
  };
};
export type Tenants = ReturnType<typeof createTenants>;

/** Adds what other features count to what the tenants' table knows. */
const createCounting = ({ db, deployments, counters }: Pick<TenantsDeps, "db" | "deployments" | "counters">) => {
  const countedAll = async (tenants: readonly StoredTenant[], clients: Tx = db): Promise<Tenant[]> => {
    const deploymentsOf = await deployments.countByTenant(
      clients,
      tenants.map(({ tenantId }) => tenantId),
    );
    return Promise.all(
      tenants.map(async (tenant) => ({
        ...tenant,
        deploymentCount: deploymentsOf.get(tenant.tenantId) ?? 0,
        appCount: (await counters.apps?.(clients, tenant)) ?? 0,
        tunnelCount: (await counters.tunnels?.(clients, tenant)) ?? 0,
      })),
    );
  };
  const counted = async (tenant: StoredTenant, clients: Tx = db): Promise<Tenant> => {
    const [shown] = await countedAll([tenant], clients);
    if (shown === undefined) throw new Error("counting one tenant did not return one record");
    return shown;
  };
  return { countedAll, counted };
};

interface HandlersDeps extends TenantsDeps, ReturnType<typeof createCounting> {
  readonly forgetTenant: (tenantId: string) => void;
  readonly forgetMember: (tenantId: string, userId: string) => void;
}
type Own = "create" | "list" | "get" | "update";

const createHandlers = (deps: HandlersDeps): Pick<Handlers<typeof contract.tenants>, Own> => {
  const { db, clock, emit, deployments, ownedTenantsPerUser, beginTrial, countedAll, counted, forgetTenant, forgetMember } = deps;
  return {
    create: async ({ scope, fail, commit }, { name, slug, userId }) => {
      const owner = userOf(scope);
      if (userId !== owner.userId) throw fail("FORBIDDEN", { reason: "user_mismatch" });
      checkSlug(slug);
      const tenantId = newId("ten");
      const durableObjectId = newId("dob");
      return commit(async (tx, afterwards) => {
        await lockUser(tx, userId);
        if ((await countOwned(tx, userId)) >= ownedTenantsPerUser) throw fail("TENANT_LIMIT_REACHED", { limit: ownedTenantsPerUser });
        const created = await insertTenant(tx, { tenantId, name, slug, plan: DEFAULT_PLAN, ownerUserId: userId, durableObjectId });
        if (!created || (await isSlugReserved(tx, slug, { tenantId }, clock.now()))) throw fail("TENANT_SLUG_TAKEN", { slug });
        await upsertMember(tx, { tenantId }, { memberId: newId("mem"), userId, email: owner.email, role: "owner" });
        await deployments.ensureDefault(tx, { tenantId });
        await beginTrial(tx, { tenantId });
        await emit(tx, [happened({ ...scope, tenantId }, contract.tenants.events.created, tenantId, { tenantId, slug })]);
        afterwards(() => forgetMember(tenantId, userId));
        return { tenantId, durableObjectId, name, slug, owner: userId };
      });
    },

    list: async ({ scope }, query) => {
      const { items, ...page } = await pageOfTenants(db, userOf(scope).userId, query);
      return { items: await countedAll(items), ...page };
    },

    get: async ({ scope, fail }, { tenantId }) => {
      const tenant = tenantId === scope.tenantId ? await findTenant(db, scope) : null;
      if (tenant === null) throw fail("TENANT_NOT_FOUND", { tenantId });
      return counted(tenant);
    },

    update: async ({ scope, fail, commit }, { tenantId, name, slug, plan, version }) => {
      const before = tenantId === scope.tenantId ? await findTenant(db, scope) : null;
      if (before === null) throw fail("TENANT_NOT_FOUND", { tenantId });
      if (plan !== undefined && plan !== before.plan) throw fail("PLAN_CHANGE_REQUIRES_BILLING", { plan: before.plan });
      // A form may send the current slug back, even one that has become reserved.
      if (slug !== undefined && slug !== before.slug) checkSlug(slug);
      return commit(async (tx, afterwards) => {
        const changed = await updateTenant(tx, scope, { name, slug, version });
        if (changed === null) throw fail("VERSION_CONFLICT", { currentVersion: (await findTenant(tx, scope))?.version });
        if (changed.slug !== before.slug) {
          if (await isSlugReserved(tx, changed.slug, scope, clock.now())) throw fail("TENANT_SLUG_TAKEN", { slug });
          await reserveSlug(tx, scope, before.slug, clock.now());
        }
        await emit(tx, [happened(scope, contract.tenants.events.updated, changed.tenantId, { tenantId: changed.tenantId, slug: changed.slug })]);
        afterwards(() => forgetTenant(changed.tenantId));
        return counted(changed, tx);
      });
    },
  };
};

const checkSlug = (slug: string): void => {
  if (!isReservedSlug(slug)) return;
  throw new AppError("VALIDATION_FAILED", { details: { reason: "slug_reserved", issues: [{ path: "slug", code: "custom", message: "is reserved" }] } });
};
