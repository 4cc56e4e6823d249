// The features that tell what happens: the live feed, webhooks, alerts, security and traces.
import { createAlerts } from "../features/alerts/index.ts";
import { createDeviceNames, findSeen } from "../features/devices/index.ts";
import { createLive } from "../features/live/index.ts";
import { createSecurity } from "../features/security/index.ts";
import { createTraces } from "../features/traces/index.ts";
import { createWebhooks, DELIVERY_JOB } from "../features/webhooks/index.ts";
import { createBatch } from "../platform/database/batch.ts";
import type { Wiring } from "./deps.ts";
import type { Peers } from "./peers.ts";
import { alertSettings, liveSettings } from "./settings.ts";

export const signals = ({ kit, config, log, nodeId, publicUrl, serving, settings, watch, failed }: Wiring, peers: Peers) => ({
  live: () =>
    createLive({
      ...kit,
      isShown: (scope, deviceId) => peers.devices.isShown(scope, deviceId),
      deviceNames: createDeviceNames(kit.db, createBatch),
      readSeen: (devices) => findSeen(kit.db, devices),
      countOpenAlerts: (scope) => peers.alerts.countOpen(scope),
      onError: failed("live feed"),
      settings: liveSettings(config),
    }),
  webhooks: () =>
    createWebhooks({
      ...kit,
      log,
      nodeId,
      deviceIds: peers.devices.ids,
      wakeJob: () => serving.book.wake(DELIVERY_JOB),
      keepDays: config.EVENT_RETENTION_DAYS,
      settings: settings?.webhooks,
    }),
  alerts: () =>
    createAlerts({
      ...kit,
      ...alertSettings(config, publicUrl),
      knownDevices: peers.devices.known,
      holdFleets: peers.fleets.holdForLimit,
      onError: failed("alert notification"),
    }),
  security: () =>
    createSecurity({
      ...kit,
      bus: serving.cluster.bus,
      members: peers.tenants.members,
      keys: peers.apiKeys,
      counted: watch,
      onError: failed("security"),
    }),
  traces: () => createTraces({ ...kit, ownSpans: serving.ownSpans, tenants: peers.tenants.lookup, devices: peers.devices, commands: peers.commands }),
});
