// The bus over Redis: one connection speaks, another listens. Each node proves its own ears by hearing itself, since a subscription can be dead
// while every PING is answered; and it leaves a mark in Redis, so that it notices when Redis has forgotten everything.
import { type Ailment, type Bus, type BusMessage, encodeMessage, newBusStats } from "./bus.ts";
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
/** The own voice comes back in a millisecond; a busy process is given this long. */
const MAX_ECHO_MS = 2_000;
const RENEWED_PAUSE_MS = 500;

interface Probe {
  sent: number;
  heard: number;
  /** In a row. */
  misses: number;
  marked: boolean;
  refusesWrites: boolean;
  closed: boolean;
  /** Runs until an echo is due, or the next probe. */
  timer: NodeJS.Timeout | null;
}

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
  const probe: Probe = { sent: 0, heard: 0, misses: 0, marked: false, refusesWrites: false, closed: false, timer: null };
  const ailment = (): Ailment | null => {
    if (!redis.connected) return "away";
    if (!ears.connected || probe.misses > 0) return "deaf";
    return probe.refusesWrites ? "refuses writes" : null;
  };
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
        probe.misses = 0;
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

  const judge = (n: number): void => {
    probe.timer = null;
    if (probe.heard >= n || !ears.connected) return;
    probe.misses += 1;
    stats.probeMisses += 1;
    // The second probe follows the first at once: one may be late because this process was busy.
    if (probe.misses < MISSES_UNTIL_DEAF) return void speak();
    stats.renewals += 1;
    ears.renew(new Error("the subscription to Redis is deaf"));
  };

  const speak = async (): Promise<void> => {
    if (probe.timer !== null) clearTimeout(probe.timer);
    probe.timer = null;
    probe.sent += 1;
    const n = probe.sent;
    const heardBy = await say(own, JSON.stringify({ op: PROBE, n }));
    // What could not be said cannot be heard. What Redis handed to nobody needs no waiting for.
    if (heardBy === 0) judge(n);
    else if (heardBy !== null && !probe.closed) probe.timer = setTimeout(judge, Math.min(MAX_ECHO_MS, probeEveryMs), n);
  };

  const lookForMark = async (): Promise<void> => {
    const found = await redis.command("SET", markKey(nodeId), "1", "PX", String(probeEveryMs * MARK_OUTLIVES_PROBES), "GET");
    if (probe.marked && found === null) resync();
    probe.marked = true;
  };

  const beat = (): void => {
    if (probe.timer === null) void speak();
    if (!redis.connected) return;
    // Refused while the connection holds: a replica after a failover, or a Redis that is full.
    lookForMark().then(
      () => {
        probe.refusesWrites = false;
      },
      () => {
        probe.refusesWrites = redis.connected;
      },
    );
  };
  const timer = setInterval(beat, probeEveryMs);
  timer.unref();

  // The mark is written anew with a new connection; that alone is no loss.
  redis.onConnected(() => {
    probe.marked = false;
    resync();
  });
  ears.onConnected(() => {
    // A deaf subscription that was made anew is believed once it has heard something. Not at once, so that one which stays deaf is not made anew without a pause.
    if (probe.misses > 0 && probe.timer === null) probe.timer = setTimeout(() => void speak(), Math.min(RENEWED_PAUSE_MS, probeEveryMs));
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
    healthy: () => ailment() === null,
    ailment,
    onResync: (hook) => void hooks.push(hook),
    stats,
    close: async () => {
      clearInterval(timer);
      if (probe.timer !== null) clearTimeout(probe.timer);
      probe.closed = true;
      handlers.clear();
      await ears.close();
    },
  };
};
