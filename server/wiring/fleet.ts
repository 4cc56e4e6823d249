// The features of the fleet: devices, their commands, what their agents ask, how machines join, and fleets of them.
import { createAgent } from "../features/agent/index.ts";
import { createCommands } from "../features/commands/index.ts";
import { deploymentGroups } from "../features/deployments/index.ts";
import { createDevices, deviceSettings } from "../features/devices/index.ts";
import { createFindReferences, createFleets } from "../features/fleets/index.ts";
import { createPairing, pairingLimits } from "../features/pairing/index.ts";
import { createBatch } from "../platform/database/batch.ts";
import type { Wiring } from "./deps.ts";
import { later, type Peers } from "./peers.ts";
import { agentSettings, commandSettings, pairingSettings } from "./settings.ts";

export const fleet = ({ kit, config, nodeId, publicUrl, socketUrl, serving, ...wiring }: Wiring, peers: Peers) => ({
  devices: () =>
    createDevices({
      ...kit,
      bus: serving.cluster.bus,
      deployments: deploymentGroups,
      secrets: kit.secretBox,
      evictor: serving.cluster.notifier,
      settings: deviceSettings(config.HEARTBEAT_SECONDS, { closeGraceMs: config.CLOSE_GRACE_SECONDS * 1_000, ...wiring.settings?.devices }),
      resetCommands: (tx, device, reason) => peers.commands.resetDevice(tx, device, reason),
      pendingCommands: (device) => peers.commands.pending(device),
      probe: serving.probe,
      nodeId,
      wakeJob: serving.book.wake,
      onError: wiring.failed("devices"),
      socketUrl,
      createBatch,
      history: peers.tenants.deviceMetrics,
      countApps: (...asked) => peers.apps.countByDevice(...asked),
    }),
  commands: () =>
    createCommands({
      ...kit,
      bus: serving.cluster.bus,
      notifier: serving.cluster.notifier,
      channelOf: serving.cluster.channelOf,
      tellNodes: (tenantId) => serving.cluster.changes.changed(tenantId),
      hintsArrive: wiring.hintsArrive,
      showHere: peers.live.hint,
      presence: peers.devices.presence,
      devices: { ...peers.devices, find: peers.devices.findSummary },
      outcomes: wiring.outcomes,
      wakeRelay: wiring.outbox.wake,
      createBatch,
      nodeId,
      settings: { ...commandSettings(config), ...wiring.settings?.commands },
      meters: serving.metrics.commandMeters,
      tracing: serving.tracing,
      log: wiring.log,
      onError: wiring.failed("commands"),
    }),
  agent: () =>
    createAgent({
      ...kit,
      devices: peers.devices,
      apps: () => peers.apps.ofDevice,
      tunnels: () => peers.tunnels.ofDevice,
      meshRoutes: () => peers.meshRoutes.ofDevice,
      onError: wiring.failed("agent"),
      settings: { publicUrl, edgeUrl: () => serving.edgeUrl(), ...agentSettings(config) },
    }),
  pairing: () =>
    createPairing({
      ...kit,
      tenants: peers.tenants.lookup,
      memberships: peers.tenants.memberships,
      flags: later(() => peers.admin.flags),
      enrol: (...machines) => peers.devices.enrol(...machines),
      deployments: deploymentGroups,
      devices: {
        exists: async (scope, deviceId) => (await peers.devices.find(scope, deviceId)) !== undefined,
        withFingerprints: (scope, fingerprints) => peers.devices.withFingerprints(scope, fingerprints),
        reissue: (...device) => peers.devices.reissue(...device),
      },
      ...pairingLimits({ limit: config.RATE_LIMIT_PAIRING, limiter: later(() => serving.cluster.limiter), addressKey: (ip) => serving.addressKey(ip) }),
      settings: pairingSettings(config, { publicUrl, socketUrl }),
    }),
  fleets: () =>
    createFleets({
      ...kit,
      devices: peers.devices.ofFleets,
      findReferences: createFindReferences({ members: peers.tenants.members, invites: peers.invites, apiKeys: peers.apiKeys }),
      requirePolicy: (...asked) => peers.rollouts.requirePolicy(...asked),
      liveRollouts: (...asked) => peers.rollouts.liveOf(...asked),
      countLiveRollouts: (...asked) => peers.rollouts.countLive(...asked),
      complianceOf: (...asked) => peers.rollouts.complianceOf(...asked),
      limitsChanged: () => {
        peers.tenants.members.forgetAll();
        peers.apiKeys.forgetAll();
      },
    }),
});
