// Guide to apps and the catalogue.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, LOG_LINE, shownWithActors } from "./records.ts";

const { appId, commandId, deviceId, tenantId, userId } = IDS;
const snapshotId = "snp_01J9ZQ6T8W0Y2A4C6E8G0J2M4P";

const template = {
  id: "key-value",
  name: "Key-value store",
  tagline: "A small key-value server with an HTTP interface",
  description: "Keeps texts under names in a file on the device. Reads and writes are plain HTTP calls with a token. It needs no container.",
  version: "1.0.0",
  kind: "process",
  categories: ["databases", "development"],
  icon: "database",
  hue: "red",
  minPlan: "free",
  available: true,
  fits: {
    devices: 1,
    total: 3,
    only: { deviceId, name: "attic" },
    lacking: { architecture: 0, runtime: 2, memory: 1, disk: 0 },
  },
  installed: [{ appId, name: "Key-value store", deviceId, deviceName: "attic", status: "running", updateAvailable: false }],
  installedCount: 1,
  developer: "Mooring",
  license: "Apache-2.0",
  website: null,
  sourceUrl: null,
  architectures: ["amd64", "arm64", "arm"],
  requirements: { memoryMB: 96, diskGB: 0.1 },
  images: [],
  ports: [{ name: "http", protocol: "tcp", config: "port", default: 8_701 }],
  volumes: ["data"],
  configSchema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { port: { type: "integer", title: "Port", default: 8_701, minimum: 1_024, maximum: 65_535 } },
    required: [],
    additionalProperties: false,
  },
  secrets: [{ name: "KV_TOKEN", title: "Token", description: "Callers send it as a bearer token.", required: true, generated: true }],
  healthPath: "/health",
  upgradeNotes: null,
};

const config = { port: 8_701, maxKeys: 10_000 };
const report = { revision: 1, state: "running", health: "healthy", restarts: 0, cpuPercent: 0.4, memoryBytes: 52_428_800, ports: { http: 8_701 } };
const app = {
  id: appId,
  appId,
  tenantId,
  deploymentId: null,
  deviceId,
  appType: "key-value",
  templateVersion: "1.0.0",
  name: "Key-value store",
  status: "running",
  config,
  revision: 1,
  desiredState: "running",
  secretsVersion: 1,
  secretKeys: ["KV_TOKEN"],
  reported: report,
  reportedAt: LATER,
  drift: false,
  driftSince: null,
  failure: null,
  commandId,
  createdBy: `user:${userId}`,
  version: 3,
  createdAt: AT,
  updatedAt: LATER,
};
const pending = { ...app, status: "pending", reported: null, reportedAt: null, version: 1, updatedAt: AT };
const changing = (status: string, change: object = {}) => ({ ...app, status, ...change });
const snapshot = {
  snapshotId,
  appId,
  revision: 1,
  appType: "key-value",
  templateVersion: "1.0.0",
  config,
  automatic: false,
  metadata: { reason: "before the move" },
  createdBy: `user:${userId}`,
  createdAt: AT,
};
const updated = { config: { port: 8_701, maxKeys: 500 }, revision: 2 };

const details = {
  ...shownWithActors(app),
  icon: "database",
  hue: "red",
  addresses: [{ kind: "lan", name: "http", url: "http://192.168.1.20:8701/", reachable: true }],
  runningSince: LATER,
  update: null,
  lastBackupAt: AT,
};

export const apps: Guide<"apps"> = {
  templates: {
    description:
      "Lists the applications that devices of the tenant can run, by id. Those that the tenant's plan does not allow are listed too, with the plan that they need. Each says how many of the caller's devices can run it, by what they have reported, and where it is installed.",
    input: { category: "databases", available: true, pageSize: 20 },
    output: { items: [template] },
  },
  template: {
    description: "Returns an application of the catalogue, with the JSON Schema of its configuration and the secrets that it needs.",
    input: { templateId: "key-value" },
    output: template,
  },
  list: {
    description: "Lists the tenant's apps, newest first. A caller who is limited to some devices sees the apps on those.",
    input: { deviceId, status: ["running", "error"] },
    output: { items: [details], total: 1 },
  },
  wait: {
    description:
      "Answers as soon as the app has one of these states, and otherwise at the end of `timeout` with the app as it is. A call that waits counts as a live stream of its caller.",
    input: { appId, status: ["running", "error"], timeout: 30 },
    output: details,
  },
  get: {
    description:
      "`status` follows from what the agent has done. `drift` tells that the agent reported something else than what should be, although no command is open.",
    input: { appId },
    output: details,
  },
  timeline: {
    description: "Each change of the state, with its cause, and the command whose end comes next.",
    input: { appId },
    output: {
      items: [
        { at: AT, from: null, to: "pending", by: `user:${userId}`, revision: 1, commandId, reason: null },
        { at: LATER, from: "pending", to: "installing", by: `user:${userId}`, revision: 1, commandId, reason: null },
      ].map(shownWithActors),
      waitsFor: { commandId, deviceId },
    },
  },
  metrics: {
    description:
      "Returns processor time, memory and response times of the last day at most, from one report of its agent a minute. A bucket without samples has `count` 0 and no figures.",
    input: { appId, range: "1h" },
    output: {
      appId,
      range: "1h",
      bucketSeconds: 300,
      buckets: [
        {
          timestamp: AT,
          count: 5,
          cpuPercent: { avg: 0.4, max: 1.2 },
          memoryBytes: { avg: 52_428_800, max: 54_525_952 },
          responseMs: { avg: 12.5, max: 20 },
        },
      ],
    },
  },
  logs: {
    description:
      "Asks the device's agent for the end of the log and waits up to 15 seconds for it. The gateway stores none of it. An app that is not on its device has no lines.",
    input: { appId, tail: 50 },
    output: { lines: [LOG_LINE], truncated: false },
  },
  followLogs: {
    description:
      "Sends lines as the app writes them, in batches, until you close the stream. The first item comes at once. `skipped` counts lines that are missing, because they came faster than you read. While the device is offline the stream says so and waits; for an app that is not on its device it ends. Open it before you read the end of the log, so that no line falls between.",
    input: { appId },
    output: { lines: [LOG_LINE], skipped: 0, notice: null },
  },
  create: {
    description:
      "Orders the app from the device's agent and answers at once; follow `status` or the event `app.installed`. Secrets that the template marks as generated get a random value unless you give one. A configuration that does not fit answers 422 `APP_CONFIG_INVALID` with the path of each fault.",
    input: { appType: "key-value", deviceId, config: { maxKeys: 10_000 } },
    output: pending,
  },
  change: {
    description:
      "A new configuration replaces the old one, becomes the next revision and updates the app; before, the server keeps a snapshot. An app that was stopped runs afterwards.",
    input: { appId, config: { maxKeys: 500 } },
    output: changing("updating", updated),
  },
  remove: {
    description: "The app is `removing` until its agent has removed it. From a device that was removed it is gone at once.",
    input: { appId, keepVolumes: true },
  },
  start: { description: "Starts an app that was stopped or failed.", input: { appId }, output: changing("starting") },
  stop: { description: "Stops a running app; its data stays.", input: { appId }, output: changing("stopping", { desiredState: "stopped" }) },
  restart: { description: "Stops and starts a running app.", input: { appId }, output: changing("restarting") },
  upgrade: {
    description:
      "Takes the template's present version with the app's configuration. If the new version does not become healthy, the agent restores the old one by itself.",
    input: { appId },
    output: changing("updating", { templateVersion: "1.1.0", revision: 2 }),
  },
  secrets: {
    description: "Returns the secrets. Agents get those of apps on their own device only. Each read by a person or a key is recorded.",
    input: { appId },
    output: { KV_TOKEN: "s3cr3t" },
  },
  setSecrets: {
    description: "Sets and removes secrets and answers with their names. A running app is restarted with them; any other takes them when it starts.",
    input: { appId, secrets: { KV_TOKEN: "another" } },
    output: { appId, keys: ["KV_TOKEN"], secretsVersion: 2 },
  },
  listSnapshots: { description: "A snapshot keeps the configuration, not the data.", input: { appId }, output: { items: [shownWithActors(snapshot)] } },
  createSnapshot: {
    description: "Keeps template, version and configuration. An app has at most 50 snapshots of people.",
    input: { appId, metadata: { reason: "before the move" } },
    output: snapshot,
  },
  removeSnapshot: { description: "Deletes one snapshot.", input: { appId, snapshotId } },
  rollback: {
    description: "Installs what the snapshot kept, as a new revision.",
    input: { appId, snapshotId },
    output: changing("rolling_back", { revision: 3 }),
  },
};
