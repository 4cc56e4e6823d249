// Tenants: their life from creation to deletion, settings, dashboard and metrics. The creator becomes the owner.
import { z } from "zod";
import { Version } from "../../kit/bounds.ts";
import { event } from "../../kit/event.ts";
import { ref, TenantId } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";
import { listQuery, paged } from "../../kit/page.ts";
import { Dashboard, ResourceCounts } from "../../records/dashboard.ts";
import { LoadTest, LoadTestInput } from "../../records/load-test.ts";
import { MetricRange, TENANT_METRICS, TenantMetrics } from "../../records/metrics.ts";

const Timestamp = z.iso.datetime();
export const PLANS = ["free", "starter", "pro", "team", "business"] as const;
export const Plan = z.enum(PLANS);
export type Plan = z.infer<typeof Plan>;
export const Slug = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{1,38}[a-z0-9])$/, "must be 3 to 40 characters of a-z, 0-9 and -, and must not begin or end with -")
  .describe("3 to 40 characters. Names that could pass for the platform itself, such as admin, api and www, are reserved.");
const Name = z.string().trim().min(1).max(100);

const isTimeZone = (name: string): boolean => {
  try {
    return Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "" && !/^[+-]/.test(name);
  } catch {
    return false;
  }
};

export const Tenant = z.object({
  tenantId: TenantId,
  name: z.string(),
  slug: z.string(),
  plan: Plan,
  status: z.string(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  durableObjectId: z.string(),
  deploymentCount: z.int(),
  appCount: z.int(),
  tunnelCount: z.int(),
  deleteAfter: Timestamp.optional().describe("When a tenant in `pending_deletion` is deleted for good."),
});
export type Tenant = z.infer<typeof Tenant>;

export const TimeZone = z.string().max(64).refine(isTimeZone, "must be an IANA time zone, such as Europe/Lisbon");
const ReturnHost = z
  .string()
  .max(253)
  .regex(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/, "must be a host name in lower case, with a port if it is not 443");
export const TenantSettings = z.object({
  tenantId: TenantId,
  offlineAfterSeconds: z
    .int()
    .min(60)
    .max(3_600)
    .nullable()
    .describe("How long a device may be silent before it counts as offline, if that is longer than the installation's own time. `null`: the installation's."),
  defaultTimezone: z.string(),
  allowedReturnHosts: z.array(z.string()).describe("Hosts that `return_to` may name in pairing, beside the installation's."),
  setupHidden: z.boolean().describe("Nobody wants to see the list of first steps any more."),
  version: z.int(),
  updatedAt: Timestamp,
});
export type TenantSettings = z.infer<typeof TenantSettings>;

const one = z.strictObject({ tenantId: ref("ten") });
const TenantEvent = z.object({ tenantId: TenantId, slug: z.string() });

export const tenants = group({
  tag: "Tenants",
  operations: {
    create: mutation({
      summary: "Create a tenant owned by the caller",
      rest: ["POST /tenants"],
      auth: ["user"],
      permission: "self",
      tenancy: "none",
      status: 201,
      location: "/tenants/{tenantId}",
      input: z.strictObject({ name: Name, slug: Slug, userId: z.string().min(1).max(255).describe("The owner; must be the caller.") }),
      output: z.object({ tenantId: TenantId, durableObjectId: z.string(), name: z.string(), slug: z.string(), owner: z.string() }),
      errors: ["TENANT_SLUG_TAKEN", "TENANT_LIMIT_REACHED", "FORBIDDEN"],
    }),
    list: query({
      summary: "List the caller's tenants",
      rest: ["GET /tenants"],
      auth: ["user"],
      permission: "self",
      tenancy: "none",
      list: "page",
      input: listQuery({ sort: ["createdAt", "name"], by: "-createdAt" }),
      output: paged(Tenant),
    }),
    get: query({
      summary: "Get a tenant",
      rest: ["GET /tenants/{tenantId}"],
      auth: ["user", "apiKey"],
      permission: "tenant:read",
      input: one,
      output: Tenant,
      errors: ["TENANT_NOT_FOUND"],
    }),
    update: mutation({
      summary: "Update a tenant",
      rest: ["PATCH /tenants/{tenantId}"],
      auth: ["user", "apiKey"],
      permission: "tenant:update",
      input: one.extend({ name: Name.optional(), slug: Slug.optional(), plan: Plan.optional(), version: Version.optional() }),
      output: Tenant,
      errors: ["TENANT_NOT_FOUND", "TENANT_SLUG_TAKEN", "PLAN_CHANGE_REQUIRES_BILLING", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      summary: "Schedule a tenant's deletion",
      rest: ["DELETE /tenants/{tenantId}"],
      auth: ["user"],
      permission: "tenant:delete",
      whileSuspended: true,
      status: 204,
      input: one.extend({
        confirm: z.string().max(64).describe("The tenant's slug."),
        force: z.boolean().default(false).describe("Delete although the tenant still has devices or apps."),
      }),
      output: z.null(),
      errors: ["TENANT_NOT_FOUND", "TENANT_NOT_EMPTY", "INVALID_STATE_TRANSITION"],
    }),
    restore: mutation({
      summary: "Cancel a tenant's scheduled deletion",
      rest: ["POST /tenants/{tenantId}/restore"],
      auth: ["user"],
      permission: "tenant:delete",
      whileSuspended: true,
      input: one,
      output: Tenant,
      errors: ["TENANT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
    settings: query({
      summary: "Get a tenant's settings",
      rest: ["GET /tenants/{tenantId}/settings"],
      auth: ["user", "apiKey"],
      permission: "tenant:update",
      input: one,
      output: TenantSettings,
      errors: ["TENANT_NOT_FOUND"],
    }),
    updateSettings: mutation({
      summary: "Update a tenant's settings",
      rest: ["PATCH /tenants/{tenantId}/settings"],
      auth: ["user", "apiKey"],
      permission: "tenant:update",
      input: one.extend({
        offlineAfterSeconds: TenantSettings.shape.offlineAfterSeconds.optional(),
        defaultTimezone: TimeZone.optional(),
        allowedReturnHosts: z.array(ReturnHost).max(20).optional(),
        setupHidden: TenantSettings.shape.setupHidden.optional(),
        version: Version.optional(),
      }),
      output: TenantSettings,
      errors: ["TENANT_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    dashboard: query({
      summary: "Get a tenant's dashboard",
      rest: ["GET /tenants/{tenantId}/dashboard"],
      auth: ["user", "apiKey"],
      permission: "tenant:read",
      input: one,
      output: Dashboard,
      errors: ["TENANT_NOT_FOUND"],
    }),
    summary: query({
      summary: "Count a tenant's resources",
      rest: ["GET /tenants/{tenantId}/summary"],
      auth: ["user", "apiKey"],
      permission: "tenant:read",
      input: one,
      output: ResourceCounts,
      errors: ["TENANT_NOT_FOUND"],
    }),
    metrics: query({
      summary: "Get a tenant's metrics in buckets",
      rest: ["GET /tenants/{tenantId}/metrics"],
      auth: ["user", "apiKey"],
      permission: "tenant:read",
      input: one.extend({ metric: z.enum(TENANT_METRICS).default("health").describe("What to count."), range: MetricRange }),
      output: TenantMetrics,
      errors: ["TENANT_NOT_FOUND"],
    }),
    loadTest: query({
      summary: "Get the tenant's latest load test",
      rest: ["GET /tenants/{tenantId}/load-test"],
      auth: ["user"],
      permission: "tenant:update",
      input: one,
      output: LoadTest,
      errors: ["TENANT_NOT_FOUND"],
    }),
    startLoadTest: mutation({
      summary: "Start a load test",
      rest: ["POST /tenants/{tenantId}/load-test"],
      auth: ["user"],
      permission: "tenant:update",
      status: 201,
      input: one.extend(LoadTestInput),
      output: LoadTest,
      errors: ["TENANT_NOT_FOUND", "LOAD_TEST_RUNNING", "FORBIDDEN", "VALIDATION_FAILED"],
    }),
    cancelLoadTest: mutation({
      summary: "Cancel the running load test",
      rest: ["DELETE /tenants/{tenantId}/load-test"],
      auth: ["user"],
      permission: "tenant:update",
      input: one,
      output: LoadTest,
      errors: ["TENANT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
  },
  events: {
    loadTestCompleted: event(
      "load_test.completed",
      z.object({ tenantId: TenantId, outcome: z.string(), requests: z.int(), failed: z.int() }),
      "A load test ended",
    ),
    created: event("tenant.created", TenantEvent, "A tenant was created"),
    updated: event("tenant.updated", TenantEvent, "A tenant or its settings were updated"),
    suspended: event("tenant.suspended", TenantEvent.extend({ reason: z.string() }), "An administrator suspended a tenant"),
    reactivated: event("tenant.reactivated", TenantEvent, "An administrator reactivated a tenant"),
    deletionScheduled: event("tenant.deletion_scheduled", TenantEvent.extend({ deleteAfter: Timestamp }), "A tenant's deletion was scheduled"),
    restored: event("tenant.restored", TenantEvent, "A tenant's scheduled deletion was canceled"),
    deleted: event("tenant.deleted", TenantEvent, "A tenant was deleted; its data is being removed"),
  },
  records: { LoadTest, TenantSettings, TenantDashboard: Dashboard, ResourceCounts, TenantMetrics },
});
