// Creates the features and connects them: a feature never imports another's code, so it gets the capabilities of others here.
import { CONNECT_PATHS, type Contract } from "../../protocol/index.ts";
import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import type { RegisteredOutcome } from "../core/command-outcomes.ts";
import type { DeviceNotifier } from "../core/delivery.ts";
import type { LoadCalls } from "../core/load-calls.ts";
import type { RateLimiter } from "../core/rate-limiter.ts";
import type { DuplicateProbe, Evictor } from "../core/sessions.ts";
import type { FindStuck } from "../core/stuck.ts";
import type { Tracing } from "../core/trace.ts";
import { createBatch } from "../platform/batch.ts";
import type { Bus } from "../platform/bus.ts";
import type { ChangeNotifier } from "../platform/change-notifier.ts";
import type { Installation } from "../platform/installation.ts";
import type { JobBook } from "../platform/jobs.ts";
import type { Log } from "../platform/log.ts";
import { createMails } from "../platform/mail.ts";
import type { Metrics } from "../platform/metrics.ts";
import { createOutbox } from "../platform/outbox.ts";
import { processIdentity } from "../platform/process-identity.ts";
import { createSmtp } from "../platform/smtp.ts";
import { deleteRowsOf } from "../platform/tenant-client.ts";
import { createAccount } from "./account/index.ts";
import { type AdminSettings, createAdmin, type ThisNode } from "./admin/index.ts";
import { createAgent } from "./agent/index.ts";
import { createApiKeys } from "./api-keys/index.ts";
import { createAudit } from "./audit/index.ts";
import { createBeginTrial, createBilling, createTellCrossing } from "./billing/index.ts";
import { createHint, spreadChanges } from "./changes.ts";
import { type CommandSettings, createCommands } from "./commands/index.ts";
import { connectParts } from "./connect.ts";
import { deployments } from "./deployments/index.ts";
import { createAgentSessions, createDeviceNames, createDevices, deviceSettings } from "./devices/index.ts";
import { createGeneral, type GeneralDeps } from "./general/index.ts";
import { createInvites } from "./invites/index.ts";
import type { FeatureKit, FeaturesOf } from "./kit.ts";
import { createLive, type LiveDeps } from "./live/index.ts";
import { createPairing, pairingLimits } from "./pairing/index.ts";
import { createRoles } from "./roles/index.ts";
import { healthOf, serviceFacts } from "./service.ts";
import { agentSettings, billingSettings, commandSettings, inviteSettings, liveSettings, mailSettings, tenantSettings } from "./settings.ts";
import { type Counters, createPlan, createTenants } from "./tenants/index.ts";

export interface FeaturesDeps extends Installation {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracing: Tracing | null;
  readonly cluster: {
    readonly bus: Bus;
    readonly limiter: RateLimiter;
    readonly changes: ChangeNotifier;
    readonly notifier: DeviceNotifier & Evictor;
    /** The bus channel of one node. */
    channelOf(nodeId: string): string;
  };
  readonly nodeId: string;
  readonly node: ThisNode;
  readonly book: JobBook;
  /** Known once the listener is open, so read it at each use. */
  readonly publicUrl: () => string;
  /** Pings the sockets of all nodes, which open later. */
  readonly probe: DuplicateProbe;
  /** Of the transports, which open later. */
  readonly loadCalls: () => LoadCalls;
  /** The form of an address that rate limits count. */
  readonly addressKey: (ip: string) => string;
  readonly rateLimits: GeneralDeps["rateLimits"];
  /** The text of CHANGELOG.md. */
  readonly changelog: string;
  /** For tests. */
  readonly settings?: { readonly admin?: Partial<AdminSettings>; readonly commands?: Partial<CommandSettings> };
}

/** Whether this process of this machine still runs. */
const lives = async (pid: number): Promise<boolean> => (await processIdentity(pid)) !== undefined;

export const createFeatures = (deps: FeaturesDeps) => {
  const { config, db, secretBox, clock, log, metrics, cluster, nodeId, publicUrl, node } = deps;
  const { bus, limiter, changes, notifier, channelOf } = cluster;
  const onError = (what: string, error: unknown): void => log.error({ what, error }, "background work failed");
  const socketUrl = (): string => `${publicUrl().replace(/^http/, "ws")}${CONNECT_PATHS[0]}`;

  const outbox = createOutbox({ db, onError, settings: { keepDays: config.EVENT_RETENTION_DAYS } });
  const { emit } = outbox;
  const isShown: LiveDeps["isShown"] = (scope, deviceId) => devices.isShown(scope, deviceId);
  const deviceNames = createDeviceNames(db, createBatch);
  const live = createLive({ db, clock, isShown, deviceNames, onError: (error) => onError("live feed", error), settings: liveSettings(config) });
  const hint = createHint(live, changes);
  // Filled from the features below.
  const counters: Counters = { ...deployments.counters };
  const outcomes = new Map<string, RegisteredOutcome>();
  const plan = createPlan({ replaced: config.PLAN_LIMITS_JSON, counters, crossed: createTellCrossing(emit) });
  const audit = createAudit({ db, secretBox, keepDays: config.AUDIT_RETENTION_DAYS });
  const mails = createMails({ db, clock, secretBox, log, send: createSmtp(mailSettings(config)) });
  const kit: FeatureKit = {
    db,
    clock,
    emit,
    hint,
    audit: audit.trail,
    enqueue: (tx, scope, orders) => commands.enqueue(tx, scope, orders),
    plan,
    secretBox,
    mails,
  };

  const tenants = createTenants({
    ...kit,
    deployments,
    counters,
    ...tenantSettings(config),
    beginTrial: createBeginTrial(clock),
    deleteRows: (scope, limit) => deleteRowsOf(db, scope, limit),
    deviceStates: (scope) => devices.states(scope),
    deviceIds: (scope) => devices.ids(scope),
    nodeId,
    flags: () => admin.flags,
    loadCalls: deps.loadCalls,
    onError: (error) => onError("load test", error),
    recentEvents: live.recent,
  });
  const apiKeys = createApiKeys({ ...kit, memberships: tenants.memberships, checkSelector: (...selecting) => roles.grants.checkSelector(...selecting) });
  const devices = createDevices({
    ...kit,
    bus,
    deployments,
    secrets: secretBox,
    evictor: notifier,
    settings: deviceSettings(config.HEARTBEAT_SECONDS, { closeGraceMs: config.CLOSE_GRACE_SECONDS * 1_000 }),
    resetCommands: (tx, device, reason) => commands.resetDevice(tx, device, reason),
    probe: deps.probe,
    nodeId,
    onError: (error) => onError("devices", error),
    pendingCommands: (device) => commands.pending(device),
    socketUrl,
    createBatch,
    history: tenants.deviceMetrics,
  });
  const roles = createRoles({ ...kit, ...tenants, knownDevices: devices.known });
  const commands = createCommands({
    ...kit,
    showHere: live.hint,
    onError: (error) => onError("commands", error),
    notifier,
    outcomes,
    createBatch,
    nodeId,
    bus,
    channelOf,
    presence: devices.presence,
    devices: { find: devices.findSummary, isVisible: devices.isVisible },
    settings: { ...commandSettings(config), ...deps.settings?.commands },
    // Without Redis hints stay within the process, which suffices for a single node.
    hintsArrive: () => bus.healthy() && (config.REDIS_URL !== undefined || admin.liveNodes() <= 1),
    meters: metrics.commandMeters,
    tracing: deps.tracing,
    log,
  });
  const stuck: FindStuck[] = [outbox.stuck];
  const admin = createAdmin({
    ...kit,
    bus,
    node,
    channelOf,
    lives,
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
    deployments,
    devices: {
      exists: async (scope, deviceId) => (await devices.find(scope, deviceId)) !== undefined,
      withFingerprint: devices.withFingerprint,
      reissue: devices.reissue,
    },
    ...pairingLimits({ limit: config.RATE_LIMIT_PAIRING, limiter, addressKey: deps.addressKey }),
    settings: { publicUrl, portalUrl: () => config.PORTAL_URL ?? publicUrl(), returnHosts: config.RETURN_HOSTS, socketUrl },
  });
  const billing = createBilling({ ...kit, counters, tenants: tenants.standing, settings: billingSettings(config, publicUrl) });
  const general = createGeneral({
    db,
    changelog: deps.changelog,
    rateLimits: deps.rateLimits,
    memberships: tenants.memberships,
    flags: admin.flags,
    ...serviceFacts(deps),
  });

  /** One line registers a feature: its operations, jobs, event consumer, command outcomes, plan counters and gauges. */
  const features = {
    health: healthOf(deps, mails),
    pairing,
    devices,
    commands,
    agent: createAgent({ clock, devices, settings: { publicUrl, ...agentSettings(config) } }),
    tenants,
    roles,
    apiKeys,
    billing,
    general,
    live,
    admin,
    audit,
    // After the tenants: it counts a plan's members with those who are invited.
    invites: createInvites({ ...kit, log, tenants, grants: roles.grants, settings: inviteSettings(config, publicUrl) }),
    account: createAccount({ ...kit, tenants, audit }),
  } satisfies FeaturesOf<Contract>;

  const parts = connectParts(features, { outbox, outcomes, counters, stuck });
  spreadChanges({ outbox, live, commands, changes });

  return {
    ...features,
    outbox,
    sessions: createAgentSessions({ db, presence: devices.presence, delivery: commands.delivery, createBatch }),
    all: features,
    jobs: [...outbox.jobs, ...mails.jobs, ...parts.flatMap(([, { jobs = [] }]) => jobs)],
    gauges: [...mails.gauges, ...parts.flatMap(([, { gauges = [] }]) => gauges)],
  };
};
export type Features = ReturnType<typeof createFeatures>;
