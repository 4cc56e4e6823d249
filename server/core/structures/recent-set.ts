// Recent keys with a value, in two generations: it drops the older one as a whole, so it needs no timer and no search to forget.

export interface RecentSet<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  /** It still has everything that was set within this many milliseconds. */
  coversMs(): number;
}

export interface RecentSetOptions {
  /** Keeps each entry for at least this long, and for at most twice as long while others come in. */
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
