// A short-lived cache in front of a read that every call needs. It never returns a value older than its time to live.
import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.ts";

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
  // The library reserves memory for all entries at once, so a cache that a process never uses is not made.
  let made: LRUCache<string, V> | undefined;
  const make = (): LRUCache<string, V> => {
    made = new LRUCache({ max: maxEntries, ttl: ttlMs, ttlResolution: 0, perf: { now: clock.elapsed } });
    return made;
  };
  // A load leaves this map when it ends or its key changes: a load that began before a change is neither cached nor shared after it.
  const loading = new Map<string, Promise<V | null>>();

  const loadOnce = async (key: string): Promise<V | null> => {
    const mine = load(key);
    loading.set(key, mine);
    try {
      const value = await mine;
      if (value !== null && loading.get(key) === mine) (made ?? make()).set(key, value);
      return value;
    } finally {
      if (loading.get(key) === mine) loading.delete(key);
    }
  };

  return {
    get: async (key) => made?.get(key) ?? loading.get(key) ?? loadOnce(key),
    peek: (key) => made?.get(key) ?? null,
    forget: (keys) => {
      for (const key of keys) {
        made?.delete(key);
        loading.delete(key);
      }
    },
    forgetAll: () => {
      made?.clear();
      loading.clear();
    },
  };
};
