// Long lists in pieces, of a size that somebody else can take.
export function* chunk<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size);
}

/** So many of our ids, of 30 characters each, fit into a message on the bus, which holds 1 KiB. */
export const IDS_PER_MESSAGE = 25;
