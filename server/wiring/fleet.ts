// Creates the features of machines: devices, their commands, and what their agents ask. Devices and commands need each other.
import type { RegisteredOutcome } from "../core/ports/command-outcomes.ts";
import { createAgent } from "../features/agent/index.ts";
import type { DeviceApps } from "../features/apps/index.ts";
import { createCommands } from "../features/commands/index.ts";
import { deploymentGroups } from "../features/deployments/index.ts";
import { createAgentSessions, createDevices, deviceSettings } from "../features/devices/index.ts";
import type { FeatureKit } from "../features/kit.ts";
import type { Live } from "../features/live/index.ts";
import type { Tenants } from "../features/tenants/index.ts";
import { createBatch } from "../platform/database/batch.ts";
import type { FeaturesDeps } from "./deps.ts";
import { agentSettings, commandSettings } from "./settings.ts";

interface Others {
  readonly kit: FeatureKit;
  readonly tenants: Tenants;
  readonly live: Live;
  readonly outcomes: ReadonlyMap<string, RegisteredOutcome>;
  readonly wakeRelay: () => void;
  readonly socketUrl: () => string;
  /** False while hints between nodes get lost. */
  readonly hintsArrive: () => boolean;
  readonly onError: (what: string, error: unknown) => void;
  /** What devices run; known later. */
  readonly apps: () => DeviceApps;
}

export const createMachines = (deps: FeaturesDeps, { kit, tenants, live, outcomes, wakeRelay, socketUrl, hintsArrive, onError, apps }: Others) => {
  const { config, cluster, nodeId, publicUrl } = deps;
  const { bus, notifier, channelOf } = cluster;
  const devices = createDevices({
    ...kit,
    bus,
    deployments: deploymentGroups,
    secrets: kit.secretBox,
    evictor: notifier,
    settings: deviceSettings(config.HEARTBEAT_SECONDS, { closeGraceMs: config.CLOSE_GRACE_SECONDS * 1_000 }),
    resetCommands: (tx, device, reason) => commands.resetDevice(tx, device, reason),
    probe: deps.probe,
    nodeId,
    wakeJob: deps.book.wake,
    onError: (error) => onError("devices", error),
    pendingCommands: (device) => commands.pending(device),
    socketUrl,
    createBatch,
    history: tenants.deviceMetrics,
  });
  const commands = createCommands({
    ...kit,
    showHere: live.hint,
    tellNodes: (tenantId) => cluster.changes.changed(tenantId),
    onError: (error) => onError("commands", error),
    notifier,
    outcomes,
    wakeRelay,
    createBatch,
    nodeId,
    bus,
    channelOf,
    presence: devices.presence,
    devices: { ...devices, find: devices.findSummary },
    settings: { ...commandSettings(config), ...deps.settings?.commands },
    hintsArrive,
    meters: deps.metrics.commandMeters,
    tracing: deps.tracing,
    log: deps.log,
  });
  return {
    devices,
    commands,
    agent: createAgent({ ...kit, devices, apps, onError: (error) => onError("agent", error), settings: { publicUrl, ...agentSettings(config) } }),
    agentSessions: createAgentSessions({ db: kit.db, presence: devices.presence, delivery: commands.delivery, createBatch }),
  };
};
