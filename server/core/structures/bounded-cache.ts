// A map that keeps what was used last. It grows with what it keeps; the library would reserve memory for all entries at its making.
import { LRUCache } from "lru-cache";

type BoundedCacheOptions<V extends object | string | boolean> = Pick<LRUCache.Options<string, V, unknown>, "ttl" | "ttlResolution" | "perf" | "dispose">;

export const createBoundedCache = <V extends object | string | boolean>(maxEntries: number, options: BoundedCacheOptions<V> = {}): LRUCache<string, V> =>
  new LRUCache<string, V>({ ...options, maxSize: maxEntries, sizeCalculation: () => 1 });
