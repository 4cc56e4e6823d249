// Creates the features and connects them: a feature never imports another's code, so it gets the capabilities of others here.

import { CONNECT_PATHS, type Contract } from "../../protocol/index.ts";
import type { ToLimit } from "../core/access.ts";
import type { FindStuck } from "../core/people/stuck.ts";
import { createAdmin } from "../features/admin/index.ts";
import { createApiKeys } from "../features/api-keys/index.ts";
import { createBeginTrial, createBilling } from "../features/billing/index.ts";
import { deploymentGroups } from "../features/deployments/index.ts";
import { createFindReferences, createFleets } from "../features/fleets/index.ts";
import { createGeneral } from "../features/general/index.ts";
import type { FeaturesOf } from "../features/kit.ts";
import { createPairing, type PairingDeps, pairingLimits } from "../features/pairing/index.ts";
import { createRoles } from "../features/roles/index.ts";
import { createSecurity } from "../features/security/index.ts";
import { createTenants } from "../features/tenants/index.ts";
import { createTraces } from "../features/traces/index.ts";
import { deleteRowsOf } from "../platform/database/delete-tenant.ts";
import { createStuckMails } from "../platform/mail/mail-stuck.ts";
import { processIdentity } from "../platform/postgres/process-identity.ts";
import { createPeople } from "./access.ts";
import { spreadChanges } from "./changes.ts";
import { connectParts } from "./connect.ts";
import type { FeaturesDeps } from "./deps.ts";
import { createMachines } from "./fleet.ts";
import { createGroundwork } from "./kit.ts";
import { healthOf, openProvider, serviceFacts } from "./service.ts";
import { billingSettings, pairingSettings, tenantSettings } from "./settings.ts";
import { createAlerting } from "./signals.ts";
import { connectWebhooks } from "./webhooks.ts";
import { createDeployables } from "./workloads.ts";

/** Whether this process of this machine still runs. */
const lives = async (pid: number): Promise<boolean> => (await processIdentity(pid)) !== undefined;

const forgetAllOf =
  (...caches: readonly { forgetAll(): void }[]) =>
  (): void => {
    for (const cache of caches) cache.forgetAll();
  };

const devicesOfPairing = ({ find, withFingerprint, reissue }: ReturnType<typeof createMachines>["devices"]): PairingDeps["devices"] => ({
  exists: async (scope, deviceId) => (await find(scope, deviceId)) !== undefined,
  withFingerprint,
  reissue,
});

export const createFeatures = (deps: FeaturesDeps) => {
  const { config, db, clock, log, cluster, nodeId, publicUrl, node } = deps;
  const { bus, limiter, changes, channelOf } = cluster;
  const onError = (what: string, error: unknown): void => log.error({ what, error }, "background work failed");
  const socketUrl = (): string => `${publicUrl().replace(/^http/, "ws")}${CONNECT_PATHS[0]}`;

  const { kit, outbox, outbound, live, audit, mails, counters, outcomes, watch } = createGroundwork(deps, {
    enqueue: (tx, scope, orders) => commands.enqueue(tx, scope, orders),
    isShown: (scope, deviceId) => devices.isShown(scope, deviceId),
    onError,
  });

  // Without Redis messages stay within the process, which suffices for a single node.
  const hintsArrive = (): boolean => bus.healthy() && (config.REDIS_URL !== undefined || admin.liveNodes() <= 1);
  const toLimit: ToLimit = (tenantId, selector) => fleets.toLimit(tenantId, selector);
  const tenants = createTenants({
    ...kit,
    deployments: deploymentGroups,
    counters,
    ...tenantSettings(config),
    beginTrial: createBeginTrial(clock),
    deleteRows: (scope, limit) => deleteRowsOf(db, scope, limit),
    endBilling: (scope) => billing.end(scope),
    deviceStates: (scope) => devices.states(scope),
    deviceIds: (scope) => devices.ids(scope),
    appStates: (scope) => deployables.apps.countByStatus(scope),
    nodeId,
    flags: () => admin.flags,
    loadCalls: deps.loadCalls,
    onError: (error) => onError("load test", error),
    recentEvents: live.recent,
    toLimit,
  });
  const apiKeys = createApiKeys({
    ...kit,
    memberships: tenants.memberships,
    toLimit,
    checkSelector: (...selecting) => roles.grants.checkSelector(...selecting),
  });
  const { devices, commands, agent, agentSessions } = createMachines(deps, {
    kit,
    tenants,
    live,
    outcomes,
    wakeRelay: outbox.wake,
    socketUrl,
    hintsArrive,
    onError,
    apps: () => deployables.apps.ofDevice,
  });
  const deployables = createDeployables({
    ...deps,
    kit,
    devices,
    commands,
    logs: { bus, takeStream: live.takePlace, nodesReach: hintsArrive, onError: (error) => onError("logs", error), settings: deps.settings?.appLogs },
  });
  const roles = createRoles({ ...kit, ...tenants, knownDevices: devices.known, holdFleets: (...holding) => fleets.holdForLimit(...holding) });
  const stuck: FindStuck[] = [outbox.stuck, createStuckMails(kit)];
  const admin = createAdmin({
    ...kit,
    bus,
    node,
    channelOf,
    lives,
    ownListeners: deps.ownListeners,
    book: deps.book,
    anyTenant: tenants.anyTenant,
    anyDevice: devices.anyDevice,
    commands,
    outbox,
    grantPlan: (tx, scope, to) => billing.grantPlan(tx, scope, to),
    stuck: () => stuck,
    settings: deps.settings?.admin,
  });
  const pairing = createPairing({
    ...kit,
    tenants: tenants.lookup,
    memberships: tenants.memberships,
    flags: admin.flags,
    enrol: devices.enrol,
    deployments: deploymentGroups,
    devices: devicesOfPairing(devices),
    ...pairingLimits({ limit: config.RATE_LIMIT_PAIRING, limiter, addressKey: deps.addressKey }),
    settings: pairingSettings(config, { publicUrl, socketUrl }),
  });
  const billing = createBilling({ ...kit, counters, tenants: tenants.standing, settings: billingSettings(config, publicUrl, deps.trusted) });
  const provider = openProvider(deps);
  const people = createPeople(deps, { kit, tenants, roles, audit, provider });
  const security = createSecurity({ ...kit, bus, members: tenants.members, keys: apiKeys, counted: watch, onError: (error) => onError("security", error) });
  const fleets = createFleets({
    ...kit,
    devices: devices.ofFleets,
    findReferences: createFindReferences({ members: tenants.members, invites: people.invites, apiKeys }),
    limitsChanged: forgetAllOf(tenants.members, apiKeys),
  });
  const general = createGeneral({
    db,
    changelog: deps.changelog,
    rateLimits: deps.rateLimits,
    memberships: tenants.memberships,
    flags: admin.flags,
    ...serviceFacts(deps, provider),
  });

  const webhooks = connectWebhooks(deps, { kit, outbox, changes, deviceIds: devices.ids });

  /** One line registers a feature: its operations, jobs, event consumer, command outcomes, plan counters and gauges. */
  const features = {
    health: healthOf(deps, { mails, billing }),
    pairing,
    devices,
    commands,
    agent,
    tenants,
    roles,
    apiKeys,
    billing,
    general,
    live,
    admin,
    audit,
    // After the tenants: invites count a plan's members with those who are invited.
    ...people,
    fleets,
    traces: createTraces({ ...kit, ownSpans: deps.ownSpans, tenants: tenants.lookup, devices, commands }),
    security,
    alerts: createAlerting(deps, { kit, devices, fleets, onError }),
    webhooks,
    ...deployables,
  } satisfies FeaturesOf<Contract>;

  const parts = connectParts(features, { outbox, outcomes, counters, stuck });
  spreadChanges({ outbox, live, commands, changes });

  return {
    ...features,
    outbox,
    outbound,
    watch,
    agentSessions,
    all: features,
    jobs: [...outbox.jobs, ...mails.jobs, ...parts.flatMap(([, { jobs = [] }]) => jobs)],
    gauges: [...mails.gauges, ...parts.flatMap(([, { gauges = [] }]) => gauges)],
  };
};
export type Features = ReturnType<typeof createFeatures>;

/** What the gateway identifies callers by. */
export const lookupsOf = ({ account, apiKeys, devices, general, sessions, tenants }: Features) => ({
  agents: devices.registry,
  apiKeys: apiKeys.lookup,
  tenants: tenants.lookup,
  memberships: tenants.memberships,
  sessions: sessions.lookup,
  isVisible: devices.isVisible,
  tickets: general.streamTickets,
  defaultTenantOf: account.defaultTenantOf,
});
