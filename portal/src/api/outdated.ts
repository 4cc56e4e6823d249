// Reads again what is out of date.
import type { QueryClient, QueryFilters } from "@tanstack/query-core";

/** An answer that is on its way may be older than what has happened: it counts as out of date when it comes. */
export const readAgain = (client: QueryClient, filter: QueryFilters): void => {
  const onTheirWay = client.getQueryCache().findAll({ ...filter, fetchStatus: "fetching" });
  void client.invalidateQueries(filter, { cancelRefetch: false });
  for (const { promise, queryKey } of onTheirWay) {
    const again = (): void => void client.invalidateQueries({ queryKey, exact: true }, { cancelRefetch: false });
    promise?.then(again, again);
  }
};
