// The bus over Redis: one connection publishes, another subscribes. A subscription can be dead while every PING is answered, so each node probes its own
// channel; it also keeps a mark in Redis, to notice when Redis has lost its data.
import type { BusMessage } from "../../core/ports/pub-sub.ts";
import { type Bus, type BusDegradation, encodeMessage, newBusStats } from "./bus.ts";
import type { Redis } from "./redis.ts";
import { channelName, markKey } from "./redis-keys.ts";
import type { OnMessage, RedisSubscriber } from "./redis-subscriber.ts";

export interface RedisBusSettings {
  readonly probeEveryMs: number;
}

export interface RedisBusDeps {
  readonly redis: Redis;
  readonly openSubscriber: (onMessage: OnMessage) => RedisSubscriber;
  readonly nodeId: string;
  /** The channel for messages to this node alone, and for its own probes. */
  readonly ownChannel: string;
  readonly bus?: Partial<RedisBusSettings> | undefined;
}

const PROBE_EVERY_MS = 5_000;
const MISSES_UNTIL_DEAF = 2;
const MARK_OUTLIVES_PROBES = 6;
const PROBE = "probe";
/** An echo takes a millisecond; a busy process may need this long. */
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
  /** Fires when the echo is due, or the next probe. */
  timer: NodeJS.Timeout | null;
}

const parse = (text: string): BusMessage | null => {
  try {
    const value: unknown = JSON.parse(text);
    // Only this service writes to these channels; ignore anything else.
    return typeof value === "object" && value !== null ? (value as BusMessage) : null;
  } catch {
    return null;
  }
};

/** Opens at once, also while Redis is away. */
export const openRedisBus = ({ redis, nodeId, ownChannel, openSubscriber, bus: { probeEveryMs = PROBE_EVERY_MS } = {} }: RedisBusDeps): Bus => {
  const handlers = new Map<string, Set<(message: BusMessage) => void>>();
  const hooks: (() => void)[] = [];
  const stats = newBusStats();
  const own = channelName(ownChannel);
  const probe: Probe = { sent: 0, heard: 0, misses: 0, marked: false, refusesWrites: false, closed: false, timer: null };
  const degradation = (): BusDegradation | null => {
    if (!redis.connected) return "away";
    if (!ears.connected || probe.misses > 0) return "deaf";
    return probe.refusesWrites ? "refuses writes" : null;
  };
  const resync = (): void => {
    for (const hook of hooks) hook();
  };

  const ears = openSubscriber((channel, text) => {
    const message = parse(text);
    if (message === null) return;
    if (channel === own && message["op"] === PROBE) {
      probe.heard = Math.max(probe.heard, Number(message["n"]));
      probe.misses = 0;
      return;
    }
    for (const handle of handlers.get(channel) ?? []) handle(message);
  });

  /** Returns the number of receivers; null if PUBLISH failed. */
  const send = async (channel: string, text: string): Promise<number | null> => {
    try {
      return await redis.publish(channel, text);
    } catch {
      // The caller counts the lost message; the connection reports its own error.
      return null;
    }
  };

  const judge = (n: number): void => {
    probe.timer = null;
    if (probe.heard >= n || !ears.connected) return;
    probe.misses += 1;
    stats.probeMisses += 1;
    // Sends a second probe at once: the first may be late because this process was busy.
    if (probe.misses < MISSES_UNTIL_DEAF) return void sendProbe();
    stats.renewals += 1;
    ears.renew(new Error("the subscription to Redis delivers nothing"));
  };

  const sendProbe = async (): Promise<void> => {
    if (probe.timer !== null) clearTimeout(probe.timer);
    probe.timer = null;
    probe.sent += 1;
    const n = probe.sent;
    const heardBy = await send(own, JSON.stringify({ op: PROBE, n }));
    // If PUBLISH failed there is no echo to wait for; if nobody received the probe, it has failed already.
    if (heardBy === 0) judge(n);
    else if (heardBy !== null && !probe.closed) probe.timer = setTimeout(judge, Math.min(MAX_ECHO_MS, probeEveryMs), n);
  };

  const checkMark = async (): Promise<void> => {
    const found = await redis.command("SET", markKey(nodeId), "1", "PX", String(probeEveryMs * MARK_OUTLIVES_PROBES), "GET");
    if (probe.marked && found === null) resync();
    probe.marked = true;
  };

  const check = (): void => {
    if (probe.timer === null) void sendProbe();
    if (!redis.connected) return;
    // A write fails on a live connection when Redis is a replica after a failover, or full.
    checkMark().then(
      () => {
        probe.refusesWrites = false;
      },
      () => {
        probe.refusesWrites = redis.connected;
      },
    );
  };
  const timer = setInterval(check, probeEveryMs);
  timer.unref();

  // A new connection writes the mark again, so its absence then is no sign of lost data.
  redis.onConnected(() => {
    probe.marked = false;
    resync();
  });
  ears.onConnected(() => {
    // A replaced subscription counts as deaf until a probe comes back. The pause keeps one that stays deaf from being replaced in a tight loop.
    if (probe.misses > 0 && probe.timer === null) probe.timer = setTimeout(() => void sendProbe(), Math.min(RENEWED_PAUSE_MS, probeEveryMs));
    resync();
  });
  void ears.subscribe(own);

  return {
    publish: async (channel, message, maxBytes) => {
      const text = encodeMessage(message, maxBytes);
      const heardBy = await send(channelName(channel), text);
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
    healthy: () => degradation() === null,
    degradation,
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
