// What the URL of this screen says.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const TABS = ["alerts", "events", "rules", "blocked"] as const;
export type Tab = (typeof TABS)[number];
export const SEVERITIES = ["low", "medium", "high", "critical"] as const;
export const STATUSES = ["open", "acknowledged", "resolved"] as const;
export const BLOCKABLE = ["ip", "user", "device", "key"] as const;

export const readSecuritySearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], TABS.slice(1)),
    /** The id of the alert or rule that is open. */
    open: textOf(search["open"]),
    status: oneOf(search["status"], STATUSES),
    type: textOf(search["type"]),
    severity: oneOf(search["severity"], SEVERITIES),
    /** An address or an id. */
    entityId: textOf(search["entityId"]),
  });
