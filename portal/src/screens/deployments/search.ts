// What the URL of the list of deployments says: its filters.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

export const SORTS = ["-createdAt", "name", "status"] as const;

export const readDeploymentSearch = (search: Search) =>
  given({
    // The screen knows the states, so that the first one loads without them.
    ...textsOf(search, ["q", "status", "template", "deviceId"]),
    sort: oneOf(search["sort"], SORTS),
  });
