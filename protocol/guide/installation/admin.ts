// Guide to the installation's own operations.
import type { Guide } from "../guide.ts";
import { AT, FINGERPRINT, IDS, LATER, tenant } from "../records.ts";

const { agentId, commandId, deviceId, nodeId, tenantId, userId } = IDS;
const ofTenant = { ...tenant, owner: userId, statusSince: AT, limitOverrides: {}, rateLimitOverrides: {} };
const suspended = { ...ofTenant, status: "suspended", statusSince: LATER, statusReason: "unpaid since June" };
const node = {
  nodeId,
  address: "http://10.0.0.11:8080",
  host: "gateway-1",
  pid: 812,
  version: "0.3.0",
  startedAt: AT,
  seenAt: LATER,
  draining: false,
  overloaded: false,
  connections: 4_210,
  ready: 4_208,
};

const flag = {
  key: "loadTests",
  summary: "Tenants may run load tests against this installation",
  default: true,
  value: true,
  tenants: [{ tenantId, enabled: false }],
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
  updateTenant: {
    description:
      "Each field replaces what was there; fields that you leave out stay. The node that you call applies it at once, every other within 5 seconds. A tenant that pays for its plan changes it through billing (409 `PLAN_CHANGE_REQUIRES_BILLING`); a plan that you set ends the tenant's trial.",
    input: { tenantId, plan: "team", limitOverrides: { hosts: 250 }, rateLimitOverrides: { standard: 600 }, notes: "partner, see the contract" },
    output: { ...ofTenant, plan: "team", limitOverrides: { hosts: 250 }, rateLimitOverrides: { standard: 600 }, operatorNotes: "partner, see the contract" },
  },
  stats: {
    description: "Figures of the whole installation, at most 10 seconds old.",
    output: {
      at: AT,
      tenants: { active: 41, suspended: 1 },
      devices: { online: 4_208, offline: 31, provisioning: 2 },
      nodes: [{ nodeId, connections: 4_210, ready: 4_208 }],
      commands: { perMinute: 380, open: { queued: 12, running: 4 }, pastDeadline: 0 },
      outbox: { undispatched: 0, oldestSeconds: 0 },
    },
  },
  listUsers: {
    description: "Lists everybody who is a member of a tenant or has signed in, with the tenants and roles.",
    input: { q: "ana@", page: 1, pageSize: 20 },
    output: { items: [{ userId, email: "ana@example.org", name: "Ana Kim", lastSignInAt: AT, memberships: [{ tenantId, role: "owner" }] }], total: 1 },
  },
  listDevices: {
    description: "Finds a machine by its fingerprint, whichever tenant it belongs to; at most 100. Removed devices are not listed.",
    input: { fingerprint: FINGERPRINT },
    output: { items: [{ deviceId, tenantId, agentId, fingerprint: FINGERPRINT, status: "online", name: "attic", createdAt: AT, lastSeen: LATER }] },
  },
  disconnectDevice: {
    description: "Closes the device's socket on whichever node holds it. The agent comes back by itself.",
    input: { deviceId },
    output: { deviceId, disconnected: true },
  },
  listFlags: { description: "Lists every flag of this release with its value and the tenants that have a value of their own.", output: { items: [flag] } },
  setFlag: {
    description: "Switches a feature for the whole installation, or for one tenant if you name it. Every node applies it within 5 seconds.",
    input: { key: "loadTests", enabled: false, tenantId },
    output: flag,
  },
  listJobs: {
    description: "Lists what runs in the background on every node, with its last run and error there.",
    output: { items: [{ name: "commands.reaper", everySeconds: 2, nodes: [{ nodeId, startedAt: AT, durationMs: 3.2, runs: 410, failures: 0 }] }] },
  },
  runJob: {
    description: "Asks the node that answers to run the job as soon as it can. The list of jobs shows the outcome.",
    input: { name: "commands.reaper" },
    output: { name: "commands.reaper", nodeId, requestedAt: AT },
  },
  listStuck: {
    description:
      "Lists what has waited for longer than it should, over all tenants, with the reason and what you can do: at most 100 of each kind, oldest first.",
    output: {
      items: [
        {
          kind: "command_blocked",
          tenantId,
          id: commandId,
          since: AT,
          reason: "the command before it in its lane is still running",
          whatToDo: "Cancel the command before it, or look at the device.",
          blockedBy: commandId,
        },
      ],
      truncated: false,
    },
  },
  reactivateTenant: { description: "Lifts a suspension. The agents come back by themselves.", input: { tenantId }, output: ofTenant },
};
