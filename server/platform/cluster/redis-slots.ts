// Slots: a cluster divides its keys among 16,384 of them, and one script may name keys of one slot only.
import calculateSlot from "cluster-key-slot";
import { groupBy } from "../../core/structures/group-by.ts";
import type { Redis } from "./redis.ts";

export const clusterSlotOf = (key: string): number => calculateSlot(key);

export interface SlotDeps<T> {
  readonly redis: Pick<Redis, "slotOf">;
  readonly keyOf: (item: T) => string;
}

/** Asks once for each slot, all at the same time. Returns an answer for each item, in their order; null where the slot's Redis gave none. */
export const bySlot = async <T, R>(
  { redis, keyOf }: SlotDeps<T>,
  items: readonly T[],
  ask: (some: readonly T[], keys: readonly string[]) => Promise<readonly R[]>,
): Promise<(R | null)[]> => {
  const answers: (R | null)[] = items.map(() => null);
  const placed = items.map((item, at) => ({ item, key: keyOf(item), at }));
  const askSlot = async (some: typeof placed): Promise<void> => {
    const found = await ask(
      some.map(({ item }) => item),
      some.map(({ key }) => key),
    ).catch(() => []);
    some.forEach(({ at }, n) => {
      answers[at] = found[n] ?? null;
    });
  };
  await Promise.all([...groupBy(placed, ({ key }) => redis.slotOf(key)).values()].map(askSlot));
  return answers;
};
