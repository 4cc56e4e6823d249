// A map that keeps what was used last. It grows with what it keeps: the library reserves memory for a maximum of entries at once, but none
// for a size, so each entry counts as one of that.
import { LRUCache } from "lru-cache";

type BoundedCacheOptions<V extends object | string | boolean> = Pick<LRUCache.Options<string, V, unknown>, "ttl" | "ttlResolution" | "perf" | "dispose">;

export const createBoundedCache = <V extends object | string | boolean>(maxEntries: number, options: BoundedCacheOptions<V> = {}): LRUCache<string, V> =>
  new LRUCache<string, V>({ ...options, maxSize: maxEntries, sizeCalculation: () => 1 });
