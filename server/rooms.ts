// The rooms, and who is handed what of whom. Read it as the diagram of the system: no room imports another's code, they meet here.

import { CONNECT_PATHS, LIMITS } from "../protocol/index.ts";
import type { Config } from "./config.ts";
import { type Clock, systemClock } from "./core/clock.ts";
import type { Hint } from "./core/events.ts";
import type { RateLimiter } from "./core/rate-limiter.ts";
import type { SessionOwnerDirectory } from "./core/session-owner-directory.ts";
import type { DuplicateProbe } from "./core/sessions.ts";
import type { Tracing } from "./core/trace.ts";
import { type AdminSettings, createAdmin, type ThisNode } from "./features/admin/index.ts";
import { createAgent } from "./features/agent/index.ts";
import { type ApiKeysRoom, countApiKeys, createApiKeys } from "./features/api-keys/index.ts";
import { type CommandSettings, createCommands } from "./features/commands/index.ts";
import { countDevices, createDevices, createSessions, deviceSettings } from "./features/devices/index.ts";
import { createLive } from "./features/live/index.ts";
import { countEnrollmentTokens, createPairing } from "./features/pairing/index.ts";
import { createPlan, createTenants } from "./features/tenants/index.ts";
import { createCourier, nodeChannel } from "./gateway/channel/courier.ts";
import { limitAddress } from "./gateway/request-info.ts";
import { createBatch } from "./platform/batch.ts";
import type { Bus } from "./platform/bus.ts";
import type { Db } from "./platform/db.ts";
import type { Log } from "./platform/log.ts";
import type { Metrics } from "./platform/metrics.ts";
import { createOutbox } from "./platform/outbox.ts";
import { processIdentity } from "./platform/process-identity.ts";
import { createMemoryRateLimiter } from "./platform/rate-limit.ts";
import type { SecretBox } from "./platform/secrets.ts";
import { createTidings } from "./platform/tidings.ts";

export interface RoomsDeps {
  readonly config: Config;
  readonly db: Db;
  readonly secretBox: SecretBox;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly bus: Bus;
  readonly directory: SessionOwnerDirectory;
  readonly nodeId: string;
  /** Known when the listener is open, hence asked at each use. */
  readonly publicUrl: () => string;
  readonly clock?: Clock;
  readonly limiter?: RateLimiter;
  readonly node: ThisNode;
  /** Asks the sockets of all nodes; they are opened later. */
  readonly probe: DuplicateProbe;
  readonly tracing?: Tracing | null;
  /** For tests. */
  readonly admin?: Partial<AdminSettings> | undefined;
  readonly commands?: Partial<CommandSettings> | undefined;
}

const WRONG_TOKENS_PER_MINUTE = 3;
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** Enrollment tokens that were wrong, counted by address. */
const wrongTokens = ({ RATE_LIMIT_PAIRING: given }: Config, limiter: RateLimiter) => {
  const limit = given ?? (given === null ? UNLIMITED : WRONG_TOKENS_PER_MINUTE);
  return { take: (ip: string) => limiter.take([{ name: "pairing.autoActivate.ip", key: limitAddress(ip), limit, windowSeconds: 60 }]) };
};

/** Pairing codes that were wrong. RATE_LIMIT_PAIRING is meant for one caller, so only its `off` touches the budget that all share. */
const guessBuckets =
  ({ RATE_LIMIT_PAIRING: given }: Config) =>
  (ip: string) =>
    given === null
      ? []
      : LIMITS["pairing.guess"].map(({ name, limit, windowSeconds, per }) =>
          per === "ip" ? { name, key: limitAddress(ip), limit: given ?? limit, windowSeconds } : { name, key: "all", limit, windowSeconds },
        );

const agentSettings = (config: Config) => ({
  heartbeatSeconds: config.HEARTBEAT_SECONDS,
  pollSeconds: config.POLL_SECONDS,
  maxOutputBytes: 65_536,
  requestsPerMinute: config.RATE_LIMIT_AGENT ?? LIMITS.agent[0].limit,
  heartbeatsPerMinute: config.RATE_LIMIT_HEARTBEAT ?? LIMITS.heartbeat[0].limit,
});

export const createRooms = (deps: RoomsDeps) => {
  const { config, db, secretBox, log, metrics, bus, directory, nodeId, publicUrl } = deps;
  const clock = deps.clock ?? systemClock;
  const limiter = deps.limiter ?? createMemoryRateLimiter({ clock });
  const onError = (what: string, error: unknown): void => log.error({ what, error }, "background work failed");
  const courier = createCourier({ bus, directory, onError: (error) => onError("courier", error), onNudge: metrics.channelMeters.nudged });
  const outbox = createOutbox({ db, onError, settings: { keepDays: config.EVENT_RETENTION_DAYS } });
  const live = createLive({
    db,
    clock,
    onError: (error) => onError("live feed", error),
    settings: { streamsPerTenant: config.LIVE_STREAMS_PER_TENANT, streamsPerCredential: config.LIVE_STREAMS_PER_CREDENTIAL },
  });
  const tidings = createTidings({ bus, nodeId, onError: (error) => onError("tidings", error) });
  const { emit } = outbox;
  // Viewers of this node are shown the hint itself; other nodes are told that there is something to look at.
  const hint: Hint = (event) => {
    live.hint(event);
    tidings.tell(event.scope.tenantId);
  };

  const counters = { hosts: countDevices, apiKeys: countApiKeys, enrollmentTokens: countEnrollmentTokens };
  const plan = createPlan({ replaced: config.PLAN_LIMITS_JSON, counters });
  const tenants = createTenants({ db, clock, emit, counters, ownedTenantsPerUser: config.TENANTS_PER_USER });
  const apiKeys: ApiKeysRoom = createApiKeys({ db, clock, emit, memberships: tenants.memberships, plan, secretBox });

  const socketUrl = (): string => `${publicUrl().replace(/^http/, "ws")}${CONNECT_PATHS[0]}`;
  const devices = createDevices({
    db,
    clock,
    bus,
    emit,
    secrets: secretBox,
    plan,
    evictor: courier,
    settings: deviceSettings(config.HEARTBEAT_SECONDS, { closeGraceMs: config.CLOSE_GRACE_SECONDS * 1_000 }),
    resetCommands: (tx, device, reason) => commands.resetDevice(tx, device, reason),
    probe: deps.probe,
    nodeId,
    onError: (error) => onError("devices", error),
    pendingCommands: (device) => commands.pending(device),
    enqueue: (tx, scope, orders) => commands.enqueue(tx, scope, orders),
    socketUrl,
    createBatch,
  });
  const commands = createCommands({
    db,
    clock,
    emit,
    hint,
    showHere: live.hint,
    onError: (error) => onError("commands", error),
    courier,
    createBatch,
    nodeId,
    bus,
    channelOf: nodeChannel,
    presence: devices.presence,
    devices: { find: devices.look },
    settings: {
      maxOpenPerDevice: config.COMMAND_QUEUE_PER_DEVICE,
      maxOpenPerTenant: config.COMMAND_QUEUE_PER_TENANT,
      pollIntervalSeconds: config.POLL_SECONDS,
      keepDays: config.COMMAND_RETENTION_DAYS,
      ...deps.commands,
    },
    // Without Redis they stay within the process, which does for a node that is alone.
    hintsArrive: () => bus.healthy() && (config.REDIS_URL !== undefined || admin.liveNodes() <= 1),
    meters: metrics.commandMeters,
    tracing: deps.tracing ?? null,
    log,
  });
  const agent = createAgent({ clock, devices, settings: { publicUrl, ...agentSettings(config) } });
  const lives = async (pid: number): Promise<boolean> => (await processIdentity(pid)) !== undefined;
  const admin = createAdmin({ db, bus, node: deps.node, channelOf: nodeChannel, lives, settings: deps.admin });
  const pairing = createPairing({
    db,
    emit,
    tenants: tenants.directory,
    memberships: tenants.memberships,
    enrol: devices.enrol,
    deployments: tenants.deployments,
    plan,
    secretBox,
    devices: {
      exists: async (scope, deviceId) => (await devices.find(scope, deviceId)) !== undefined,
      withFingerprint: devices.withFingerprint,
      reissue: devices.reissue,
    },
    failures: wrongTokens(config, limiter),
    limiter,
    guessBuckets: guessBuckets(config),
    settings: {
      publicUrl,
      portalUrl: () => config.PORTAL_URL ?? publicUrl(),
      returnHosts: config.RETURN_HOSTS,
      socketUrl,
    },
  });

  // Who hears of what has happened.
  outbox.subscribe(live.dispatched);
  outbox.subscribe(commands.look);
  outbox.subscribe((events) => {
    for (const { tenantId } of events) tidings.tell(tenantId);
  });
  tidings.listen((tenantIds) => {
    commands.look();
    for (const tenantId of tenantIds) if (live.look(tenantId)) commands.showRecent(tenantId);
  });

  return {
    courier,
    outbox,
    tidings,
    live,
    tenants,
    apiKeys,
    devices,
    commands,
    agent,
    admin,
    pairing,
    limiter,
    clock,
    sessions: createSessions({ db, presence: devices.presence, delivery: commands.delivery, createBatch }),
    jobs: [...outbox.jobs, ...live.jobs, ...devices.jobs, ...commands.jobs, ...pairing.jobs, ...apiKeys.jobs, ...admin.jobs],
  };
};
export type Rooms = ReturnType<typeof createRooms>;
