// The bus over Redis: one connection speaks, another listens. Each node proves its own ears by hearing itself, since a subscription can be dead
// while every PING is answered; and it leaves a mark in Redis, so that it notices when Redis has forgotten everything.
import { type Bus, type BusMessage, encodeMessage, newBusStats } from "./bus.ts";
import { openSubscriber, type Redis, type RedisDeps } from "./redis.ts";
import { channelName, markKey } from "./redis-keys.ts";

export interface RedisBusSettings {
  readonly probeEveryMs: number;
}

export interface RedisBusDeps extends RedisDeps {
  readonly redis: Redis;
  readonly nodeId: string;
  /** Where this node hears what is meant for it alone, its own probes among it. */
  readonly ownChannel: string;
  readonly bus?: Partial<RedisBusSettings> | undefined;
}

const PROBE_EVERY_MS = 5_000;
const MISSES_UNTIL_DEAF = 2;
const MARK_OUTLIVES_PROBES = 6;
const PROBE = "probe";

const parse = (text: string): BusMessage | null => {
  try {
    const value: unknown = JSON.parse(text);
    // Only this service writes to its channels; whatever else stands there is not for us.
    return typeof value === "object" && value !== null ? (value as BusMessage) : null;
  } catch {
    return null;
  }
};

/** Opens at once, whether Redis is there or not. */
export const openRedisBus = ({ redis, nodeId, ownChannel, bus: { probeEveryMs = PROBE_EVERY_MS } = {}, ...deps }: RedisBusDeps): Bus => {
  const handlers = new Map<string, Set<(message: BusMessage) => void>>();
  const hooks: (() => void)[] = [];
  const stats = newBusStats();
  const own = channelName(ownChannel);
  const probe = { sent: 0, heard: 0, misses: 0, marked: false };
  const resync = (): void => {
    for (const hook of hooks) hook();
  };

  const ears = openSubscriber({
    ...deps,
    onMessage: (channel, text) => {
      const message = parse(text);
      if (message === null) return;
      if (channel === own && message["op"] === PROBE) {
        probe.heard = Math.max(probe.heard, Number(message["n"]));
        if (probe.heard === probe.sent) probe.misses = 0;
        return;
      }
      for (const handle of handlers.get(channel) ?? []) handle(message);
    },
  });

  /** How many heard it; null when it could not be said. */
  const say = async (channel: string, text: string): Promise<number | null> => {
    try {
      return Number(await redis.command("PUBLISH", channel, text));
    } catch {
      // A hint is lost, which is counted; the connection itself tells what ails it.
      return null;
    }
  };

  const listenForSelf = async (): Promise<void> => {
    const unheard = probe.sent > probe.heard;
    if (unheard && ears.connected) {
      probe.misses += 1;
      stats.probeMisses += 1;
    }
    if (probe.misses >= MISSES_UNTIL_DEAF) {
      probe.misses = 0;
      stats.renewals += 1;
      ears.renew(new Error("the subscription to Redis is deaf"));
    }
    const n = probe.sent + 1;
    probe.sent = n;
    // What could not be said cannot be heard.
    if ((await say(own, JSON.stringify({ op: PROBE, n }))) === null || !ears.connected) probe.heard = Math.max(probe.heard, n);
  };

  const lookForMark = async (): Promise<void> => {
    const found = await redis.command("SET", markKey(nodeId), "1", "PX", String(probeEveryMs * MARK_OUTLIVES_PROBES), "GET");
    if (probe.marked && found === null) resync();
    probe.marked = true;
  };

  const beat = async (): Promise<void> => {
    await listenForSelf();
    if (redis.connected) await lookForMark().catch(() => undefined);
  };
  const timer = setInterval(() => void beat(), probeEveryMs);
  timer.unref();

  // The mark is written anew with a new connection; that alone is no loss.
  redis.onConnected(() => {
    probe.marked = false;
    resync();
  });
  ears.onConnected(() => {
    probe.heard = probe.sent;
    probe.misses = 0;
    resync();
  });
  void ears.subscribe(own);

  return {
    publish: async (channel, message) => {
      const text = encodeMessage(message);
      const heardBy = await say(channelName(channel), text);
      if (heardBy === null) stats.lost += 1;
      return heardBy !== 0;
    },
    subscribe: async (channel, handler) => {
      const name = channelName(channel);
      const set = handlers.get(name) ?? new Set();
      handlers.set(name, set.add(handler));
      await ears.subscribe(name);
      return async () => {
        set.delete(handler);
        if (set.size > 0) return;
        handlers.delete(name);
        if (name !== own) await ears.unsubscribe(name);
      };
    },
    healthy: () => redis.connected && ears.connected && probe.misses === 0,
    onResync: (hook) => void hooks.push(hook),
    stats,
    close: async () => {
      clearInterval(timer);
      handlers.clear();
      await ears.close();
    },
  };
};
