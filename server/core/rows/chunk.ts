// Cuts a long list into pieces of a given size.
export function* chunk<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size);
}

/** Our ids have 30 characters, and a message on the bus holds 1 KiB. */
export const IDS_PER_MESSAGE = 25;
