// Guide to the installation's own operations.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, tenant } from "./records.ts";

const { nodeId, tenantId, userId } = IDS;
const ofTenant = { ...tenant, owner: userId, statusSince: AT };
const suspended = { ...ofTenant, status: "suspended", statusSince: LATER, statusReason: "unpaid since June" };
const node = {
  nodeId,
  address: "http://10.0.0.11:8080",
  host: "gateway-1",
  pid: 812,
  version: "0.2.0",
  startedAt: AT,
  seenAt: LATER,
  draining: false,
  overloaded: false,
  connections: 4_210,
  ready: 4_208,
};

export const admin: Guide<"admin"> = {
  listNodes: {
    description: "Lists every node that reported recently, with its sockets and state. Only users named in `ADMIN_USERS` may call this.",
    output: { items: [node] },
  },
  drainNode: { input: { nodeId }, output: { ...node, draining: true } },
  listTenants: {
    description: "Lists the tenants of all users, newest first.",
    input: { status: "suspended", page: 1, pageSize: 20 },
    output: { items: [suspended], total: 1 },
  },
  getTenant: { description: "Returns a tenant, whoever its members are.", input: { tenantId }, output: ofTenant },
  suspendTenant: {
    description:
      "The tenant can still be read. Every change is refused with 403 `TENANT_SUSPENDED`, nobody can queue commands, and the sockets of its agents close; their heartbeats over REST are still accepted. Every node applies it within 5 seconds.",
    input: { tenantId, reason: "unpaid since June" },
    output: suspended,
  },
  reactivateTenant: { description: "Lifts a suspension. The agents come back by themselves.", input: { tenantId }, output: ofTenant },
};
