// Recent keys with a value, in two generations: the older one is dropped as a whole, so forgetting needs no timer and no search.

export interface RecentSet<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  /** It knows everything that was set in the last so many milliseconds. */
  coversMs(): number;
}

export interface RecentSetOptions {
  /** Each entry is kept this long at least; twice as long at most, as long as others come in. */
  readonly keepMs: number;
  /** The newest that are kept whatever their age; twice as many at most. */
  readonly keep: number;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

export const createRecentSet = <V>({ keepMs, keep, nowMs = () => performance.now() }: RecentSetOptions): RecentSet<V> => {
  let older = new Map<string, V>();
  let newer = new Map<string, V>();
  let begunAt = nowMs();
  let olderBegunAt = begunAt;
  return {
    get: (key) => newer.get(key) ?? older.get(key),
    set: (key, value) => {
      if (newer.size >= keep || nowMs() - begunAt >= keepMs) {
        older = newer;
        olderBegunAt = begunAt;
        newer = new Map();
        begunAt = nowMs();
      }
      newer.set(key, value);
    },
    coversMs: () => nowMs() - olderBegunAt,
  };
};
