// Which rows of a list somebody has chosen: some of them, or all that match the filters but some. Nothing is read for it.
import { useLayoutEffect, useMemo, useState } from "react";

export interface Selection {
  /** Every row that matches, but `ids`; otherwise only `ids`. */
  readonly all: boolean;
  readonly ids: ReadonlySet<string>;
  readonly has: (id: string) => boolean;
  readonly count: (total: number) => number;
  readonly toggle: (id: string) => void;
  readonly add: (ids: readonly string[]) => void;
  readonly only: (ids: readonly string[]) => void;
  readonly chooseAll: () => void;
  /** Why something did not work for a row, to stand beside it. */
  readonly faults: ReadonlyMap<string, string>;
  readonly setFaults: (faults: ReadonlyMap<string, string>) => void;
}

const NONE: ReadonlySet<string> = new Set();
const NO_FAULTS: ReadonlyMap<string, string> = new Map();

/** `filters`: what the rows match. With other filters nothing is chosen. */
export const useSelection = (filters: string): Selection => {
  const [{ all, ids }, set] = useState({ all: false, ids: NONE });
  const [faults, setFaults] = useState(NO_FAULTS);
  // At once: a press would still mean what was chosen before.
  // biome-ignore lint/correctness/useExhaustiveDependencies: other filters are other rows
  useLayoutEffect(() => {
    set({ all: false, ids: NONE });
    setFaults(NO_FAULTS);
  }, [filters]);
  return useMemo(
    () => ({
      all,
      ids,
      has: (id) => all !== ids.has(id),
      count: (total) => (all ? Math.max(0, total - ids.size) : ids.size),
      toggle: (id) =>
        set((before) => {
          const next = new Set(before.ids);
          if (!next.delete(id)) next.add(id);
          return { all: before.all, ids: next };
        }),
      add: (more) =>
        set((before) => {
          const next = new Set(before.ids);
          for (const id of more) {
            if (before.all) next.delete(id);
            else next.add(id);
          }
          return { all: before.all, ids: next };
        }),
      only: (chosen) => set({ all: false, ids: new Set(chosen) }),
      chooseAll: () => set({ all: true, ids: NONE }),
      faults,
      setFaults,
    }),
    [all, ids, faults],
  );
};
