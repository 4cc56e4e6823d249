// A short memory in front of a lookup that every call needs. What it answers may be as old as its lifetime, never older.
import { LRUCache } from "lru-cache";
import type { Clock } from "./clock.ts";

export interface CachedOptions<V> {
  readonly load: (key: string) => Promise<V | null>;
  readonly clock: Clock;
  /** At most this old; a change on this node forgets at once. */
  readonly ttlMs: number;
  readonly maxEntries?: number;
}

export interface Cached<V> {
  /** Absence is never remembered: what has just been made is found at once. */
  get(key: string): Promise<V | null>;
  forget(keys: readonly string[]): void;
  forgetAll(): void;
}

export const createCached = <V extends object>({ load, clock, ttlMs, maxEntries = 20_000 }: CachedOptions<V>): Cached<V> => {
  const entries = new LRUCache<string, V>({ max: maxEntries, ttl: ttlMs, ttlResolution: 0, perf: { now: clock.elapsed } });
  // A load that began before a change must not be remembered after it.
  let changes = 0;
  return {
    get: async (key) => {
      const known = entries.get(key);
      if (known !== undefined) return known;
      const changesBefore = changes;
      const value = await load(key);
      if (value !== null && changes === changesBefore) entries.set(key, value);
      return value;
    },
    forget: (keys) => {
      changes += 1;
      for (const key of keys) entries.delete(key);
    },
    forgetAll: () => {
      changes += 1;
      entries.clear();
    },
  };
};
