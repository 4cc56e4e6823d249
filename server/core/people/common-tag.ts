// What devices have in common, for people who look for one cause.

interface Tagged {
  readonly tags: readonly string[];
}
/** How many devices of the tenant have each tag. */
export type TagTotals = ReadonlyMap<string, number>;

/** More are not worth counting. */
const CANDIDATES = 50;

const countTags = (devices: readonly Tagged[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const tag of devices.flatMap(({ tags }) => tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return counts;
};

/** The tags that so many of the devices have, the most common first, for `TagTotals`. */
export const sharedTags = (devices: readonly Tagged[], least: number): string[] =>
  [...countTags(devices)]
    .filter(([, count]) => count >= least)
    .toSorted(([, m], [, n]) => n - m)
    .slice(0, CANDIDATES)
    .map(([tag]) => tag);

/** The tag that most of the devices have, if at least `least` have it; of several the one that says most, because the fewest others have it. */
export const commonTag = (devices: readonly Tagged[], least: number, totals: TagTotals): string | null => {
  const total = (tag: string): number => totals.get(tag) ?? Number.POSITIVE_INFINITY;
  const order = ([a, m]: readonly [string, number], [b, n]: readonly [string, number]): number => n - m || Math.sign(total(a) - total(b)) || (a < b ? -1 : 1);
  const [most] = [...countTags(devices)].toSorted(order);
  return most !== undefined && most[1] >= least ? most[0] : null;
};
