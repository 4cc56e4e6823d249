// Devices: paired machines, their presence and their secrets. Other features pair through `enrol` and read through `find`.
import { CLOSE, type CommandId, connectTo, contract, type Device, type OverviewGroups } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import type { TagTotals } from "../../core/people/common-tag.ts";
import type { DuplicateProbe } from "../../core/ports/agent-sessions.ts";
import type { AuditTrail } from "../../core/ports/audit.ts";
import type { DeviceRef, Enqueue } from "../../core/ports/delivery.ts";
import type { GroupMachines } from "../../core/ports/machine-groups.ts";
import type { SecurityWatch } from "../../core/ports/security.ts";
import { given } from "../../core/rows/records.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { Bus } from "../../platform/cluster/bus.ts";
import type { CreateBatch } from "../../platform/database/batch.ts";
import type { Job } from "../../platform/jobs.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import type { DeploymentGroups } from "../deployments/index.ts";
import type { Feature } from "../kit.ts";
import { reachable } from "./addresses.ts";
import { type Agents, createAgentRegistry } from "./agent-registry.ts";
import { type AnyDevice, createAnyDevice } from "./any-device.ts";
import { createEnrol, createReissue, type Enrol, type PlanGuard, type Reissue, type ResetCommands } from "./enrol.ts";
import { createFleetDevices, type FleetDevices } from "./fleets.ts";
import { createOfflineAttention } from "./offline.ts";
import { createPresence, type Presence } from "./presence.ts";
import { createReadHandlers, type DeviceReadsDeps } from "./reads.ts";
import { createRepairHandlers } from "./repair.ts";
import { toMetrics } from "./rules.ts";
import { createSecretHandlers } from "./secrets.ts";
import { type DeviceSettings, deviceSettings } from "./settings.ts";
import { createSignatureLock } from "./signature-lock.ts";
import {
  countDevices,
  countDevicesByStatus,
  type DeviceSummary,
  findDevice,
  findDeviceSummary,
  findKnown,
  findMachines,
  findNamesAndTags,
  findRestic,
  listIds,
  type NetworkPlace,
  removeDevice,
  updateDevice,
} from "./store/devices.ts";
import { findKnownMachines, type KnownMachine } from "./store/enrol.ts";
import { countTagged, groupByKey } from "./store/groups.ts";
import { groupMachines } from "./store/machine-groups.ts";
import { describeDevice, fencePresence, type MachineReport } from "./store/presence.ts";
import { createTargets, type DeviceTargets } from "./targets.ts";
import { createVisibility, type Visibility } from "./visibility.ts";

export { createAgentSessions } from "./agent-sessions.ts";
export type { AnyDevice } from "./any-device.ts";
export type { Enrolled, Enrolment, Reissue, Replacement, ResetCommands } from "./enrol.ts";
export type { FleetDevices } from "./fleets.ts";
export { createDeviceNames } from "./names.ts";
export { createOpenRepairs } from "./repair.ts";
export type { DeviceSummary } from "./store/devices.ts";
/** For the plan. */
export type { KnownMachine } from "./store/enrol.ts";
export { findSeen } from "./store/seen.ts";
export type { Agents, DeviceSettings, DeviceTargets, Enrol, PlanGuard, Presence };
export { deviceSettings };

export interface DevicesDeps extends DeviceReadsDeps {
  readonly clock: Clock;
  readonly bus: Bus;
  readonly emit: Emit;
  readonly audit: AuditTrail;
  readonly secrets: Pick<SecretBox, "seal" | "open">;
  readonly plan: PlanGuard;
  readonly deployments: Pick<DeploymentGroups, "has" | "findForDevices">;
  readonly resetCommands: ResetCommands;
  /** The number of commands that wait for the device, and the commands that it must cancel. */
  readonly pendingCommands: (device: DeviceRef) => Promise<{ readonly queued: number; readonly cancel: readonly CommandId[] }>;
  readonly probe: DuplicateProbe;
  readonly nodeId: string;
  readonly wakeJob?: (name: string) => void;
  readonly enqueue: Enqueue;
  /** Known when the listener is open, so read at each use. */
  readonly socketUrl: () => string;
  readonly createBatch: CreateBatch;
  readonly watch: SecurityWatch;
  readonly settings?: DeviceSettings;
  /** Called when a hint to other nodes could not be sent or the database rejects a heartbeat. */
  readonly onError?: (error: unknown) => void;
}

export interface Devices extends Feature<typeof contract.devices>, Omit<Visibility, "forget"> {
  readonly jobs: readonly Job[];
  readonly presence: Presence;
  readonly registry: Agents;
  readonly enrol: Enrol;
  readonly reissue: Reissue;
  /** The tenant's devices with these fingerprints, without removed ones. */
  withFingerprints(scope: SystemScope, fingerprints: readonly string[]): Promise<readonly KnownMachine[]>;
  find(scope: SystemScope, deviceId: string): Promise<Device | undefined>;
  /** Null when the tenant has no such device. */
  findSummary(scope: SystemScope, deviceId: string): Promise<DeviceSummary | null>;
  /** The devices among these that the tenant has. */
  known(tx: Clients, scope: SystemScope, deviceIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Throws BACKUP_ENGINE_MISSING if the device's agent has said that it has no restic. */
  requireRestic(db: Clients, scope: SystemScope, deviceId: string): Promise<void>;
  /** Where these devices are in their networks. */
  machines(db: Clients, scope: SystemScope, deviceIds: readonly string[]): Promise<ReadonlyMap<string, NetworkPlace>>;
  /** The devices that the caller sees, grouped by what decides which applications they can run. */
  readonly groups: GroupMachines;
  /** All devices that the caller sees, removed ones too. */
  ids(scope: SystemScope, within?: Clients): Promise<readonly string[]>;
  /** How many devices have each status. */
  states(scope: SystemScope): Promise<Record<Device["status"], number>>;
  /** Devices by a part of their tags; null: by the one that most tags have. */
  groupsByKey(scope: SystemScope, key: string | null): Promise<OverviewGroups>;
  namesAndTags(scope: SystemScope, deviceIds: readonly string[]): ReturnType<typeof findNamesAndTags>;
  /** How many devices have each of these tags. */
  countTagged(scope: SystemScope, tags: readonly string[]): Promise<TagTotals>;
  /** For administrators of the installation. */
  readonly anyDevice: AnyDevice;
  readonly ofFleets: FleetDevices;
  /** As the targets of bulk operations. */
  readonly targets: DeviceTargets;
  /** Stores what the machine reports about itself and returns the time of the update; undefined when the device is gone. */
  describe(scope: SystemScope, report: Omit<MachineReport, "addresses"> & { readonly ipAddresses?: readonly string[] | undefined }): Promise<Date | undefined>;
}

export const createDevices = (deps: DevicesDeps): Devices => {
  const { db, emit, secrets, plan, deployments, evictor, resetCommands } = deps;
  const settings = deps.settings ?? deviceSettings();
  const { forget, ...visibility } = createVisibility(db, deps.clock);
  const registry = createAgentRegistry({ db, bus: deps.bus, emit, box: secrets, settings, onError: deps.onError });
  const signatureLock = createSignatureLock({ emit, agents: registry });
  const presence = createPresence({ ...deps, signatureLock, settings });
  const enrol = createEnrol({ emit, box: secrets, plan, deployments, agents: registry, evictor, resetCommands, watch: deps.watch, settings });
  return {
    handlers: implement(contract.devices, {
      ...createReadHandlers(deps),
      ...createChangeHandlers(deps, { registry, enrol, settings, forgetTags: forget }),
      ...createRepairHandlers(deps),
      ...createSecretHandlers({ ...deps, graceMs: settings.closeGraceMs }, { agents: registry, signatureLock }),
      heartbeat: async ({ scope }, { deviceId, ...beat }) => {
        const at = await presence.contact(scope, { deviceId, heartbeat: true, metrics: toMetrics(beat) });
        if (beat.status === "offline") await presence.reportedOffline(deviceId);
        const { queued: pendingCommands, cancel } = await deps.pendingCommands({ tenantId: scope.tenantId, deviceId });
        const receivedAt = (at ?? deps.clock.now()).toISOString();
        return { deviceId, receivedAt, nextHeartbeatSeconds: settings.heartbeatSeconds, pendingCommands, cancel: [...cancel] };
      },
    }),
    ...visibility,
    presence,
    registry,
    enrol,
    reissue: createReissue(secrets),
    withFingerprints: (scope, fingerprints) => findKnownMachines(db, scope, fingerprints, deps.clock.now()),
    jobs: [...presence.jobs, ...registry.jobs],
    find: (scope, deviceId) => findDevice(db, scope, deviceId, deps.clock.now()),
    findSummary: (scope, deviceId) => findDeviceSummary(db, scope, deviceId),
    requireRestic: async (tx, scope, deviceId) => {
      if ((await findRestic(tx, scope, deviceId)) === null)
        throw new AppError("BACKUP_ENGINE_MISSING", { details: { deviceId, install: "apt-get install restic" } });
    },
    known: findKnown,
    machines: findMachines,
    groups: (scope, steps) => groupMachines(db, scope, steps),
    ids: (scope, within = db) => listIds(within, scope),
    states: (scope) => countDevicesByStatus(db, scope),
    groupsByKey: (scope, key) => groupByKey(db, scope, key),
    namesAndTags: (scope, deviceIds) => findNamesAndTags(db, scope, deviceIds),
    countTagged: (scope, tags) => countTagged(db, scope, tags),
    attention: createOfflineAttention(deps),
    counters: { hosts: countDevices },
    describe: (scope, { ipAddresses, ...report }) => describeDevice(db, scope, { ...report, addresses: ipAddresses && reachable(ipAddresses) }),
    anyDevice: createAnyDevice(deps),
    ofFleets: createFleetDevices(deps, forget),
    targets: createTargets(emit, forget),
  };
};

interface Parts {
  readonly registry: Agents;
  readonly enrol: Enrol;
  readonly settings: DeviceSettings;
  readonly forgetTags: Visibility["forget"];
}

const createChangeHandlers = (
  { clock, emit, deployments, evictor, resetCommands, socketUrl }: DevicesDeps,
  { registry, enrol, settings, forgetTags }: Parts,
): Pick<Handlers<typeof contract.devices>, "update" | "remove" | "provision"> => ({
  update: ({ scope, fail, commit }, { deviceId, ...change }) =>
    commit(async (tx, afterwards) => {
      const { deploymentId, tags: newTags } = change;
      if (newTags !== undefined) checkMayTag(scope);
      const { version: _, ...changes } = change;
      const known = await findDevice(tx, scope, deviceId, clock.now());
      if (known === undefined) throw fail("DEVICE_NOT_FOUND", { deviceId });
      if (deploymentId !== undefined && !(await deployments.has(tx, scope, deploymentId))) throw fail("DEPLOYMENT_NOT_FOUND", { deploymentId });
      const changed = await updateDevice(tx, scope, deviceId, change);
      const device = await findDevice(tx, scope, deviceId, clock.now());
      if (device === undefined) throw fail("DEVICE_NOT_FOUND", { deviceId });
      if (!changed) throw fail("VERSION_CONFLICT", { currentVersion: device.version });
      if (newTags !== undefined) afterwards(() => forgetTags(scope.tenantId, deviceId));
      const { name = null, tags, maintenance = null } = device;
      const data = { deviceId, name, tags, deploymentId: device.deploymentId, maintenance, changed: Object.keys(given(changes)) };
      await emit(tx, [happened(scope, contract.devices.events.changed, deviceId, data)]);
      if (deploymentId !== undefined) afterwards(() => registry.announce([device.agentId]));
      return device;
    }),
  remove: ({ scope, fail, commit }, { deviceId }) =>
    commit(async (tx, afterwards) => {
      await fencePresence(tx, scope, { deviceIds: [deviceId], graceMs: settings.closeGraceMs });
      const removed = await removeDevice(tx, scope, deviceId, clock.now());
      if (removed === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
      const { notify } = await resetCommands(tx, { tenantId: scope.tenantId, deviceId }, "device_removed");
      const { hostname, status, agentId } = removed;
      const data = { deviceId, status: "offline", previous: status, reason: "removed", ...(hostname === null ? {} : { hostname }) } as const;
      await emit(tx, [happened(scope, contract.devices.events.deleted, deviceId, data)]);
      afterwards(() => {
        registry.announce([agentId]);
        evictor.evict(deviceId, { close: CLOSE.deviceRevoked });
        notify();
      });
      return null;
    }),
  provision: ({ scope, commit }, { fingerprints, count, tags, platform, replaceExisting }) => {
    const replacement = { means: "provisioning", actor: actorOf(scope.principal), allowed: replaceExisting ? "any" : "in_repair" } as const;
    const named = fingerprints ?? Array.from({ length: count ?? 0 }, newFingerprint);
    const wanted = named.map((fingerprint) => ({ fingerprint, tags, platform }));
    const connect = connectTo(socketUrl());
    return commit(async (tx) => ({ items: (await enrol(tx, scope, wanted, replacement)).map((device) => ({ ...device, connect })) }));
  },
});

/** Tags decide who sees the device. */
const checkMayTag = (scope: TenantScope): void => {
  if (isLimited(scope)) throw new AppError("FORBIDDEN", { details: { reason: "limited_access", field: "tags" } });
};

const newFingerprint = (): string => newId("fp");
