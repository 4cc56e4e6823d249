// Runs a batch in which one bad item must not fail its neighbours.

/** Returns results in the order of the items. The flush must be all or nothing, since its items may run again in smaller batches. */
export type Flush<I, O> = (items: readonly I[]) => Promise<readonly O[]>;

/** Runs all items at once and, if that fails, each half by itself, so that a bad item fails alone. Never rejects. */
export const splitBatchOnFailure = async <I, O>(
  items: readonly I[],
  flush: Flush<I, O>,
  splitOn: (error: unknown) => boolean,
): Promise<readonly PromiseSettledResult<O>[]> => {
  try {
    const results = await flush(items);
    if (results.length !== items.length) throw new Error(`a batch of ${items.length} gave ${results.length} results`);
    return results.map((value) => ({ status: "fulfilled", value }));
  } catch (error) {
    if (items.length === 1 || !splitOn(error)) return items.map(() => ({ status: "rejected", reason: error }));
    const half = Math.ceil(items.length / 2);
    return [...(await splitBatchOnFailure(items.slice(0, half), flush, splitOn)), ...(await splitBatchOnFailure(items.slice(half), flush, splitOn))];
  }
};
