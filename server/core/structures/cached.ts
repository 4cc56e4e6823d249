// A short-lived cache in front of a read that every call needs. It never returns a value older than its time to live.
import type { Clock } from "../clock.ts";
import { createBoundedCache } from "./bounded-cache.ts";

export interface CachedOptions<V> {
  readonly load: (key: string) => Promise<V | null>;
  readonly clock: Clock;
  /** Maximum age of a value; a change on this node drops it at once. */
  readonly ttlMs: number;
  readonly maxEntries?: number;
}

export interface Cached<V> {
  /** Concurrent callers share one load. It never caches failure or absence, so a new record is found at once. */
  get(key: string): Promise<V | null>;
  /** What `get` would return without a load; null when it would load. */
  peek(key: string): V | null;
  forget(keys: readonly string[]): void;
  forgetAll(): void;
}

export const createCached = <V extends object>({ load, clock, ttlMs, maxEntries = 20_000 }: CachedOptions<V>): Cached<V> => {
  const known = createBoundedCache<V>(maxEntries, { ttl: ttlMs, ttlResolution: 0, perf: { now: clock.elapsed } });
  // A load leaves this map when it ends or its key changes: a load that began before a change is neither cached nor shared after it.
  const loading = new Map<string, Promise<V | null>>();

  const loadOnce = async (key: string): Promise<V | null> => {
    const mine = load(key);
    loading.set(key, mine);
    try {
      const value = await mine;
      if (value !== null && loading.get(key) === mine) known.set(key, value);
      return value;
    } finally {
      if (loading.get(key) === mine) loading.delete(key);
    }
  };

  return {
    get: async (key) => known.get(key) ?? loading.get(key) ?? loadOnce(key),
    peek: (key) => known.get(key) ?? null,
    forget: (keys) => {
      for (const key of keys) {
        known.delete(key);
        loading.delete(key);
      }
    },
    forgetAll: () => {
      known.clear();
      loading.clear();
    },
  };
};
