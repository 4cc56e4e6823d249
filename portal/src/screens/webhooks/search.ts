// What the URL of one webhook says: the filters of its deliveries, and which delivery is open.
import { given, type Search, textOf, textsOf } from "../../api/search.ts";

export const readDeliverySearch = (search: Search) =>
  given({
    // The screen knows the states, so that the first one loads without them.
    ...textsOf(search, ["delivery", "status"]),
    // A word without a key means the type.
    type: textOf(search["type"] ?? search["q"]),
  });
export type DeliverySearch = ReturnType<typeof readDeliverySearch>;
