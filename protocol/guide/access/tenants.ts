// Guide to tenants.
import type { Guide } from "../guide.ts";
import { AT, IDS, LATER, tenant } from "../records.ts";

const { tenantId, userId, deviceId } = IDS;
const settings = {
  tenantId,
  offlineAfterSeconds: 300,
  defaultTimezone: "Europe/Lisbon",
  allowedReturnHosts: ["portal.example.com"],
  setupHidden: false,
  version: 2,
  updatedAt: LATER,
};
const counts = { devices: 2, apps: 0, deployments: 1, backups: 0 };

const configuration = { duration: 30, concurrency: 10, endpoints: ["/v1/devices?pageSize=20"] };
const latencyMs = { p50: 4.1, p95: 9.7, p99: 21, max: 48 };
const running = { outcome: "running", progress: 0.4, requests: 2_400, failed: 0, requestsPerSecond: 200, latencyMs, errors: {}, endpoints: [] };
const loadTest = { status: "running", tenantId, lastRun: AT, results: running, configuration } as const;
const counted = { requests: 6_000, failed: 2, latencyMs };
const completed = {
  ...loadTest,
  status: "completed",
  results: {
    ...running,
    ...counted,
    outcome: "finished",
    progress: 1,
    finishedAt: LATER,
    errors: { SERVICE_UNAVAILABLE: 2 },
    endpoints: [{ endpoint: "/v1/devices?pageSize=20", operation: "devices.list", ...counted }],
  },
};

export const tenants: Guide<"tenants"> = {
  create: {
    description:
      "The caller becomes the owner: `userId` must be the caller's own id, the `subject` of `GET /auth/me`. A slug is part of URLs and belongs to one tenant only.",
    input: { name: "Acme", slug: "acme", userId },
    output: { tenantId, durableObjectId: tenantId, name: "Acme", slug: "acme", owner: userId },
  },
  list: { description: "Lists every tenant that the caller is a member of.", input: { page: 1, pageSize: 20 }, output: { items: [tenant], total: 1 } },
  get: { description: "Returns the tenant with its plan and the numbers of its resources.", input: { tenantId }, output: tenant },
  update: {
    description:
      "Changes name and slug; the plan can only be changed through billing. If you send `version` (or `If-Match`) and somebody changed the tenant since you read it, the response is 409 `VERSION_CONFLICT` and nothing changes.",
    input: { tenantId, name: "Acme" },
    output: tenant,
  },
  remove: {
    description:
      "Only the owner may do this, and confirms it with the tenant's slug. From then on the tenant can be read but not changed, and its agents' sockets close. After 30 days (the installation may set another time) the gateway removes all of its data. Until then `POST /tenants/{tenantId}/restore` cancels the deletion.",
    input: { tenantId, confirm: "acme", force: true },
  },
  restore: { description: "Makes a tenant in `pending_deletion` active again; its agents come back by themselves.", input: { tenantId }, output: tenant },
  settings: { description: "Returns the settings, or their defaults if nobody has changed any.", input: { tenantId }, output: settings },
  updateSettings: {
    description: "Changes the settings that you send and leaves the others. `version` (or `If-Match`) refuses the change if somebody else was faster.",
    input: { tenantId, offlineAfterSeconds: 300 },
    output: settings,
  },
  dashboard: {
    description: "Returns what a start page shows: numbers of resources by their state, and the newest events.",
    input: { tenantId },
    output: {
      deployments: { total: 1, active: 1, failed: 0 },
      apps: { total: 0, running: 0, stopped: 0 },
      devices: { total: 2, online: 1, offline: 1, provisioning: 0 },
      recentActivity: [{ eventId: "evt_01J9ZQD4F6H8K0M2P4R6T8W0Y3", type: "device.online", subjectId: deviceId, at: AT, data: { deviceId, status: "online" } }],
      counts,
    },
  },
  summary: { description: "Returns the numbers of the tenant's resources.", input: { tenantId }, output: counts },
  metrics: {
    description:
      "The gateway samples each device's newest heartbeat once a minute and adds the samples up to hours and days. By default it keeps minutes for 60 hours, hours for 60 days and days for 400 days, and answers a range with 60 to 300 buckets. `health` counts devices that reported, `activity` counts events, `resources` shows percent of CPU, memory and disk.",
    input: { tenantId, metric: "resources", range: "24h" },
    output: {
      metric: "resources",
      tenantId,
      range: "24h",
      buckets: [{ timestamp: AT, count: 5, cpu: { avg: 12.5, max: 40 }, memory: { avg: 40, max: 41 }, disk: { avg: 70, max: 70 } }],
      summary: { bucketSeconds: 300, samples: 5, newest: { cpu: { avg: 12.5, max: 40 } } },
    },
  },
  loadTest: {
    description: "Returns the test that runs, with its progress, or the last one with its results. `results.outcome` says how it ended.",
    input: { tenantId },
    output: completed,
  },
  startLoadTest: {
    description:
      "Calls reads of this installation in your name, in turn, from the node that answers. A test makes at most 200 calls a second and each tenant runs one at a time; its calls do not count against your rate limits. It ends early if you lose the right to run it. Paths that wait, stream, reveal a secret or concern pairing codes are refused.",
    input: { tenantId, ...configuration },
    output: { ...loadTest, results: { ...running, progress: 0, requests: 0, requestsPerSecond: 0 } },
  },
  cancelLoadTest: { description: "The test ends within some seconds and keeps what it has measured.", input: { tenantId }, output: loadTest },
};
