// What the URL of the list of apps says: its filters.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const SORTS = ["-createdAt", "name", "status"] as const;

export const readAppSearch = (search: Search) =>
  given({
    q: textOf(search["q"]),
    // The screen knows the states, so that the first one loads without them.
    status: textOf(search["status"]),
    appType: textOf(search["appType"]),
    deviceId: textOf(search["deviceId"]),
    sort: oneOf(search["sort"], SORTS),
  });
