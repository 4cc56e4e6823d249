// Rows of tenants, their members and the deployment that every fresh device falls into.
import { type DeploymentId, isRole, type Plan, type Role, type Tenant, type TenantId, type Window } from "../../../protocol/index.ts";
import type { SqlTx } from "../../core/events.ts";
import type { Membership } from "../../core/lookups.ts";
import type { Overrides, SystemScope, TenantFacts } from "../../core/scope.ts";
import { isUniqueViolation } from "../../platform/db-errors.ts";

interface TenantRow {
  readonly tenant_id: TenantId;
  readonly name: string;
  readonly slug: string;
  readonly plan: Plan;
  readonly status: string;
  readonly durable_object_id: string;
  readonly version: number;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly deployment_count: number;
}

/** What the tenants table and its neighbours know; apps and tunnels are counted by their own rooms. */
export type StoredTenant = Omit<Tenant, "appCount" | "tunnelCount">;

const toTenant = ({
  tenant_id: tenantId,
  durable_object_id: durableObjectId,
  deployment_count: deploymentCount,
  created_at,
  updated_at,
  ...same
}: TenantRow): StoredTenant => ({
  ...same,
  tenantId,
  durableObjectId,
  deploymentCount,
  createdAt: created_at.toISOString(),
  updatedAt: updated_at.toISOString(),
});

const COLUMNS = `t.tenant_id, t.name, t.slug, t.plan, t.status, t.durable_object_id, t.version, t.created_at, t.updated_at,
  (select count(*) from deployments d where d.tenant_id = t.tenant_id) as deployment_count`;

/** One at a time through here until the transaction ends: whoever counts before adding must not be two. */
export const lockUser = async (tx: SqlTx, userId: string): Promise<void> => {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('tenants of ' || $1, 0))", [userId]);
};

export const countOwned = async (tx: SqlTx, userId: string): Promise<number> => {
  const [row] = await tx.query<{ owned: number }>("select count(*) as owned from memberships where user_id = $1 and role = 'owner'", [userId]);
  return row?.owned ?? 0;
};

export interface NewTenant {
  readonly tenantId: TenantId;
  readonly name: string;
  readonly slug: string;
  readonly plan: Plan;
  readonly ownerUserId: string;
  readonly durableObjectId: string;
}

/** False when the slug is taken. */
export const insertTenant = async (tx: SqlTx, { tenantId, name, slug, plan, ownerUserId, durableObjectId }: NewTenant): Promise<boolean> => {
  const rows = await tx.query(
    "insert into tenants (tenant_id, name, slug, plan, owner_user_id, durable_object_id) values ($1, $2, $3, $4, $5, $6) on conflict (slug) do nothing returning tenant_id",
    [tenantId, name, slug, plan, ownerUserId, durableObjectId],
  );
  return rows.length === 1;
};

export interface NewMember {
  readonly memberId: string;
  readonly userId: string;
  readonly email: string | null;
  readonly role: Role;
}

/** Gives the user this role, whatever the user was before. */
export const upsertMember = async (tx: SqlTx, { tenantId }: SystemScope, { memberId, userId, email, role }: NewMember): Promise<void> => {
  await tx.query(
    `insert into memberships as m (member_id, tenant_id, user_id, role, email) values ($1, $2, $3, $5, $4)
     on conflict (tenant_id, user_id) do update set role = excluded.role, email = coalesce(m.email, excluded.email)`,
    [memberId, tenantId, userId, email, role],
  );
};

export const insertDefaultDeployment = async (tx: SqlTx, { tenantId }: SystemScope, deploymentId: DeploymentId): Promise<void> => {
  await tx.query(
    "insert into deployments (deployment_id, tenant_id, name, status, is_default) values ($1, $2, 'default', 'active', true) on conflict (tenant_id, name) do nothing",
    [deploymentId, tenantId],
  );
};

export const findDeployment = async (sql: SqlTx, { tenantId }: SystemScope, deploymentId: string): Promise<DeploymentId | null> => {
  const [row] = await sql.query<{ deployment_id: DeploymentId }>("select deployment_id from deployments where tenant_id = $1 and deployment_id = $2", [
    tenantId,
    deploymentId,
  ]);
  return row?.deployment_id ?? null;
};

export const findTenant = async (sql: SqlTx, { tenantId }: SystemScope): Promise<StoredTenant | null> => {
  const [row] = await sql.query<TenantRow>(`select ${COLUMNS} from tenants t where t.tenant_id = $1`, [tenantId]);
  return row === undefined ? null : toTenant(row);
};

export const pageOfTenants = async (sql: SqlTx, userId: string, { limit, offset }: Window): Promise<{ items: readonly StoredTenant[]; total: number }> => {
  const rows = await sql.query<TenantRow>(
    `select ${COLUMNS} from tenants t join memberships m using (tenant_id) where m.user_id = $1 order by t.created_at desc, t.tenant_id desc limit $2 offset $3`,
    [userId, limit, offset],
  );
  const [count] = await sql.query<{ total: number }>("select count(*) as total from memberships join tenants using (tenant_id) where user_id = $1", [userId]);
  return { items: rows.map(toTenant), total: count?.total ?? 0 };
};

export interface TenantChange {
  readonly name?: string | undefined;
  readonly slug?: string | undefined;
  /** The version that the caller has seen; undefined takes any. */
  readonly version?: number | undefined;
}

export const isSlugTaken = (error: unknown): boolean => isUniqueViolation(error, "tenants_slug_key");

/** Null when the version has moved on; fails as isSlugTaken when another tenant has the slug. */
export const updateTenant = async (tx: SqlTx, { tenantId }: SystemScope, { name, slug, version }: TenantChange): Promise<StoredTenant | null> => {
  const [row] = await tx.query<TenantRow>(
    `update tenants t set name = coalesce($2, t.name), slug = coalesce($3, t.slug), version = t.version + 1, updated_at = now()
     where t.tenant_id = $1 and t.version = coalesce($4, t.version) returning ${COLUMNS}`,
    [tenantId, name ?? null, slug ?? null, version ?? null],
  );
  return row === undefined ? null : toTenant(row);
};

interface FactsRow {
  readonly tenant_id: TenantId;
  readonly slug: string;
  readonly plan: string;
  readonly status: string;
  readonly limit_overrides: Overrides;
  readonly rate_limit_overrides: Overrides;
}

export const findFacts = async (sql: SqlTx, tenantId: string): Promise<TenantFacts | null> => {
  const [row] = await sql.query<FactsRow>("select tenant_id, slug, plan, status, limit_overrides, rate_limit_overrides from tenants where tenant_id = $1", [
    tenantId,
  ]);
  if (row === undefined) return null;
  const { tenant_id, limit_overrides: limitOverrides, rate_limit_overrides: rateLimitOverrides, ...same } = row;
  return { ...same, tenantId: tenant_id, limitOverrides, rateLimitOverrides };
};

export const findSuspended = async (sql: SqlTx, tenantIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await sql.query<{ tenant_id: string }>("select tenant_id from tenants where tenant_id = any($1) and status = 'suspended'", [tenantIds]);
  return new Set(rows.map(({ tenant_id }) => tenant_id));
};

export const findIdBySlug = async (sql: SqlTx, slug: string): Promise<TenantId | null> => {
  const [row] = await sql.query<{ tenant_id: TenantId }>("select tenant_id from tenants where slug = $1", [slug]);
  return row?.tenant_id ?? null;
};

/** The operator's word: no plan limits; with `rates` no rate limits either. Never takes anything back. */
export const liftLimits = async (tx: SqlTx, { tenantId }: SystemScope, lift: { readonly rates: boolean }): Promise<void> => {
  await tx.query(
    `update tenants set limit_overrides = '{"*": null}', rate_limit_overrides = case when $2 then '{"*": null}'::jsonb else rate_limit_overrides end where tenant_id = $1`,
    [tenantId, lift.rates],
  );
};

/** Until the end of the transaction, nobody else counts and adds in this tenant. */
export const lockPlan = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('plan of ' || $1, 0))", [tenantId]);
};

interface MembershipRow {
  readonly tenant_id: TenantId;
  readonly role: string;
  readonly email: string | null;
}

// A role that this release does not know grants the least.
const toMembership = ({ tenant_id: tenantId, role, email }: MembershipRow): Membership => ({ tenantId, role: toRole(role), email });
const toRole = (role: string): Role => (isRole(role) ? role : "viewer");

export const findMembership = async (sql: SqlTx, tenantId: string, userId: string): Promise<Membership | null> => {
  const [row] = await sql.query<MembershipRow>("select tenant_id, role, email from memberships where tenant_id = $1 and user_id = $2", [tenantId, userId]);
  return row === undefined ? null : toMembership(row);
};

export const listMemberships = async (sql: SqlTx, userId: string): Promise<readonly Membership[]> =>
  (await sql.query<MembershipRow>("select tenant_id, role, email from memberships where user_id = $1 order by created_at, member_id limit 100", [userId])).map(
    toMembership,
  );
