// Operations for the people who run the installation: its gateway nodes and its tenants.
import { z } from "zod";
import { ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { Plan, Tenant } from "./tenants.ts";

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
        plan: Plan.optional().describe("Only tenants with this plan."),
        status: z.string().min(1).max(32).optional().describe("Only tenants with this status."),
        q: z.string().min(1).max(100).optional().describe("Only tenants whose name or slug contains this text."),
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
  },
  records: { AdminTenant },
});
