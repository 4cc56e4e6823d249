// The features of what devices run: apps, and the deployments that place them.

import { createAppFeature } from "../features/apps/index.ts";
import { createBatchCalls } from "../features/batch/index.ts";
import { createBulkOperations } from "../features/bulk-operations/index.ts";
import { createDeployments } from "../features/deployments/index.ts";
import { createDomains } from "../features/domains/index.ts";
import { createMeshRoutes } from "../features/mesh-routes/index.ts";
import { createRollouts } from "../features/rollouts/index.ts";
import { createTunnels } from "../features/tunnels/index.ts";
import { createViews } from "../features/views/index.ts";
import { createFirstUse } from "../platform/signature-memory.ts";
import type { Wiring } from "./deps.ts";
import { type HandlersOfAll, later, type Peers } from "./peers.ts";
import { customDomainSettings } from "./settings.ts";

export const workloads = (
  { kit, config, nodeId, publicUrl, authority, serving, settings, hintsArrive, failed, toLimit }: Wiring,
  peers: Peers & HandlersOfAll,
) => ({
  apps: () =>
    createAppFeature({
      ...kit,
      catalogue: serving.catalogue,
      logs: {
        bus: serving.cluster.bus,
        takeStream: peers.live.takePlace,
        nodesReach: hintsArrive,
        onError: failed("logs"),
        settings: settings?.appLogs,
      },
      follow: peers.deployments.follow,
      adopt: peers.deployments.adopt,
      knownDevices: peers.devices.known,
      machines: peers.devices.machines,
      lastBackups: (...asked) => peers.backups.lastGood(...asked),
      machineGroups: peers.devices.groups,
      isOnline: async (scope, deviceId) => (await peers.devices.findSummary(scope, deviceId))?.status === "online",
      cancelOrdered: peers.commands.cancelOrdered,
      backUpFirst: (...asked) => peers.backups.backUpFirst(...asked),
    }),
  domains: () =>
    createDomains({
      ...kit,
      settings: customDomainSettings(config, publicUrl),
      acmeOutbound: authority,
      targets: {
        find: async (db, scope, target) => {
          const tunnel = await peers.tunnels.targetOf(db, scope, target);
          if (tunnel !== null) return { tunnelId: tunnel.tunnelId };
          return { tunnelId: null, deviceId: target.kind === "app" ? await peers.apps.deviceOf(db, scope, target.id) : null };
        },
      },
      handlerOf: ({ tenantId, target }) => (target === null ? null : peers.tunnels.handlerOf(tenantId, target)),
      tellNodes: (tenantId) => serving.cluster.changes.changed(tenantId),
      wakeJob: (name) => serving.book.wake(name),
      onError: failed("custom domains"),
    }),
  meshRoutes: () =>
    createMeshRoutes({
      ...kit,
      carriers: () => serving.carriers,
      knownDevices: peers.devices.known,
      isShown: (...asked) => peers.devices.isShown(...asked),
      deviceIds: (...asked) => peers.devices.ids(...asked),
      toLimit,
      holdFleets: (...asked) => peers.fleets.holdForLimit(...asked),
      connected: (...asked) => peers.tunnels.connected(...asked),
      tellNodes: (tenantId) => serving.cluster.changes.changed(tenantId),
      wakeJob: (name) => serving.book.wake(name),
      onError: failed("mesh routes"),
      settings: settings?.meshRoutes,
    }),
  rollouts: () =>
    createRollouts({
      ...kit,
      apps: () => peers.apps.rollouts,
      commands: () => peers.commands,
      findFleet: (...asked) => peers.fleets.find(...asked),
      newestRelease: (channel) => peers.agent.newestRelease(channel),
    }),
  tunnels: () =>
    createTunnels({
      ...kit,
      nodeId,
      nodeUrl: () => serving.nodeUrl(),
      domain: config.TUNNEL_DOMAIN,
      tcpPorts: config.TUNNEL_TCP_PORTS,
      edgeHost: config.EDGE_HOST,
      wakeJob: (name) => serving.book.wake(name),
      edgeUrl: () => serving.edgeUrl(),
      publicUrl,
      carriers: () => serving.carriers,
      pages: serving.pages,
      call: (call) => serving.callInProcess(call),
      memberships: () => peers.tenants.memberships,
      blocks: () => peers.security.blocks,
      knownDevices: peers.devices.known,
      isVisible: (...asked) => peers.devices.isVisible(...asked),
      portOf: (...asked) => peers.apps.portOf(...asked),
      isFirstUse: createFirstUse(kit.db),
      tellNodes: (tenantId) => serving.cluster.changes.changed(tenantId),
      onError: failed("tunnels"),
      settings: settings?.tunnels,
    }),
  views: () => createViews(kit),
  batch: () => createBatchCalls({ clock: kit.clock, calls: () => serving.nestedCalls() }),
  bulkOperations: () =>
    createBulkOperations({
      ...kit,
      tenants: peers.tenants.lookup,
      memberships: peers.tenants.memberships,
      keyById: peers.apiKeys.byId,
      blocks: () => peers.security.blocks,
      checkOrder: peers.commands.checkOrder,
      statesOf: peers.commands.statesOf,
      holdUndelivered: peers.commands.holdUndelivered,
      deviceOf: (...asked) => peers.apps.deviceOf(...asked),
      devices: peers.devices.targets,
      // Read at each use, because bulk stands above all of them.
      handlers: later(() => ({
        devices: peers.devices.handlers,
        fleets: peers.fleets.handlers,
        apps: peers.apps.handlers,
        deployments: peers.deployments.handlers,
        alerts: peers.alerts.handlers,
        backups: peers.backups.handlers,
        tunnels: peers.tunnels.handlers,
      })),
      commandOf: { app: (...asked) => peers.apps.targets.commandOf(...asked), deployment: (...asked) => peers.deployments.targets.commandOf(...asked) },
      finders: {
        device: (...asked) => peers.devices.targets.named(...asked),
        app: (...asked) => peers.apps.targets.named(...asked),
        deployment: (...asked) => peers.deployments.targets.named(...asked),
        alert: (...asked) => peers.alerts.named(...asked),
        backup: (...asked) => peers.backups.named(...asked),
        tunnel: (...asked) => peers.tunnels.named(...asked),
      },
    }),
  deployments: () => createDeployments({ ...kit, placing: () => peers.apps.placing, logs: () => peers.apps.logs }),
});
