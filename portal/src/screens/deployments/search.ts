// What the URL of the list of deployments says: its filters.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const SORTS = ["-createdAt", "name", "status"] as const;

export const readDeploymentSearch = (search: Search) =>
  given({
    q: textOf(search["q"]),
    // The screen knows the states, so that the first one loads without them.
    status: textOf(search["status"]),
    template: textOf(search["template"]),
    deviceId: textOf(search["deviceId"]),
    sort: oneOf(search["sort"], SORTS),
  });
