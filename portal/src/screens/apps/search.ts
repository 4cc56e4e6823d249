// What the URL of the list of apps says: its filters.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

export const SORTS = ["-createdAt", "name", "status"] as const;

export const readAppSearch = (search: Search) =>
  given({
    // The screen knows the states, so that the first one loads without them.
    ...textsOf(search, ["q", "status", "appType", "deviceId", "drift", "outdated"]),
    sort: oneOf(search["sort"], SORTS),
  });
