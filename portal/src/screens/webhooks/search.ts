// What the URL of one webhook says: the filters of its deliveries, and which delivery is open.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const STATUSES = ["pending", "retrying", "succeeded", "exhausted", "blocked", "cancelled"] as const;

export const readDeliverySearch = (search: Search) =>
  given({
    delivery: textOf(search["delivery"]),
    status: oneOf(search["status"], STATUSES),
    // A word without a key means the type.
    type: textOf(search["type"] ?? search["q"]),
  });
export type DeliverySearch = ReturnType<typeof readDeliverySearch>;
