// Joins several nodes into one service: over Redis if REDIS_URL is set, inside the process if not. No other code depends on which.
import type { Config } from "./config.ts";
import type { Clock } from "./core/clock.ts";
import type { Lifecycle } from "./core/lifecycle/lifecycle.ts";
import type { SessionOwners } from "./core/ports/agent-sessions.ts";
import type { RateLimiter } from "./core/ports/rate-limiter.ts";
import { type ClusterNotifier, createDeviceNotifier, type DeviceNotifierDeps, nodeChannel } from "./gateway/channel/device-notifier.ts";
import type { Bus } from "./platform/cluster/bus.ts";
import { openMemoryBus, openMemorySessionOwners } from "./platform/cluster/bus-memory.ts";
import { openRedisBus, type RedisBusSettings } from "./platform/cluster/bus-redis.ts";
import { type ChangeNotifier, createChangeNotifier } from "./platform/cluster/change-notifier.ts";
import { createMemoryRateLimiter } from "./platform/cluster/rate-limit.ts";
import { createRedisRateLimiter } from "./platform/cluster/rate-limit-redis.ts";
import type { Redis } from "./platform/cluster/redis.ts";
import { openRedisPlace } from "./platform/cluster/redis-cluster.ts";
import type { RedisSettings } from "./platform/cluster/redis-link.ts";
import { openRedisSessionOwners } from "./platform/cluster/session-owners-redis.ts";
import { type CountedSignatureMemory, createSignatureMemory } from "./platform/signature-memory.ts";
import type { Log } from "./platform/telemetry/log.ts";
import { loggedWaits, placeOf } from "./platform/waits.ts";

interface Shared {
  readonly bus: Bus;
  readonly owners: SessionOwners;
  readonly limiter: RateLimiter;
  readonly signatures: CountedSignatureMemory;
  readonly stats: ClusterStats;
}

export interface Cluster extends Shared {
  readonly notifier: ClusterNotifier;
  readonly changes: ChangeNotifier;
  /** The bus channel of one node. */
  channelOf(nodeId: string): string;
}

/** Calls that this node decided by itself because Redis was away. */
export interface ClusterStats {
  limitsAlone(): number;
  signaturesAlone(): number;
}

export interface ClusterSettings {
  readonly redis?: Partial<RedisSettings>;
  readonly bus?: Partial<RedisBusSettings>;
}

export interface ClusterDeps {
  readonly config: Pick<Config, "REDIS_URL" | "HEARTBEAT_SECONDS">;
  readonly life: Lifecycle;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The number of nodes that share every limit while Redis is away. */
  readonly liveNodes: () => number;
  readonly onNudge?: DeviceNotifierDeps["onNudge"];
  readonly settings?: ClusterSettings | undefined;
}

// Each presence flush after a heartbeat renews an entry, and a few heartbeats may be late.
const ENTRY_HEARTBEATS = 4;
const MIN_ENTRY_MS = 120_000;

const openInProcess = ({ life, clock }: ClusterDeps): Shared => ({
  bus: life.use("bus", openMemoryBus()),
  owners: openMemorySessionOwners(),
  limiter: createMemoryRateLimiter({ clock }),
  signatures: createSignatureMemory(),
  stats: { limitsAlone: () => 0, signaturesAlone: () => 0 },
});

/** Nobody waits: the node serves without Redis. It says so until Redis was there for the first time. */
const tellUntilConnected = (url: string, redis: Redis, { life, clock, log }: Pick<ClusterDeps, "life" | "clock" | "log">): void => {
  const connected = new Promise<void>((resolve, reject) => {
    redis.onConnected(resolve);
    life.signal.addEventListener("abort", reject, { once: true });
  });
  loggedWaits({ log, clock })
    .during({ on: "Redis", at: placeOf(url) }, () => connected)
    .catch(() => undefined);
};

const openOverRedis = (url: string, { config, life, nodeId, clock, log, liveNodes, settings }: ClusterDeps): Shared => {
  const connection = { url, name: `mooring:${nodeId}`, settings: settings?.redis, onError: (error: unknown) => log.warn({ error }, "Redis is away") };
  const { redis: opened, openSubscriber } = openRedisPlace(connection);
  const redis = life.use("redis", opened);
  tellUntilConnected(url, redis, { life, clock, log });
  const bus = life.use("bus", openRedisBus({ redis, openSubscriber, nodeId, ownChannel: nodeChannel(nodeId), bus: settings?.bus }));
  const ttlMs = Math.max(MIN_ENTRY_MS, config.HEARTBEAT_SECONDS * 1_000 * ENTRY_HEARTBEATS);
  const limiter = createRedisRateLimiter({ redis, clock, liveNodes });
  const signatures = createSignatureMemory(redis);
  const stats = { limitsAlone: () => limiter.degraded, signaturesAlone: () => signatures.degraded };
  return { bus, owners: openRedisSessionOwners({ redis, ttlMs }), limiter, signatures, stats };
};

/** Returns at once, also while Redis is away. */
export const openCluster = (deps: ClusterDeps): Cluster => {
  const shared = deps.config.REDIS_URL === undefined ? openInProcess(deps) : openOverRedis(deps.config.REDIS_URL, deps);
  const { nodeId, log, onNudge } = deps;
  const onError = (what: string) => (error: unknown) => log.error({ what, error }, "could not notify the other nodes");
  return {
    ...shared,
    notifier: createDeviceNotifier({ ...shared, onError: onError("device notifier"), ...(onNudge === undefined ? {} : { onNudge }) }),
    changes: createChangeNotifier({ bus: shared.bus, nodeId, onError: onError("change notifier") }),
    channelOf: nodeChannel,
  };
};
