// What the URL of this screen says.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

export const TABS = ["alerts", "events", "rules", "blocked"] as const;
export type Tab = (typeof TABS)[number];

export const readSecuritySearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], TABS.slice(1)),
    /** The id of the alert or rule that is open. */
    /** An address or an id. */
    // The screen knows the states, so that the first one loads without them.
    ...textsOf(search, ["open", "type", "entityId", "status", "severity"]),
  });
