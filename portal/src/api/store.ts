// One value that any part of the page may read and follow.
import { useSyncExternalStore } from "react";

export interface Store<T extends object> {
  readonly get: () => T;
  readonly set: (change: Partial<T>) => void;
  readonly use: () => T;
  /** Outside of components. Answers the function that ends it. */
  readonly follow: (listener: () => void) => () => void;
}

export const createStore = <T extends object>(initial: T): Store<T> => {
  let value = initial;
  const listeners = new Set<() => void>();
  const get = (): T => value;
  const follow = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    get,
    set: (change) => {
      value = { ...value, ...change };
      for (const listener of listeners) listener();
    },
    use: () => useSyncExternalStore(follow, get),
    follow,
  };
};
