// Operations for the people who run the installation: its gateway nodes and its tenants.
import { z } from "zod";
import { Version } from "../../kit/bounds.ts";
import { DeviceId, ref } from "../../kit/ids.ts";
import { group, mutation, query } from "../../kit/operation.ts";
import { listQuery, paged } from "../../kit/page.ts";
import {
  AdminDevice,
  AdminUser,
  BackgroundJob,
  FeatureFlag,
  InstallationStats,
  LimitOverrides,
  RateLimitOverrides,
  STUCK_KINDS,
  StuckItem,
} from "../../records/admin.ts";
import { Plan, Tenant } from "../access/tenants.ts";

const Timestamp = z.iso.datetime();
export const GatewayNode = z.object({
  nodeId: z.string(),
  address: z.string().describe("The public URL that the node announces."),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  startedAt: Timestamp,
  seenAt: Timestamp,
  draining: z.boolean(),
  overloaded: z.boolean().describe("True while the node is overloaded and refuses new agents."),
  connections: z.int().describe("Open agent sockets."),
  ready: z.int().describe("Sockets whose agent has completed the handshake."),
});
export type GatewayNode = z.infer<typeof GatewayNode>;

export const AdminTenant = Tenant.extend({
  owner: z.string(),
  statusSince: Timestamp,
  statusReason: z.string().optional().describe("Why an administrator suspended the tenant."),
  limitOverrides: LimitOverrides.describe("Figures in place of the plan's, by resource; `null` lifts a limit, `*` stands for every resource."),
  rateLimitOverrides: RateLimitOverrides.describe("Figures in place of the rate limits, by bucket; `null` lifts a limit, `*` stands for every bucket."),
  operatorNotes: z.string().optional().describe("For the people who run the installation; members never see it."),
});
export type AdminTenant = z.infer<typeof AdminTenant>;

const oneTenant = z.strictObject({ tenantId: ref("ten") });
const common = { auth: ["user"], permission: "platform", tenancy: "none" } as const;

export const admin = group({
  tag: "Administration",
  operations: {
    listNodes: query({
      ...common,
      summary: "List the live gateway nodes",
      rest: ["GET /admin/nodes"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(GatewayNode) }),
    }),
    drainNode: mutation({
      ...common,
      summary: "Drain a node",
      description: "The node stops accepting sockets, reports that it is not ready, and moves its agents to other nodes. It keeps running until you stop it.",
      rest: ["POST /admin/nodes/{nodeId}/drain"],
      input: z.strictObject({ nodeId: z.string().min(1).max(64).describe("The node's id, as in the list of nodes.") }),
      output: GatewayNode,
      errors: ["NODE_NOT_FOUND"],
    }),
    listTenants: query({
      ...common,
      summary: "List all tenants",
      rest: ["GET /admin/tenants"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "name", "slug", "statusSince"],
        by: "-createdAt",
        filters: {
          plan: Plan.optional().describe("Only tenants with this plan."),
          status: z.string().min(1).max(32).optional().describe("Only tenants with this status."),
          q: z.string().min(1).max(100).optional().describe("Only tenants whose name or slug contains this text."),
        },
      }),
      output: paged(AdminTenant),
    }),
    getTenant: query({
      ...common,
      summary: "Get any tenant",
      rest: ["GET /admin/tenants/{tenantId}"],
      input: oneTenant,
      output: AdminTenant,
      errors: ["TENANT_NOT_FOUND"],
    }),
    suspendTenant: mutation({
      ...common,
      summary: "Suspend a tenant",
      rest: ["POST /admin/tenants/{tenantId}/suspend"],
      input: oneTenant.extend({ reason: z.string().trim().min(1).max(500).describe("The tenant's members see it with each refused change.") }),
      output: AdminTenant,
      errors: ["TENANT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
    reactivateTenant: mutation({
      ...common,
      summary: "Reactivate a suspended tenant",
      rest: ["POST /admin/tenants/{tenantId}/reactivate"],
      input: oneTenant,
      output: AdminTenant,
      errors: ["TENANT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
    updateTenant: mutation({
      ...common,
      summary: "Change a tenant's plan, limits or notes",
      rest: ["PATCH /admin/tenants/{tenantId}"],
      input: oneTenant.extend({
        plan: Plan.optional(),
        limitOverrides: LimitOverrides.optional().describe("Replaces all of the tenant's overrides of plan limits."),
        rateLimitOverrides: RateLimitOverrides.optional().describe("Replaces all of the tenant's overrides of rate limits."),
        notes: z.string().trim().max(4_000).nullable().optional(),
        version: Version.optional(),
      }),
      output: AdminTenant,
      errors: ["TENANT_NOT_FOUND", "VERSION_CONFLICT", "PLAN_CHANGE_REQUIRES_BILLING"],
    }),
    stats: query({
      ...common,
      summary: "Count the installation's tenants, devices, sockets and commands",
      rest: ["GET /admin/stats"],
      input: z.strictObject({}),
      output: InstallationStats,
    }),
    listUsers: query({
      ...common,
      summary: "Search the users of all tenants",
      rest: ["GET /admin/users"],
      list: "page",
      input: listQuery({
        sort: ["userId"],
        by: "userId",
        filters: { q: z.string().min(1).max(255).optional().describe("Only users whose id, name or email address contains this text.") },
      }),
      output: paged(AdminUser),
    }),
    listDevices: query({
      ...common,
      summary: "Find the devices of all tenants that have a fingerprint",
      rest: ["GET /admin/devices"],
      list: "plain",
      input: z.strictObject({ fingerprint: z.string().min(1).max(256).describe("The machine's fingerprint.") }),
      output: z.object({ items: z.array(AdminDevice) }),
    }),
    disconnectDevice: mutation({
      ...common,
      summary: "Close any device's socket",
      rest: ["POST /admin/devices/{deviceId}/disconnect"],
      input: z.strictObject({ deviceId: ref("dev") }),
      output: z.object({ deviceId: DeviceId, disconnected: z.boolean() }),
      errors: ["DEVICE_NOT_FOUND"],
    }),
    listFlags: query({
      ...common,
      summary: "List the feature flags",
      rest: ["GET /admin/flags"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(FeatureFlag) }),
    }),
    setFlag: mutation({
      ...common,
      summary: "Set a feature flag",
      rest: ["PUT /admin/flags/{key}", "PUT /admin/flags"],
      input: z.strictObject({
        key: z.string().min(1).max(64).describe("The flag's key, as in the list of flags."),
        enabled: z.boolean().nullable().describe("`null` takes the value back: the installation's, or for a tenant its own."),
        tenantId: ref("ten").optional(),
      }),
      output: FeatureFlag,
      errors: ["FLAG_NOT_FOUND", "TENANT_NOT_FOUND"],
    }),
    listJobs: query({
      ...common,
      summary: "List the background jobs with their last runs",
      rest: ["GET /admin/jobs"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(BackgroundJob) }),
    }),
    runJob: mutation({
      ...common,
      summary: "Run a background job now",
      rest: ["POST /admin/jobs/{name}/run"],
      input: z.strictObject({ name: z.string().min(1).max(64).describe("The job's name, as in the list of jobs.") }),
      output: z.object({ name: z.string(), nodeId: z.string(), requestedAt: Timestamp }),
      errors: ["JOB_NOT_FOUND"],
    }),
    listStuck: query({
      ...common,
      summary: "List everything that is stuck",
      rest: ["GET /admin/stuck"],
      list: "plain",
      input: z.strictObject({ kind: z.enum(STUCK_KINDS).optional().describe("Only this kind."), tenantId: ref("ten").optional() }),
      output: z.object({ items: z.array(StuckItem), truncated: z.boolean().describe("There is more of some kind than the response lists.") }),
    }),
  },
  records: { AdminTenant, InstallationStats, AdminUser, AdminDevice, FeatureFlag, BackgroundJob, StuckItem },
});
