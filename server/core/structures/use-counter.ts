// What passes through records, counted in memory and added to their rows now and then. What could not be written is counted again.

export interface UseCounter<Use> {
  add(id: string, use: Readonly<Partial<Use>>): void;
  /** Writes what has gathered since the last time. */
  flush(write: (used: ReadonlyMap<string, Use>) => Promise<void>): Promise<void>;
}

export const createUseCounter = <Name extends string>(names: readonly Name[]): UseCounter<Record<Name, number>> => {
  const used = new Map<string, Record<Name, number>>();
  const zero = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>; // as: the names above
  const add = (id: string, use: Readonly<Partial<Record<Name, number>>>): void => {
    const counted = used.get(id) ?? { ...zero };
    for (const name of names) counted[name] += use[name] ?? 0;
    used.set(id, counted);
  };
  return {
    add,
    flush: async (write) => {
      if (used.size === 0) return;
      const taken = new Map(used);
      used.clear();
      try {
        await write(taken);
      } catch (error) {
        for (const [id, each] of taken) add(id, each);
        throw error;
      }
    },
  };
};

/** The values of a statement over `unnest`: the ids, and a column for each name. */
export const useColumns = <Name extends string>(used: ReadonlyMap<string, Readonly<Record<Name, number>>>, names: readonly Name[]): readonly string[][] => {
  const all = [...used];
  return [all.map(([id]) => id), ...names.map((name) => all.map(([, each]) => String(each[name])))];
};
