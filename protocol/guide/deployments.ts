// Guide to deployments.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, LOG_LINE, shownWithActors } from "./records.ts";

const { appId, commandId, deploymentId, deviceId, tenantId, userId } = IDS;
const configuration = { port: 8_701, maxKeys: 10_000 };
const deployment = {
  deploymentId,
  tenantId,
  name: "store",
  status: "active",
  runtime: "process",
  isDefault: false,
  template: "key-value",
  templateVersion: "1.0.0",
  deviceId,
  appId,
  configuration,
  revision: 1,
  currentRevision: 1,
  failure: null,
  commandId,
  timeoutSeconds: 900,
  createdBy: `user:${userId}`,
  version: 4,
  createdAt: AT,
  updatedAt: LATER,
};
const changing = (status: string, change: object = {}) => ({ ...deployment, status, ...change });
const next = { port: 8_701, maxKeys: 500 };
const list = { items: [shownWithActors(deployment)], total: 1 };
const dashboard = { from: "now-24h", to: "now" };

export const deployments: Guide<"deployments"> = {
  list: { description: "Lists the tenant's deployments, newest first.", input: { status: ["failed"] }, output: list },
  listOfTenant: { description: "The same as `GET /deployments`, for the caller's own tenant.", input: { tenantId }, output: list },
  wait: {
    description:
      "Answers as soon as the deployment has one of these states, and otherwise at the end of `timeout` with the deployment as it is. A call that waits counts as a live stream of its caller.",
    input: { deploymentId, status: ["active", "failed"], timeout: 30 },
    output: shownWithActors(deployment),
  },
  get: {
    description: "`status` follows from what the agent has done: `queued` until it begins, `deploying`, then `active` or `failed` with the reason.",
    input: { deploymentId },
    output: shownWithActors(deployment),
  },
  create: {
    description:
      "Orders the app from the device's agent and answers at once. Name the template with `appName` or `appId`. Without `deviceId` the deployment stays `pending` until somebody names its device; without a template it is a group that devices can join.",
    input: { name: "store", appName: "key-value", deviceId, configuration: { maxKeys: 10_000 } },
    output: changing("queued", { currentRevision: null, version: 2, updatedAt: AT }),
  },
  change: {
    description: "Renames, starts, stops or cancels it, or names the device of one that waits for it.",
    input: { deploymentId, status: "stopped" },
    output: changing("stopping"),
  },
  remove: {
    description: "It is `deleting` until its agent has removed the app. The default deployment, and one that devices or enrollment tokens belong to, stays.",
    input: { deploymentId, keepVolumes: true },
  },
  redeploy: {
    description:
      "Makes a new revision and deploys it. If the update does not become healthy, the agent restores the revision before by itself, and the deployment becomes `active` in that one, with `failure` telling why.",
    input: { deploymentId, configuration: { maxKeys: 500 } },
    output: changing("updating", { revision: 2, configuration: next }),
  },
  stop: { description: "Stops the app; its data stays.", input: { deploymentId }, output: changing("stopping") },
  start: { description: "Starts a deployment that was stopped or failed.", input: { deploymentId }, output: changing("queued") },
  cancel: {
    description: "Cancels the command and answers; the deployment is `cancelled` when the command has ended, and the device is cleaned up.",
    input: { deploymentId },
    output: changing("cancelling", { currentRevision: null }),
  },
  rollback: {
    description: "Deploys an earlier revision again, as a new revision.",
    input: { deploymentId, toRevision: 1 },
    output: changing("rolling_back", { revision: 3, currentRevision: 2 }),
  },
  plan: {
    description: "Compares what would be deployed with what is, and changes nothing.",
    input: { deploymentId, configuration: { maxKeys: 500 } },
    output: { deploymentId, action: "update", changes: [{ path: "configuration.maxKeys", from: 10_000, to: 500 }], drift: false, revision: 2 },
  },
  listRevisions: {
    description: "Revisions never change.",
    input: { deploymentId },
    output: {
      items: [
        {
          deploymentId,
          revision: 1,
          template: "key-value",
          templateVersion: "1.0.0",
          configuration,
          rolledBackTo: null,
          createdBy: `user:${userId}`,
          createdAt: AT,
        },
      ].map(shownWithActors),
      total: 1,
    },
  },
  listApps: {
    description: "A deployment has one app, or none yet.",
    input: { deploymentId },
    output: { items: [{ appId, appName: "Key-value store", deploymentId, status: "running", configuration }] },
  },
  logs: {
    description: "The same as `GET /apps/{appId}/logs`, for the deployment's app. Without an app there are no lines.",
    input: { deploymentId, tail: 50 },
    output: { lines: [LOG_LINE], truncated: false },
  },
  followLogs: {
    description: "The same as `GET /apps/{appId}/logs/stream`, for the deployment's app.",
    input: { deploymentId },
    output: { lines: [LOG_LINE], skipped: 0, notice: null },
  },
  timeline: {
    description: "Each change of the state, with its cause, and the command whose end comes next.",
    input: { deploymentId },
    output: {
      items: [
        { at: AT, from: null, to: "pending", by: `user:${userId}`, revision: 0, commandId: null, reason: null },
        { at: AT, from: "pending", to: "queued", by: `user:${userId}`, revision: 1, commandId, reason: null },
      ].map(shownWithActors),
      waitsFor: { commandId, deviceId },
    },
  },
  dashboard: {
    description: "Describes the dashboard that the export contains.",
    input: { deploymentId },
    output: {
      deploymentId,
      tenantId,
      dashboardUid: "mooring-01j9zq2k7r4t6w8y0a3c5e7g9j",
      dashboardTitle: "Deployment store",
      dashboardTags: ["mooring", "key-value"],
      timeRange: dashboard,
      panelCount: 4,
      templateVariables: 2,
    },
  },
  exportDashboard: {
    description: "Import `dashboard` into Grafana; its data source is the Prometheus that reads the gateway's metrics.",
    input: { deploymentId },
    output: { deploymentId, exportedAt: AT, dashboard: { uid: "mooring-01j9zq2k7r4t6w8y0a3c5e7g9j", title: "Deployment store", time: dashboard, panels: [] } },
  },
};
