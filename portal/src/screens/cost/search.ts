// What the URL of this screen says.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

export const TABS = ["month", "rates", "budgets"] as const;
export type Tab = (typeof TABS)[number];
export const WINDOWS = ["month", "last-month", "30d", "90d"] as const;
export const AGGREGATES = ["device", "app", "deployment", "fleet", "tag:"] as const;

export const readCostSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], TABS.slice(1)),
    window: oneOf(search["window"], WINDOWS.slice(1)),
    by: oneOf(search["by"], AGGREGATES.slice(1)),
    ...textsOf(search, ["open"]),
  });
export type CostSearch = ReturnType<typeof readCostSearch>;
