// What the URL of this screen says.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

export const TABS = ["alerts", "rules", "silences", "channels"] as const;
export type Tab = (typeof TABS)[number];

export const readAlertSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], TABS.slice(1)),
    ...textsOf(search, ["open", "status", "severity", "ruleId", "deviceId"]),
  });
export type AlertSearch = ReturnType<typeof readAlertSearch>;
